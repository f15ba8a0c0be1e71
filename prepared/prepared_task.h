#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "evald/json.h"
#include "evald/request.h"

namespace evald {

/// One document of a prepared task, with the fields that scoring needs.
struct PreparedDocument {
  int64_t doc_id = 0;
  Json doc;      ///< the dataset's row, after process_docs
  Json target;   ///< doc_to_target, rendered: a string, an integer, or a list
  Json choices;  ///< doc_to_choice, rendered: a list of strings; null if the task has none
  Json label;    ///< the right one of several contexts (TaskDefinition::multiple_input); else null
  Json python;   ///< text from which the task's own functions make `doc`; null: `doc` itself
};

/// Writes a prepared task: `<cache>/prepared/<key>/` (docs/formats.md). Documents come in order of
/// doc_id, each with its requests in order of idx. repeat is always 0 here: an engine is asked
/// `repeats` times. Nothing is visible under `directory` before Finish().
class PreparedTaskWriter {
 public:
  /// `task` is a resolved TaskDefinition (evald/task.h), kept as task.json.
  PreparedTaskWriter(std::filesystem::path directory, const Json& task,
                     uint64_t bytes_max = UINT64_MAX);
  ~PreparedTaskWriter();

  /// Throws Error(kInput) if documents and requests would take more than `bytes_max`.
  void Add(const PreparedDocument& document, const std::vector<Request>& requests);
  /// Replaces the constructor's task, if more of it is known by now.
  void SetTask(const Json& task);
  /// Keeps what the task's own functions need to score (metrics/task_codes.h), as code.json.
  void SetCode(const Json& code);
  /// Publishes the task by renaming the folder. If another process was first, its folder stays.
  void Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Turns the text of a request into its two token lists, as the harness's Hugging Face backend
/// does. The tokenizer's room supplies the function.
using RequestEncoder = std::function<void(Request* request)>;

/// A prepared task on disk, memory-mapped. Immutable; any thread may read.
class PreparedTask {
 public:
  /// Throws Error(kInput) if the folder is no prepared task.
  explicit PreparedTask(std::filesystem::path directory);
  ~PreparedTask();
  PreparedTask(PreparedTask&&) noexcept;
  PreparedTask& operator=(PreparedTask&&) noexcept;

  const std::filesystem::path& directory() const;
  const Json& task() const;  ///< task.json
  Json Code() const;         ///< code.json; null if the task has none. Throws Error(kInput)
  std::string name() const;  ///< the task's name
  int repeats() const;
  int64_t document_count() const;
  int64_t request_count() const;  ///< without repeats
  /// Requests of documents [first, end), without repeats, in order. They have tokens if a tokens
  /// file was attached.
  std::vector<Request> Requests(int64_t first, int64_t end) const;
  PreparedDocument Document(int64_t doc_id) const;

  /// Attaches `tokens-<tokenizer_key>.bin`. If the file is missing or damaged, makes it first by
  /// calling `encode` for every request, from `threads` threads at once.
  void MakeTokens(const std::string& tokenizer_key, const RequestEncoder& encode, int threads);
  /// Attaches an existing tokens file. False if there is none.
  bool AttachTokens(const std::string& tokenizer_key);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace evald
