#include "orchestrator/prepare/lent_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

using ::testing::ElementsAre;

class Lent : public ::testing::Test {
 protected:
  Lent() {
    std::filesystem::create_directories(scratch_.path() / "model");
    std::filesystem::create_directories(scratch_.path() / "data/words");
    for (const char* name : {"model/tokenizer.json", "model/config.json", "model/model.safetensors",
                             "model/tokenization_own.py", "data/words/train.jsonl", "secret"}) {
      WriteFileAtomic(scratch_.path() / name, name);
    }
  }
  std::string Of(const std::string& path) const {
    const auto file = lent().Wanted(path);
    if (!file) return "not lent";
    return file->kind == WantedFile::Kind::kFile ? file->content : "";
  }
  LentFiles lent() const { return {scratch_.path() / "model", scratch_.path() / "data", {}}; }

  TemporaryFolder scratch_;
};

TEST_F(Lent, TheTokenizerAndTheDataAreLentAndNothingElse) {
  EXPECT_EQ(Of("/evald/tokenizer/tokenizer.json"), "model/tokenizer.json");
  EXPECT_EQ(Of("/evald/data/words/train.jsonl"), "data/words/train.jsonl");
  EXPECT_EQ(Of("/evald/tokenizer/model.safetensors"), "");
  EXPECT_EQ(Of("/evald/tokenizer/tokenization_own.py"), "") << "code of a checkpoint";
  EXPECT_EQ(Of("/evald/data/words"), "") << "a folder";
  EXPECT_EQ(Of((scratch_.path() / "secret").string()), "not lent");
}

TEST_F(Lent, NoNameLeadsOutside) {
  for (const char* path : {"/evald/data/../secret", "/evald/data/words/../../secret",
                           "/evald/data//secret", "/evald/tokenizer/../secret", "/evald/data/"}) {
    EXPECT_EQ(Of(path), "") << path;
  }
  std::filesystem::create_symlink(scratch_.path() / "secret", scratch_.path() / "data/link");
  const LentFiles within(scratch_.path() / "model", scratch_.path() / "data",
                         ReadRoots({scratch_.path() / "data", scratch_.path() / "model"}));
  EXPECT_ANY_THROW(within.Wanted("/evald/data/link"));
}

TEST_F(Lent, TheFilesOfATokenizerAreThoseThatAreThere) {
  EXPECT_THAT(lent().TokenizerFiles(),
              ElementsAre("/evald/tokenizer/tokenizer.json", "/evald/tokenizer/config.json"));
  EXPECT_TRUE(LentFiles("", "", {}).TokenizerFiles().empty());
  EXPECT_EQ(LentFiles("", "", {}).Wanted("/evald/data/a")->kind, WantedFile::Kind::kNone);
}

}  // namespace
}  // namespace evald
