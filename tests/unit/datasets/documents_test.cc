#include "datasets/documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "base/jsonl.h"
#include "tests/unit/datasets/scratch.h"

namespace evald {
namespace {

using ::testing::HasSubstr;

Documents Read(const std::filesystem::path& path, std::optional<RowRange> range = {}) {
  Documents out;
  ReadDocuments(path, range, nullptr, &out);
  return out;
}

TEST(Documents, JsonLinesKeepOrderAndLines) {
  const Scratch scratch;
  const auto path = scratch.Write("a.jsonl", "{\"b\":1,\"a\":2}\n\n{\"a\":3,\"c\":null}\r\n");
  const Documents docs = Read(path);
  ASSERT_EQ(docs.rows.size(), 2u);
  EXPECT_EQ(ToLine(docs.rows[0]), R"({"b":1,"a":2,"c":null})");
  EXPECT_EQ(docs.where[1], path.string() + ":3");
  EXPECT_EQ(docs.columns, (std::vector<std::string>{"b", "a", "c"}));
}

TEST(Documents, GzipAndJsonArrays) {
  const Scratch scratch;
  const auto gz = scratch / "a.jsonl.gz";
  gzFile file = gzopen(gz.c_str(), "wb");
  gzputs(file, "{\"a\":1}\n{\"a\":2}\n");
  gzclose(file);
  EXPECT_EQ(Read(gz).rows.size(), 2u);
  const auto array = scratch.Write("a.json", "[\n {\"a\": [1, {\"x\": \"]\"}]},\n {\"a\": 2}\n]\n");
  const Documents docs = Read(array);
  ASSERT_EQ(docs.rows.size(), 2u);
  EXPECT_EQ(docs.where[1], array.string() + ":3");
}

TEST(Documents, RowRange) {
  const Scratch scratch;
  const auto path = scratch.Write("a.jsonl", "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n");
  EXPECT_EQ(Read(path, RowRange{"id", 2, 3}).rows.size(), 2u);
  EXPECT_THAT(MessageOf([&] { Read(path, RowRange{"key", 2, 3}); }), HasSubstr("a.jsonl:1"));
}

TEST(Documents, BadFilesNameFileAndLine) {
  const Scratch scratch;
  std::string lines;
  for (int i = 1; i <= 20; ++i) lines += i == 17 ? "{\"a\": }\n" : "{\"a\": 1}\n";
  EXPECT_THAT(MessageOf([&] { Read(scratch.Write("broken.jsonl", lines)); }),
              HasSubstr("broken.jsonl:17: "));
  EXPECT_THAT(MessageOf([&] { Read(scratch.Write("empty.jsonl", "")); }),
              HasSubstr("empty.jsonl: the file has no documents"));
  EXPECT_THAT(MessageOf([&] { Read(scratch.Write("list.jsonl", "[1]\n")); }),
              HasSubstr("list.jsonl:1: a document is a JSON object"));
  EXPECT_THAT(MessageOf([&] { Read(scratch / "absent.jsonl"); }), HasSubstr("absent.jsonl"));
  EXPECT_THAT(MessageOf([&] { Read(scratch.Write("x.parquet", "PAR1")); }),
              HasSubstr("use .jsonl"));
  EXPECT_THAT(MessageOf([&] { Read(scratch.Write("bad.jsonl.gz", "not gzip")); }),
              HasSubstr("gzip data is broken"));
  EXPECT_THAT(MessageOf([&] { Read(scratch.Write("cut.csv", "a,b\n1,\"x\n")); }),
              HasSubstr("cut.csv:2: a quoted field is not closed"));
  EXPECT_THAT(MessageOf([&] { Read(scratch.Write("ragged.csv", "a,b\n1,2\n3,4,5\n")); }),
              HasSubstr("ragged.csv:3: found 3 fields, expected at most 2"));
  EXPECT_THAT(MessageOf([&] { Read(scratch.Write("doubled.jsonl", "{\"a\": {\"b\": 1, \"b\": 2}}\n")); }),
              HasSubstr("doubled.jsonl:1: a key is written twice"));
}

TEST(Csv, ColumnsGetPandasTypes) {
  const auto chunks = ParseCsv(
      "int,hole,float,bool,text,zero\r\n1,1,1.5,True,\"a, "
      "\"\"b\"\"\nc\",007\r\n-2,,2,False,NA,08\r\n",
      "t.csv");
  ASSERT_EQ(chunks.size(), 1u);
  const auto& rows = chunks[0].rows;
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(ToLine(rows[0]),
            R"({"int":1,"hole":1.0,"float":1.5,"bool":true,"text":"a, \"b\"\nc","zero":7})");
  EXPECT_EQ(ToLine(rows[1]),
            R"({"int":-2,"hole":null,"float":2.0,"bool":false,"text":null,"zero":8})");
  EXPECT_EQ(chunks[0].lines, (std::vector<size_t>{2, 4}));
}

}  // namespace
}  // namespace evald
