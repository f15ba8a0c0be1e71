#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/read_roots.h"
#include "chat/chat_template.h"
#include "datasets/documents.h"
#include "evald/json.h"
#include "evald/task.h"
#include "prepared/prepared_task.h"

namespace evald {

/// What a run asks of a task, group or tag. Absent values leave what the task's file says.
struct TaskRequest {
  std::string name;
  std::string where;                   ///< "eval.yaml:7", put in front of errors
  std::optional<int64_t> limit;        ///< first documents of each leaf task
  std::optional<int64_t> limit_total;  ///< first documents, spread evenly over a group's leaf tasks
  std::optional<int> num_fewshot;
  std::optional<int> repeats;
  Json generation_kwargs;  ///< merged over the task's own; null: nothing
};

/// One line of `evald tasks`.
struct TaskListing {
  std::string name;
  std::string kind;     ///< task, group or tag
  std::string source;   ///< "built in", or the file
  std::string summary;  ///< output type and few-shot count, or a group's members
};

/// A task file that is passed over, since it cannot be understood.
struct TaskProblem {
  std::string file;
  std::string problem;  ///< with the file and its line
};

/// A leaf task with everything resolved, not yet prepared.
struct LeafTask {
  std::string name;
  struct State;
  std::shared_ptr<const State> state;
  std::string where;  ///< "file:line" of its name
};

struct ResolvedTasks {
  std::vector<LeafTask> leaves;         ///< in the harness's order, each once
  std::vector<GroupDefinition> groups;  ///< parents before children
};

/// How prompts are made beside what the task says, with the meaning of lm-evaluation-harness's
/// --apply_chat_template, --system_instruction and --fewshot_as_multiturn.
struct PromptOptions {
  std::shared_ptr<const ChatTemplate> chat;  ///< null: prompts are plain text
  std::string system_instruction;            ///< before the task's description; "" for none
  bool fewshot_as_multiturn = true;          ///< with `chat`: each example is a turn of its own
};

using DocumentCheck = std::function<void(const PreparedDocument& document)>;

struct PrepareOptions {
  std::filesystem::path data_dir;   ///< may be empty when the tasks name their files
  std::filesystem::path cache_dir;  ///< prepared tasks go to cache_dir/prepared/<key>
  uint64_t fewshot_seed = 1234;
  PromptOptions prompts;
  const std::atomic<bool>* cancel = nullptr;
  ReadRoots roots;    ///< below which data files lie
  DataLimits limits;  ///< of data files
  /// Told what is done from now on, "reading data/test.jsonl", so that whoever ends this process
  /// can say at what; from the thread that prepares.
  std::function<void(const std::string& what)> doing;
  /// Makes the check of a task's documents, where there is one: it throws Error(kInput) for a
  /// document that could not be scored. Each document that is rendered is checked; one of a task
  /// that is found prepared was.
  std::function<DocumentCheck(const TaskDefinition& task)> checker;
};

/// All tasks that are known: the built-in ones and those of further folders.
class TaskRegistry {
 public:
  /// Reads the task files of `task_dirs`, and what they include, below `roots`; those win over
  /// built-in ones of the same name. Files that cannot be understood are passed over (see
  /// Problems). Throws Error(kInput) for a folder that is not there.
  explicit TaskRegistry(const std::vector<std::filesystem::path>& task_dirs,
                        const ReadRoots& roots = {});
  ~TaskRegistry();

  std::vector<TaskListing> List() const;
  std::vector<TaskProblem> Problems() const;
  /// Throws Error(kUsage) for a name that is not known, with the nearest, and Error(kInput)
  /// "file:line: ..." for one whose file cannot be understood.
  ResolvedTasks Resolve(const std::vector<TaskRequest>& requests) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What the task's file alone says of it: no documents are counted, and it is as if each had one
/// target and one context.
TaskDefinition DefineTask(const LeafTask& task);

/// Reads the task's data and says what it comes to, without rendering prompts.
TaskDefinition DescribeTask(const LeafTask& task, const PrepareOptions& options);

/// Prepares a task, or finds it prepared; gives the folder. Any number of threads and processes at
/// once. Throws Error(kInput) for bad data, naming file and line.
std::filesystem::path PrepareTask(const LeafTask& task, const PrepareOptions& options);

}  // namespace evald
