#include "bench/eval_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/file.h"
#include "base/jsonl.h"
#include "bench/run_evald.h"
#include "evald/error.h"

namespace evald::bench {
namespace fs = std::filesystem;

const std::vector<std::string> kChoiceTasks = {"mmlu_astronomy", "mmlu_anatomy",
                                               "mmlu_high_school_world_history",
                                               "mmlu_elementary_mathematics"};

namespace {

constexpr double kMicros = 1e6;

// The first folder run-1, run-2, ... that is not there yet.
fs::path NewFolder(const fs::path& scratch) {
  for (int i = 1;; ++i) {
    const fs::path folder = scratch / fmt::format("run-{}", i);
    if (!fs::exists(folder)) return folder;
  }
}

Json ConfigOf(const Options& options, const EvalWork& work, const fs::path& checkpoint,
              const Json& engine, const fs::path& folder) {
  Json tasks = Json::array();
  for (const std::string& task : work.tasks) {
    Json entry = {{"task", task}, {"limit", work.documents}};
    if (work.max_gen_toks > 0) entry["generation_kwargs"] = {{"max_gen_toks", work.max_gen_toks}};
    tasks.push_back(entry);
  }
  return {
      {"checkpoint", checkpoint.string()},
      {"tasks", tasks},
      {"data_dir", options.data_dir.string()},
      {"engine", engine},
      {"workers", {{"count", 1}, {"threads", std::max(1U, std::thread::hardware_concurrency())}}},
      {"cache_dir", (folder / "cache").string()},
      {"state_dir", (folder / "state").string()},
      {"output", {{"dir", (folder / "runs").string()}, {"name", "run"}}}};
}

double LargestDifference(const EvalRun& run, const Json& answers) {
  const auto ours = run.LogLikelihoods();
  double largest = 0;
  for (const Json& row : answers) {
    const auto found = ours.find({row.at("task").get<std::string>(),
                                  row.at("doc_id").get<int64_t>(), row.at("idx").get<int>()});
    if (found == ours.end())
      throw Error(ErrorKind::kInternal, "evald gave no answer to " + ToLine(row));
    const double difference = std::abs(found->second - row.at("loglikelihood").get<double>());
    largest = std::isnan(difference) ? INFINITY : std::max(largest, difference);
  }
  if (ours.size() != answers.size()) {
    throw Error(ErrorKind::kInternal, fmt::format("evald answered {} requests, the baseline {}",
                                                  ours.size(), answers.size()));
  }
  return largest;
}

}  // namespace

EvalRun::EvalRun(const Options& options, const EvalWork& work, const fs::path& checkpoint,
                 const Json& engine)
    : folder_(NewFolder(options.scratch)), work_(work) {
  const Json config = ConfigOf(options, work, checkpoint, engine, folder_);
  const fs::path file = WriteText(folder_ / "eval.yaml", config.dump(1));
  seconds_ =
      RunCommand({(options.binaries / "evald").string(), "run", file.string(), "--json", "--quiet"})
          .seconds;
}

double EvalRun::answer_seconds() const {
  const fs::path file = folder_ / "runs/run/timeline.json";
  const Json timeline = ParseJson(ReadFile(file), file.string());
  double loaded = 0, last = 0;
  for (const Json& span : SpansOf(timeline, "pull")) loaded = std::max(loaded, EndOf(span));
  for (const Json& span : SpansOf(timeline, "generate")) last = std::max(last, EndOf(span));
  return (last - loaded) / kMicros;
}

std::map<std::tuple<std::string, int64_t, int>, double> EvalRun::LogLikelihoods() const {
  std::map<std::tuple<std::string, int64_t, int>, double> scores;
  for (const std::string& task : work_.tasks) {
    for (const auto& entry : fs::directory_iterator(folder_ / "runs/run/generations" / task)) {
      ForEachJsonLine(entry.path(), [&](size_t, Json&& row) {
        scores[{task, row.at("doc_id").get<int64_t>(), row.at("idx").get<int>()}] =
            row.at("loglikelihood").get<double>();
      });
    }
  }
  return scores;
}

void CompareLogLikelihoods(const EvalRun& run, const Json& baseline, Result* result) {
  constexpr double kAtMost = 1e-3;
  const double largest = LargestDifference(run, baseline.at("answers"));
  result->details["largest_difference"] = largest;
  result->details["largest_difference_at_most"] = kAtMost;
  if (largest > kAtMost) {
    throw Error(ErrorKind::kInternal,
                fmt::format("log-likelihoods differ by {} from the baseline's", largest));
  }
}

Json VllmEngine(const Options& options, const std::string& dtype) {
  return {{"name", "vllm"}, {"command", {options.vllm.string()}}, {"dtype", dtype}};
}

double EndOf(const Json& span) {
  return span.at("ts").get<double>() + span.at("dur").get<double>();
}

std::vector<Json> SpansOf(const Json& timeline, const std::string& name) {
  std::vector<Json> spans;
  for (const Json& event : timeline.at("traceEvents")) {
    if (event.at("ph") == "X" && event.value("name", "") == name) spans.push_back(event);
  }
  return spans;
}

}  // namespace evald::bench
