#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>

#include "base/jsonl.h"
#include "evald/error.h"
#include "support.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"
#include "worker/replay/replay_engine.h"

namespace evald {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ReplayEngine : public testing::Test {
 protected:
  void Write(const std::string& name, const std::vector<Generation>& all) {
    fs::create_directories((folder_.path() / name).parent_path());
    std::ofstream file(folder_.path() / name);
    for (const Generation& one : all) file << ToLine(ToJson(one)) << "\n";
  }
  static Generation Text(int64_t doc_id, const std::string& text) {
    Generation generation;
    generation.doc_id = doc_id;
    generation.text = text;
    return generation;
  }
  std::unique_ptr<Engine> Open(const std::string& name) {
    auto engine =
        MakeReplayEngine({"replay", Json{{"generations", folder_.path() / name}}, "cpu:0", 1, 1});
    engine->Load(folder_.path());
    return engine;
  }
  static std::string Ask(Engine* engine, const std::string& task, int64_t doc_id,
                         RequestKind kind = RequestKind::kGenerateUntil) {
    Request request;
    request.task = task;
    request.doc_id = doc_id;
    request.kind = kind;
    try {
      engine->Submit(9, request);
      const auto finished = engine->Step(std::chrono::milliseconds(1));
      EXPECT_EQ(finished.size(), 1u);
      EXPECT_EQ(finished[0].tag, 9u);
      return finished[0].generation.text;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInput);
      return e.what();
    }
  }

  TemporaryFolder folder_;
};

TEST_F(ReplayEngine, AnswersFromARunsFolder) {
  Write("run/generations/math/1.0.jsonl", {Text(0, "a"), Text(1, "b")});
  Write("run/generations/math/2.0.jsonl", {Text(2, "c"), Text(1, "b")});
  Write("run/generations/code/3.0.jsonl", {Text(1, "d")});
  Write("run/generations/code/4.0.jsonl.part", {Text(7, "half")});
  Write("run/generations/code/3.1.jsonl.superseded", {Text(1, "late")});
  for (const char* name : {"run", "run/generations"}) {
    const auto engine = Open(name);
    EXPECT_EQ(Ask(engine.get(), "math", 1), "b");
    EXPECT_EQ(Ask(engine.get(), "math", 2), "c");
    EXPECT_EQ(Ask(engine.get(), "code", 1), "d");
    EXPECT_THAT(Ask(engine.get(), "code", 7),
                HasSubstr("no generation for task 'code', document 7"));
    EXPECT_THAT(Ask(engine.get(), "maths", 1), HasSubstr("did you mean 'math'?"));
    EXPECT_EQ(engine->LoadReport()["generations"], 5);
    EXPECT_EQ(engine->LoadReport()["duplicates"], 1);
  }
}

TEST_F(ReplayEngine, AnswersFromAFolderOfFilesAndFromOneFile) {
  Write("files/math.jsonl", {Text(0, "a")});
  EXPECT_EQ(Ask(Open("files").get(), "math", 0), "a");
  const auto single = Open("files/math.jsonl");
  EXPECT_EQ(Ask(single.get(), "anything", 0), "a");
  EXPECT_THAT(Ask(single.get(), "another", 0), HasSubstr("answers for one task"));
}

TEST_F(ReplayEngine, TwoAnswersToOneRequestAreRefused) {
  Write("run/generations/math/1.0.jsonl", {Text(0, "a"), Text(1, "b")});
  Write("run/generations/math/1.1.jsonl", {Text(0, "a"), Text(1, "c")});
  const Error e = Caught([&] { Open("run"); });
  EXPECT_EQ(e.kind(), ErrorKind::kInput);
  EXPECT_THAT(e.what(), HasSubstr("1.1.jsonl:2: task 'math', document 1"));
  EXPECT_THAT(e.what(), HasSubstr("math/1.0.jsonl"));
}

TEST_F(ReplayEngine, AnAnswerOfAnotherKindIsRefused) {
  Write("files/math.jsonl", {Text(0, "a")});
  EXPECT_THAT(Ask(Open("files").get(), "math", 0, RequestKind::kLoglikelihood),
              HasSubstr("found an answer to generate_until, expected one to loglikelihood"));
}

TEST_F(ReplayEngine, BadFilesAreNamedWithTheirLine) {
  Write("a/math.jsonl", {Text(0, "a"), Text(1, "b")});
  std::ofstream(folder_.path() / "a/math.jsonl", std::ios::app) << "{\"doc_id\": 2\n";
  const Error e = Caught([&] { Open("a"); });
  EXPECT_THAT(e.what(), HasSubstr("math.jsonl:3: not JSON"));
  fs::create_directory(folder_.path() / "empty");
  EXPECT_THROW(Open("empty"), Error);
  EXPECT_THROW(Open("nowhere"), Error);
  EXPECT_THROW(MakeReplayEngine({"replay", Json::object(), "cpu:0", 1, 1}), Error);
}

TEST_F(ReplayEngine, ALineThatTakesTooMuchMemoryIsRefused) {
  std::string values = "[0";
  for (int i = 0; i < 1'000'000; ++i) values += ",0";
  std::ofstream(folder_.path() / "a.jsonl") << R"({"doc_id": 0, "x": )" << values << "]}\n";
  EXPECT_THROW(
      try { Open("a.jsonl"); } catch (const Error& e) {
        EXPECT_THAT(e.what(), HasSubstr("a.jsonl:1: JSON of more than 1000000 values"));
        throw;
      },
      Error);
  std::ofstream(folder_.path() / "b.jsonl") << '"' << std::string(64 << 20, 'x') << "\"\n";
  EXPECT_THROW(
      try { Open("b.jsonl"); } catch (const Error& e) {
        EXPECT_THAT(e.what(), HasSubstr("b.jsonl:1: a line of more than 67108864 bytes"));
        throw;
      },
      Error);
}

// Holes take no place on the disk, but are read with their whole length.
TEST_F(ReplayEngine, AHoleIsRefusedBeforeItIsRead) {
  const auto refusal = [&](const char* name, uintmax_t bytes) {
    std::ofstream(folder_.path() / name) << "";
    fs::resize_file(folder_.path() / name, bytes);
    return RefusalOf([&] { Open(name); });
  };
  EXPECT_THAT(refusal("terabyte.jsonl", uintmax_t{1} << 40),
              HasSubstr("terabyte.jsonl: generations of more than 68719476736 bytes"));
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  EXPECT_THAT(refusal("gigabytes.jsonl", uintmax_t{8} << 30),
              HasSubstr("gigabytes.jsonl:1: a line of more than 67108864 bytes"));
  ::getrusage(RUSAGE_SELF, &after);
  // 64 MiB have 16,384 pages, 8 GiB have 2,097,152. The kernel brings in 16 pages at once if it
  // can, and a sanitizer's shadow has up to four pages for each.
  EXPECT_LT(after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt, 100'000)
      << "all of it was read";
}

TEST_F(ReplayEngine, TenMegabytesInOneLine) {
  Write("files/math.jsonl", {Text(0, std::string(10 << 20, 'x')), Text(1, "")});
  const auto engine = Open("files");
  EXPECT_EQ(Ask(engine.get(), "math", 0).size(), 10u << 20);
  EXPECT_EQ(Ask(engine.get(), "math", 1), "");
}

TEST_F(ReplayEngine, FoldersAreFoundByWhatIsMadeOfATasksName) {
  Write("run/generations/odd%20name%20%28a%29/1.1-0.jsonl", {Text(0, "made by evald")});
  Write("run/generations/by hand/1.1-0.jsonl", {Text(0, "made by hand")});
  Write("secret/1.1-0.jsonl", {Text(0, "not asked for")});
  const auto engine = Open("run");
  EXPECT_THAT(Ask(engine.get(), "odd name (a)", 0), HasSubstr("made by evald"));
  EXPECT_THAT(Ask(engine.get(), "by hand", 0), HasSubstr("made by hand"));
  EXPECT_THAT(Ask(engine.get(), "../../secret", 0), HasSubstr("holds no generations of the task"));
}

}  // namespace
}  // namespace evald
