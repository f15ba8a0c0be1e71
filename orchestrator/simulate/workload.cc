#include "orchestrator/simulate/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/file.h"
#include "orchestrator/config/yaml_section.h"

namespace evald {
namespace {

constexpr double kMuch = 1e12;
constexpr const char* kSchema = "evald-workload/1";

double Need(YamlSection* section, const std::string& key, double low, double high) {
  const auto value = section->Number(key, low, high);
  if (!value)
    section->RefuseAbsent(key, fmt::format("absent, expected a number from {} to {}", low, high));
  return *value;
}

int64_t NeedCount(YamlSection* section, const std::string& key, int64_t high) {
  const auto value = section->Integer(key, 1, high);
  if (!value)
    section->RefuseAbsent(key, fmt::format("absent, expected an integer from 1 to {}", high));
  return *value;
}

// `most`: beyond it, values are cut off.
Spread ReadSpread(YamlSection* parent, const std::string& key, double most) {
  auto section = parent->Section(key);
  if (!section) parent->RefuseAbsent(key, "absent, expected {mean: ..., p95: ...}");
  Spread spread;
  spread.mean = Need(&*section, "mean", 0, kMuch);
  spread.p95 = section->Number("p95", 0, kMuch).value_or(0);
  spread.most = most;
  if (spread.mean > most) {
    section->Refuse(
        "mean", fmt::format("found {}, expected at most {}, the limit of one", spread.mean, most));
  }
  if (spread.p95 > 0 && spread.p95 < spread.mean) {
    section->Refuse(
        "p95", fmt::format("found {}, expected at least the mean of {}, or 0 where all are alike",
                           spread.p95, spread.mean));
  }
  section->Number("p50", 0, kMuch);
  section->Number("sd", 0, kMuch);
  section->Finish();
  return spread;
}

void ReadScoring(YamlSection* section, SimDataset* dataset) {
  auto scoring = section->Section("scoring");
  if (!scoring)
    section->RefuseAbsent("scoring", "absent, expected {kind: ..., cpu_seconds_per_document: ...}");
  const std::string kind = scoring->String("kind").value_or("");
  const double waiting = scoring->Number("remote_seconds_per_document", 0, 1e6).value_or(0);
  dataset->score_s = Need(&*scoring, "cpu_seconds_per_document", 0, 1e6) + waiting;
  dataset->slow_scoring = kind == "code_execution" || waiting > 0;
  scoring->Finish();
}

// A part that generates, or one that is scored by log-likelihoods.
void ReadRequests(YamlSection* section, double context_limit, SimDataset* dataset) {
  const std::string kind = section->String("kind").value_or("");
  if (kind != "loglikelihood" && kind != "generate_until") {
    section->Refuse("kind",
                    fmt::format("found '{}', expected loglikelihood or generate_until", kind));
  }
  dataset->generates = kind == "generate_until";
  dataset->documents = NeedCount(section, "documents", 100'000'000);
  dataset->prompt_tokens = Need(section, "prompt_tokens", 0, 1e7);
  dataset->prefix_tokens = section->Number("shared_prefix_tokens", 0, 1e7).value_or(0);
  dataset->prefix_groups = section->Integer("shared_prefix_groups", 0, 1'000'000'000).value_or(1);
  dataset->own_tokens = ReadSpread(section, "doc_tokens", context_limit);
  if (dataset->generates) {
    dataset->max_gen_toks = NeedCount(section, "max_gen_toks", 10'000'000);
    dataset->generated_tokens =
        ReadSpread(section, "generated_tokens", static_cast<double>(dataset->max_gen_toks));
  } else {
    dataset->choices = Need(section, "choices", 1, 1e6);
    dataset->continuation_tokens = Need(section, "continuation_tokens", 1, 1e7);
    dataset->single_forward = section->Boolean("single_forward").value_or(false);
  }
  section->Integer("distinct_contexts", 1, 1'000'000'000);
  ReadScoring(section, dataset);
  section->Value("basis");  // where each figure comes from: for people
  section->Value("source");
}

void ReadDataset(YamlSection section, double context_limit, Workload* workload) {
  SimDataset dataset;
  dataset.dataset = workload->dataset_count();
  dataset.name = section.String("name").value_or("");
  if (dataset.name.empty()) section.RefuseAbsent("name", "absent");
  for (const SimDataset& other : workload->datasets) {
    if (other.name == dataset.name)
      section.Refuse("name", fmt::format("'{}' stands here twice", dataset.name));
  }
  ReadRequests(&section, context_limit, &dataset);
  for (const char* key : {"language", "shots", "note"}) section.Value(key);
  auto second = section.Section("second_part");
  section.Finish();
  workload->datasets.push_back(dataset);
  if (!second) return;
  SimDataset part;
  part.dataset = dataset.dataset;
  part.name = dataset.name + ":second";
  ReadRequests(&*second, context_limit, &part);
  second->Finish();
  workload->datasets.push_back(part);
}

SimModel ReadModel(YamlSection* top) {
  auto section = top->Section("model");
  if (!section)
    top->RefuseAbsent("model",
                      "absent, expected {params: ..., bytes: ..., kv_bytes_per_token: ...}");
  SimModel model;
  model.params = Need(&*section, "params", 1, 1e14);
  model.bytes = Need(&*section, "bytes", 1, 1e15);
  model.kv_bytes_per_token = Need(&*section, "kv_bytes_per_token", 0, 1e9);
  for (const char* key : {"layers", "hidden", "max_seq_len"}) section->Value(key);
  section->Finish();
  return model;
}

Workload Read(YamlSection top) {
  const std::string schema = top.String("schema").value_or("");
  if (schema != kSchema)
    top.Refuse("schema", fmt::format("found '{}', expected {}", schema, kSchema));
  Workload workload;
  workload.name = top.String("name").value_or("");
  workload.model = ReadModel(&top);
  workload.context_limit = top.Number("context_limit", 1, 1e9).value_or(1e9);
  top.String("tokenizer");
  for (YamlSection& section : top.Sections("datasets")) {
    ReadDataset(std::move(section), workload.context_limit, &workload);
  }
  if (workload.datasets.empty())
    top.RefuseAbsent("datasets", "absent or empty, expected a list of datasets");
  top.Finish();
  return workload;
}

}  // namespace

Workload ReadWorkload(const std::filesystem::path& file) {
  return Read(YamlSection::Load(file, {}));
}

Workload ParseWorkload(const std::string& text, const std::string& file) {
  return Read(YamlSection::Parse(text, file, {}));
}

}  // namespace evald
