// Checkpoints one after another on one device, both published ones and ones that are being staged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "base/file.h"
#include "checkpoint/landed.h"
#include "checkpoint/weight_index.h"
#include "evald/error.h"
#include "tests/unit/native/native_test_util.h"
#include "tests/unit/support/temporary_folder.h"
#include "transfer_reference.h"
#include "worker/native/cuda/checkpoint_loader.h"

namespace evald::native::cuda {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

PullOptions SmallChunks() {
  PullOptions options;
  options.threads = 2;
  options.chunk_bytes = 5000;
  return options;
}

// Other weights of the same shape: each tensor's bytes in another order, finite in any type.
void ChangeWeights(CheckpointCopy* copy) {
  copy->ChangeTensors("", [](Tensors::Tensor* tensor) {
    std::reverse(tensor->data.begin(), tensor->data.end());
    for (char& byte : tensor->data) byte = static_cast<char>(byte & 0x3f);
  });
}

// Writes one shard for each layer and one for the rest.
void Shard(const fs::path& folder) {
  const Tensors all = Tensors::Read(folder / "model.safetensors");
  std::map<std::string, Tensors> shards;
  Json map = Json::object();
  for (const auto& [name, tensor] : all.tensors) {
    const size_t layer = name.find("layers.");
    const std::string shard = fmt::format(
        "model-{}.safetensors", layer == std::string::npos ? "x" : name.substr(layer + 7, 1));
    shards[shard].tensors[name] = tensor;
    map[name] = shard;
  }
  for (const auto& [name, tensors] : shards) tensors.Write(folder / name);
  WriteFileAtomic(folder / kWeightIndexFile, Json{{"weight_map", map}}.dump());
  fs::remove(folder / "model.safetensors");
}

// Stages a checkpoint as slowly as the test wants, in the same way as orchestrator/staging.
class SlowStaging {
 public:
  explicit SlowStaging(fs::path source) : source_(std::move(source)) {
    fs::create_directory(folder());
    layout_ = ReadCheckpointLayout(source_);
    for (const CheckpointFile& file : layout_.files) {
      std::ofstream(folder() / file.name).close();
      fs::resize_file(folder() / file.name, file.bytes);
    }
    writer_.emplace(folder(), layout_.files);
  }

  fs::path folder() const { return root_ / ".staging-x"; }
  uint64_t weight_bytes() const {
    uint64_t bytes = 0;
    for (const CheckpointFile& file : layout_.files) {
      if (file.name.ends_with(".safetensors")) bytes += file.bytes;
    }
    return bytes;
  }

  void LandChunk(const std::string& name, uint64_t chunk) {
    for (size_t i = 0; i < layout_.files.size(); ++i) {
      if (layout_.files[i].name != name) continue;
      const uint64_t at = chunk * kLandedChunkBytes;
      const std::string content = ReadFile(source_ / name).substr(at, kLandedChunkBytes);
      // Writes in place, since the file may be mapped already.
      std::fstream file(folder() / name, std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(static_cast<std::streamoff>(at));
      file.write(content.data(), static_cast<std::streamsize>(content.size()));
      file.close();
      writer_->Landed(i, chunk);
    }
  }
  void Land(const std::string& name) {
    for (uint64_t at = 0; at < fs::file_size(source_ / name); at += kLandedChunkBytes) {
      LandChunk(name, at / kLandedChunkBytes);
    }
  }
  // Lands all files except the shards.
  void LandDescription() {
    for (const CheckpointFile& file : layout_.files) {
      if (!file.name.ends_with(".safetensors")) Land(file.name);
    }
  }
  void LandAll() {
    for (const CheckpointFile& file : layout_.files) Land(file.name);
  }
  // Publishes and returns the checkpoint's folder from now on.
  fs::path Publish() {
    const std::string fingerprint(32, 'a');
    writer_->Hide();
    fs::rename(folder(), root_ / fingerprint);
    writer_->Publish(fingerprint);
    writer_.reset();
    return root_ / fingerprint;
  }
  void Fail() { writer_.reset(); }

 private:
  fs::path source_;
  TemporaryFolder root_;
  CheckpointLayout layout_;
  std::optional<LandedWriter> writer_;
};

// The host side of a checkpoint.
struct OnHost {
  explicit OnHost(const fs::path& folder)
      : directory(folder), config(ReadModelConfig(folder)), weights(folder, config) {}
  fs::path directory;
  ModelConfig config;
  ModelWeights weights;
};

const void* HeadOf(const CheckpointLoader& loader, const OnHost& host) {
  return loader.weights().Of(host.weights.head()).weights;
}

template <typename Condition>
bool Eventually(Condition&& condition) {
  for (int i = 0; i < 60'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return false;
}

TEST(LoaderTest, TheNextCheckpointOfTheShapeTakesTheSameMemory) {
  CheckpointLoader loader(SmallChunks());
  const OnHost first(GoldenPath("qwen3_moe"));
  EXPECT_FALSE(loader.Keeps(first.weights));
  loader.Load(first.directory, first.weights);
  EXPECT_EQ(FirstWrong(loader.weights().transfers()), "");
  const void* head = HeadOf(loader, first);
  const DeviceMemory memory = MemoryOfDevice();

  CheckpointCopy copy("qwen3_moe");
  ChangeWeights(&copy);
  const OnHost second(copy.path());
  EXPECT_TRUE(loader.Keeps(second.weights));
  loader.Load(second.directory, second.weights);
  EXPECT_EQ(FirstWrong(loader.weights().transfers()), "");
  EXPECT_EQ(HeadOf(loader, second), head);
  // A real driver gives out memory in pieces larger than these checkpoints.
  const bool counts_bytes = RuntimeVersions().find("emulated") != std::string::npos;
  if (counts_bytes) {
    EXPECT_EQ(MemoryOfDevice().free, memory.free);
  }
  EXPECT_EQ(loader.Report()["followed"], 0);
  EXPECT_GT(loader.Report()["bytes"], 0);

  const OnHost other(GoldenPath("llama3"));
  EXPECT_FALSE(loader.Keeps(other.weights));
  loader.Load(other.directory, other.weights);
  EXPECT_EQ(FirstWrong(loader.weights().transfers()), "");
  if (counts_bytes) {
    EXPECT_GT(MemoryOfDevice().free, memory.free) << "a smaller one leaves more";
  }
}

TEST(LoaderTest, PullsWhatLandsAndIsReadyWhenItIsPublished) {
  for (const bool held : {false, true}) {
    CheckpointLoader loader(SmallChunks());
    const OnHost before(GoldenPath("qwen3"));
    if (held) loader.Load(before.directory, before.weights);
    const void* head = held ? HeadOf(loader, before) : nullptr;
    CheckpointCopy copy("qwen3");
    ChangeWeights(&copy);
    Shard(copy.path());
    SlowStaging staging(copy.path());
    loader.Follow(staging.folder());
    std::this_thread::sleep_for(milliseconds(20));
    staging.LandDescription();
    std::this_thread::sleep_for(milliseconds(20));
    for (const char* shard : {"0", "1", "x"}) {
      staging.Land(fmt::format("model-{}.safetensors", shard));
    }
    // Headers are at the beginnings of the shards, and each shard is one chunk here. All shards
    // have to land before the first is pulled.
    EXPECT_EQ(loader.progress().bytes, 0u) << "a shard has not landed";
    staging.Land("model-2.safetensors");
    EXPECT_TRUE(Eventually([&] {
      return loader.progress().total > 0 && loader.progress().bytes == loader.progress().total;
    }));
    const OnHost host(staging.Publish());
    EXPECT_TRUE(loader.Keeps(host.weights));
    loader.Load(host.directory, host.weights);
    EXPECT_EQ(FirstWrong(loader.weights().transfers()), "");
    EXPECT_EQ(loader.Report()["followed"], loader.Report()["bytes"]);
    EXPECT_GT(loader.Report()["followed"].get<uint64_t>(), staging.weight_bytes() * 8 / 10);
    if (held) {
      EXPECT_EQ(HeadOf(loader, host), head);
    }
  }
}

TEST(LoaderTest, PullsAFileWhoseEndHasNotLanded) {
  CheckpointCopy copy("qwen3");
  constexpr int64_t kVocab = 60'000;  // gives an embedding of two chunks
  copy.SetConfig("vocab_size", kVocab);
  copy.ChangeTensors("embed_tokens", [](Tensors::Tensor* tensor) {
    const std::string rows = tensor->data;
    tensor->shape[0] = kVocab;
    while (tensor->data.size() < static_cast<size_t>(kVocab * tensor->shape[1]) * 2) {
      tensor->data += rows;
    }
    tensor->data.resize(static_cast<size_t>(kVocab * tensor->shape[1]) * 2);
  });
  PullOptions options;
  options.chunk_bytes = 100'000;
  CheckpointLoader loader(options);
  SlowStaging staging(copy.path());
  loader.Follow(staging.folder());
  staging.LandDescription();
  staging.LandChunk("model.safetensors", 0);
  const auto pulled = [&] { return loader.progress().bytes.load(); };
  EXPECT_TRUE(Eventually([&] { return pulled() > kLandedChunkBytes * 9 / 10; }));
  EXPECT_LE(pulled(), kLandedChunkBytes);
  staging.LandChunk("model.safetensors", 1);
  EXPECT_TRUE(Eventually([&] { return pulled() == loader.progress().total; }));
  const OnHost host(staging.Publish());
  loader.Load(host.directory, host.weights);
  EXPECT_EQ(FirstWrong(loader.weights().transfers()), "");
  EXPECT_EQ(loader.Report()["followed"], loader.progress().total.load());
}

TEST(LoaderTest, AFailedStagingIsForgotten) {
  CheckpointLoader loader(SmallChunks());
  CheckpointCopy copy("qwen3");
  Shard(copy.path());
  {
    SlowStaging staging(copy.path());
    loader.Follow(staging.folder());
    staging.LandDescription();
    staging.Land("model-0.safetensors");
    staging.Fail();
  }
  SlowStaging again(copy.path());
  loader.Follow(again.folder());
  again.LandAll();
  const OnHost host(again.Publish());
  loader.Load(host.directory, host.weights);
  EXPECT_EQ(FirstWrong(loader.weights().transfers()), "");
}

TEST(LoaderTest, AnotherCheckpointThanTheFollowedOneIsPulledWhole) {
  CheckpointLoader loader(SmallChunks());
  CheckpointCopy copy("qwen3");
  ChangeWeights(&copy);
  SlowStaging staging(copy.path());
  loader.Follow(staging.folder());
  staging.LandDescription();  // the loader waits for the rest, and must be stopped
  const OnHost other(GoldenPath("qwen3"));
  loader.Load(other.directory, other.weights);
  EXPECT_EQ(FirstWrong(loader.weights().transfers()), "");
  EXPECT_EQ(loader.Report()["followed"], 0);
  // The bytes that the staging lands now belong to another checkpoint's content.
  staging.LandAll();
  const OnHost late(staging.Publish());
  loader.Load(late.directory, late.weights);
  EXPECT_EQ(FirstWrong(loader.weights().transfers()), "");
  EXPECT_EQ(loader.Report()["followed"], 0);
}

TEST(LoaderTest, AnotherShapeIsNotFollowedIntoTakenMemory) {
  CheckpointLoader loader(SmallChunks());
  const OnHost first(GoldenPath("qwen3"));
  loader.Load(first.directory, first.weights);
  SlowStaging staging(GoldenPath("llama3"));
  loader.Follow(staging.folder());
  staging.LandAll();
  const OnHost host(staging.Publish());
  EXPECT_FALSE(loader.Keeps(host.weights));
  loader.Load(host.directory, host.weights);
  EXPECT_EQ(FirstWrong(loader.weights().transfers()), "");
  EXPECT_EQ(loader.Report()["followed"], 0);
}

TEST(LoaderTest, AFollowThatEndedEarlyCountsForNothing) {
  CheckpointLoader loader(SmallChunks());
  const OnHost before(GoldenPath("qwen3"));
  loader.Load(before.directory, before.weights);
  CheckpointCopy copy("qwen3");
  ChangeWeights(&copy);
  SlowStaging staging(copy.path());
  loader.Follow(staging.folder());
  loader.Cancel();
  std::this_thread::sleep_for(milliseconds(100));  // the loader looks every 50 ms
  staging.LandAll();
  const OnHost host(staging.Publish());
  loader.Load(host.directory, host.weights);
  EXPECT_EQ(FirstWrong(loader.weights().transfers()), "");
  EXPECT_EQ(loader.Report()["followed"], 0);
}

TEST(LoaderTest, EndsWhileItFollows) {
  CheckpointCopy copy("qwen3");
  SlowStaging staging(copy.path());
  staging.LandDescription();
  CheckpointLoader loader(SmallChunks());
  loader.Follow(staging.folder());
  loader.Follow(staging.folder());                // follows anew
  loader.Follow(staging.folder() / "not there");  // follows nothing
}

}  // namespace
}  // namespace evald::native::cuda
