#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evald/json.h"
#include "metrics/sandbox/box_process.h"

namespace evald {

/// Whether and how the Python functions of task files are run (docs/task-code.md).
struct TaskCodeOptions {
  enum class Allowed {
    kNo,      ///< tasks that need a function of their own are refused
    kBoxed,   ///< in the sandbox
    kUnsafe,  ///< without isolation: for hosts that cannot isolate a process
  };
  Allowed allowed = Allowed::kNo;
  std::string python = "/usr/bin/python3";
  uint64_t memory_bytes = uint64_t{4} << 30;  ///< of the process
  double call_seconds = 0;                    ///< the longest call; 0: none is
};

/// The program of TaskCode and TableReader.
sandbox::BoxOptions TaskCodeBox(const TaskCodeOptions& options);

/// Starts the processes of TaskCode and TableReader for a process that may soon start none itself;
/// the first one at once if `at_once`.
std::unique_ptr<sandbox::BoxMaker> MakeTaskCodeBoxes(const TaskCodeOptions& options, bool at_once);

/// "refuse", "allow" or "unsafe".
const char* ToString(TaskCodeOptions::Allowed allowed);
/// The reverse; nothing for other texts.
std::optional<TaskCodeOptions::Allowed> AllowedTaskCode(std::string_view text);

/// {"allowed": "allow", "python": "...", "memory": bytes}
Json ToJson(const TaskCodeOptions& options);
/// The reverse; absent keys keep their defaults. Throws Error(kInput).
TaskCodeOptions TaskCodeFromJson(const Json& json, const std::string& where);

/// What evald hands over when the process wants a file of the task's folders.
struct WantedFile {
  enum class Kind { kNone, kFolder, kFile };
  Kind kind = Kind::kNone;
  std::string content;
};

/// Bytes as the text that Python's bytes.decode("latin-1") gives, and back.
std::string ToLatin1(std::string_view bytes);
std::string FromLatin1(std::string_view text);

/// A document as a call has it: [document], or [document, text for the process] unless `python` is
/// null.
Json PackedDocument(const Json& document, const Json& python);

/// Documents that stay in the process.
struct CodeTable {
  int64_t id = 0;
  int64_t count = 0;
  std::vector<std::string> columns;
};

/// A process that runs the Python functions of task files. What the functions give is not trusted:
/// they may give anything, or nothing.
///
/// Functions are named as datasets/known_modules.h names those that evald has not built in:
/// "<folder>/utils.f" with an absolute folder, or "humaneval/utils.f" for one of lm_eval/tasks.
///
/// Errors are Error(kInput) that name the function, the exception, file and line, the document
/// ("document 3"), and the package to install if one is missing. One thread at a time.
///
/// Functions of tasks whose files differ do not share a process: each could change what the other
/// gives.
class TaskCode {
 public:
  /// Starts the process, which takes about 0.1 s. Throws Error(kInfrastructure) if the interpreter
  /// is unusable or the host cannot isolate the process.
  explicit TaskCode(const TaskCodeOptions& options);
  /// Takes a process that was started in advance.
  TaskCode(const TaskCodeOptions& options, sandbox::BoxMaker* boxes);
  ~TaskCode();

  /// From now on answers the process's wishes for files. Called on the thread that calls.
  using Files = std::function<WantedFile(const std::string& path)>;
  void ServeFiles(Files files) { files_ = std::move(files); }
  WantedFile File(const std::string& path) const { return files_ ? files_(path) : WantedFile(); }
  /// The files that were handed over so far, by path.
  const std::map<std::string, std::string>& handed() const { return handed_; }

  /// Folders whose modules can be imported as those of lm_eval.tasks.
  void AddRoots(const std::vector<std::string>& folders);
  const std::vector<std::string>& roots() const { return roots_; }

  /// What is known of a function that was imported.
  struct Loaded {
    std::string aggregation;  ///< its name if it is one of lm_eval's own aggregations, else ""
    std::string name;         ///< the function's own (__name__), which an alias does not have
  };

  /// Imports a function. What its module draws at random while it is imported is drawn with `seed`.
  Loaded Load(const std::string& function, uint64_t seed);

  /// Makes the calls from now on end with Error(kInfrastructure) soon after `stopped` has become
  /// true.
  void StopWhen(std::function<bool()> stopped);

  /// {"python": version, "packages": {name: version}, "files": {path: SHA-256}, "absent": {path: is
  /// it a folder}, "roots": [...],
  /// "allowed", "memory"}: what is installed for the process, and what it has wanted so
  /// far. Nothing of this is told by the process, whose word other users' prepared tasks would
  /// depend on.
  Json Used() const;

  /// Rows as a table of `columns`, changed by `function` ("" for none). The process draws with
  /// the seeds with which the harness begins.
  CodeTable Process(const std::string& function, const std::vector<Json>& rows,
                    const std::vector<std::string>& columns);

  /// Has the process ask for these files now.
  void Fetch(const std::vector<std::string>& paths);

  /// The splits that a custom_dataset makes of its arguments. As `tokenizer` and `pretrained` it
  /// gets the folder of the lent tokenizer (task_code/lent_files.h), if that was fetched. It draws
  /// with the seeds with which the harness begins.
  std::map<std::string, CodeTable> CustomDataset(const std::string& function,
                                                 const Json& arguments);

  /// The documents that a function without arguments gives. It draws like Process.
  CodeTable Samples(const std::string& function);

  /// The documents [first, first + count) of a table, each as [json] or, if JSON cannot hold all of
  /// it, [json, text for the process]: as many as fit into about 1 MiB, at least one.
  /// `function` made the table, for errors.
  std::vector<Json> Read(const std::string& function, const CodeTable& table, int64_t first,
                         int64_t count);

  /// The values of a function for these documents, as many as fit. A value that is a tuple is a
  /// list, or with `tuples_as_text` the text that Python's `str` makes of it.
  std::vector<Json> Apply(const std::string& function, const CodeTable& table, int64_t first,
                          int64_t count, bool tuples_as_text = false);

  /// The responses that process_results gets.
  enum class Results {
    kTexts,    ///< as they are
    kPairs,    ///< (log-likelihood, is greedy)
    kNumbers,  ///< log-likelihoods
  };

  /// The metrics of a document by name, and text for the process, by metric, for those of `keep`
  /// whose values JSON cannot hold.
  struct Metrics {
    Json values = Json::object();
    Json python = Json::object();
  };

  /// `python` is the second item of Read, or null.
  Metrics ProcessResults(const std::string& function, const Json& document, const Json& python,
                         const std::vector<Json>& results, Results form,
                         const std::vector<std::string>& keep = {});

  /// A step of a filter pipeline.
  struct FilterStep {
    bool custom = false;  ///< a function of (responses, documents); else a Filter's class
    Json settings = Json::object();  ///< of the class
    bool lazy = false;               ///< the step before leaves an iterator, not a list
  };
  struct Filtered {
    Json responses;
    bool lazy = false;  ///< the step leaves an iterator
  };

  /// What the step makes of the responses to one document. `python` is the second item of Read, or
  /// null.
  Filtered Filter(const std::string& function, const FilterStep& step, const Json& responses,
                  const Json& document, const Json& python);

  /// A document of which the step makes something else among all documents than alone.
  struct FilterDifference {
    int64_t document = 0;
    std::string alone, together;  ///< the responses, for people
  };

  struct MetricStep {
    std::string name;
    Json settings = Json::object();
    bool several = false;  ///< the gold answer is a list of them
    /// What is done with the value.
    enum class Takes {
      kFunction,  ///< a function of the task's own gets it as it is
      kNumber,    ///< an aggregation of lm_eval's takes numbers
      kAny,       ///< an aggregation of lm_eval's takes something else
    } takes = Takes::kNumber;
  };

  /// A metric of a generated answer, as [json] or [json, text for the process].
  Json Metric(const std::string& function, const MetricStep& step, const Json& gold,
              const Json& result);

  /// A list of values in the process, for Aggregate and CheckFilter.
  struct Items {
    int64_t id = -1;  ///< -1: not begun
  };

  /// Adds values in their order: for Aggregate each as [json] or [json, text for the process], for
  /// CheckFilter each as {"doc_id", "document": PackedDocument, "given": responses, "left": what
  /// Filter made of them}.
  void AddItems(const std::string& function, Json values, Items* items);

  /// The function's value for the list. `metric` is the built-in metric that gave the values; "" if
  /// process_results did. The process draws with the harness's seeds.
  Json Aggregate(const std::string& function, const Items& items, const std::string& metric);

  /// Filters all documents of the list in one call, and takes the list. Nothing if each comes out
  /// as it did alone.
  std::optional<FilterDifference> CheckFilter(const std::string& function, const FilterStep& step,
                                              const Items& items, uint64_t seed);

 private:
  struct Connection;
  Json Call(const std::string& function, Json call);
  std::vector<Json> Values(const std::string& function, Json call, int64_t count);
  CodeTable TableFrom(const std::string& function, const Json& answer) const;
  Json Await(int64_t deadline_us);
  WantedFile HandOver(const std::string& path);
  void Note(const std::string& function);

  std::unique_ptr<Connection> connection_;
  Files files_;
  std::map<std::string, std::string> handed_;
  std::map<std::string, bool> absent_;  ///< paths that were wanted and are no file; true: a folder
  uint64_t handed_bytes_ = 0;           ///< of the task's folders
  uint64_t lent_bytes_ = 0;             ///< of lent files
  std::vector<std::string> roots_;
};

}  // namespace evald
