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
#include "evald/request.h"
#include "evald/task.h"
#include "prepared/prepared_task.h"
#include "task_code/table_reader.h"
#include "task_code/task_code.h"

namespace evald {

/// A run's request for a task, group or tag. Absent values keep those of the task's file.
struct TaskRequest {
  std::string name;
  std::string where;             ///< "eval.yaml:7", the prefix of errors
  std::optional<int64_t> limit;  ///< the first documents of each leaf task
  /// The first documents, spread evenly over a group's leaf tasks
  std::optional<int64_t> limit_total;
  /// A share of each leaf task's documents, between 0 and 1: the first ones, rounded up
  std::optional<double> limit_share;
  std::optional<int> num_fewshot;
  std::optional<int> repeats;
  std::vector<std::string> sample_metrics = {};  ///< evald's own key of task files; empty: none
  Json generation_kwargs;                        ///< merged over the task's own; null: none
  /// lm-evaluation-harness's enable_thinking: an argument of the chat template. If true, tasks that
  /// score log-likelihoods are refused
  std::optional<bool> enable_thinking = std::nullopt;
  ThinkEnd think_end = {};  ///< where the thinking in answers ends; default: there is none
  Json judge = nullptr;     ///< in place of the run's settings of the judge; null: none
  /// The task is this command, not one of a file. The other values are then absent.
  std::optional<CommandSpec> command = std::nullopt;
  Json metadata = Json();  ///< merged over the task's own; null: none
};

/// One line of `evald tasks`.
struct TaskListing {
  std::string name;
  std::string kind;     ///< task, group or tag
  std::string source;   ///< "built in", or the file
  std::string summary;  ///< output type and few-shot count, or a group's members
};

/// A task file that is skipped because of a fault.
struct TaskProblem {
  std::string file;
  std::string problem;  ///< with the file and the line
};

/// A leaf task, fully resolved and not yet prepared.
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

/// Options for making prompts beyond the task's own, with the meaning of lm-evaluation-harness's
/// --apply_chat_template, --system_instruction and --fewshot_as_multiturn.
struct PromptOptions {
  std::shared_ptr<const ChatTemplate> chat;  ///< null: prompts are plain text
  std::string system_instruction;            ///< before the task's description; "" for none
  bool fewshot_as_multiturn = true;          ///< with `chat`: each example is a turn of its own
  ThinkEnd think_end = {};                   ///< of each generated answer; set from the task's own
};

using DocumentCheck = std::function<void(const PreparedDocument& document)>;

struct PrepareOptions {
  std::filesystem::path data_dir;   ///< may be empty if the tasks name their files
  std::filesystem::path cache_dir;  ///< prepared tasks go to cache_dir/prepared/<key>
  uint64_t fewshot_seed = 1234;
  PromptOptions prompts;
  const std::atomic<bool>* cancel = nullptr;
  ReadRoots roots;    ///< folders below which data files lie
  DataLimits limits;  ///< limits of data files
  /// Most bytes of a prepared task's documents and requests together
  uint64_t prepared_bytes_max = UINT64_MAX;
  /// Called with the prepared task's key before the task is looked for in the cache; may be null
  std::function<void(const std::string& key)> holds;
  /// Called on the preparing thread with each step, such as "reading data/test.jsonl", so that a
  /// process that ends this one can name the step.
  std::function<void(const std::string& what)> doing;
  /// Makes the check of a task's documents; may be null. The check throws Error(kInput) for a
  /// document that could not be scored. Each rendered document is checked; a task that is found
  /// prepared was checked before.
  std::function<DocumentCheck(const TaskDefinition& task)> checker;
  /// Files of the checkpoint's tokenizer that task code may have (task_code/lent_files.h)
  std::vector<std::string> tokenizer_files;
  /// Makes a process for a task's own Python functions, which gets the files that it wants; null:
  /// tasks with such functions are refused. Each task gets a process of its own.
  std::function<std::unique_ptr<TaskCode>()> code;
  /// Says what compares answers of mathematics (MathVerifier::versions), or throws if nothing can;
  /// null: not asked
  std::function<Json()> math;
  /// Makes the process that reads tables (.parquet, .arrow); null: this process starts it, with the
  /// system's Python
  std::function<std::unique_ptr<TableReader>()> tables;
};

/// All known tasks: the built-in ones and those of further folders.
class TaskRegistry {
 public:
  /// Reads the task files of `task_dirs`, and the files that they include, below `roots`. They win
  /// over built-in tasks with the same name. Files with faults are skipped (see Problems). Throws
  /// Error(kInput) for a folder that does not exist.
  explicit TaskRegistry(const std::vector<std::filesystem::path>& task_dirs,
                        const ReadRoots& roots = {});
  ~TaskRegistry();

  std::vector<TaskListing> List() const;
  std::vector<TaskProblem> Problems() const;
  /// Throws Error(kUsage) for an unknown name, with the nearest one, and Error(kInput) "file:line:
  /// ..." for a name whose file has a fault.
  ResolvedTasks Resolve(const std::vector<TaskRequest>& requests) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The name by which the run asked for the task: its own, a group's or a tag's.
const std::string& RequestOf(const LeafTask& task);

/// The task's definition from its file alone: no documents are counted, and each is taken to have
/// one target and one context.
TaskDefinition DefineTask(const LeafTask& task);

/// Reads the task's data, renders all prompts and returns the definition. Keeps nothing. Throws
/// like PrepareTask.
TaskDefinition DescribeTask(const LeafTask& task, const PrepareOptions& options);

/// Looks at the beginnings of the task's data files and renders the first prompt: throws like
/// PrepareTask what shows there, such as a column that a template asks for and the file lacks.
/// Takes milliseconds, if nothing is wrong, but for files that are read as a whole.
void LookAtTask(const LeafTask& task, const PrepareOptions& options);

/// Prepares a task, or finds it prepared, and returns its folder. Any number of threads and
/// processes may call it at once. Throws Error(kInput) for bad data, with file and line.
std::filesystem::path PrepareTask(const LeafTask& task, const PrepareOptions& options);

}  // namespace evald
