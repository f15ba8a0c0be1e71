// Files on disk may have been cut short or overwritten. Every such file ends in an Error(kInput)
// that names it.
#include <fstream>
#include <random>

#include "base/file.h"
#include "evald/error.h"
#include "fixture.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

class DamagedTask : public testing::Test {
 protected:
  DamagedTask() : directory_(WriteExample(folder_.path())) {
    PreparedTask(directory_).MakeTokens("k", Encode, 1);
  }

  static void Encode(Request* request) { request->context_tokens = {1, 2, 3}; }

  // Reads everything that the task holds.
  void ReadAll() const {
    PreparedTask task(directory_);
    task.AttachTokens("k");
    for (int64_t i = 0; i < task.document_count(); ++i) {
      task.Document(i);
      task.Requests(i, i + 1);
    }
  }

  std::string Message() const {
    return RefusalOf([&] { ReadAll(); });
  }

  void Replace(const std::string& file, const std::string& content) const {
    std::ofstream(directory_ / file, std::ios::binary) << content;
  }

  TemporaryFolder folder_;
  fs::path directory_;
};

TEST_F(DamagedTask, IsReadableWhileWhole) { EXPECT_EQ(Message(), ""); }

TEST_F(DamagedTask, EveryTruncationIsFound) {
  for (const char* file : {"index.bin", "documents.jsonl", "requests.jsonl", "tokens-k.bin"}) {
    const std::string whole = ReadFile(directory_ / file);
    for (size_t size = 0; size < whole.size(); ++size) {
      Replace(file, whole.substr(0, size));
      EXPECT_THAT(Message(), testing::HasSubstr(file)) << size;
    }
    Replace(file, whole);
  }
}

TEST_F(DamagedTask, EveryAlteredByteIsFound) {
  for (const char* file :
       {"index.bin", "documents.jsonl", "requests.jsonl", "tokens-k.bin", "task.json"}) {
    const std::string whole = ReadFile(directory_ / file);
    for (size_t at = 0; at < whole.size(); ++at) {
      std::string altered = whole;
      altered[at] = static_cast<char>(altered[at] ^ 1);
      Replace(file, altered);
      // The error of a wrong index may be that of the place to which it points.
      EXPECT_THAT(Message(),
                  testing::HasSubstr(file == std::string("index.bin") ? directory_.string() : file))
          << at;
    }
    Replace(file, whole);
  }
  EXPECT_EQ(Message(), "");
}

TEST_F(DamagedTask, DamagedHashesAreFound) {
  const std::string whole = ReadFile(directory_ / "hashes.json");
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string altered = whole;
    altered[at] = static_cast<char>(altered[at] ^ 1);
    Replace("hashes.json", altered);
    if (at + 1 == whole.size()) break;  // the newline may be any white space
    EXPECT_THAT(Message(), testing::HasSubstr("hashes.json")) << at;
  }
  for (const char* text : {"", "[]", "3", "{\"task.json\":3}"}) {
    Replace("hashes.json", text);
    EXPECT_THAT(Message(), testing::HasSubstr("hashes.json")) << text;
  }
}

TEST_F(DamagedTask, OneOfAnEarlierVersionHasNoHashes) {
  fs::remove(directory_ / "hashes.json");
  EXPECT_EQ(Message(), "");
}

TEST_F(DamagedTask, DamagedTokensAreMadeAgain) {
  const std::string whole = ReadFile(directory_ / "tokens-k.bin");
  Replace("tokens-k.bin", whole.substr(0, whole.size() / 2));
  PreparedTask(directory_).MakeTokens("k", Encode, 1);
  EXPECT_EQ(ReadFile(directory_ / "tokens-k.bin"), whole);
}

TEST_F(DamagedTask, AMissingFileIsNamed) {
  for (const char* file : {"index.bin", "documents.jsonl", "requests.jsonl", "task.json"}) {
    fs::rename(directory_ / file, folder_.path() / "away");
    EXPECT_THAT(Message(), testing::HasSubstr(file));
    fs::rename(folder_.path() / "away", directory_ / file);
  }
}

// Random bytes may or may not be noticed, but never lead outside the files.
TEST_F(DamagedTask, RandomBytesNeverCrash) {
  std::mt19937 random(7);
  size_t refused = 0;
  for (const char* file :
       {"index.bin", "documents.jsonl", "requests.jsonl", "tokens-k.bin", "task.json"}) {
    const std::string whole = ReadFile(directory_ / file);
    for (int round = 0; round < 200; ++round) {
      std::string broken = whole;
      for (size_t n = 1 + random() % 4; n > 0; --n) {
        broken[random() % broken.size()] = static_cast<char>(random());
      }
      Replace(file, broken);
      if (!Message().empty()) ++refused;
    }
    Replace(file, whole);
  }
  EXPECT_GT(refused, 400u);
}

TEST_F(DamagedTask, TokensOfAnotherTaskAreRefused) {
  PreparedTaskWriter(folder_.path() / "other", {{"name", "x"}}).Finish();
  fs::copy_file(directory_ / "tokens-k.bin", folder_.path() / "other" / "tokens-k.bin");
  PreparedTask other(folder_.path() / "other");
  EXPECT_THROW(other.AttachTokens("k"), Error);
}

TEST_F(DamagedTask, AFileInPlaceOfTheFolderIsRefused) {
  EXPECT_THROW(PreparedTask(directory_ / "task.json"), Error);
  EXPECT_THROW(PreparedTask(directory_ / "nothing"), Error);
}

TEST_F(DamagedTask, AskingForWhatIsNotThereIsRefused) {
  const PreparedTask task(directory_);
  EXPECT_THROW(task.Document(-1), Error);
  EXPECT_THROW(task.Document(3), Error);
  EXPECT_THROW(task.Requests(0, 4), Error);
  EXPECT_THROW(task.Requests(2, 1), Error);
}

}  // namespace
}  // namespace evald
