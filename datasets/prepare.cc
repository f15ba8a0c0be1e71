#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/sha256.h"
#include "datasets/command_task.h"
#include "datasets/documents.h"
#include "datasets/functions.h"
#include "datasets/leaf_task.h"
#include "datasets/prompts.h"
#include "datasets/sources.h"
#include "datasets/task_set.h"
#include "evald/error.h"
#include "evald/task_limits.h"
#include "prepared/cache.h"
#include "prepared/prepared_task.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

/// Must change whenever equal task files and data give other requests than before. 2: a request's
/// further settings are under "settings". 3: columns have types; keys and data files' hashes are
/// SHA-256, and the files' endings count.
constexpr int kFormatVersion = 3;

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

// One leaf task with its data.
class Preparation {
 public:
  Preparation(const LeafTask& task, const PrepareOptions& options)
      : state_(*task.state),
        config_(task.state->config),
        options_(options),
        prompts_(PromptsOf(*task.state, options.prompts)) {
    eval_split_ = config_.test_split.empty() ? config_.validation_split : config_.test_split;
    CheckFunctions();
    Locate("eval", eval_split_, &eval_files_);
    if (config_.num_fewshot > 0 && !UsesSamples()) {
      fewshot_split_ = FewshotSplit();
      Locate("fewshot", fewshot_split_, &fewshot_files_);
    }
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

  TaskDefinition Describe() {
    LoadDocuments();
    return AtDocument(0, [&] {
      const PromptBuilder builder(config_, prompts_, documents_.columns, Documents{},
                                  options_.fewshot_seed, documents_.rows.front());
      TaskDefinition task = Define(builder);
      CheckOf(task)(builder.Document(0, documents_.rows.front()));
      return task;
    });
  }

  fs::path Prepare() {
    MakePreparedCache(options_.cache_dir);
    const std::string key = Key();
    const fs::path folder = options_.cache_dir / "prepared" / key;
    if (options_.holds) options_.holds(key);
    if (IsPrepared(folder)) return folder;
    LoadDocuments();
    Documents fewshot = LoadFewshot();
    Doing("writing", "prompts");
    PromptBuilder builder = AtDocument(0, [&] {
      return PromptBuilder(config_, prompts_, documents_.columns, std::move(fewshot),
                           options_.fewshot_seed, documents_.rows.front());
    });
    const TaskDefinition task = Define(builder);
    const DocumentCheck check = AtDocument(0, [&] { return CheckOf(task); });
    PreparedTaskWriter writer(folder, ToJson(task), options_.prepared_bytes_max);
    for (int64_t i = 0; i < Effective(); ++i) {
      CheckCancelled();
      std::vector<Request> requests;
      const PreparedDocument document = AtDocument(static_cast<size_t>(i), [&] {
        PreparedDocument built =
            builder.Build(i, documents_.rows[static_cast<size_t>(i)], &requests);
        check(built);
        RequireFewAnswers(requests.size(), task.repeats);
        return built;
      });
      AtDocument(static_cast<size_t>(i), [&] { writer.Add(document, requests); });
    }
    writer.Finish();
    return folder;
  }

 private:
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

  bool UsesSamples() const {
    return config_.fewshot.split.is_null() && !config_.fewshot.samples.is_null();
  }

  std::string FewshotSplit() const {
    if (config_.fewshot.split.is_string()) return config_.fewshot.split.get<std::string>();
    if (!config_.training_split.empty()) return config_.training_split;
    return config_.validation_split.empty() ? config_.test_split : config_.validation_split;
  }

  // Throws before any data is read.
  void CheckFunctions() const {
    std::string name;
    if (!config_.process_docs.empty())
      CheckProcessDocsFunction(config_.process_docs, config_.where);
    if (IsFunction(config_.fewshot.samples, &name)) CheckSamplesFunction(name, config_.where);
    for (const Json* field : {&config_.doc_to_text, &config_.doc_to_target, &config_.doc_to_choice,
                              &config_.fewshot.doc_to_text, &config_.fewshot.doc_to_target,
                              &config_.fewshot.doc_to_choice}) {
      if (IsFunction(*field, &name)) CheckDocFunction(name, config_.where);
    }
  }

  void Locate(const char* use, const std::string& split, SplitFiles* out) {
    *out = FindSplit(config_, split, options_.data_dir, options_.roots);
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
    return ReadSplit(files, options_.limits, options_.cancel);
  }

  void LoadDocuments() {
    documents_ = Read(eval_files_);
    if (!config_.process_docs.empty()) {
      documents_.rows =
          ProcessDocs(config_.process_docs, std::move(documents_.rows), config_.where);
      documents_.where.resize(documents_.rows.size(), config_.where);
    }
  }

  Documents LoadFewshot() const {
    Documents out;
    if (config_.num_fewshot == 0) return out;
    if (!UsesSamples()) {
      out = Read(fewshot_files_);
      std::string function;
      if (IsFunction(config_.fewshot.process_docs, &function)) {
        out.rows = ProcessDocs(function, std::move(out.rows), config_.where);
        out.where.resize(out.rows.size(), config_.where);
      }
      return out;
    }
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

  Json Limit() const { return state_.limit ? Json(*state_.limit) : Json(); }

  int64_t Effective() const {
    const auto all = static_cast<int64_t>(documents_.rows.size());
    return state_.limit ? std::min(*state_.limit, all) : all;
  }

  TaskDefinition Define(const PromptBuilder& builder) const {
    TaskDefinition task = DefinitionOf(state_);
    task.multiple_target = builder.multiple_target();
    task.multiple_input = builder.multiple_input();
    task.original_documents = static_cast<int64_t>(documents_.rows.size());
    task.effective_documents = Effective();
    task.sources = {{"key", Key()},
                    {"format", kFormatVersion},
                    {"files", files_},
                    {"fewshot_seed", options_.fewshot_seed},
                    {"limit", Limit()}};
    const Json thinking = Thinking();
    if (!thinking.empty()) task.sources["thinking"] = thinking;
    return task;
  }

  const LeafTask::State& state_;
  const TaskConfig& config_;
  const PrepareOptions& options_;
  PromptOptions prompts_;  ///< the run's, with what the task's request says of thinking
  std::string eval_split_;
  std::string fewshot_split_;
  SplitFiles eval_files_;
  SplitFiles fewshot_files_;
  Json files_ = Json::array();
  Documents documents_;
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

TaskDefinition DefineTask(const LeafTask& task) { return DefinitionOf(*task.state); }

TaskDefinition DescribeTask(const LeafTask& task, const PrepareOptions& options) {
  if (task.state->command) return DescribeCommandTask(*task.state);
  return Preparation(task, options).Describe();
}

fs::path PrepareTask(const LeafTask& task, const PrepareOptions& options) {
  if (task.state->command) return PrepareCommandTask(*task.state, options);
  return Preparation(task, options).Prepare();
}

}  // namespace evald
