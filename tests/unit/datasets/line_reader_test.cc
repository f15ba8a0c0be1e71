#include "datasets/line_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "base/read_roots.h"
#include "evald/error.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr LineReader::Limits kWide{1 << 20, 1 << 24};

std::string Pack(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

class LineReaderTest : public ::testing::Test {
 protected:
  // The file stays open until the next one is opened.
  LineReader Open(const std::string& content, bool packed = false,
                  LineReader::Limits limits = kWide) {
    const fs::path file = folder_ / "file";
    std::ofstream(file, std::ios::binary) << content;
    fd_ = ReadRoots().OpenFile(file);
    return LineReader(fd_, "file", packed, limits, nullptr);
  }
  static std::vector<std::string> Lines(LineReader reader) {
    std::vector<std::string> lines;
    std::string_view line;
    while (reader.NextLine(&line)) lines.emplace_back(line);
    EXPECT_EQ(reader.line(), lines.size());
    return lines;
  }

  TemporaryFolder folder_;
  UniqueFd fd_;
};

TEST_F(LineReaderTest, GivesLines) {
  EXPECT_THAT(Lines(Open("")), ElementsAre());
  EXPECT_THAT(Lines(Open("a")), ElementsAre("a"));
  EXPECT_THAT(Lines(Open("a\n")), ElementsAre("a"));
  EXPECT_THAT(Lines(Open("\na\r\n\nb")), ElementsAre("", "a\r", "", "b"));
  EXPECT_THAT(Lines(Open("\xef\xbb\xbf"
                         "a\n\xef\xbb\xbf"
                         "b")),
              ElementsAre("a",
                          "\xef\xbb\xbf"
                          "b"));
  EXPECT_THAT(Lines(Open("\xef\xbb")), ElementsAre("\xef\xbb"));
}

TEST_F(LineReaderTest, GivesTheSameLinesHoweverTheyArePacked) {
  std::mt19937 random(7);
  std::string text;
  std::vector<std::string> expected;
  for (int i = 0; i < 400; ++i) {
    expected.push_back(std::string(random() % 8000, static_cast<char>('a' + random() % 26)));
    text += expected.back() + "\n";
  }
  EXPECT_EQ(Lines(Open(text)), expected);
  EXPECT_EQ(Lines(Open(Pack(text), true)), expected);
  std::string members;
  for (size_t at = 0; at < text.size(); at += 100'000) members += Pack(text.substr(at, 100'000));
  EXPECT_EQ(Lines(Open(members + Pack("") + Pack("end"), true)).back(), "end");
  LineReader whole = Open(members, true);
  EXPECT_EQ(whole.FirstCharacter(), text[0] == '\n' ? expected[1][0] : text[0]);
  EXPECT_EQ(whole.Rest(), text);
}

TEST_F(LineReaderTest, RefusesLinesThatAreTooLong) {
  const LineReader::Limits limits{10, 100};
  EXPECT_THAT(Lines(Open("0123456789\n0123456789", false, limits)),
              ElementsAre("0123456789", "0123456789"));
  for (const std::string end : {"", "\n", "\nmore\n"}) {
    const std::string text = "a\n0123456789a" + end;
    EXPECT_THAT(RefusalOf([&] { Lines(Open(text, false, limits)); }),
                HasSubstr("file:2: the line has more than 10 B"));
    EXPECT_THAT(RefusalOf([&] { Lines(Open(Pack(text), true, limits)); }),
                HasSubstr("'limits.line'"));
  }
}

TEST_F(LineReaderTest, RefusesFilesThatAreTooLongToBeReadWhole) {
  const LineReader::Limits limits{10, 100};
  EXPECT_EQ(Open(std::string(100, 'a'), false, limits).Rest(), std::string(100, 'a'));
  EXPECT_THAT(RefusalOf([&] { Open(std::string(101, 'a'), false, limits).Rest(); }),
              HasSubstr("'limits.file'"));
  EXPECT_THAT(RefusalOf([&] { Open(Pack(std::string(1 << 24, 'a')), true, limits).Rest(); }),
              HasSubstr("'limits.file'"));
  EXPECT_THAT(RefusalOf([&] { Open(std::string(1 << 20, ' '), false, limits).FirstCharacter(); }),
              HasSubstr("'limits.line'"));
}

TEST_F(LineReaderTest, RefusesBrokenGzip) {
  const std::string packed = Pack(std::string(1 << 20, 'a') + "\n");
  const std::string random = Pack("some text that is not the end of it");
  for (const std::string& broken :
       {std::string(), std::string("text"), packed.substr(0, packed.size() / 2),
        packed.substr(0, packed.size() - 1), packed + "text", random + packed.substr(0, 3)}) {
    EXPECT_THAT(RefusalOf([&] { Lines(Open(broken, true, {1 << 22, 1 << 22})); }),
                HasSubstr("broken or cut short"));
  }
}

}  // namespace
}  // namespace evald
