#include "orchestrator/simulate/drawn_tasks.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

namespace evald {
namespace {

constexpr double kGeneratingSize = 20;  // how much more a row counts that generates
// of max_gen_toks, that a document is guessed to generate
constexpr double kGuessedShareOfMax = 0.3;
constexpr double kGuessDoubt = 3;          // as of tokens at measured rates (schedule/prior.h)
constexpr double kGuessedSlowScore = 0.3;  // seconds of a program, or of a service's answer

// Normal deviates by Box and Muller (1958), from a generator whose numbers are the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : generator_(seed) {}
  double Unit() { return (static_cast<double>(generator_() >> 11) + 0.5) * 0x1p-53; }
  double Normal() {
    return std::sqrt(-2 * std::log(Unit())) * std::cos(2 * std::numbers::pi * Unit());
  }

 private:
  std::mt19937_64 generator_;
};

// A lognormal's sigma from its mean and 95th percentile: ln(p95 / mean) = 1.645 sigma - sigma^2
// / 2.
double SigmaOf(const Spread& spread) {
  constexpr double kZ95 = 1.6448536269514722;
  if (spread.mean <= 0 || spread.p95 <= spread.mean) return 0;
  const double inside = kZ95 * kZ95 - 2 * std::log(spread.p95 / spread.mean);
  return inside > 0 ? kZ95 - std::sqrt(inside) : kZ95;
}

double Draw(const Spread& spread, double sigma, Random* random) {
  double value = spread.mean;
  if (sigma > 0) value = spread.mean * std::exp(sigma * random->Normal() - sigma * sigma / 2);
  return spread.most > 0 ? std::min(value, spread.most) : value;
}

double ForwardSeconds(const SimModel& model, const SimCluster& cluster, double tokens) {
  return tokens * 2 * model.params / cluster.flop_per_s;
}

bool SharesPrefix(const SimDataset& dataset, const SimCluster& cluster) {
  return cluster.share_prefixes && dataset.prefix_groups > 0 && dataset.prefix_tokens > 0;
}

// Device seconds of the forward passes of one document with a prompt of its own of `own` tokens.
double PromptSeconds(const Workload& workload, const SimCluster& cluster, const SimDataset& dataset,
                     double own) {
  const double rest = SharesPrefix(dataset, cluster) ? 0 : dataset.prefix_tokens;
  const double prompt = std::min(own + rest, workload.context_limit);
  double tokens = prompt;
  if (!dataset.generates) {
    const bool once =
        dataset.single_forward || (cluster.single_forward && dataset.continuation_tokens <= 1);
    const double forwards = once || cluster.share_prefixes ? 1 : dataset.choices;
    const double continuations = once ? 1 : dataset.choices * dataset.continuation_tokens;
    tokens = forwards * prompt + continuations;
  }
  return ForwardSeconds(workload.model, cluster, tokens);
}

double DecodeSeconds(const Workload& workload, const SimCluster& cluster, const SimDataset& dataset,
                     double generated) {
  return generated * StepSeconds(workload.model, cluster, dataset.prompt_tokens + generated / 2);
}

double SizeOf(const SimDataset& dataset) {
  return dataset.generates ? kGeneratingSize : dataset.choices;
}

SimTask DrawTask(const Workload& workload, const SimCluster& cluster, const SimDataset& dataset,
                 Random* random) {
  SimTask task;
  task.name = dataset.name;
  task.dataset = dataset.dataset;
  task.documents = dataset.documents;
  task.score_s = dataset.score_s;
  task.slow_scoring = dataset.slow_scoring;
  task.size = SizeOf(dataset);
  if (SharesPrefix(dataset, cluster)) {
    task.prefix_groups = std::min(dataset.prefix_groups, dataset.documents);
    task.prefix_s = ForwardSeconds(workload.model, cluster, dataset.prefix_tokens);
  }
  const double own_sigma = SigmaOf(dataset.own_tokens);
  const double out_sigma = SigmaOf(dataset.generated_tokens);
  task.place_s.reserve(static_cast<size_t>(dataset.documents));
  for (int64_t i = 0; i < dataset.documents; ++i) {
    const double own = Draw(dataset.own_tokens, own_sigma, random);
    double device_s = PromptSeconds(workload, cluster, dataset, own);
    if (task.begins_group(i)) device_s += task.prefix_s;
    double place_s = device_s * cluster.places;
    if (dataset.generates) {
      const double generated =
          cluster.stop_strings ? std::max(1.0, Draw(dataset.generated_tokens, out_sigma, random))
                               : static_cast<double>(dataset.max_gen_toks);
      place_s += DecodeSeconds(workload, cluster, dataset, generated);
    }
    task.place_s.push_back(static_cast<float>(place_s));
  }
  return task;
}

}  // namespace

bool SimTask::begins_group(int64_t document) const {
  if (prefix_groups <= 0) return false;
  return document == 0 ||
         document * prefix_groups / documents != (document - 1) * prefix_groups / documents;
}

double StepSeconds(const SimModel& model, const SimCluster& cluster, double context) {
  const double places = cluster.places;
  const double read =
      (model.bytes + places * context * model.kv_bytes_per_token) / cluster.memory_bytes_per_s;
  const double compute = 2 * model.params * places / cluster.flop_per_s;
  return std::max(read, compute);
}

std::vector<SimTask> DrawTasks(const Workload& workload, const SimCluster& cluster, uint64_t seed) {
  Random random(seed);
  std::vector<SimTask> tasks;
  for (const SimDataset& dataset : workload.datasets)
    tasks.push_back(DrawTask(workload, cluster, dataset, &random));
  return tasks;
}

TaskEstimate TrueEstimate(const SimTask& task, int places) {
  TaskEstimate estimate;
  estimate.name = task.name;
  estimate.dataset = task.dataset;
  estimate.documents = task.documents;
  estimate.size = task.size;
  double sum = 0;
  for (const float place_s : task.place_s) {
    sum += place_s;
    estimate.request_s = std::max(estimate.request_s, static_cast<double>(place_s));
  }
  estimate.device_s = sum / places / static_cast<double>(std::max<int64_t>(1, task.documents));
  estimate.prefix_s = task.prefix_s;
  estimate.score_s = task.score_s;
  return estimate;
}

std::vector<TaskEstimate> GuessedEstimates(const Workload& workload, const SimCluster& cluster) {
  std::vector<TaskEstimate> estimates;
  for (const SimDataset& dataset : workload.datasets) {
    TaskEstimate estimate;
    estimate.name = dataset.name;
    estimate.dataset = dataset.dataset;
    estimate.documents = dataset.documents;
    estimate.size = SizeOf(dataset);
    const double prompt_s = PromptSeconds(workload, cluster, dataset, dataset.own_tokens.mean);
    const auto most = static_cast<double>(dataset.max_gen_toks);
    estimate.device_s = prompt_s;
    estimate.request_s = prompt_s * cluster.places;
    if (dataset.generates) {
      const double guessed = cluster.stop_strings ? kGuessedShareOfMax * most : most;
      estimate.device_s += DecodeSeconds(workload, cluster, dataset, guessed) / cluster.places;
      estimate.request_s += DecodeSeconds(workload, cluster, dataset, most);
    }
    if (SharesPrefix(dataset, cluster)) {
      estimate.prefix_s = ForwardSeconds(workload.model, cluster, dataset.prefix_tokens);
    }
    estimate.doubt = kGuessDoubt;
    estimate.score_s = dataset.slow_scoring ? kGuessedSlowScore : 0;
    estimates.push_back(estimate);
  }
  return estimates;
}

}  // namespace evald
