#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/jsonl.h"
#include "base/memory_limits.h"
#include "datasets/yaml_reader.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

using ::testing::HasSubstr;

Json Parse(const std::string& text) {
  return ParseYaml(text, "t.yaml", "folder", ReadRoots()).value;
}

TEST(Yaml, ReadsTheTypesOfYaml11) {
  EXPECT_EQ(
      ToLine(Parse("{a: yes, b: off, c: 010, d: 1_000, e: 0x1f, f: 1.5, g: 1e5, h: 1.0e+3, i: ~, "
                   "j: 'yes', k: -7, l: .5, m: \"1\", n: +3, o: 08, p: y}")),
      R"({"a":true,"b":false,"c":8,"d":1000,"e":31,"f":1.5,"g":"1e5","h":1000.0,"i":null,)"
      R"("j":"yes","k":-7,"l":0.5,"m":"1","n":3,"o":"08","p":"y"})");
}

// Texts that yaml-cpp 0.7 reads differently from libyaml.
TEST(Yaml, QuotedTextIsFoldedAsLibyamlFolds) {
  EXPECT_EQ(Parse("a: 'one.\n\n\n  '\nb: 1\n")["a"], "one.\n\n");
  EXPECT_EQ(Parse("a: 'x''y\n  z  '\n")["a"], "x'y z  ");
  EXPECT_EQ(Parse("a: \"\\xE9\\u00e9\\U0001f600\\n\\t\\e\\_\"\n")["a"], "éé😀\n\t\x1b\u00a0");
  EXPECT_EQ(Parse("a: \"long \\\n   \\ line\\\n\n  end\"\n")["a"], "long  line\nend");
  EXPECT_EQ(Parse("\"k\\xe9\": &x \"v  \n w\"\nb: *x\n")["b"], "v w");
  EXPECT_EQ(Parse("\"k\\xe9\": 1\n").begin().key(), "ké");
}

TEST(Yaml, FunctionsGetTheirFullName) {
  EXPECT_EQ(Parse("a: !function utils.f")["a"], "!function folder/utils.f");
  EXPECT_EQ(Parse("a: !function humaneval/utils.f")["a"], "!function humaneval/utils.f");
  EXPECT_EQ(Parse("a: !function lm_eval.tasks.mmlu.default.utils.f")["a"],
            "!function mmlu/default/utils.f");
  std::string name;
  EXPECT_TRUE(IsFunction(Parse("a: !function utils.f")["a"], &name));
  EXPECT_EQ(name, "folder/utils.f");
}

TEST(Yaml, AnchorsAndMerges) {
  EXPECT_EQ(ToLine(Parse("base: &b {x: 1, y: 2}\nover: {<<: *b, y: 3}\n")["over"]),
            R"({"y":3,"x":1})");
}

TEST(Yaml, RefusesWithFileAndLine) {
  EXPECT_THAT(CaughtText([] { Parse("a: 1\nb: [1, 2\n"); }), HasSubstr("t.yaml:"));
  EXPECT_EQ(Parse("a: 1\na: 2\n")["a"], 2);
  EXPECT_THAT(CaughtText([] { Parse("a: !python/object x\n"); }),
              HasSubstr("t.yaml:1: key 'a': the tag"));
  EXPECT_THAT(CaughtText([] { Parse("a: 2020-01-02\n"); }), HasSubstr("put it in quotes"));
  EXPECT_THAT(CaughtText([] { Parse("- 1\n"); }), HasSubstr("is a mapping"));
  std::string bomb = "a0: &a0 [x]\n";
  for (int i = 1; i < 30; ++i) {
    const std::string n = std::to_string(i);
    const std::string p = "*a" + std::to_string(i - 1);
    bomb += "a" + n + ": &a" + n + " [" + p + "," + p + "," + p + "," + p + "]\n";
  }
  EXPECT_THAT(CaughtText([&] { Parse(bomb); }), HasSubstr("more than 200000 values"));
  // Few values, each very long.
  std::string texts = "t: &t " + std::string(1 << 20, 'x') + "\nall: [*t";
  for (int i = 0; i < 1000; ++i) texts += ", *t";
  EXPECT_THAT(CaughtText([&] { Parse(texts + "]\n"); }), HasSubstr("of text, aliases written out"));
  // Few values below a long key. Their places are stored with that key.
  std::string keys = "? " + std::string(1000, 'k') + "\n: {";
  for (int i = 0; i < 100'000; ++i) keys += std::to_string(i) + ": 0,";
  EXPECT_THAT(CaughtText([&] { Parse(keys + "}\n"); }), HasSubstr("of text, aliases written out"));
  EXPECT_THAT(CaughtText([&] { Parse("a: &a [*a, *a]\n"); }), ::testing::Not(::testing::IsEmpty()));
  EXPECT_NE(CaughtText([] { Parse("a: " + std::string(3000, '[')); }), "");
}

TEST(Yaml, ManyKeysTakeTimeInProportion) {
  std::string text = "base: &b {a: 0";
  for (int i = 0; i < 40'000; ++i) text += ",k" + std::to_string(i) + ": 0";
  text += "}\nall:\n  <<: *b\n  a: 1\n";
  const int64_t begin = MonotonicMicros();
  const Json all = Parse(text).at("all");
  EXPECT_EQ(all.size(), 40'001u);
  EXPECT_EQ(all.begin().value(), 1);
  if (LimitsOwnMemory()) {  // sanitizers take more
    EXPECT_LT(MonotonicMicros() - begin, 20'000'000);
  }
}

TEST(Yaml, AFunctionIsTheBuiltInOneByItsFilesContentAlone) {
  const TemporaryFolder scratch;
  const auto named = [&](const std::string& file, const std::string& function) {
    const auto path = scratch.Write(file, "task: t\nf: !function " + function + "\n");
    return LoadTaskYaml(path.string()).value["f"].get<std::string>();
  };
  const std::string own = "!function " + (scratch / "humaneval/utils").string();
  EXPECT_EQ(named("humaneval/t.yaml", "utils.pass_at_k"), own + ".pass_at_k")
      << "there is no file: it is not lm_eval's";
  scratch.Write("humaneval/utils.py",
                "def pass_at_k(references, predictions, k):\n    return {'pass@1': 0.5}\n");
  EXPECT_EQ(named("humaneval/t.yaml", "utils.pass_at_k"), own + ".pass_at_k");
  // A file beside the task goes before lm_eval's.
  scratch.Write("lm_eval/tasks/humaneval/utils.py", "pass_at_k = None\n");
  EXPECT_EQ(named("t.yaml", "lm_eval.tasks.humaneval.utils.pass_at_k"),
            "!function " + (scratch / "lm_eval/tasks/humaneval/utils").string() + ".pass_at_k");
  EXPECT_EQ(named("u.yaml", "lm_eval.tasks.mbpp.utils.pass_at_1"),
            "!function mbpp/utils.pass_at_1");
  for (const char* bad : {"f", "../utils.f", "/etc/passwd.f", "utils.f/g", "a..b.f", "utils."}) {
    EXPECT_THAT(CaughtText([&] { named("bad.yaml", bad); }), HasSubstr("bad.yaml:2: key 'f': '"))
        << bad;
  }
}

TEST(Yaml, FunctionsOfBuiltInFilesHaveTheirNames) {
  const YamlMapping yaml = LoadTaskYaml("builtin:humaneval/humaneval.yaml");
  EXPECT_EQ(yaml.value["metric_list"][0]["metric"], "!function humaneval/utils.pass_at_k");
}

TEST(Yaml, IncludesAreOverlaid) {
  const TemporaryFolder scratch;
  scratch.Write("base.yaml", "task: base\nx: 1\nf: !function utils.g\n");
  scratch.Write("sub/mid.yaml", "include: ../base.yaml\nx: 2\ny: 3\n");
  const auto top = scratch.Write("top.yaml", "include: [sub/mid.yaml]\ny: 4\n");
  const YamlMapping yaml = LoadTaskYaml(top.string());
  EXPECT_EQ(yaml.value["x"], 2);
  EXPECT_EQ(yaml.value["y"], 4);
  EXPECT_EQ(yaml.value["f"], "!function " + scratch.path().string() + "/utils.g");
  EXPECT_THAT(yaml.Where("/x"), HasSubstr("mid.yaml:2"));
  EXPECT_THAT(yaml.Where("/y"), HasSubstr("top.yaml:2"));
  // A built-in file can be included from anywhere.
  const auto own = scratch.Write("own.yaml", "include: gsm8k/gsm8k.yaml\ntask: mine\n");
  EXPECT_EQ(LoadTaskYaml(own.string()).value["dataset_path"], "openai/gsm8k");
  const auto loop = scratch.Write("loop.yaml", "include: loop.yaml\n");
  EXPECT_THAT(CaughtText([&] { LoadTaskYaml(loop.string()); }), HasSubstr("includes itself"));
  const auto lost = scratch.Write("lost.yaml", "a: 1\ninclude: none.yaml\n");
  EXPECT_THAT(CaughtText([&] { LoadTaskYaml(lost.string()); }),
              HasSubstr("lost.yaml:2: the included file 'none.yaml' is not there; looked at"));
}

// Each scalar of tests/oracle/yaml_golden.py has PyYAML's value, or is refused if it is a date or
// no finite number. evald may read a scalar that PyYAML refuses.
TEST(Yaml, ScalarsArePyYamls) {
  size_t values = 0;
  ForEachJsonLine(
      std::filesystem::path(EVALD_SOURCE_DIR) / "tests/golden/datasets/yaml_scalars.jsonl",
      [&](size_t line, Json&& given) {
        const auto text = given["text"].get<std::string>();
        Json found;
        const std::string refusal = CaughtText([&] { found = Parse(text)["a"]; });
        if (given.contains("special")) {
          EXPECT_THAT(refusal, HasSubstr("t.yaml:1: ")) << text;
        }
        if (!given.contains("value")) return;
        ++values;
        EXPECT_EQ(refusal, "") << "line " << line << ": " << text;
        EXPECT_EQ(ToLine(found), ToLine(given["value"])) << "line " << line << ": " << text;
      });
  EXPECT_GE(values, 700u);
}

}  // namespace
}  // namespace evald
