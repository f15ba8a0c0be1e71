// Tasks that are programs of the user's: what is prepared of them, and under which key.
#include "datasets/command_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "prepared/prepared_task.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

using ::testing::HasSubstr;

TaskRequest Command(const std::string& name = "mine") {
  TaskRequest request;
  request.name = name;
  request.where = "eval.yaml:7";
  request.command.emplace();
  request.command->command = {"sh", "-c", "run it"};
  request.command->environment = {{"X", "1"}};
  request.command->results_file = "out.json";
  request.command->scores = {{"acc", "$.acc", true}, {"loss", "$.loss", false}};
  return request;
}

TaskRequest FromFile(const std::string& name) {
  TaskRequest request;
  request.name = name;
  request.where = "eval.yaml:8";
  return request;
}

std::filesystem::path Prepare(const TaskRequest& request, const TemporaryFolder& cache) {
  PrepareOptions options;
  options.cache_dir = cache.path();
  return PrepareTask(TaskRegistry({}).Resolve({request}).leaves.at(0), options);
}

TEST(CommandTask, IsOneDocumentWithOneRequest) {
  const TemporaryFolder cache;
  const PreparedTask prepared(Prepare(Command(), cache));
  EXPECT_EQ(prepared.document_count(), 1);
  const std::vector<Request> requests = prepared.Requests(0, 1);
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].context, "sh -c run it");
  const TaskDefinition task = TaskFromJson(prepared.task(), "task.json");
  EXPECT_EQ(task.name, "mine");
  EXPECT_EQ(task.effective_documents, 1);
  ASSERT_TRUE(task.command);
  EXPECT_EQ(ToJson(*task.command), ToJson(*Command().command));
  ASSERT_EQ(task.metrics.size(), 2U);
  EXPECT_EQ(task.metrics[1].metric, "loss");
  EXPECT_FALSE(task.metrics[1].higher_is_better);
}

TEST(CommandTask, ItsKeyCoversTheWholeSpecification) {
  const TemporaryFolder cache;
  const auto first = Prepare(Command(), cache);
  EXPECT_EQ(Prepare(Command(), cache), first);
  std::vector<TaskRequest> others(6, Command());
  others[0].name = "other";
  others[1].command->command[2] = "run another";
  others[2].command->environment["X"] = "2";
  others[3].command->results_file = "other.json";
  others[4].command->scores[0].path = "$.other";
  others[5].command->time_limit_s = 1;
  for (const TaskRequest& other : others) EXPECT_NE(Prepare(other, cache), first);
}

TEST(CommandTask, StandsBesideTasksOfFiles) {
  const ResolvedTasks tasks = TaskRegistry({}).Resolve({FromFile("gsm8k"), Command()});
  ASSERT_EQ(tasks.leaves.size(), 2U);
  EXPECT_EQ(DefineTask(tasks.leaves[1]).command->command[0], "sh");
  EXPECT_FALSE(DefineTask(tasks.leaves[0]).command);
  // The name of a task that is not asked for is free.
  EXPECT_TRUE(DefineTask(TaskRegistry({}).Resolve({Command("gsm8k")}).leaves[0]).command);
}

TEST(CommandTask, ANameForTwoTasksIsRefused) {
  const auto refusal = [](const std::vector<TaskRequest>& requests) {
    return CaughtText([&] { TaskRegistry({}).Resolve(requests); }, ErrorKind::kUsage);
  };
  EXPECT_THAT(refusal({Command(), Command()}),
              HasSubstr("eval.yaml:7: this run has two tasks or groups 'mine'"));
  EXPECT_THAT(refusal({FromFile("gsm8k"), Command("gsm8k")}), HasSubstr("two tasks or groups"));
  EXPECT_THAT(refusal({Command("gsm8k"), FromFile("gsm8k")}), HasSubstr("asked for twice"));
  EXPECT_THAT(refusal({FromFile("mmlu"), Command("mmlu_stem")}), HasSubstr("two tasks or groups"));
}

}  // namespace
}  // namespace evald
