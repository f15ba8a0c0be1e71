#include "datasets/task_set.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/jsonl.h"
#include "datasets/leaf_task.h"
#include "prepared/prepared_task.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TaskRequest Named(const std::string& name) {
  TaskRequest request;
  request.name = name;
  request.where = "eval.yaml:3";
  return request;
}

std::vector<std::string> Leaves(const ResolvedTasks& tasks) {
  std::vector<std::string> names;
  for (const LeafTask& leaf : tasks.leaves) names.push_back(leaf.name);
  return names;
}

// The rest of a task's file behind its name.
constexpr const char* kBody =
    "dataset_path: x\ntest_split: test\ndoc_to_text: a\ndoc_to_target: b\n";

TEST(TaskRegistry, ListsWhatIsBuiltIn) {
  std::map<std::string, TaskListing> listed;
  for (const TaskListing& listing : TaskRegistry({}).List()) listed[listing.name] = listing;
  EXPECT_EQ(listed["humaneval"].kind, "task");
  EXPECT_EQ(listed["humaneval"].source, "built in");
  EXPECT_EQ(listed["gsm8k"].summary, "generate_until, 5-shot");
  EXPECT_EQ(listed["mbpp"].summary, "generate_until, 3-shot");
  EXPECT_EQ(listed["mmlu_anatomy"].summary, "multiple_choice, 5-shot");
  EXPECT_EQ(listed["mmlu"].kind, "group");
  EXPECT_EQ(listed["mmlu"].summary, "mmlu_stem, mmlu_other, mmlu_social_sciences, mmlu_humanities");
  EXPECT_EQ(listed["mmlu_stem_tasks"].kind, "tag");
  EXPECT_EQ(listed.count("sources"), 0u);
}

TEST(TaskRegistry, ResolvesMmluWithItsGroups) {
  const ResolvedTasks tasks = TaskRegistry({}).Resolve({Named("mmlu")});
  EXPECT_EQ(tasks.leaves.size(), 57u);
  EXPECT_EQ(tasks.leaves[0].name, "mmlu_abstract_algebra");
  EXPECT_EQ(tasks.leaves[56].name, "mmlu_world_religions");
  ASSERT_EQ(tasks.groups.size(), 5u);
  EXPECT_EQ(tasks.groups[0].name, "mmlu");
  EXPECT_THAT(tasks.groups[0].children,
              ElementsAre("mmlu_stem", "mmlu_other", "mmlu_social_sciences", "mmlu_humanities"));
  EXPECT_EQ(tasks.groups[1].alias, "stem");
  EXPECT_EQ(tasks.groups[1].children.size(), 19u);
  ASSERT_EQ(tasks.groups[0].metrics.size(), 1u);
  EXPECT_TRUE(tasks.groups[0].metrics[0].weight_by_size);
  EXPECT_TRUE(tasks.groups[0].metrics[0].filters.empty());
  EXPECT_EQ(tasks.groups[0].version, 2);
}

TEST(TaskRegistry, SpreadsALimitOverAGroup) {
  TaskRequest request = Named("mmlu");
  request.limit_total = 2000;
  const ResolvedTasks tasks = TaskRegistry({}).Resolve({request});
  int64_t total = 0;
  for (const LeafTask& leaf : tasks.leaves) total += *leaf.state->limit;
  EXPECT_EQ(total, 2000);
  EXPECT_EQ(tasks.leaves[4].state->limit, 36);
  EXPECT_EQ(tasks.leaves[5].state->limit, 35);
  request.limit_total = 10;
  EXPECT_THAT(CaughtText([&] { TaskRegistry({}).Resolve({request}); }),
              HasSubstr("leaves no document"));
  request.limit = 3;
  EXPECT_THAT(CaughtText([&] { TaskRegistry({}).Resolve({request}); }),
              HasSubstr("both limit and limit_total"));
}

TEST(TaskRegistry, OverridesReachTheLeaves) {
  TaskRequest request = Named("gsm8k");
  request.num_fewshot = 2;
  request.repeats = 3;
  request.generation_kwargs = {{"max_gen_toks", 7}, {"until", {"X"}}};
  const auto state = TaskRegistry({}).Resolve({request}).leaves.at(0).state;
  EXPECT_EQ(state->config.num_fewshot, 2);
  EXPECT_EQ(state->config.repeats, 3);
  EXPECT_EQ(state->config.sampling.max_gen_toks, 7);
  EXPECT_THAT(state->config.sampling.until, ElementsAre("X"));
  EXPECT_EQ(state->config.dump["generation_kwargs"]["temperature"], 0.0);
  request.generation_kwargs = {{"beams", 3}};
  EXPECT_THAT(CaughtText([&] { TaskRegistry({}).Resolve({request}); }),
              HasSubstr("eval.yaml:3: generation_kwargs.beams is not a generation setting"));
}

// As in simple_evaluate: num_fewshot replaces the number in the task's file and in its groups'
// files, unless that number is 0.
TEST(TaskRegistry, AskedForExamplesDoNotReplaceNone) {
  const TemporaryFolder scratch;
  scratch.Write("none.yaml", std::string("task: none\nnum_fewshot: 0\n") + kBody);
  scratch.Write("one.yaml", std::string("task: one\nnum_fewshot: 1\n") + kBody);
  scratch.Write("open.yaml", std::string("task: open\n") + kBody);
  scratch.Write("g.yaml", "group: g\ntask:\n- none\n- one\n- task: open\n  num_fewshot: 4\n");
  scratch.Write("h.yaml", "group: h\nnum_fewshot: 0\ntask: [one, open]\n");
  scratch.Write(
      "i.yaml",
      "group: i\ntask:\n- task: none\n  num_fewshot: 5\n- task: open\n  num_fewshot: 0\n");
  const auto shots = [&](const char* name) {
    TaskRequest request = Named(name);
    request.num_fewshot = 3;
    std::vector<int> counts;
    for (const LeafTask& leaf : TaskRegistry({scratch.path()}).Resolve({request}).leaves) {
      counts.push_back(leaf.state->config.num_fewshot);
    }
    return counts;
  };
  testing::internal::CaptureStdout();  // captures the log
  EXPECT_THAT(shots("none"), ElementsAre(0));
  const std::string log = testing::internal::GetCapturedStdout();
  EXPECT_THAT(log,
              HasSubstr("num_fewshot: 3 has no effect on the task 'none', whose own file says 0"));
  EXPECT_THAT(shots("open"), ElementsAre(3));
  EXPECT_THAT(shots("g"), ElementsAre(0, 3, 3));
  EXPECT_THAT(shots("h"), ElementsAre(0, 0));
  EXPECT_THAT(shots("i"), ElementsAre(3, 0));
}

// The harness keeps a group's tasks in a dict: a task has the place of its first entry and the
// settings of its last one, and counts once.
TEST(TaskRegistry, AGroupThatReachesATaskTwiceHasItOnce) {
  const TemporaryFolder scratch;
  scratch.Write("p.yaml", std::string("task: p\n") + kBody);
  scratch.Write("r.yaml", std::string("task: r\ntag: some\n") + kBody);
  scratch.Write("twice.yaml", "group: twice\ntask: [r, p, r]\n");
  scratch.Write("tagged.yaml", "group: tagged\ntask: [p, {task: r, num_fewshot: 3}, some]\n");
  scratch.Write("inner.yaml", "group: inner\ntask: [{task: r, num_fewshot: 2}]\n");
  scratch.Write("outer.yaml", "group: outer\ntask: [r, inner, p]\n");
  const auto resolve = [&](const char* name) {
    return TaskRegistry({scratch.path()}).Resolve({Named(name)});
  };
  const auto shots = [&](const ResolvedTasks& tasks) {
    std::map<std::string, int> shots;
    for (const LeafTask& leaf : tasks.leaves) {
      EXPECT_EQ(shots.count(leaf.name), 0u) << leaf.name;
      shots[leaf.name] = leaf.state->config.num_fewshot;
    }
    return shots;
  };
  using Shots = std::map<std::string, int>;
  EXPECT_THAT(resolve("twice").groups.at(0).children, ElementsAre("r", "p"));
  EXPECT_EQ(shots(resolve("twice")), (Shots{{"p", 0}, {"r", 0}}));
  EXPECT_THAT(resolve("tagged").groups.at(0).children, ElementsAre("p", "r"));
  EXPECT_EQ(shots(resolve("tagged")), (Shots{{"p", 0}, {"r", 0}})) << "the last entry counts";
  EXPECT_EQ(shots(resolve("outer")), (Shots{{"p", 0}, {"r", 2}})) << "also of an inner group";
}

TEST(TaskRegistry, GroupsMayBeNestedButNotInThemselves) {
  const TemporaryFolder scratch;
  scratch.Write("leaf.yaml", std::string("task: leaf\n") + kBody);
  for (int depth = 0; depth < 300; ++depth) {
    scratch.Write("g" + std::to_string(depth) + ".yaml",
                  "group: g" + std::to_string(depth) + "\ntask: [" +
                      (depth == 0 ? "leaf" : "g" + std::to_string(depth - 1)) + "]\n");
  }
  scratch.Write("ring.yaml", "group: ring\ntask: [leaf, gate]\n");
  scratch.Write("gate.yaml", "group: gate\ntask: [ring]\n");
  const TaskRegistry registry({scratch.path()});
  EXPECT_EQ(registry.Resolve({Named("g60")}).leaves.size(), 1u);
  EXPECT_THAT(CaughtText([&] { registry.Resolve({Named("g299")}); }),
              HasSubstr("nested more than 200 deep"));
  EXPECT_THAT(CaughtText([&] { registry.Resolve({Named("ring")}); }),
              HasSubstr("the group 'ring' holds itself"));
}

TEST(TaskRegistry, GroupsThatMultiplyAreRefusedSoon) {
  const TemporaryFolder scratch;
  scratch.Write("leaf.yaml", std::string("task: g40\n") + kBody);
  for (int i = 0; i < 40; ++i) {
    scratch.Write(fmt::format("g{}.yaml", i),
                  fmt::format("group: g{0}\ntask: [g{1}, g{1}, g{1}]\n", i, i + 1));
  }
  EXPECT_THAT(CaughtText([&] { TaskRegistry({scratch.path()}).Resolve({Named("g0")}); }),
              HasSubstr("the groups have more than 40000 members, written out"));
}

TEST(TaskRegistry, RefusesNamesThatAreNotKnownOrDoubled) {
  const TaskRegistry registry({});
  EXPECT_THAT(
      CaughtText([&] { registry.Resolve({Named("gsm8")}); }),
      HasSubstr("eval.yaml:3: there is no task, group or tag 'gsm8'; did you mean 'gsm8k'?"));
  EXPECT_THAT(CaughtText([&] { registry.Resolve({Named("mmlu"), Named("mmlu_anatomy")}); }),
              HasSubstr("'mmlu_anatomy' is asked for twice, by 'mmlu' and by 'mmlu_anatomy'"));
}

// The harness refuses a task that stands alone and in a group, too ("Duplicate task").
TEST(TaskRegistry, ATaskHasOneSetOfSettings) {
  const TaskRegistry registry({});
  EXPECT_THAT(CaughtText([&] { registry.Resolve({Named("mmlu_anatomy"), Named("mmlu")}); }),
              AllOf(HasSubstr("'mmlu_anatomy' is asked for twice, by 'mmlu_anatomy' and by 'mmlu'"),
                    HasSubstr("not both")));
  EXPECT_EQ(registry.Resolve({Named("gsm8k"), Named("gsm8k")}).leaves.size(), 1u);
  TaskRequest limited = Named("gsm8k");
  limited.limit = 3;
  limited.where = "eval.yaml:4";
  EXPECT_THAT(CaughtText([&] { registry.Resolve({Named("gsm8k"), limited}); }),
              HasSubstr("eval.yaml:4: 'gsm8k' is asked for twice, with other settings at "
                        "eval.yaml:3; keep one"));
}

TEST(TaskRegistry, ThinkingIsForTasksThatGenerate) {
  const TaskRegistry registry({});
  TaskRequest request = Named("mmlu_anatomy");
  request.enable_thinking = true;
  request.think_end.text = "</think>";
  EXPECT_THAT(RefusalOf([&] { registry.Resolve({request}); }),
              AllOf(HasSubstr("the task 'mmlu_anatomy' scores log-likelihoods"),
                    HasSubstr("tasks: [{task: mmlu_anatomy, enable_thinking: false}]"),
                    HasSubstr("eval.yaml:3")));
  request.name = "mmlu_stem";
  EXPECT_THAT(RefusalOf([&] { registry.Resolve({request}); }),
              HasSubstr("tasks: [{task: mmlu_stem, enable_thinking: false}]"));
  request.name = "gsm8k";
  const auto state = registry.Resolve({request}).leaves.at(0).state;
  EXPECT_EQ(state->enable_thinking, true);
  EXPECT_EQ(state->think_end.text, "</think>");
  // Neither switched off nor with an end alone does thinking keep a task from being scored.
  request.name = "mmlu_anatomy";
  request.enable_thinking = false;
  EXPECT_EQ(registry.Resolve({request}).leaves.size(), 1u);
  request.enable_thinking.reset();
  EXPECT_EQ(registry.Resolve({request}).leaves.size(), 1u);
  EXPECT_THAT(CaughtText([&] { registry.Resolve({Named("mmlu_anatomy"), request}); }),
              HasSubstr("is asked for twice, with other settings"));
}

TEST(TaskRegistry, ABadFileIsPassedOverUnlessItIsAskedFor) {
  const TemporaryFolder scratch;
  constexpr const char* kRest =
      "dataset_path: json\ndataset_kwargs: {data_files: d.jsonl}\ntest_split: test\ndoc_to_text: "
      "a\ndoc_to_target: b\n";
  scratch.Write("good.yaml", std::string("task: good\ntag: shown\n") + kRest);
  scratch.Write("broken.yaml", "task: broken\ndoc_to_text: [\n");
  scratch.Write("later.yaml", std::string("task: good\n") + kRest);
  scratch.Write("path.yaml", std::string("task: ../../x\n") + kRest);
  scratch.Write("line.yaml", std::string("task: \"a\\nb\"\n") + kRest);
  scratch.Write("tag.yaml", std::string("task: tagged\ntag: a/b\n") + kRest);
  scratch.Write("gsm8k.yaml", "task: 'gsm8k'\ntag: []\ninclude: none.yaml\n");
  const TaskRegistry registry({scratch.path()});
  EXPECT_EQ(registry.Problems().size(), 6u);
  EXPECT_THAT(Leaves(registry.Resolve({Named("good")})), ElementsAre("good"));
  EXPECT_THAT(Leaves(registry.Resolve({Named("shown")})), ElementsAre("good"));
  const auto refusal = [&](const char* name) {
    return CaughtText([&] { registry.Resolve({Named(name)}); });
  };
  EXPECT_THAT(refusal("broken"),
              AllOf(HasSubstr("eval.yaml:3"), HasSubstr("broken.yaml:3: broken YAML")));
  EXPECT_THAT(refusal("../../x"), HasSubstr("path.yaml:1: the name of a task: it holds '/'"));
  EXPECT_THAT(refusal("tagged"), HasSubstr("tag.yaml:2: the name of a tag: it holds '/'"));
  // The built-in task of that name is a different one.
  EXPECT_THAT(refusal("gsm8k"),
              HasSubstr("gsm8k.yaml:3: the included file 'none.yaml' is not there"));
  for (const TaskListing& task : registry.List()) EXPECT_NE(task.name, "gsm8k");
  // A file in a later folder may define the name.
  const TemporaryFolder later;
  later.Write("gsm8k.yaml", std::string("task: gsm8k\n") + kRest);
  EXPECT_THAT(Leaves(TaskRegistry({scratch.path(), later.path()}).Resolve({Named("gsm8k")})),
              ElementsAre("gsm8k"));
}

TEST(TaskRegistry, TasksThatArePythonCodeAreRefusedWhenTheyAreAskedFor) {
  const TemporaryFolder scratch;
  for (const char* name : {"a", "b"}) {  // lm_eval's own tasks have all three keys
    scratch.Write(std::string(name) + ".yaml",
                  fmt::format("group: scrolls\ntask: scrolls_{}\nclass: !function task.T\n", name));
  }
  const TaskRegistry registry({scratch.path()});
  EXPECT_TRUE(registry.Problems().empty());
  EXPECT_THAT(CaughtText([&] { registry.Resolve({Named("scrolls_b")}); }),
              HasSubstr("the key 'class' is not supported"));
}

TEST(TaskRegistry, NamesOfInlineGroupsAndTasksAreChecked) {
  const TemporaryFolder scratch;
  scratch.Write("g.yaml", "group: g\ntask:\n  - group: ../up\n    task: [gsm8k]\n");
  EXPECT_THAT(CaughtText([&] { TaskRegistry({scratch.path()}).Resolve({Named("g")}); }),
              HasSubstr("g.yaml:3: the name of a group: it holds '/'"));
}

TEST(TaskRegistry, NestedAndInlineGroups) {
  const TaskRegistry registry({EVALD_SOURCE_DIR "/tests/golden/datasets/made_up"});
  const ResolvedTasks tasks = registry.Resolve({Named("made_up_group")});
  EXPECT_THAT(Leaves(tasks),
              ElementsAre("made_up_last_word", "made_up_rolling", "made_up_list_targets",
                          "made_up_printed_list", "made_up_own_examples"));
  ASSERT_EQ(tasks.groups.size(), 2u);
  EXPECT_EQ(tasks.groups[1].name, "made_up_group::inner");
  EXPECT_EQ(tasks.groups[1].alias, "Inner");
  EXPECT_FALSE(tasks.groups[1].metrics[0].weight_by_size);
  EXPECT_THAT(tasks.groups[1].metrics[0].filters, ElementsAre("none"));
  EXPECT_EQ(tasks.leaves[1].state->config.alias, "rolled");
  EXPECT_EQ(tasks.leaves[4].state->config.num_fewshot, 1);
}

// lm_eval 0.4.13, tasks/_factory.py: {**task, **{**group, **outer group}, **member}. The values are
// not merged, so settings that the task has and the group does not name are those of the harness.
TEST(TaskRegistry, AGroupsGenerationKwargsTakeThePlaceOfTheTasks) {
  const TemporaryFolder scratch;
  scratch.Write("t.yaml",
                "task: t\ndataset_path: d\ntest_split: test\ndoc_to_text: q\ndoc_to_target: a\n"
                "output_type: generate_until\n"
                "generation_kwargs: {until: ['x'], max_gen_toks: 64, repetition_penalty: 1.5}\n");
  scratch.Write("member.yaml",
                "group: member\ntask:\n  - task: t\n    generation_kwargs: {max_gen_toks: 9}\n");
  scratch.Write("whole.yaml", "group: whole\ntask: [t]\ngeneration_kwargs: {max_gen_toks: 9}\n");
  scratch.Write("empty.yaml", "group: empty\ntask: [t]\ngeneration_kwargs: {}\n");
  scratch.Write("outer.yaml",
                "group: outer\ntask: [whole]\ngeneration_kwargs: {do_sample: false}\n");
  const auto kwargs = [&](const char* name) {
    const ResolvedTasks tasks = TaskRegistry({scratch.path()}).Resolve({Named(name)});
    return tasks.leaves.at(0).state->config.dump.at("generation_kwargs");
  };
  EXPECT_EQ(kwargs("t")["repetition_penalty"], 1.5);
  for (const char* name : {"member", "whole"}) {
    EXPECT_EQ(kwargs(name), (Json{{"max_gen_toks", 9}, {"until", {"\n\n"}}})) << name;
  }
  EXPECT_EQ(kwargs("empty"), (Json{{"until", {"\n\n"}}}));
  EXPECT_EQ(kwargs("outer"), (Json{{"do_sample", false}, {"until", {"\n\n"}}}));
}

TEST(TaskRegistry, OwnFoldersWinOverBuiltInTasks) {
  const TemporaryFolder scratch;
  scratch.Write("t/mine.yaml", "include: gsm8k/gsm8k.yaml\nnum_fewshot: 1\n");
  const TaskRegistry registry({scratch / "t"});
  const auto leaf = registry.Resolve({Named("gsm8k")}).leaves.at(0);
  EXPECT_EQ(leaf.state->config.num_fewshot, 1);
  EXPECT_THAT(CaughtText([&] { TaskRegistry({scratch / "none"}); }), HasSubstr("is not there"));
}

constexpr const char* kTask =
    "task: t\ndataset_path: json\ndataset_kwargs:\n  data_files: {test: d.jsonl, train: d.jsonl}\n"
    "training_split: train\ntest_split: test\ndoc_to_text: \"{{q}}\"\ndoc_to_target: a\n"
    "num_fewshot: 1\n";

TEST(Prepare, KeysAndReuse) {
  const TemporaryFolder scratch;
  scratch.Write("t/t.yaml", kTask);
  scratch.Write("t/d.jsonl", "{\"q\":\"x\",\"a\":\"1\"}\n{\"q\":\"y\",\"a\":\"2\"}\n");
  PrepareOptions options;
  options.cache_dir = scratch / "cache";
  const auto prepare = [&](TaskRequest request) {
    return PrepareTask(TaskRegistry({scratch / "t"}).Resolve({request}).leaves.at(0), options);
  };
  const auto first = prepare(Named("t"));
  EXPECT_EQ(first.parent_path(), scratch / "cache" / "prepared");
  EXPECT_EQ(prepare(Named("t")), first);
  std::set<std::filesystem::path> keys = {first};
  TaskRequest limited = Named("t");
  limited.limit = 1;
  keys.insert(prepare(limited));
  options.fewshot_seed = 7;
  keys.insert(prepare(Named("t")));
  options.fewshot_seed = 1234;
  scratch.Write("t/d.jsonl", "{\"q\":\"x\",\"a\":\"1\"}\n{\"q\":\"z\",\"a\":\"2\"}\n");
  keys.insert(prepare(Named("t")));
  TaskRequest zero = Named("t");
  zero.num_fewshot = 0;
  keys.insert(prepare(zero));
  EXPECT_EQ(keys.size(), 5u);
  for (const ThinkEnd& end : {ThinkEnd{"</think>", -1}, ThinkEnd{"", 7}}) {
    TaskRequest thinks = Named("t");
    thinks.think_end = end;
    const auto folder = prepare(thinks);
    keys.insert(folder);
    const PreparedTask task(folder);
    EXPECT_EQ(task.Requests(0, 1).at(0).sampling.think_end, end);
    EXPECT_EQ(task.task()["sources"]["thinking"], (Json{{"think_end_token", ToJson(end)}}));
  }
  EXPECT_EQ(keys.size(), 7u);
  const PreparedTask task(first);
  EXPECT_EQ(task.name(), "t");
  EXPECT_EQ(task.document_count(), 2);
  EXPECT_EQ(task.Document(1).target, "2");
}

// A submitter may write the file at any moment. `doing` is called before each reading. The first
// reading makes the key, the second the rows.
class ChangingFile : public ::testing::Test {
 protected:
  ChangingFile() {
    options_.cache_dir = scratch_ / "cache";
    scratch_.Write("t/t.yaml", kTask);
    honest_ = "{\"q\":\"x\",\"a\":\"1\"}\n{\"q\":\"y\",\"a\":\"2\"}\n";
    evil_ = "{\"q\":\"x\",\"a\":\"7\"}\n{\"q\":\"y\",\"a\":\"8\"}\n";
    scratch_.Write("t/d.jsonl", honest_);
  }
  std::filesystem::path Prepare() {
    return PrepareTask(TaskRegistry({scratch_ / "t"}).Resolve({Named("t")}).leaves.at(0), options_);
  }
  void ChangeAtReading(int which, const std::string& content) {
    options_.doing = [this, which, content, readings = 0](const std::string& what) mutable {
      if (what.find("reading") != std::string::npos && ++readings == which)
        scratch_.Write("t/d.jsonl", content);
    };
  }

  TemporaryFolder scratch_;
  PrepareOptions options_;
  std::string honest_, evil_;
};

// The readings are: the keys of both splits (one file), then the rows of both.
TEST_F(ChangingFile, IsRefusedAndLeavesNothingUnderTheHonestKey) {
  for (const int reading : {3, 4}) {
    scratch_.Write("t/d.jsonl", honest_);
    ChangeAtReading(reading, evil_);
    EXPECT_THAT(CaughtText([&] { Prepare(); }),
                AllOf(HasSubstr("d.jsonl: "), HasSubstr("changed while it was read")));
    for (const char* other : {"", "{\"q\":\"x\",\"a\":\"1\"}\n"}) {
      scratch_.Write("t/d.jsonl", honest_);
      ChangeAtReading(reading, other);
      EXPECT_NE(CaughtText([&] { Prepare(); }), "");
    }
    EXPECT_TRUE(std::filesystem::is_empty(scratch_ / "cache/prepared"));
  }
  options_.doing = nullptr;
  scratch_.Write("t/d.jsonl", honest_);
  EXPECT_EQ(PreparedTask(Prepare()).Document(1).target, "2");
}

TEST_F(ChangingFile, OfTheSameContentIsTheSame) {
  ChangeAtReading(3, honest_);
  EXPECT_EQ(PreparedTask(Prepare()).Document(0).target, "1");
}

// The same bytes give other rows if the file's name has them read in another format.
TEST(Prepare, TheEndingOfADataFileIsInTheKey) {
  const TemporaryFolder scratch;
  scratch.Write("t/t.yaml",
                "task: t\ndataset_path: some/d\ntest_split: test\ndoc_to_text: "
                "hello\ndoc_to_target: \"1\"\n");
  std::set<std::filesystem::path> keys;
  for (const char* name : {"test.jsonl", "test.csv"}) {
    scratch.Write(std::string("data-") + name + "/d/" + name, "{\"q\":\"x\"}\n{\"q\":\"y\"}\n");
    PrepareOptions options;
    options.cache_dir = scratch / "cache";
    options.data_dir = scratch / (std::string("data-") + name);
    keys.insert(
        PrepareTask(TaskRegistry({scratch / "t"}).Resolve({Named("t")}).leaves.at(0), options));
  }
  EXPECT_EQ(keys.size(), 2u);
}

TEST(Prepare, DescribeCounts) {
  const TemporaryFolder scratch;
  scratch.Write("t/t.yaml", kTask);
  scratch.Write("t/d.jsonl", "{\"q\":\"x\",\"a\":[\"1\"]}\n{\"q\":\"y\",\"a\":[\"2\"]}\n");
  PrepareOptions options;
  options.cache_dir = scratch / "cache";
  TaskRequest request = Named("t");
  request.limit = 1;
  const TaskDefinition task =
      DescribeTask(TaskRegistry({scratch / "t"}).Resolve({request}).leaves.at(0), options);
  EXPECT_EQ(task.original_documents, 2);
  EXPECT_EQ(task.effective_documents, 1);
  EXPECT_TRUE(task.multiple_target);
  EXPECT_EQ(task.metrics.at(0).metric, "exact_match");
  EXPECT_EQ(task.filters.at(0).name, "none");
  EXPECT_EQ(task.config["generation_kwargs"]["until"], Json::array({"\n\n"}));
  EXPECT_FALSE(std::filesystem::exists(scratch / "cache"));
}

}  // namespace
}  // namespace evald
