// The listener of an agent, asked over TLS as other agents ask it, and as strangers might.
#include "orchestrator/agent/peer_listener.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "http_client/client.h"
#include "orchestrator/agent/file_client.h"
#include "orchestrator/fleet/checkpoint_sources.h"
#include "orchestrator/staging/chunk_list.h"
#include "orchestrator/staging/stager.h"
#include "tests/unit/checkpoint/checkpoint_files.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

class PeerListenerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::PutWhole(folder_.path() / "source", std::string(5 << 20, 'w'));
    StagerOptions options;
    options.root = root_;
    staged_.emplace(Stager(options).Stage(folder_.path() / "source"));
    fingerprint_ = staged_->fingerprint();
    testing::Put(folder_.path() / "authority.pem", listener_.authority());
  }

  std::string Token(const std::string& asker = "asker") const {
    return PeerToken(listener_.secret(), fingerprint_, asker);
  }
  std::string Url() const { return "https://127.0.0.1:" + std::to_string(listener_.port()); }

  FileClient::PeerAnswer Ask(const std::string& path, const std::string& token, uint64_t first = 0,
                             uint64_t count = 2) {
    return FileClient({"", Url(), token, folder_.path() / "authority.pem"}, nullptr)
        .AskPeer(path, first, count);
  }
  FileClient::PeerAnswer AskFor(const std::string& name, uint64_t first = 0, uint64_t count = 2) {
    return Ask("/v1/checkpoints/" + fingerprint_ + "/" + name, Token(), first, count);
  }

  TemporaryFolder folder_;
  const fs::path root_ = folder_.path() / "staging";
  std::shared_ptr<ChunkShelf> shelf_ = std::make_shared<ChunkShelf>(root_);
  PeerListener listener_{{"127.0.0.1:0", "", 0, folder_.path() / "peer"}, shelf_};
  std::optional<StagedCheckpoint> staged_;
  std::string fingerprint_;
};

TEST_F(PeerListenerTest, WhoHasTheTokenGetsRangesOfTheCheckpointsFiles) {
  const std::string whole = ReadFile(staged_->directory() / "model.safetensors");
  const FileClient::PeerAnswer answer = AskFor("model.safetensors", 4 << 20, 1000);
  EXPECT_EQ(answer.status, 206) << answer.why;
  EXPECT_EQ(answer.bytes, whole.substr(4 << 20, 1000));
  EXPECT_EQ(AskFor("config.json").bytes, "{\"");
  EXPECT_EQ(AskFor("config.json", 1 << 20, 1).status, 416);
}

TEST_F(PeerListenerTest, WithoutTheTokenNobodyGetsAByte) {
  const std::string path = "/v1/checkpoints/" + fingerprint_ + "/config.json";
  for (const std::string& token :
       {std::string(), std::string(64, '0'), Token().substr(1), listener_.secret(),
        PeerToken("another secret", fingerprint_, "asker"),
        PeerToken(listener_.secret(), "another", "asker"), "another" + Token().substr(5),
        PeerToken(listener_.secret(), fingerprint_, ""),
        PeerToken(listener_.secret(), fingerprint_, std::string(100, 'a'))}) {
    const FileClient::PeerAnswer answer = Ask(path, token);
    EXPECT_EQ(answer.status, 401) << token;
    EXPECT_EQ(answer.bytes, "");
  }
}

TEST_F(PeerListenerTest, TheTokenOfOneCheckpointOpensNoOther) {
  testing::PutWhole(folder_.path() / "other", "other weights");
  StagerOptions options;
  options.root = root_;
  const StagedCheckpoint other = Stager(options).Stage(folder_.path() / "other");
  const std::string path = "/v1/checkpoints/" + other.fingerprint() + "/config.json";
  EXPECT_EQ(Ask(path, Token()).status, 403);
  EXPECT_EQ(Ask(path, PeerToken(listener_.secret(), other.fingerprint(), "asker")).status, 206);
}

TEST_F(PeerListenerTest, OnlyFilesOfTheCheckpointAreOpened) {
  const fs::path folder = staged_->directory();
  fs::permissions(folder, fs::perms::owner_all);
  testing::Put(folder_.path() / "secret.json", "secret");
  testing::Put(folder / "further.json", "not listed");
  for (const char* name :
       {"..%2f..%2fsecret.json", "../../secret.json", "%2e%2e/%2e%2e/secret.json", "further.json",
        ".evald-staged.json", ".evald-chunks.json", ".evald-lease", "%2fetc%2fpasswd",
        "..%2f"
        "..%2fpeer%2fauthority.key",
        "config.json/", "/config.json", "%00", "."}) {
    const int status = AskFor(name).status;
    EXPECT_TRUE(status == 404 || status == 400) << name << " " << status;
  }
  fs::remove(folder / "config.json");
  fs::create_symlink(folder_.path() / "secret.json", folder / "config.json");
  EXPECT_EQ(AskFor("config.json").status, 404) << "a link in the place of a file";
}

TEST_F(PeerListenerTest, NothingElseIsServed) {
  for (const char* path : {"/", "/v1/checkpoints", "/v1/runs", "/healthz", "/metrics"}) {
    const int status = Ask(path, Token()).status;
    EXPECT_TRUE(status == 404 || status == 401) << path << " " << status;
  }
  http_client::Request put;
  put.method = "PUT";
  put.url = Url() + "/v1/checkpoints/" + fingerprint_ + "/config.json";
  put.body = "x";
  put.bearer_token = Token();
  put.ca_file = folder_.path() / "authority.pem";
  const int status = http_client::Client().Perform(put).status;
  EXPECT_TRUE(status == 405 || status == 413) << status;
}

TEST_F(PeerListenerTest, ACheckpointThatIsDroppedIsGone) {
  EXPECT_EQ(AskFor("config.json").status, 206);
  EXPECT_TRUE(staged_->Release());
  EXPECT_EQ(AskFor("config.json").status, 401) << "no checkpoint, no token";
}

TEST_F(PeerListenerTest, ChunksArePassedOnOnceTheyHaveCome) {
  const std::vector<HashedFile> files = ReadChunkList(staged_->directory());
  const auto weights = static_cast<size_t>(
      std::find_if(files.begin(), files.end(),
                   [](const HashedFile& file) { return file.name == "model.safetensors"; }) -
      files.begin());
  const fs::path coming = root_ / ".staging-fetch";
  fs::copy(staged_->directory(), coming);
  EXPECT_TRUE(staged_->Release());
  auto filling = shelf_->Fill(fingerprint_, coming, files);
  EXPECT_EQ(AskFor("model.safetensors").status, 409);
  filling->Landed(weights, 0);
  EXPECT_EQ(AskFor("model.safetensors").status, 206);
  EXPECT_EQ(AskFor("model.safetensors", (4 << 20) - 1, 2).status, 409) << "part of the next chunk";
  filling->Landed(weights, 1);
  EXPECT_EQ(AskFor("model.safetensors", (4 << 20) - 1, 2).status, 206);
  EXPECT_EQ(AskFor("further.json").status, 404);
  EXPECT_EQ(AskFor("model.safetensors", 1 << 30, 2).status, 404) << "beyond its end";
  fs::rename(coming, root_ / fingerprint_);
  EXPECT_EQ(AskFor("model.safetensors").status, 206) << "published, and not yet said";
  filling.reset();
  EXPECT_EQ(AskFor("model.safetensors").status, 206);
}

TEST_F(PeerListenerTest, AnotherAuthoritysCertificateIsNotTrusted) {
  PeerListener other({"127.0.0.1:0", "", 0, folder_.path() / "peer of another"}, shelf_);
  testing::Put(folder_.path() / "authority.pem", other.authority());
  const FileClient::PeerAnswer answer = AskFor("config.json");
  EXPECT_EQ(answer.outcome, http_client::Outcome::kUntrusted);
  EXPECT_EQ(answer.bytes, "");
}

TEST_F(PeerListenerTest, WhatIsGivenIsBoundedByTheRate) {
  PeerListener slow({"127.0.0.1:0", "", 10 << 20, folder_.path() / "peer"}, shelf_);
  const auto begin = std::chrono::steady_clock::now();
  const FileClient::PeerAnswer answer =
      FileClient(
          {"", "https://127.0.0.1:" + std::to_string(slow.port()),
           PeerToken(slow.secret(), fingerprint_, "asker"), folder_.path() / "authority.pem"},
          nullptr)
          .AskPeer("/v1/checkpoints/" + fingerprint_ + "/model.safetensors", 0, 4 << 20);
  EXPECT_EQ(answer.status, 206);
  EXPECT_GT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(350));
}

// One asker begins calls that do not end: their answers come at a byte a second.
TEST_F(PeerListenerTest, OneAskerDoesNotTakeTheCallsOfOthers) {
  PeerListener slow({"127.0.0.1:0", "", 1, folder_.path() / "peer"}, shelf_);
  const auto ask = [&](const std::string& asker, std::atomic<bool>* cancel) {
    return FileClient(
               {"", "https://127.0.0.1:" + std::to_string(slow.port()),
                PeerToken(slow.secret(), fingerprint_, asker), folder_.path() / "authority.pem"},
               cancel)
        .AskPeer("/v1/checkpoints/" + fingerprint_ + "/model.safetensors", 0, 4 << 20)
        .status;
  };
  std::atomic<bool> cancel{false};
  std::atomic<int> refused{0};
  std::vector<std::thread> greedy;
  for (int i = 0; i < 40; ++i)
    greedy.emplace_back([&] { refused += ask("greedy", &cancel) == 429 ? 1 : 0; });
  for (int i = 0; i < 200 && refused < 24; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(refused, 24) << "sixteen are under way";
  std::atomic<bool> give_up{false};
  int status = -1;
  std::thread honest([&] { status = ask("honest", &give_up); });
  std::this_thread::sleep_for(std::chrono::seconds(1));
  give_up = true;
  honest.join();
  EXPECT_NE(status, 429) << "it waits for its bytes";
  cancel = true;
  for (std::thread& thread : greedy) thread.join();
}

TEST(PeerListener, AnAddressIsAnAddress) {
  TemporaryFolder folder;
  const auto shelf = std::make_shared<ChunkShelf>(folder.path());
  for (const char* listen : {"8700", "127.0.0.1", ":8700", "127.0.0.1:x", "127.0.0.1:70000",
                             "node7:1", "127.0.0.1:1:1x"}) {
    EXPECT_NE(CaughtText([&] { PeerListener({listen, "", 0, folder.path() / "peer"}, shelf); },
                         ErrorKind::kUsage),
              "")
        << listen;
  }
}

}  // namespace
}  // namespace evald
