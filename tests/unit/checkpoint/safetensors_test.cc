#include "checkpoint/safetensors.h"

#include <gmock/gmock.h>

#include "checkpoint_files.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Put;
using testing::Safetensors;

std::string ParseError(const std::string& file) {
  return CaughtText([&] { ParseSafetensorsHeader(file, file.size(), "x.safetensors"); });
}

std::string HeaderError(const std::string& header, size_t data_bytes) {
  return ParseError(Safetensors(header, std::string(data_bytes, 'd')));
}

TEST(Safetensors, ReadsTensorsAndMetadata) {
  const std::string header = R"({"__metadata__":{"format":"pt"},)"
                             R"("b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
                             R"("s":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                             R"("none":{"dtype":"F64","shape":[0,5],"data_offsets":[16,16]}}   )";
  const std::string file = Safetensors(header, std::string(16, 'd'));
  const SafetensorsHeader parsed = ParseSafetensorsHeader(file, file.size(), "x");
  ASSERT_EQ(parsed.tensors.size(), 3u);
  EXPECT_EQ(parsed.metadata.at("format"), "pt");
  EXPECT_EQ(parsed.file_bytes, file.size());
  const TensorInfo& b = parsed.tensors.at("b");
  EXPECT_EQ(b.dtype, Dtype::kBF16);
  EXPECT_EQ(b.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(b.begin, 8 + header.size() + 4);
  EXPECT_EQ(b.bytes, 12u);
  EXPECT_TRUE(parsed.tensors.at("s").shape.empty());
}

TEST(Safetensors, ReadsFromDisk) {
  const TemporaryFolder folder;
  Put(folder.path() / "m.safetensors", testing::OneTensor("w", "abc"));
  const SafetensorsHeader header = ReadSafetensorsHeader(folder.path() / "m.safetensors");
  EXPECT_EQ(header.tensors.at("w").bytes, 3u);
  EXPECT_THAT(CaughtText([&] { ReadSafetensorsHeader(folder.path() / "absent"); }),
              HasSubstr("absent: No such file"));
  EXPECT_THAT(CaughtText([&] { ReadSafetensorsHeader(folder.path()); }),
              HasSubstr("not a regular file"));
}

TEST(Safetensors, RefusesAHeaderOf2To63Bytes) {
  std::string file = testing::OneTensor("w", "abc");
  file.replace(0, 8, std::string("\0\0\0\0\0\0\0\x80", 8));
  EXPECT_THAT(ParseError(file), AllOf(HasSubstr("x.safetensors"), HasSubstr("9223372036854775808"),
                                      HasSubstr("at most 100000000")));
}

TEST(Safetensors, RefusesTruncation) {
  const std::string file = testing::OneTensor("w", "abcdefgh");
  EXPECT_THAT(ParseError(file.substr(0, 5)), HasSubstr("has 5 bytes"));
  EXPECT_THAT(ParseError(file.substr(0, 20)), HasSubstr("truncated"));
  EXPECT_THAT(ParseError(file.substr(0, file.size() - 1)),
              HasSubstr("has " + std::to_string(file.size() - 1) + " bytes, expected " +
                        std::to_string(file.size())));
  EXPECT_THAT(ParseError(file + "x"), HasSubstr("expected " + std::to_string(file.size())));
  EXPECT_THAT(ParseError(""), HasSubstr("has 0 bytes"));
}

TEST(Safetensors, RefusesOverlap) {
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                          R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
                          6),
              AllOf(HasSubstr("'a' and 'b' overlap"), HasSubstr("begins at 2")));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                          R"("b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
                          4),
              HasSubstr("overlap"));
}

TEST(Safetensors, RefusesHoles) {
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                          R"("b":{"dtype":"U8","shape":[4],"data_offsets":[6,10]}})",
                          10),
              HasSubstr("a hole of 2 bytes before tensor 'b'"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[1,5]}})", 5),
              HasSubstr("a hole of 1 bytes before tensor 'a'"));
}

TEST(Safetensors, RefusesDtypesAndShapes) {
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}})", 2),
              AllOf(HasSubstr("tensor 'a'"), HasSubstr("found dtype 'F4'"), HasSubstr("BF16")));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,4]}})", 4),
              HasSubstr("has 4 bytes, expected 16 for F32 [4]"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"U8","shape":[4294967296,4294967296,16],)"
                          R"("data_offsets":[0,0]}})",
                          0),
              HasSubstr("more than 2^64"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1),
              HasSubstr("the number -1"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}})", 1),
              HasSubstr("the number 1.5"));
  EXPECT_THAT(
      HeaderError(R"({"a":{"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,1]}})", 1),
      HasSubstr("9223372036854775808"));
}

TEST(Safetensors, RefusesOffsets) {
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})", 4),
              HasSubstr("ends at byte 0 before it begins at 4"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4,8]}})", 4),
              HasSubstr("the number 8"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4]}})", 4),
              HasSubstr("lacks"));
  // A tensor of 2^64 - 1 bytes. The sum of its end and the header overflows.
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"U8","shape":[5,3689348814741910323],)"
                          R"("data_offsets":[0,18446744073709551615]}})",
                          4),
              HasSubstr("2^64 bytes"));
}

// An error quotes the name, and must fit into a message.
TEST(Safetensors, RefusesANameOfMegabytesInAFewWords) {
  const std::string tensor = R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  const std::string error = HeaderError("{\"" + std::string(5 << 20, 'n') + tensor, 1);
  EXPECT_THAT(error, AllOf(HasSubstr("x.safetensors"), HasSubstr("5242880 bytes"),
                           HasSubstr("at most 4096")));
  EXPECT_LT(error.size(), 1000u);
  EXPECT_EQ(HeaderError("{\"" + std::string(4096, 'n') + tensor, 1), "");
}

TEST(Safetensors, RefusesForeignStructure) {
  for (const char* header :
       {"",
        "x",
        "[]",
        "3",
        "null",
        "{",
        "{}{}",
        R"({"a":1})",
        R"({"a":{}})",
        R"({"a":[]})",
        R"({"a":{"dtype":"U8","shape":[0]}})",
        R"({"a":{"dtype":3,"shape":[0],"data_offsets":[0,0]}})",
        R"({"a":{"dtype":"U8","shape":{},"data_offsets":[0,0]}})",
        R"({"a":{"dtype":"U8","shape":[[0]],"data_offsets":[0,0]}})",
        R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"more":1}})",
        R"({"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
        R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
        R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
        R"({"__metadata__":{"a":1}})",
        R"({"__metadata__":{"a":{}}})",
        "{\"\xff\":{}}"}) {
    EXPECT_NE(HeaderError(header, 0), "") << header;
  }
  EXPECT_EQ(HeaderError("{}", 0), "");
  // Deep nesting must neither be accepted nor use up the stack.
  EXPECT_NE(HeaderError(std::string(1'000'000, '['), 0), "");
}

TEST(Safetensors, RefusesMetadataWithoutEnd) {
  std::string header = R"({"__metadata__":{)";
  for (int i = 0; i < 70'000; ++i) header += (i > 0 ? ",\"" : "\"") + std::to_string(i) + R"(":"")";
  EXPECT_THAT(HeaderError(header + "}}", 0), HasSubstr("__metadata__ has more than 65536 entries"));
}

TEST(Safetensors, ReadsManyTensorsQuickly) {
  std::string header = "{";
  for (int i = 0; i < 100'000; ++i) {
    header += (i == 0 ? "\"t" : ",\"t") + std::to_string(i) +
              R"(":{"dtype":"U8","shape":[1],"data_offsets":[)" + std::to_string(i) + "," +
              std::to_string(i + 1) + "]}";
  }
  const std::string file = Safetensors(header + "}", std::string(100'000, 'd'));
  EXPECT_EQ(ParseSafetensorsHeader(file, file.size(), "x").tensors.size(), 100'000u);
}

TEST(Safetensors, DtypeNamesRoundTrip) {
  for (const char* name : {"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL",
                           "U64", "U32", "U16", "F8_E4M3", "F8_E5M2", "F8_E8M0"}) {
    EXPECT_EQ(ToString(DtypeFromString(name)), name);
  }
  EXPECT_EQ(DtypeBytes(Dtype::kBF16), 2u);
  EXPECT_EQ(DtypeBytes(Dtype::kI64), 8u);
}

}  // namespace
}  // namespace evald
