#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/file.h"
#include "base/hash.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/text.h"
#include "datasets/command_task.h"
#include "datasets/documents.h"
#include "datasets/function_values.h"
#include "datasets/functions.h"
#include "datasets/leaf_task.h"
#include "datasets/prompts.h"
#include "datasets/sources.h"
#include "datasets/task_data.h"
#include "datasets/task_set.h"
#include "evald/error.h"
#include "evald/task_limits.h"
#include "metrics/scoring/metrics.h"
#include "metrics/scoring/task_results.h"
#include "prepared/cache.h"
#include "prepared/prepared_task.h"
#include "python/moment.h"
#include "python/value.h"
#include "task_code/lent_files.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

/// Must change whenever equal task files and data give other requests than before. 2: a request's
/// further settings are under "settings". 3: columns have types; keys and data files' hashes are
/// SHA-256, and the files' endings count.
constexpr int kFormatVersion = 4;

constexpr int64_t kBatch = 1024;  // documents of one call of a function

// ".jsonl", ".csv.gz": the ending of a data file's name decides how it is read.
std::string EndingOf(const fs::path& path) {
  const std::string last = path.extension().string();
  return last == ".gz" ? path.stem().extension().string() + last : last;
}

void RequireFewAnswers(size_t requests, int repeats) {
  const int64_t answers = static_cast<int64_t>(requests) * repeats;
  if (answers <= kAnswersPerDocumentMax) return;
  throw Error(ErrorKind::kInput,
              fmt::format("the document has {} answers ({} requests, {} repeats), expected at most "
                          "{}",
                          answers, requests, repeats, kAnswersPerDocumentMax),
              "ask for fewer repeats, or give the document fewer choices");
}

PromptOptions PromptsOf(const LeafTask::State& task, PromptOptions prompts) {
  prompts.think_end = task.think_end;
  if (prompts.chat != nullptr && task.enable_thinking) {
    prompts.chat = std::make_shared<const ChatTemplate>(
        prompts.chat->WithArguments({{"enable_thinking", *task.enable_thinking}}));
  }
  return prompts;
}

// Rows as Python functions get them: dates as text.
std::vector<Json> PlainRows(const std::vector<Json>& rows) {
  std::vector<Json> plain;
  plain.reserve(rows.size());
  for (const Json& row : rows) plain.push_back(python::PlainDates(row));
  return plain;
}

// One leaf task with its data.
class Preparation {
 public:
  Preparation(const LeafTask& task, const PrepareOptions& options)
      : state_(*task.state),
        config_(task.state->config),
        options_(options),
        prompts_(PromptsOf(*task.state, options.prompts)) {
    eval_split_ = EvaluatedSplit(config_);
    CheckFunctions();
    if (!config_.custom_dataset.empty()) return;
    Locate("eval", eval_split_, &eval_files_);
    if (const auto split = FewshotSplit(config_)) Locate("fewshot", *split, &fewshot_files_);
  }

  // The content key: everything that decides the requests. Users share prepared tasks, so no one
  // must be able to make other content with the same key.
  std::string Key() const {
    Json config = config_.dump;
    if (config.contains("metadata") && config["metadata"].is_object()) {
      config["metadata"].erase("config_source");
    }
    Json content = {{"format", kFormatVersion},
                    {"config", std::move(config)},
                    {"files", Json::array()},
                    {"fewshot_seed", options_.fewshot_seed},
                    {"limit", Limit()}};
    AddPrompts(&content);
    if (!code_.is_null()) content["code"] = code_;
    if (!math_.is_null()) content["math_verify"] = math_;
    for (const Json& file : files_) {
      Json entry = file;
      entry.erase("file");
      content["files"].push_back(std::move(entry));
    }
    return ContentKey(content.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  // Plain prompts keep the keys that they always had.
  void AddPrompts(Json* content) const {
    const PromptOptions& prompts = prompts_;
    if (!prompts.system_instruction.empty()) {
      (*content)["system_instruction"] = prompts.system_instruction;
    }
    if (prompts.think_end.given()) (*content)["think_end_token"] = ToJson(prompts.think_end);
    if (prompts.chat == nullptr) return;
    (*content)["chat"] = prompts.chat->Identity();
    (*content)["fewshot_as_multiturn"] = prompts.fewshot_as_multiturn;
  }

  // Makes the requests of each document, up to `most`, and keeps none.
  TaskDefinition Describe(int64_t most) {
    LoadDocuments();
    FewshotDocuments fewshot = LoadFewshot();
    PromptBuilder builder = AtDocument(0, [&] {
      return PromptBuilder(config_, prompts_, documents_.columns, std::move(fewshot),
                           options_.fewshot_seed, DocumentAt(0));
    });
    const TaskDefinition task = Define(builder);
    const DocumentCheck check = AtDocument(0, [&] { return CheckOf(task); });
    for (int64_t i = 0; i < std::min(most, Effective()); ++i) {
      CheckCancelled();
      std::vector<Request> requests;
      AtDocument(static_cast<size_t>(i), [&] { Build(i, task, check, &builder, &requests); });
    }
    return task;
  }

  fs::path Prepare() {
    MakePreparedCache(options_.cache_dir);
    const std::string key = Key();
    const fs::path folder = options_.cache_dir / "prepared" / key;
    if (options_.holds) options_.holds(key);
    if (IsPrepared(folder) && ReadsTheSameFiles(folder)) return folder;
    LoadDocuments();
    FewshotDocuments fewshot = LoadFewshot();
    Doing("writing", "prompts");
    PromptBuilder builder = AtDocument(0, [&] {
      return PromptBuilder(config_, prompts_, documents_.columns, std::move(fewshot),
                           options_.fewshot_seed, DocumentAt(0));
    });
    const TaskDefinition task = Define(builder);
    const DocumentCheck check = AtDocument(0, [&] { return CheckOf(task); });
    PreparedTaskWriter writer(folder, ToJson(task), options_.prepared_bytes_max);
    for (int64_t i = 0; i < Effective(); ++i) {
      CheckCancelled();
      std::vector<Request> requests;
      const PreparedDocument document = AtDocument(
          static_cast<size_t>(i), [&] { return Build(i, task, check, &builder, &requests); });
      AtDocument(static_cast<size_t>(i), [&] { writer.Add(document, requests); });
    }
    if (!code_.is_null()) KeepCode(task, &writer);
    writer.Finish();
    return folder;
  }

 private:
  // Keeps all files that the functions have used, some of which they opened only while they ran,
  // and says so in the task.
  void KeepCode(TaskDefinition task, PreparedTaskWriter* writer) const {
    task.sources["code"] = task_code_->Used();
    Json files = Json::object();
    for (const auto& [path, content] : task_code_->handed()) {
      if (!IsLentFile(path))
        files[path] = ToLatin1(content);  // scoring needs no tokenizer and data
    }
    writer->SetTask(ToJson(task));
    writer->SetCode(
        {{"files", std::move(files)}, {"roots", task_code_->roots()}, {"seed", Seed()}});
  }

  // Whether the files that the functions opened, or looked for, while they ran, which the key does
  // not name, are what they were. If not, the prepared task is removed, to be prepared again.
  bool ReadsTheSameFiles(const fs::path& folder) const {
    if (code_.is_null()) return true;
    const Json used = PreparedTask(folder).task().at("sources").at("code");
    bool same = true;
    for (const auto& [path, hash] : used.at("files").items()) {
      same = same && (code_.at("files").contains(path) ||
                      Json(Sha256Hex(task_code_->File(path).content)) == hash);
    }
    for (const auto& [path, is_folder] : used.at("absent").items()) {
      const auto kind = is_folder == true ? WantedFile::Kind::kFolder : WantedFile::Kind::kNone;
      same = same && (code_.at("absent").contains(path) || task_code_->File(path).kind == kind);
    }
    if (!same) RemovePrepared(folder);
    return same;
  }

  DocumentCheck CheckOf(const TaskDefinition& task) const {
    if (!options_.checker) return [](const PreparedDocument&) {};
    const auto at_task = [where = "the task at " + config_.where](const auto& work) {
      try {
        return work();
      } catch (Error& error) {
        throw error.AddContext(where);
      }
    };
    const DocumentCheck check = at_task([&] { return options_.checker(task); });
    return
        [check, at_task](const PreparedDocument& document) { at_task([&] { check(document); }); };
  }

  // A document that can be scored, and its requests.
  PreparedDocument Build(int64_t i, const TaskDefinition& task, const DocumentCheck& check,
                         PromptBuilder* builder, std::vector<Request>* requests) const {
    const auto at = static_cast<size_t>(i);
    PreparedDocument built = builder->Build(i, DocumentAt(at), requests);
    if (!documents_.python.empty()) built.python = documents_.python[at];
    check(built);
    RequireFewAnswers(requests->size(), task.repeats);
    return built;
  }

  bool UsesSamples() const {
    return config_.fewshot.split.is_null() && !config_.fewshot.samples.is_null();
  }

  // Imports the task's own functions, or throws before any data is read.
  void CheckFunctions() {
    const FewshotConfig& fewshot = config_.fewshot;
    UseCodeOf("custom_dataset", TaggedOrNull(config_.custom_dataset),
              [](const std::string&) { return false; });
    if (!config_.custom_dataset.empty())
      InTask([&] { task_code_->Fetch(options_.tokenizer_files); });
    UseCodeOf("process_docs", TaggedOrNull(config_.process_docs), IsBuiltinProcessDocs);
    UseCodeOf("fewshot_config.process_docs", fewshot.process_docs, IsBuiltinProcessDocs);
    UseCodeOf("process_results", TaggedOrNull(config_.process_results),
              [](const std::string& name) { return FindTaskResults(name) != nullptr; });
    if (UsesSamples())
      UseCodeOf("fewshot_config.samples", fewshot.samples, IsBuiltinSamplesFunction);
    for (const MetricSpec& spec : config_.metrics) {
      UseCodeOf("metric_list: aggregation", spec.aggregation,
                [](const std::string&) { return false; });
    }
    UseScoringCode();
    for (const auto& [key, value] : DocFunctionFields(config_))
      UseCodeOf(key, *value, IsBuiltinDocFunction);
    if (!code_functions_.empty()) code_ = task_code_->Used();
    if (options_.math &&
        ComparesMath(config_.output_type, config_.process_results, config_.metrics)) {
      Doing("looking for", "math-verify");
      math_ = InTask([&] { return options_.math(); });
    }
  }

  // The functions of metrics and filters. The scorer has some built in, and refuses those of other
  // names.
  void UseScoringCode() {
    for (const std::string& function :
         OwnMetricsAndFilters(config_.process_results.empty(), config_.metrics, config_.filters)) {
      UseCodeOf("metric_list or filter_list", std::string(kFunctionTag) + function,
                [](const std::string&) { return false; });
    }
    for (const MetricSpec& spec : config_.metrics) {
      const auto found = function_names_.find(spec.function);
      const bool calls = config_.process_results.empty() && found != function_names_.end();
      if (calls && found->second != spec.metric) ThrowOtherName(spec, found->second);
    }
  }

  // The harness calls a metric by the name that its function has of itself.
  [[noreturn]] void ThrowOtherName(const MetricSpec& spec, const std::string& name) const {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: metric_list: the function '{}' calls itself '{}', and the metric "
                            "would have that name in the results",
                            config_.where, spec.function, name),
                fmt::format("name the metric '{}' in the task file", name));
  }

  static Json TaggedOrNull(const std::string& function) {
    return function.empty() ? Json() : Json(std::string(kFunctionTag) + function);
  }

  // Imports the function that a key names, unless it is built in.
  void UseCodeOf(const char* key, const Json& value, bool (*is_builtin)(const std::string&)) {
    std::string function;
    if (!IsFunction(value, &function) || is_builtin(function)) return;
    if (std::find(code_functions_.begin(), code_functions_.end(), function) !=
        code_functions_.end()) {
      return;
    }
    if (!options_.code) RefuseTaskFunction(function, fmt::format("{}: {}", config_.where, key));
    if (task_code_ == nullptr) task_code_ = options_.code();
    Doing("importing", function);
    InTask([&] {
      const TaskCode::Loaded loaded = task_code_->Load(function, Seed());
      if (!loaded.aggregation.empty())
        known_aggregations_[std::string(kFunctionTag) + function] = loaded.aggregation;
      function_names_[function] = loaded.name;
    });
    code_functions_.push_back(function);
  }

  // What modules draw while they are imported, and aggregations, is decided by the task's name.
  uint64_t Seed() const { return std::stoull(Sha256Hex(config_.name).substr(0, 8), nullptr, 16); }

  template <typename Work>
  auto InTask(Work work) const -> decltype(work()) {
    try {
      return work();
    } catch (Error& error) {
      throw error.AddContext(fmt::format("{}: task '{}'", config_.where, config_.name));
    }
  }

  void Locate(const char* use, const std::string& split, SplitFiles* out) {
    *out = FindSplit(config_, split, options_.data_dir, options_.roots);
    if (options_.limits.rows > 0) return;  // a look at the files needs no hashes
    for (DataFile& file : out->files) {
      Doing("reading", file.path.string());
      file.hash = Sha256OfFile(file.fd.get(), file.path);
      Json entry = {{"use", use},
                    {"split", split},
                    {"file", file.path.string()},
                    {"ending", EndingOf(file.path)},
                    {"hash", file.hash}};
      // read in its own way
      if (config_.data_files.is_null() && out->rules.as_loader) entry["from"] = "a folder";
      if (out->range) {
        entry["rows"] = {
            {"field", out->range->field}, {"from", out->range->from}, {"to", out->range->to}};
      }
      files_.push_back(std::move(entry));
    }
    if (out->first) {
      DataFile& first = *out->first;
      first.hash = Sha256OfFile(first.fd.get(), first.path);
      files_.push_back({{"use", "types"},
                        {"split", split},
                        {"file", first.path.string()},
                        {"hash", first.hash}});
    }
  }

  void CheckCancelled() const {
    if (options_.cancel != nullptr && options_.cancel->load()) {
      throw Error(ErrorKind::kInfrastructure, "preparing the tasks was cancelled");
    }
  }

  void Doing(const char* what, const std::string& with) const {
    if (options_.doing) options_.doing(fmt::format("task '{}': {} {}", config_.name, what, with));
  }

  Documents Read(const SplitFiles& files) const {
    Doing("reading", files.files.front().path.string());
    return ReadSplit(files, options_.limits, options_.cancel, options_.tables);
  }

  bool HasDocCode() const {
    return std::any_of(code_functions_.begin(), code_functions_.end(), [&](const auto& function) {
      for (const auto& [key, value] : DocFunctionFields(config_)) {
        if (*value == std::string(kFunctionTag) + function) return true;
      }
      return false;
    });
  }

  // Changes the documents by process_docs, built in or the task's own (""  for none). Returns the
  // table of the documents if the task's own functions are asked of them.
  std::optional<CodeTable> ProcessRows(const std::string& function, Documents* documents) {
    const bool own = !function.empty() && !IsBuiltinProcessDocs(function);
    if (!function.empty() && !own) {
      InTask([&] { ProcessDocs(function, documents, &random_, config_.where); });
    }
    if (!own && !HasDocCode()) return std::nullopt;
    if (own) Doing("running", function);
    CodeTable table = InTask([&] {
      return task_code_->Process(function, PlainRows(documents->rows), documents->columns);
    });
    if (own) ReadTable(table, function, documents);
    return table;
  }

  // Takes the documents that a function made.
  void ReadTable(const CodeTable& table, const std::string& function, Documents* out) {
    *out = {};
    out->columns = table.columns;
    while (static_cast<int64_t>(out->rows.size()) < table.count) {
      CheckCancelled();
      const auto first = static_cast<int64_t>(out->rows.size());
      for (Json& packed :
           InTask([&] { return task_code_->Read(function, table, first, table.count - first); })) {
        InTask([&] { AddRow(std::move(packed), function, out); });
      }
    }
  }

  // Adds a document as TaskCode::Read gives it.
  void AddRow(Json packed, const std::string& function, Documents* out) const {
    Json row = std::move(packed[0]);
    if (!row.is_object()) {
      throw Error(ErrorKind::kInput,
                  fmt::format("the function '{}' gives {} for document {}, expected a mapping of "
                              "columns",
                              function, PythonRepr(row), out->rows.size()));
    }
    const bool faithful = packed.size() == 1;
    if (!faithful) out->python.resize(out->rows.size());
    if (!faithful || !out->python.empty())
      out->python.push_back(faithful ? Json() : std::move(packed[1]));
    out->where.push_back(
        fmt::format("{}: document {} of {}", config_.where, out->rows.size(), function));
    out->rows.push_back(std::move(row));
  }

  // The documents of a split that custom_dataset makes.
  Documents MadeSplit(const std::string& split) {
    const std::string& function = config_.custom_dataset;
    if (made_.empty()) {
      Doing("making documents with", function);
      made_ = InTask([&] { return task_code_->CustomDataset(function, config_.custom_arguments); });
    }
    const auto found = made_.find(split);
    Documents documents;
    if (found != made_.end()) {
      ReadTable(found->second, function, &documents);
      return documents;
    }
    std::vector<std::string> splits;
    for (const auto& [name, table] : made_) splits.push_back(name);
    throw Error(ErrorKind::kInput,
                fmt::format("{}: task '{}': the function '{}' makes no split '{}', it makes {}",
                            config_.where, config_.name, function, split, Join(splits, ", ")));
  }

  Documents ReadEvaluated() {
    return config_.custom_dataset.empty() ? Read(eval_files_) : MadeSplit(eval_split_);
  }

  Documents ReadExamples() {
    return config_.custom_dataset.empty() ? Read(fewshot_files_)
                                          : MadeSplit(FewshotSplit(config_).value_or(""));
  }

  void LoadDocuments() {
    documents_ = ReadEvaluated();
    const auto table = ProcessRows(config_.process_docs, &documents_);
    if (table && HasDocCode()) {
      values_ = std::make_unique<FunctionValues>(task_code_.get(), *table, Effective(), kBatch);
    }
  }

  DocRef DocumentAt(size_t i) const {
    return {documents_.rows[i], values_.get(), static_cast<int64_t>(i)};
  }

  FewshotDocuments LoadFewshot() {
    FewshotDocuments out;
    if (config_.num_fewshot == 0) return out;
    std::string function;
    std::optional<CodeTable> table;
    if (!UsesSamples()) {
      static_cast<Documents&>(out) = ReadExamples();
      IsFunction(config_.fewshot.process_docs, &function);
      table = ProcessRows(function, &out);
    } else if (IsFunction(config_.fewshot.samples, &function) &&
               !IsBuiltinSamplesFunction(function)) {
      table = InTask([&] { return task_code_->Samples(function); });
      ReadTable(*table, function, &out);
    } else {
      static_cast<Documents&>(out) = Samples();
      table = ProcessRows("", &out);
    }
    if (table && HasDocCode()) {
      fewshot_values_ = std::make_unique<FunctionValues>(task_code_.get(), *table, table->count, 1);
      out.values = fewshot_values_.get();
    }
    return out;
  }

  // The samples that the task's file lists, or that a built-in function gives.
  Documents Samples() const {
    Documents out;
    std::string function;
    out.rows = IsFunction(config_.fewshot.samples, &function)
                   ? FewshotSamples(function, config_.where)
                   : config_.fewshot.samples.get<std::vector<Json>>();
    std::set<std::string> known;
    for (size_t i = 0; i < out.rows.size(); ++i) {
      out.where.push_back(fmt::format("fewshot_config.samples[{}]", i));
      for (const auto& item : out.rows[i].items()) {
        if (known.insert(item.key()).second) out.columns.push_back(item.key());
      }
    }
    return out;
  }

  // Prefixes errors with the place of a document.
  template <typename Work>
  auto AtDocument(size_t i, Work work) -> decltype(work()) {
    try {
      return work();
    } catch (Error& error) {
      error.AddContext(fmt::format("{}: task '{}'", documents_.where[i], config_.name));
      // As Python's jinja2 says of a name; the cause is a column that the file lacks, or a slip
      if (error.message().ends_with("is undefined") && error.remedy().empty())
        throw Error(error.kind(), error.message(),
                    "the documents have the columns " + Join(documents_.columns, ", "));
      throw;
    }
  }

  // {"enable_thinking", "think_end_token"}, as far as they are given.
  Json Thinking() const {
    Json thinking = Json::object();
    if (state_.enable_thinking) thinking["enable_thinking"] = *state_.enable_thinking;
    if (state_.think_end.given()) thinking["think_end_token"] = ToJson(state_.think_end);
    return thinking;
  }

  Json Limit() const {
    if (state_.limit_share) return *state_.limit_share;
    return state_.limit ? Json(*state_.limit) : Json();
  }

  int64_t Effective() const {
    const auto all = static_cast<int64_t>(documents_.rows.size());
    if (state_.limit_share)  // get_sample_size of the harness: math.ceil(len(docs) * limit)
      return static_cast<int64_t>(std::ceil(static_cast<double>(all) * *state_.limit_share));
    return state_.limit ? std::min(*state_.limit, all) : all;
  }

  TaskDefinition Define(const PromptBuilder& builder) const {
    TaskDefinition task = DefinitionOf(state_);
    for (MetricSpec& spec : task.metrics) {
      const auto known = known_aggregations_.find(spec.aggregation);
      if (known != known_aggregations_.end()) spec.aggregation = known->second;
    }
    task.multiple_target = builder.multiple_target();
    task.multiple_input = builder.multiple_input();
    task.original_documents = static_cast<int64_t>(documents_.rows.size());
    task.effective_documents = Effective();
    task.sources = {{"key", Key()},
                    {"format", kFormatVersion},
                    {"files", files_},
                    {"fewshot_seed", options_.fewshot_seed},
                    {"limit", Limit()}};
    if (!code_.is_null()) task.sources["code"] = code_;
    if (!math_.is_null()) task.sources["math_verify"] = math_;
    const Json thinking = Thinking();
    if (!thinking.empty()) task.sources["thinking"] = thinking;
    return task;
  }

  const LeafTask::State& state_;
  const TaskConfig& config_;
  const PrepareOptions& options_;
  PromptOptions prompts_;  ///< the run's, with what the task's request says of thinking
  std::string eval_split_;
  SplitFiles eval_files_;
  SplitFiles fewshot_files_;
  Json files_ = Json::array();
  Documents documents_;
  std::vector<std::string> code_functions_;  ///< the task's own Python functions
  /// Functions, with their tags, that are lm_eval's own aggregations, and the names of these
  std::map<std::string, std::string> known_aggregations_;
  std::map<std::string, std::string>
      function_names_;     ///< function -> the name that it has of itself
  FunctionRandom random_;  ///< of built-in functions
  Json code_;  ///< what they have used when they were imported (TaskCode::Used); null: there are
               ///< none
  std::map<std::string, CodeTable> made_;  ///< by custom_dataset: splits
  Json math_;  ///< what compares answers of mathematics; null: nothing does
  std::unique_ptr<TaskCode> task_code_;  ///< null: the task has no functions of its own
  std::unique_ptr<FunctionValues> values_;
  std::unique_ptr<FunctionValues> fewshot_values_;
};

}  // namespace

TaskDefinition DefinitionOf(const LeafTask::State& leaf) {
  const TaskConfig& config = leaf.config;
  TaskDefinition task;
  task.name = config.name;
  task.alias = config.alias;
  task.version = config.version;
  task.output_type = config.output_type;
  task.repeats = config.repeats;
  task.num_fewshot = config.num_fewshot;
  task.unsafe_code = config.unsafe_code;
  task.process_results = config.process_results;
  task.metrics = config.metrics;
  task.sample_metrics = config.sample_metrics;
  task.filters = config.filters;
  task.config = config.dump;
  task.command = leaf.command;
  return task;
}

bool IsPrepared(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_regular_file(folder / "task.json", ignored)) return false;
  try {
    const PreparedTask whole(folder);
    return true;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kInput) throw;
    log::Warn("{}; it is prepared again", e.message());
    RemovePrepared(folder);
    return false;
  }
}

const std::string& RequestOf(const LeafTask& task) { return task.state->request; }

TaskDefinition DefineTask(const LeafTask& task) { return DefinitionOf(*task.state); }

TaskDefinition DescribeTask(const LeafTask& task, const PrepareOptions& options) {
  if (task.state->command) return DescribeCommandTask(*task.state);
  return Preparation(task, options).Describe(INT64_MAX);
}

void LookAtTask(const LeafTask& task, const PrepareOptions& options) {
  // More than examples of a prompt, and enough for the types of columns
  constexpr size_t kRowsLookedAt = 2048;
  if (task.state->command) return;
  PrepareOptions look = options;
  look.limits.rows = kRowsLookedAt;
  try {
    Preparation(task, look).Describe(1);
  } catch (const Error& error) {
    if (ExitStatusFor(error.kind()) != ExitStatus::kUsage) throw;
    Preparation(task, options).Describe(1);  // later rows may give the columns other types
  }
}

fs::path PrepareTask(const LeafTask& task, const PrepareOptions& options) {
  if (task.state->command) return PrepareCommandTask(*task.state, options);
  return Preparation(task, options).Prepare();
}

}  // namespace evald
