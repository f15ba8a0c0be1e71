#include "datasets/documents.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/jsonl.h"
#include "base/memory_limits.h"
#include "base/read_roots.h"
#include "python/moment.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

using ::testing::HasSubstr;

Documents Read(const std::filesystem::path& path, std::optional<RowRange> range = {}) {
  Documents out;
  ReadDocuments(path, range, nullptr, &out);
  return out;
}

TEST(Documents, JsonLinesKeepOrderAndLines) {
  const TemporaryFolder scratch;
  const auto path = scratch.Write("a.jsonl", "{\"b\":1,\"a\":2}\n\n{\"a\":3,\"c\":null}\r\n");
  const Documents docs = Read(path);
  ASSERT_EQ(docs.rows.size(), 2u);
  EXPECT_EQ(ToLine(docs.rows[0]), R"({"b":1,"a":2,"c":null})");
  EXPECT_EQ(docs.where[1], path.string() + ":3");
  EXPECT_EQ(docs.columns, (std::vector<std::string>{"b", "a", "c"}));
}

TEST(Documents, GzipAndJsonArrays) {
  const TemporaryFolder scratch;
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

// Time and memory must not grow with the square of the number of keys.
TEST(Documents, ManyColumnsTakeTimeInProportion) {
  constexpr int kKeys = 200'000;
  std::string row = "{\"a\":1";
  std::string header = "a";
  std::string fields = "1";
  std::string nested = "{\"s\":{\"a\":1";
  for (int i = 0; i < kKeys; ++i) {
    row += fmt::format(",\"k{}\":{}", i, i);
    nested += fmt::format(",\"k{}\":{}", i, i);
    header += fmt::format(",k{}", i);
    fields += fmt::format(",{}", i);
  }
  const TemporaryFolder scratch;
  const int64_t begin = MonotonicMicros();
  const Documents lines = Read(scratch.Write("a.jsonl", row + "}\n" + row + "}\n"));
  ASSERT_EQ(lines.rows.size(), 2u);
  EXPECT_EQ(lines.columns.size(), size_t{kKeys} + 1);
  EXPECT_EQ(ToLine(lines.rows[1]), row + "}");
  const Documents csv = Read(scratch.Write("a.csv", header + "\n" + fields + "\n"));
  EXPECT_EQ(ToLine(csv.rows[0]), row + "}");
  const Documents structs = Read(scratch.Write("b.jsonl", nested + "}}\n" + nested + "}}\n"));
  EXPECT_EQ(ToLine(structs.rows[1]), nested + "}}");
  if (LimitsOwnMemory()) {  // sanitizers take more
    EXPECT_LT(MonotonicMicros() - begin, 60'000'000) << "10^11 comparisons would take an hour";
  }
}

// The name of a field in errors has the names of all structs around it.
TEST(Documents, ALongKeyIsNotWrittenForEachFieldWithin) {
  std::string row = "{\"" + std::string(4'000'000, 'k') + "\":{";
  for (int i = 0; i < 100'000; ++i) row += fmt::format("{}\"{}\":1", i == 0 ? "" : ",", i);
  const TemporaryFolder scratch;
  const int64_t begin = MonotonicMicros();
  EXPECT_EQ(Read(scratch.Write("a.jsonl", row + "}}\n")).rows.size(), 1u);
  if (LimitsOwnMemory()) {  // sanitizers take more
    EXPECT_LT(MonotonicMicros() - begin, 30'000'000);
  }
}

TEST(Documents, RowRange) {
  const TemporaryFolder scratch;
  const auto path = scratch.Write("a.jsonl", "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n");
  EXPECT_EQ(Read(path, RowRange{"id", 2, 3}).rows.size(), 2u);
  EXPECT_THAT(CaughtText([&] { Read(path, RowRange{"key", 2, 3}); }), HasSubstr("a.jsonl:1"));
}

TEST(Documents, BadFilesNameFileAndLine) {
  const TemporaryFolder scratch;
  std::string lines;
  for (int i = 1; i <= 20; ++i) lines += i == 17 ? "{\"a\": }\n" : "{\"a\": 1}\n";
  EXPECT_THAT(CaughtText([&] { Read(scratch.Write("broken.jsonl", lines)); }),
              HasSubstr("broken.jsonl:17: "));
  EXPECT_THAT(CaughtText([&] { Read(scratch.Write("empty.jsonl", "")); }),
              HasSubstr("empty.jsonl: the file has no documents"));
  EXPECT_THAT(CaughtText([&] { Read(scratch.Write("list.jsonl", "[1]\n")); }),
              HasSubstr("list.jsonl:1: a document is a JSON object"));
  EXPECT_THAT(CaughtText([&] { Read(scratch / "absent.jsonl"); }), HasSubstr("absent.jsonl"));
  EXPECT_THAT(CaughtText([&] { Read(scratch.Write("x.parquet", "PAR1")); }),
              HasSubstr("use .jsonl"));
  EXPECT_THAT(CaughtText([&] { Read(scratch.Write("bad.jsonl.gz", "not gzip")); }),
              HasSubstr("gzip data is broken"));
  EXPECT_THAT(CaughtText([&] { Read(scratch.Write("cut.csv", "a,b\n1,\"x\n")); }),
              HasSubstr("cut.csv:2: a quoted field is not closed"));
  EXPECT_THAT(CaughtText([&] { Read(scratch.Write("ragged.csv", "a,b\n1,2\n3,4,5\n")); }),
              HasSubstr("ragged.csv:3: found 3 fields, expected at most 2"));
  EXPECT_THAT(
      CaughtText([&] { Read(scratch.Write("doubled.jsonl", "{\"a\": {\"b\": 1, \"b\": 2}}\n")); }),
      HasSubstr("doubled.jsonl:1: a key is written twice"));
}

// A task's own file is read by the name of its format, not by its ending.
TEST(Documents, AsTheLoaderReadsThem) {
  const TemporaryFolder scratch;
  const auto read = [&](const std::string& name, const std::string& text, DataFormat format) {
    const auto path = scratch.Write(name, text);
    Documents out;
    DatasetColumns columns;
    ReadDocuments(ReadRoots().OpenFile(path), path, {}, {true, format}, std::nullopt, nullptr,
                  &columns, &out);
    return out;
  };
  EXPECT_EQ(ToLine(read("a.txt", "{\"a\":1}\n{\"a\":0.5,\"b\":[]}\n", DataFormat::kJson).rows[0]),
            R"({"a":1.0,"b":null})");
  EXPECT_EQ(ToLine(read("a.tsv", "a,b\n1,x\n", DataFormat::kCsv).rows[0]), R"({"a":1,"b":"x"})");
  const Documents dates = read("d.jsonl", "{\"d\":\"2020-01-02\"}\n", DataFormat::kJson);
  EXPECT_EQ(ToLine(python::PlainDates(dates.rows[0])), R"({"d":"2020-01-02 00:00:00"})");
  EXPECT_THAT(CaughtText([&] { read("n.jsonl", "{\"d\":[null, 1]}\n", DataFormat::kJson); }),
              HasSubstr("the lists of the column 'd' hold null"));
  EXPECT_THAT(CaughtText([&] { read("w.json", " [{\"d\":1}]", DataFormat::kJson); }),
              HasSubstr("white space stands before the array"));
}

// A file that replaces a dataset of the hub: the dataset's texts stay texts.
TEST(Documents, StandingForADatasetTextsStayTexts) {
  const TemporaryFolder scratch;
  const Documents docs = Read(scratch.Write(
      "a.jsonl", "{\"d\":\"2020-01-02\",\"n\":1}\n{\"d\":\"2020-01-03\",\"n\":0.5}\n{}\n"));
  EXPECT_EQ(ToLine(docs.rows[0]), R"({"d":"2020-01-02","n":1.0})");
  EXPECT_EQ(ToLine(docs.rows[2]), R"({"d":null,"n":null})");
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

// Recorded from load_dataset("csv", column_names=..., header=...) of datasets 5.2.
TEST(Csv, NamesOfColumns) {
  const std::vector<std::string> names = {"question", "c1", "c2", "answer"};
  const auto read = [&](const std::string& text, bool header) {
    std::string lines;
    for (const CsvChunk& chunk : ParseCsv(text, "t.csv", SIZE_MAX, {',', names, header})) {
      for (const Json& row : chunk.rows) lines += ToLine(row) + "\n";
    }
    return lines;
  };
  EXPECT_EQ(read("What?,1,2,a\n\"x, y\",3,,b\nz,NA,4.5\n", false),
            R"({"question":"What?","c1":1.0,"c2":2.0,"answer":"a"})"
            "\n"
            R"({"question":"x, y","c1":3.0,"c2":null,"answer":"b"})"
            "\n"
            R"({"question":"z","c1":null,"c2":4.5,"answer":null})"
            "\n");
  const std::string named = "q,c1,c2,ans\n\"x, y\",3,,b\nz,7,4.5,c\n";
  EXPECT_EQ(read(named, true), R"({"question":"x, y","c1":3,"c2":null,"answer":"b"})"
                               "\n"
                               R"({"question":"z","c1":7,"c2":4.5,"answer":"c"})"
                               "\n");
  EXPECT_EQ(read(named, false), R"({"question":"q","c1":"c1","c2":"c2","answer":"ans"})"
                                "\n"
                                R"({"question":"x, y","c1":"3","c2":null,"answer":"b"})"
                                "\n"
                                R"({"question":"z","c1":"7","c2":"4.5","answer":"c"})"
                                "\n");
  EXPECT_EQ(read("", false), "");
  EXPECT_EQ(read("a,b\n", false), R"({"question":"a","c1":"b","c2":null,"answer":null})"
                                  "\n");
  EXPECT_THAT(CaughtText([&] { read("a,b,c,d,e\n", false); }),
              HasSubstr("found 5 fields, expected at most 4 as in column_names"));
}

TEST(Csv, SeparatorsAndShortRows) {
  const auto rows =
      ParseCsv("a\tb,c\n1\t\"x\ty\"\n2\n", "t.csv", SIZE_MAX, {'\t', {}, true}).at(0).rows;
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(ToLine(rows[0]), R"({"a":1,"b,c":"x\ty"})");
  EXPECT_EQ(ToLine(rows[1]), R"({"a":2,"b,c":null})");
}

}  // namespace
}  // namespace evald
