#include "datasets/task_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/names.h"
#include "base/problems.h"
#include "base/text.h"
#include "datasets/sources.h"
#include "evald/error.h"
#include "evald/task_limits.h"
#include "metrics/scoring/metrics.h"
#include "metrics/scoring/sample_metrics.h"

namespace evald {
namespace {

const std::vector<std::string> kSamplers = {"default", "first_n"};
const std::vector<std::string> kFewshotKeys = {
    "sampler",         "split",         "process_docs",  "fewshot_indices", "samples",
    "doc_to_text",     "doc_to_choice", "doc_to_target", "gen_prefix",      "fewshot_delimiter",
    "target_delimiter"};

// Reads the members of one mapping of the file.
class Section {
 public:
  Section(const YamlMapping& yaml, const Json& value, std::string pointer)
      : yaml_(yaml), value_(value), pointer_(std::move(pointer)) {}

  [[noreturn]] void Fail(const std::string& key, const std::string& message,
                         const std::string& remedy = "") const {
    throw Error(ErrorKind::kInput, Where(key) + ": " + message, remedy);
  }

  std::string Where(const std::string& key) const { return yaml_.Where(pointer_ + "/" + key); }

  const Json& At(const std::string& key) const {
    static const Json kNull;
    const auto found = value_.find(key);
    return found == value_.end() ? kNull : *found;
  }

  bool Has(const std::string& key) const { return value_.contains(key); }

  std::string Text(const std::string& key, const std::string& fallback) const {
    const Json& value = At(key);
    if (value.is_null()) return fallback;
    if (value.is_string() && !IsFunction(value)) return value.get<std::string>();
    Fail(key, fmt::format("{} is {}, expected text", key, Shown(value)));
  }

  bool Flag(const std::string& key, bool fallback) const {
    const Json& value = At(key);
    if (value.is_null()) return fallback;
    if (value.is_boolean()) return value.get<bool>();
    Fail(key, fmt::format("{} is {}, expected true or false", key, Shown(value)));
  }

  int Integer(const std::string& key, int fallback, int least) const {
    const Json& value = At(key);
    if (value.is_null()) return fallback;
    if (value.is_number_integer() && value.get<int64_t>() >= least &&
        value.get<int64_t>() <= 1'000'000) {
      return value.get<int>();
    }
    Fail(key, fmt::format("{} is {}, expected an integer from {}", key, Shown(value), least));
  }

  std::string Function(const std::string& key) const {
    std::string name;
    if (At(key).is_null()) return "";
    if (!IsFunction(At(key), &name)) Fail(key, fmt::format("{} is not a !function", key));
    return name;
  }

  void CheckKeys(const std::vector<std::string>& known, const std::string& what) const {
    ProblemList problems;
    for (const auto& item : value_.items()) {
      if (std::find(known.begin(), known.end(), item.key()) != known.end()) continue;
      problems.Try([&] {
        Fail(item.key(),
             fmt::format("{} has no key '{}'{}", what, item.key(), Suggestion(item.key(), known)));
      });
    }
    problems.ThrowIfAny();
  }

  static std::string Shown(const Json& value) {
    std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    return text.size() > 80 ? text.substr(0, 77) + "..." : text;
  }

 private:
  const YamlMapping& yaml_;
  const Json& value_;
  std::string pointer_;
};

class ConfigReader {
 public:
  ConfigReader(const YamlMapping& yaml, const std::string& file)
      : yaml_(yaml), top_(yaml, yaml.value, ""), file_(file) {
    config_.folder = file.rfind(kBuiltinPrefix, 0) == 0 ? "" : Folder(file);
  }

  // Reads all parts, so that all that is wrong with them is said together.
  TaskConfig Read() {
    ProblemList problems;
    problems.Try([&] { CheckSupported(); });
    problems.Try([&] { ReadName(); });
    const bool dataset = problems.Try([&] { ReadDataset(); });
    const bool prompt = problems.Try([&] { ReadPrompt(); });
    if (dataset && prompt) problems.Try([&] { ReadFewshot(); });
    problems.Try([&] { ReadGeneration(); });
    problems.Try([&] { ReadSampleMetrics(); });
    if (prompt) problems.Try([&] { ReadMetrics(); });
    problems.Try([&] { ReadFilters(); });
    problems.ThrowIfAny();
    const Json& metadata = top_.At("metadata");
    config_.version = metadata.is_object() ? metadata.value("version", Json()) : Json();
    config_.dump = Dump();
    return std::move(config_);
  }

 private:
  void ReadName() {
    config_.name = top_.Text("task", "");
    if (config_.name.empty()) top_.Fail("task", "the task has no name");
    if (const std::string wrong = WrongWithName(config_.name); !wrong.empty())
      top_.Fail("task", "the name of a task: " + wrong);
    config_.where = top_.Where("task");
    config_.alias = top_.Text("task_alias", config_.name);
  }

  static std::string Folder(const std::string& file) {
    const size_t slash = file.rfind('/');
    return slash == std::string::npos ? "." : file.substr(0, slash);
  }

  void CheckSupported() const {
    top_.CheckKeys(TaskKeys(), "a task");
    for (const char* key : {"class", "doc_to_image", "doc_to_audio", "use_prompt", "task_list"}) {
      if (!top_.At(key).is_null())
        top_.Fail(key, fmt::format("the key '{}' is not supported", key));
    }
  }

  void ReadDataset() {
    config_.dataset_path = top_.Text("dataset_path", "");
    config_.custom_dataset = top_.Function("custom_dataset");
    if (config_.dataset_path.empty() && config_.custom_dataset.empty())
      top_.Fail("dataset_path", "the task has no dataset_path");
    config_.dataset_name = top_.Text("dataset_name", "");
    config_.training_split = top_.Text("training_split", "");
    config_.validation_split = top_.Text("validation_split", "");
    config_.test_split = top_.Text("test_split", "");
    if (config_.test_split.empty() && config_.validation_split.empty()) {
      top_.Fail("task", "the task has neither a test_split nor a validation_split");
    }
    config_.process_docs = top_.Function("process_docs");
    if (!config_.custom_dataset.empty()) return ReadCustomArguments();
    ReadFiles();
  }

  // ConfigurableTask.download: custom_dataset(**metadata, **dataset_kwargs).
  void ReadCustomArguments() {
    for (const char* key : {"metadata", "dataset_kwargs"}) {
      const Json& given = top_.At(key);
      if (given.is_null()) continue;
      if (!given.is_object()) top_.Fail(key, fmt::format("{} is not a mapping", key));
      for (const auto& item : given.items()) {
        if (config_.custom_arguments.contains(item.key()))
          top_.Fail(key, fmt::format("'{}' is among metadata and dataset_kwargs", item.key()));
        config_.custom_arguments[item.key()] = item.value();
      }
    }
  }

  void ReadFiles() {
    const Json& kwargs = top_.At("dataset_kwargs");
    static const std::set<std::string> kPackaged = {"json", "csv", "text", "parquet", "arrow"};
    const bool packaged = kPackaged.contains(config_.dataset_path);
    if (!kwargs.is_null()) {
      if (!kwargs.is_object()) top_.Fail("dataset_kwargs", "dataset_kwargs is not a mapping");
      const Section section(yaml_, kwargs, "/dataset_kwargs");
      if (!section.At("field").is_null()) {
        section.Fail("field",
                     "field is not served: write the rows of that member to a file of their own, a "
                     "JSON object a line");
      }
      section.CheckKeys({"data_files", "data_dir", "field", "trust_remote_code", "sep", "delimiter",
                         "column_names", "header"},
                        "dataset_kwargs (as supported here)");
      ReadSubfolder(section, packaged);
      for (const char* key : {"sep", "delimiter"}) ReadSeparator(section, key);
      ReadColumnNames(section);
      config_.data_files = section.At("data_files");
      config_.data_files_where = section.Where("data_files");
      CheckDataFiles(section);
    }
    if (packaged && config_.data_files.is_null() && config_.data_subfolder.empty()) {
      top_.Fail("dataset_path",
                fmt::format("a dataset_path of '{}' needs dataset_kwargs.data_files or data_dir",
                            config_.dataset_path));
    }
  }

  void ReadSubfolder(const Section& section, bool packaged) {
    const Json& value = section.At("data_dir");
    if (value.is_null()) return;
    const std::string found = value.is_string() ? value.get<std::string>() : "";
    if (found.empty() || found.starts_with("~") || (!packaged && found.starts_with("/"))) {
      section.Fail("data_dir", fmt::format("data_dir is {}, expected the name of a folder{}",
                                           Section::Shown(value),
                                           packaged ? "" : " below that of dataset_path"));
    }
    if (!packaged && !IsLocalFolder(config_.dataset_path)) {
      section.Fail(
          "data_dir",
          "data_dir is only served with a dataset_path of 'json', 'csv', 'text', 'parquet' "
          "or 'arrow', or a local folder");
    }
    config_.data_subfolder = found;
  }

  // The separator of CSV. pandas takes a longer one for a regular expression.
  void ReadSeparator(const Section& section, const char* key) {
    const Json& value = section.At(key);
    if (value.is_null()) return;
    const bool fine =
        value.is_string() && value.get_ref<const std::string&>().size() == 1 &&
        std::string_view(",;\t|:").find(value.get<std::string>()[0]) != std::string_view::npos;
    if (!fine || config_.dataset_path != "csv") {
      section.Fail(key, fmt::format("{} is {}, expected a comma, semicolon, tab, bar or colon, and "
                                    "a dataset_path of 'csv'",
                                    key, Section::Shown(value)));
    }
    config_.csv.separator = value.get<std::string>()[0];
  }

  // `names` and `header` of pandas.read_csv: with names, the first line is data unless header is 0.
  void ReadColumnNames(const Section& section) {
    const Json& names = section.At("column_names");
    const Json& header = section.At("header");
    if (!header.is_null() && header != "infer" && header != 0) {
      section.Fail("header",
                   fmt::format("header is {}, expected null or 0", Section::Shown(header)));
    }
    if (names.is_null()) {
      if (header.is_null() && section.Has("header"))
        section.Fail("header", "header is null, which is served only together with column_names");
      return;
    }
    const bool fine =
        names.is_array() && !names.empty() &&
        std::all_of(names.begin(), names.end(), [](const Json& name) { return name.is_string(); });
    if (!fine) {
      section.Fail("column_names", fmt::format("column_names is {}, expected a list of names",
                                               Section::Shown(names)));
    }
    config_.csv.columns = names.get<std::vector<std::string>>();
    config_.csv.header = header == 0;
  }

  void CheckDataFiles(const Section& section) const {
    const auto is_files = [](const Json& value) {
      return value.is_string() ||
             (value.is_array() && !value.empty() &&
              std::all_of(value.begin(), value.end(), [](const Json& v) { return v.is_string(); }));
    };
    const Json& files = config_.data_files;
    const bool fine = files.is_null() || is_files(files) ||
                      (files.is_object() && std::all_of(files.begin(), files.end(), is_files));
    if (!fine) {
      section.Fail("data_files",
                   "data_files is not a file, a list of files, or a mapping of splits");
    }
  }

  // A template, the name of a field, a number, or a !function.
  Json Field(const Section& section, const std::string& key, bool lists, bool mappings) const {
    const Json& value = section.At(key);
    const bool fine = value.is_null() || value.is_string() || value.is_number_integer() ||
                      (lists && value.is_array()) || (mappings && value.is_object());
    if (!fine)
      section.Fail(key,
                   fmt::format("{} is {}, which is not understood", key, Section::Shown(value)));
    return value;
  }

  void ReadPrompt() {
    config_.output_type = top_.Text("output_type", "generate_until");
    const std::vector<std::string> known = OutputTypeNames();
    if (std::find(known.begin(), known.end(), config_.output_type) == known.end()) {
      top_.Fail("output_type",
                fmt::format("the output_type '{}' is not known{}", config_.output_type,
                            Suggestion(config_.output_type, known)));
    }
    config_.doc_to_text = Field(top_, "doc_to_text", false, false);
    config_.doc_to_target = Field(top_, "doc_to_target", true, false);
    config_.doc_to_choice = Field(top_, "doc_to_choice", true, true);
    if (config_.doc_to_choice.is_number()) top_.Fail("doc_to_choice", "doc_to_choice is a number");
    for (const char* key : {"doc_to_text", "doc_to_target"}) {
      if (top_.At(key).is_null()) top_.Fail("task", fmt::format("the task has no {}", key));
    }
    if (config_.output_type == "multiple_choice" && config_.doc_to_choice.is_null()) {
      top_.Fail("output_type", "a multiple_choice task needs doc_to_choice");
    }
    config_.description = top_.Text("description", "");
    config_.target_delimiter = top_.Text("target_delimiter", " ");
    config_.fewshot_delimiter = top_.Text("fewshot_delimiter", "\n\n");
    config_.gen_prefix =
        top_.At("gen_prefix").is_null() ? Json() : Json(top_.Text("gen_prefix", ""));
    config_.num_fewshot = top_.Integer("num_fewshot", 0, 0);
    config_.repeats = top_.Integer("repeats", 1, 1);
    RequireAtMost("repeats", "repeats", kRepeatsMax, static_cast<size_t>(config_.repeats));
    config_.unsafe_code = top_.Flag("unsafe_code", false);
    top_.Flag("should_decontaminate", false);
    config_.process_results = top_.Function("process_results");
  }

  void ReadFewshot() {
    Json fewshot = top_.At("fewshot_config");
    if (fewshot.is_null()) fewshot = Json::object();
    if (!fewshot.is_object()) top_.Fail("fewshot_config", "fewshot_config is not a mapping");
    const Section section(yaml_, fewshot, "/fewshot_config");
    section.CheckKeys(kFewshotKeys, "fewshot_config");
    FewshotConfig& out = config_.fewshot;
    if (!section.At("fewshot_indices").is_null()) {
      section.Fail("fewshot_indices",
                   "fewshot_indices is not supported (lm_eval 0.4.13 reads it and "
                   "does not apply it)");
    }
    out.sampler = section.Text("sampler", "default");
    if (std::find(kSamplers.begin(), kSamplers.end(), out.sampler) == kSamplers.end()) {
      section.Fail("sampler", fmt::format("the sampler '{}' is not known{}", out.sampler,
                                          Suggestion(out.sampler, kSamplers)));
    }
    const auto own = [&](const char* key, const Json& inherited) {
      return fewshot.contains(key) ? fewshot.at(key) : inherited;
    };
    out.split = own("split", top_.At("fewshot_split"));
    if (!out.split.is_null() && (!out.split.is_string() || IsFunction(out.split))) {
      const std::string wrong =
          fmt::format("is {}, expected the name of a split", Section::Shown(out.split));
      if (fewshot.contains("split")) section.Fail("split", "fewshot_config.split " + wrong);
      top_.Fail("fewshot_split", "fewshot_split " + wrong);
    }
    out.samples = section.At("samples");
    const bool samples_fine =
        out.samples.is_null() || out.samples.is_array() || IsFunction(out.samples);
    if (!samples_fine)
      section.Fail("samples", "samples is neither a list of documents nor a !function");
    if (out.samples.is_array()) {
      for (const Json& sample : out.samples) {
        if (!sample.is_object()) {
          section.Fail("samples",
                       fmt::format("samples holds {}, expected mappings, one for each example",
                                   Section::Shown(sample)));
        }
      }
    }
    out.process_docs = own("process_docs", top_.At("process_docs"));
    out.doc_to_text = own("doc_to_text", config_.doc_to_text);
    out.doc_to_choice = own("doc_to_choice", config_.doc_to_choice);
    out.doc_to_target = own("doc_to_target", config_.doc_to_target);
    out.gen_prefix = own("gen_prefix", config_.gen_prefix);
    out.fewshot_delimiter = section.Text("fewshot_delimiter", config_.fewshot_delimiter);
    out.target_delimiter = section.Text("target_delimiter", config_.target_delimiter);
  }

  // TaskConfig.__post_init__: without `until`, the few-shot delimiter ends a generation.
  void ReadGeneration() {
    const Json& given = top_.At("generation_kwargs");
    if (given.is_null()) {
      if (config_.output_type != "generate_until") return;
      generation_kwargs_ = {{"temperature", 0.0},
                            {"do_sample", false},
                            {"max_gen_toks", 256},
                            {"until", Json::array({config_.fewshot_delimiter})}};
    } else {
      if (!given.is_object()) top_.Fail("generation_kwargs", "generation_kwargs is not a mapping");
      generation_kwargs_ = given;
      if (given.contains("temperature") && given.at("temperature").is_number()) {
        generation_kwargs_["temperature"] = given.at("temperature").get<double>();
      }
      if (!given.contains("until")) {
        generation_kwargs_["until"] = Json::array({config_.fewshot_delimiter});
      }
    }
    config_.sampling = SamplingFromKwargs(generation_kwargs_, top_.Where("generation_kwargs"));
  }

  // evald's own key. A task of one sample for each document then gets as many as the key needs.
  void ReadSampleMetrics() {
    constexpr const char* kKey = "sample_metrics";
    const Json& given = top_.At(kKey);
    if (given.is_null()) return;
    if (!given.is_array() || given.empty())
      top_.Fail(kKey, "sample_metrics is no list, such as [avg@8, pass@4, maj@8]");
    for (const Json& entry : given) {
      if (!entry.is_string() || !ParseSampleMetric(entry.get_ref<const std::string&>())) {
        top_.Fail(kKey,
                  fmt::format("sample_metrics has {}, expected avg@K, pass@K, pass^K or maj@K, "
                              "or the same after a metric's name: exact_match:pass@4",
                              Section::Shown(entry)));
      }
      config_.sample_metrics.push_back(entry);
    }
    if (config_.output_type != "generate_until")
      top_.Fail(kKey,
                fmt::format("sample_metrics needs answers that are generated; the output_type "
                            "is {}",
                            config_.output_type));
    const auto needed = static_cast<size_t>(SamplesNeeded(config_.sample_metrics));
    RequireAtMost(kKey, "samples for sample_metrics", kRepeatsMax, needed);
    if (config_.repeats == 1) config_.repeats = static_cast<int>(needed);
    if (config_.repeats < static_cast<int>(needed)) {
      top_.Fail(kKey, fmt::format("sample_metrics needs {} samples, and repeats is {}", needed,
                                  config_.repeats));
    }
    if (config_.repeats > 1 && !config_.sampling.do_sample) {
      top_.Fail(kKey,
                "sample_metrics needs samples that differ, and the answers are greedy; set "
                "do_sample: true and a temperature in generation_kwargs");
    }
  }

  void RequireAtMost(const char* key, const std::string& what, size_t most, size_t found) const {
    if (found > most)
      top_.Fail(key, fmt::format("{}: found {}, expected at most {}", what, found, most));
  }

  void ReadMetrics() {
    const Json& list = top_.At("metric_list");
    if (list.is_null()) {
      config_.metrics = DefaultMetrics(config_.output_type);
      return;
    }
    if (!list.is_array()) top_.Fail("metric_list", "metric_list is not a list");
    RequireAtMost("metric_list", "metrics in metric_list", kMetricsMax, list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      config_.metrics.push_back(ReadMetric(list[i], "/metric_list/" + std::to_string(i)));
    }
  }

  // Whether the harness calls the functions of metrics. Otherwise it gives each metric its value by
  // the metric's name (ConfigurableTask.process_results), whatever library the metric is from.
  bool CallsMetrics() const {
    return config_.output_type == "generate_until" && config_.process_results.empty();
  }

  MetricSpec ReadMetric(const Json& value, const std::string& pointer) const {
    if (!value.is_object()) {
      throw Error(ErrorKind::kInput,
                  yaml_.Where(pointer) + ": an entry of metric_list is a mapping");
    }
    const Section section(yaml_, value, pointer);
    MetricSpec spec;
    if (section.At("metric").is_null())
      section.Fail("metric", "an entry of metric_list has no metric");
    if (IsFunction(section.At("metric"), &spec.function)) {
      spec.metric = spec.function.substr(spec.function.rfind('.') + 1);
    } else {
      spec.metric = section.Text("metric", "");
    }
    if (section.Flag("hf_evaluate", false) && CallsMetrics()) {
      section.Fail("hf_evaluate",
                   fmt::format("metric '{}': metrics of the evaluate library are not "
                               "supported",
                               spec.metric));
    }
    const Metric* known = FindMetric(spec.metric);
    if (spec.metric == kJudgeName && spec.function.empty()) ReadJudge(section, &spec);
    std::string aggregation;
    if (IsFunction(section.At("aggregation"), &aggregation)) {
      spec.aggregation = std::string(kFunctionTag) + aggregation;
    } else {
      spec.aggregation = section.Text("aggregation", known == nullptr ? "" : known->aggregation);
    }
    if (spec.aggregation.empty() && config_.process_results.empty() && spec.function.empty()) {
      section.Fail("metric", fmt::format("metric_list: the metric '{}' is not known{}", spec.metric,
                                         Suggestion(spec.metric, MetricNames())));
    }
    if (spec.aggregation.empty()) {
      section.Fail("metric", fmt::format("metric '{}' needs an aggregation", spec.metric));
    }
    if (!spec.function.empty() && !config_.process_results.empty() && spec.aggregation != "mean") {
      section.Fail("metric",
                   fmt::format("metric '{}' is a function beside process_results, whose values the "
                               "harness then aggregates by their mean: name the metric by a text",
                               spec.metric));
    }
    spec.higher_is_better =
        section.Flag("higher_is_better", known == nullptr ? true : known->higher_is_better);
    if (!config_.process_results.empty()) return spec;
    for (const auto& item : value.items()) {
      const std::string& key = item.key();
      const bool of_judge = key == "name" && spec.function == kJudgeFunction;
      if (key != "metric" && key != "aggregation" && key != "higher_is_better" &&
          key != "hf_evaluate" && !of_judge) {
        spec.kwargs[key] = item.value();
      }
    }
    return spec;
  }

  // evald's own metric. Its other keys are read where it is made (metrics/judge/spec.h).
  void ReadJudge(const Section& section, MetricSpec* spec) const {
    if (config_.output_type != "generate_until") {
      section.Fail("metric", fmt::format("the metric 'judge' needs answers that are generated; the "
                                         "output_type is {}",
                                         config_.output_type));
    }
    if (!config_.process_results.empty()) {
      section.Fail("metric",
                   "the metric 'judge' stands beside process_results, whose values take the place "
                   "of metrics");
    }
    spec->function = kJudgeFunction;
    spec->metric = section.Text("name", kJudgeName);
    const bool plain = std::all_of(spec->metric.begin(), spec->metric.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
    });
    constexpr size_t kNameBytesMax = 100;
    if (!plain || spec->metric.empty() || spec->metric.size() > kNameBytesMax) {
      section.Fail("name", fmt::format("the metric's name is '{}', expected 1 to {} letters, "
                                       "digits, '_', '-' and '.'",
                                       spec->metric, kNameBytesMax));
    }
  }

  void ReadFilters() {
    const Json& list = top_.At("filter_list");
    if (list.is_null()) {
      config_.filters = {{"none", {{"take_first", Json::object()}}}};
      return;
    }
    if (!list.is_array() || list.empty()) top_.Fail("filter_list", "filter_list is not a list");
    RequireAtMost("filter_list", "pipelines in filter_list", kPipelinesMax, list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string pointer = "/filter_list/" + std::to_string(i);
      const Section section(yaml_, list[i], pointer);
      if (!list[i].is_object()) section.Fail("name", "an entry of filter_list is a mapping");
      section.CheckKeys({"name", "filter"}, "an entry of filter_list");
      FilterPipeline pipeline;
      pipeline.name = section.Text("name", "");
      if (pipeline.name.empty()) section.Fail("name", "an entry of filter_list has no name");
      const Json& steps = section.At("filter");
      if (!steps.is_array() || steps.empty())
        section.Fail("filter", "filter is not a list of steps");
      RequireAtMost("filter_list", fmt::format("steps in the pipeline '{}'", pipeline.name),
                    kStepsMax, steps.size());
      for (const Json& step : steps) {
        if (!step.is_object() || !step.contains("function") || !step.at("function").is_string()) {
          section.Fail("filter", "a step of a filter is a mapping with a function");
        }
        FilterStep out;
        out.function = step.at("function").get<std::string>();
        for (const auto& item : step.items()) {
          if (item.key() != "function") out.kwargs[item.key()] = item.value();
        }
        pipeline.steps.push_back(std::move(out));
      }
      config_.filters.push_back(std::move(pipeline));
    }
  }

  Json DumpFewshot() const {
    const FewshotConfig& f = config_.fewshot;
    return {{"sampler", f.sampler},
            {"split", f.split},
            {"process_docs", f.process_docs},
            {"fewshot_indices", nullptr},
            {"samples", f.samples},
            {"doc_to_text", f.doc_to_text},
            {"doc_to_choice", f.doc_to_choice},
            {"doc_to_target", f.doc_to_target},
            {"gen_prefix", f.gen_prefix},
            {"fewshot_delimiter", f.fewshot_delimiter},
            {"target_delimiter", f.target_delimiter}};
  }

  // The harness records the task's file in its metadata (lm_eval/tasks/_factory.py).
  Json DumpMetadata() const {
    const Json& given = top_.At("metadata");
    Json metadata = given.is_object() ? given : Json::object();
    if (!given.is_object() && !given.is_null()) metadata["_metadata"] = given;
    metadata["config_source"] = file_;
    return metadata;
  }

  // TaskConfig.to_dict(): the fields of the dataclass in their order, without null ones.
  Json Dump() const {
    Json all = {{"task", config_.name},
                {"task_alias", top_.At("task_alias")},
                {"custom_dataset", top_.At("custom_dataset")},
                {"dataset_path", config_.dataset_path},
                {"dataset_name", top_.At("dataset_name")},
                {"dataset_kwargs", top_.At("dataset_kwargs")},
                {"training_split", top_.At("training_split")},
                {"validation_split", top_.At("validation_split")},
                {"test_split", top_.At("test_split")},
                {"fewshot_split", top_.At("fewshot_split")},
                {"process_docs", top_.At("process_docs")},
                {"doc_to_text", config_.doc_to_text},
                {"doc_to_target", config_.doc_to_target},
                {"unsafe_code", config_.unsafe_code},
                {"doc_to_choice", config_.doc_to_choice},
                {"process_results", top_.At("process_results")},
                {"description", config_.description},
                {"target_delimiter", config_.target_delimiter},
                {"fewshot_delimiter", config_.fewshot_delimiter},
                {"fewshot_config", DumpFewshot()},
                {"num_fewshot", config_.num_fewshot},
                {"metric_list", top_.At("metric_list")},
                {"sample_metrics", top_.At("sample_metrics")},
                {"output_type", config_.output_type},
                {"generation_kwargs", generation_kwargs_},
                {"repeats", config_.repeats},
                {"filter_list", top_.At("filter_list")},
                {"should_decontaminate", top_.Flag("should_decontaminate", false)},
                {"doc_to_decontamination_query", top_.At("doc_to_decontamination_query")},
                {"gen_prefix", config_.gen_prefix},
                {"metadata", DumpMetadata()}};
    Json dump = Json::object();
    for (auto& item : all.items()) {
      if (!item.value().is_null()) dump[item.key()] = std::move(item.value());
    }
    return dump;
  }

  const YamlMapping& yaml_;
  Section top_;
  std::string file_;
  TaskConfig config_;
  Json generation_kwargs_;
};

}  // namespace

const std::vector<std::string>& TaskKeys() {
  static const std::vector<std::string> kKeys = {"task",
                                                 "task_alias",
                                                 "tag",
                                                 "custom_dataset",
                                                 "dataset_path",
                                                 "dataset_name",
                                                 "dataset_kwargs",
                                                 "training_split",
                                                 "validation_split",
                                                 "test_split",
                                                 "fewshot_split",
                                                 "process_docs",
                                                 "doc_to_text",
                                                 "doc_to_target",
                                                 "doc_to_image",
                                                 "doc_to_audio",
                                                 "unsafe_code",
                                                 "doc_to_choice",
                                                 "process_results",
                                                 "use_prompt",
                                                 "description",
                                                 "target_delimiter",
                                                 "fewshot_delimiter",
                                                 "fewshot_config",
                                                 "num_fewshot",
                                                 "metric_list",
                                                 "sample_metrics",
                                                 "output_type",
                                                 "generation_kwargs",
                                                 "repeats",
                                                 "filter_list",
                                                 "should_decontaminate",
                                                 "doc_to_decontamination_query",
                                                 "gen_prefix",
                                                 "metadata",
                                                 "include",
                                                 "group",
                                                 "class",
                                                 "task_list"};
  return kKeys;
}

TaskConfig ParseTaskConfig(const YamlMapping& yaml, const std::string& file) {
  return ConfigReader(yaml, file).Read();
}

std::array<std::pair<const char*, const Json*>, 6> DocFunctionFields(const TaskConfig& config) {
  const FewshotConfig& fewshot = config.fewshot;
  return {{{"doc_to_text", &config.doc_to_text},
           {"doc_to_target", &config.doc_to_target},
           {"doc_to_choice", &config.doc_to_choice},
           {"fewshot_config.doc_to_text", &fewshot.doc_to_text},
           {"fewshot_config.doc_to_target", &fewshot.doc_to_target},
           {"fewshot_config.doc_to_choice", &fewshot.doc_to_choice}}};
}

}  // namespace evald
