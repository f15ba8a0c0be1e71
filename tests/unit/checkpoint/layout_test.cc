#include "checkpoint/layout.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "checkpoint_files.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::OneTensor;
using testing::Put;
using testing::PutSharded;
using testing::PutWhole;

class LayoutTest : public ::testing::Test {
 protected:
  std::string LayoutError() {
    return CaughtText([&] { ReadCheckpointLayout(folder_); });
  }
  std::string ShardsError() {
    return CaughtText([&] { CheckShards(ReadCheckpointLayout(folder_)); });
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const CheckpointFile& file : ReadCheckpointLayout(folder_).files)
      names.push_back(file.name);
    return names;
  }
  void PutIndex(const std::string& text) { Put(folder_ / "model.safetensors.index.json", text); }

  TemporaryFolder temp_;
  fs::path folder_ = temp_.path() / "checkpoint";
};

TEST_F(LayoutTest, ReadsASingleFileCheckpoint) {
  PutWhole(folder_, "weights");
  const CheckpointLayout layout = ReadCheckpointLayout(folder_);
  EXPECT_THAT(Names(), ElementsAre("config.json", "model.safetensors", "tokenizer.json"));
  EXPECT_THAT(layout.shards, ElementsAre("model.safetensors"));
  EXPECT_EQ(layout.total_bytes, fs::file_size(folder_ / "config.json") +
                                    fs::file_size(folder_ / "model.safetensors") + 2);
  EXPECT_NO_THROW(CheckShards(layout));
}

TEST_F(LayoutTest, ReadsAShardedCheckpointThroughLinks) {
  PutSharded(temp_.path() / "blobs");
  fs::create_directories(folder_);
  for (const auto& entry : fs::directory_iterator(temp_.path() / "blobs")) {
    fs::create_symlink(entry.path(), folder_ / entry.path().filename());
  }
  const CheckpointLayout layout = ReadCheckpointLayout(folder_);
  EXPECT_THAT(layout.shards,
              ElementsAre("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"));
  EXPECT_NO_THROW(CheckShards(layout));
}

TEST_F(LayoutTest, ChoosesWhatAnEngineOpensAndListsTheRest) {
  PutWhole(folder_);
  for (const char* name :
       {"merges.txt", "tokenizer.model", "chat_template.jinja",
        "additional_chat_templates/tools.jinja", "pytorch_model.bin", "optimizer.pt",
        "consolidated.safetensors", ".git/config", ".hidden.json",
        "checkpoint-500/model.safetensors", "training_args.pth", ".evald-lease"}) {
    Put(folder_ / name, "x");
  }
  ASSERT_EQ(::mkfifo((folder_ / "pipe.json").c_str(), 0600), 0);
  EXPECT_THAT(Names(), ElementsAre("additional_chat_templates/tools.jinja", "chat_template.jinja",
                                   "config.json", "merges.txt", "model.safetensors",
                                   "tokenizer.json", "tokenizer.model"));
  EXPECT_THAT(ReadCheckpointLayout(folder_).skipped,
              ElementsAre(".git/", ".hidden.json", "checkpoint-500/", "consolidated.safetensors",
                          "optimizer.pt", "pipe.json", "pytorch_model.bin", "training_args.pth"));
}

TEST_F(LayoutTest, ShardsMayLieInASubfolder) {
  PutWhole(folder_);
  fs::remove(folder_ / "model.safetensors");
  Put(folder_ / "weights/1.safetensors", OneTensor("a", "x"));
  PutIndex(R"({"weight_map":{"a":"weights/1.safetensors"}})");
  EXPECT_THAT(Names(), ElementsAre("config.json", "model.safetensors.index.json", "tokenizer.json",
                                   "weights/1.safetensors"));
  EXPECT_EQ(ShardsError(), "");
}

TEST_F(LayoutTest, RefusesAMissingOrEmptyFolder) {
  EXPECT_THAT(LayoutError(), AllOf(HasSubstr(folder_.string()), HasSubstr("does not exist")));
  fs::create_directories(folder_);
  EXPECT_THAT(LayoutError(), HasSubstr("is empty"));
  folder_ = temp_.path() / "file";
  Put(folder_, "x");
  EXPECT_THAT(LayoutError(), HasSubstr("is not a folder"));
}

TEST_F(LayoutTest, RefusesWithoutConfigTokenizerOrWeights) {
  PutWhole(folder_);
  fs::remove(folder_ / "model.safetensors");
  EXPECT_THAT(LayoutError(), HasSubstr("has no *.safetensors"));
  fs::remove(folder_ / "tokenizer.json");
  EXPECT_THAT(LayoutError(), HasSubstr("has no tokenizer.json"));
  fs::remove(folder_ / "config.json");
  EXPECT_NE(LayoutError(), "");
  PutWhole(folder_);
  fs::remove(folder_ / "config.json");
  EXPECT_THAT(LayoutError(), HasSubstr("has no config.json"));
}

TEST_F(LayoutTest, GivesTheCommandThatConvertsATokenizerModel) {
  PutWhole(folder_);
  fs::rename(folder_ / "tokenizer.json", folder_ / "tokenizer.model");
  EXPECT_THAT(LayoutError(), AllOf(HasSubstr("has tokenizer.model but no tokenizer.json"),
                                   HasSubstr("T.from_pretrained('" + folder_.string()),
                                   HasSubstr("save_pretrained(")));
}

TEST_F(LayoutTest, RefusesAMissingShard) {
  PutSharded(folder_);
  fs::remove(folder_ / "model-00002-of-00002.safetensors");
  EXPECT_THAT(LayoutError(),
              AllOf(HasSubstr("names model-00002-of-00002.safetensors"), HasSubstr("not there")));
}

TEST_F(LayoutTest, RefusesATruncatedShard) {
  PutSharded(folder_);
  const fs::path shard = folder_ / "model-00002-of-00002.safetensors";
  fs::resize_file(shard, fs::file_size(shard) - 3);
  EXPECT_THAT(ShardsError(), AllOf(HasSubstr(shard.string()), HasSubstr("truncated")));
}

TEST_F(LayoutTest, RefusesAnIndexThatTheHeadersContradict) {
  PutSharded(folder_);
  PutIndex(R"({"weight_map":{"a":"model-00001-of-00002.safetensors",)"
           R"("b":"model-00002-of-00002.safetensors","c":"model-00001-of-00002.safetensors"}})");
  EXPECT_THAT(ShardsError(),
              AllOf(HasSubstr("model-00001-of-00002.safetensors: has no tensor 'c'")));
  PutIndex(R"({"weight_map":{"b":"model-00001-of-00002.safetensors",)"
           R"("a":"model-00002-of-00002.safetensors"}})");
  EXPECT_THAT(ShardsError(), HasSubstr("has no tensor 'b'"));
  Put(folder_ / "model-00001-of-00002.safetensors", testing::Safetensors("{}", ""));
  EXPECT_THAT(ShardsError(), HasSubstr("holds no tensors"));
}

TEST_F(LayoutTest, RefusesAnIndexThatLeavesTheFolder) {
  PutSharded(folder_);
  Put(temp_.path() / "x.safetensors", OneTensor("a", "x"));
  for (const std::string& name :
       {std::string("../x.safetensors"), temp_.path().string() + "/x.safetensors",
        std::string("a/../../x.safetensors"), std::string("./x.safetensors"),
        std::string("a//x.safetensors"), std::string("")}) {
    PutIndex(R"({"weight_map":{"a":")" + name + R"("}})");
    EXPECT_THAT(LayoutError(), HasSubstr("maps tensor 'a' to '" + name + "'")) << name;
  }
  PutIndex(R"({"weight_map":{"a":"config.json"}})");
  EXPECT_THAT(LayoutError(), HasSubstr("expected a .safetensors file"));
}

TEST_F(LayoutTest, RefusesABrokenIndex) {
  PutSharded(folder_);
  for (const auto& [text, expected] : std::vector<std::pair<std::string, std::string>>{
           {"", "not JSON"},
           {"{", "not JSON"},
           {"[]", "no object \"weight_map\""},
           {"{}", "no object \"weight_map\""},
           {R"([{"weight_map":{"a":"x.safetensors"}}])", "no object \"weight_map\""},
           {R"({"weight_map":{}})", "empty weight_map"},
           {R"({"weight_map":[]})", "a list as weight_map"},
           {R"({"weight_map":3})", "a number as weight_map"},
           {R"({"weight_map":{"a":1}})", "maps tensor 'a' to a number"},
           {R"({"weight_map":{"a":{"b":"c"}}})", "maps tensor 'a' to an object"},
           {R"({"weight_map":{"a":"x.safetensors","a":"y.safetensors"}})", "maps tensor 'a' twice"},
           {R"({"weight_map":{"a":"x.safetensors"},"weight_map":{}})", "two members"},
           {std::string(100'000, '['), "nested deeper"}}) {
    PutIndex(text);
    EXPECT_THAT(LayoutError(),
                AllOf(HasSubstr("model.safetensors.index.json"), HasSubstr(expected)))
        << text.substr(0, 80);
  }
}

// transformers takes model.safetensors whenever that file exists.
TEST_F(LayoutTest, RefusesAnIndexWithNamesOfMegabytesInAFewWords) {
  PutSharded(folder_);
  const std::string name(5 << 20, 'n');
  for (const std::string& entry :
       {"\"" + name + R"(":"a.safetensors")", R"("a":")" + name + R"(.safetensors")"}) {
    PutIndex(R"({"weight_map":{)" + entry + "}}");
    const std::string error = LayoutError();
    EXPECT_THAT(error, HasSubstr("model.safetensors.index.json"));
    EXPECT_THAT(error, HasSubstr("expected at most 4096"));
    EXPECT_LT(error.size(), 1000u);
  }
}

TEST_F(LayoutTest, AnEmptyIndexBesideAWholeModelIsPassedOver) {
  PutSharded(folder_);
  PutIndex(R"({"metadata":{},"weight_map":{}})");
  Put(folder_ / "model.safetensors", OneTensor("w", "x"));
  EXPECT_EQ(LayoutError(), "");
  EXPECT_EQ(ShardsError(), "");
}

// Messages and records are JSON, and cannot hold such a name.
TEST_F(LayoutTest, RefusesAFileThatNoMessageCouldName) {
  PutWhole(folder_);
  Put(folder_ / "caf\xe9.bin", "not chosen");
  EXPECT_EQ(LayoutError(), "");
  Put(folder_ / "caf\xe9.json", "{}");
  EXPECT_THAT(LayoutError(), AllOf(HasSubstr(folder_.string()), HasSubstr("'caf\\xe9.json'"),
                                   HasSubstr("not UTF-8"), HasSubstr("rename")));
  fs::remove(folder_ / "caf\xe9.json");
  Put(folder_ / "additional_chat_templates" / "\xff.jinja", "");
  EXPECT_THAT(LayoutError(), HasSubstr("'additional_chat_templates/\\xff.jinja'"));
}

TEST_F(LayoutTest, RefusesAmbiguousWeights) {
  PutSharded(folder_);
  Put(folder_ / "model.safetensors", OneTensor("w", "x"));
  EXPECT_THAT(LayoutError(), HasSubstr("unclear which is the model"));
  fs::remove(folder_ / "model.safetensors");
  fs::remove(folder_ / "model.safetensors.index.json");
  EXPECT_THAT(LayoutError(), HasSubstr("2 safetensors files"));
}

}  // namespace
}  // namespace evald
