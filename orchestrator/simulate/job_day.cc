#include "orchestrator/simulate/job_day.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <queue>
#include <random>

#include "base/text.h"
#include "base/version.h"
#include "evald/error.h"
#include "orchestrator/report/text_table.h"
#include "orchestrator/schedule/policy.h"

namespace evald {
namespace {

// The paper's shares of a HumanEval job, taken for all: before the first token, generating, after
// the last.
constexpr double kBefore = 0.295, kGenerate = 0.515, kAfter = 0.190;
constexpr double kDay = 86400;
constexpr double kDocumentSeconds = 1;  // of a device: how finely jobs can be divided

/// A checkpoint's jobs.
struct Batch {
  double arrival = 0;
  std::vector<double> lengths;
};

/// One batch while it is worked on.
struct Open {
  Open(const Batch& batch, const SimCluster& cluster, const std::string& policy_name)
      : policy(MakePolicy(policy_name, {cluster.lease_s, 0.01})),
        work(cluster.devices(), 1, cluster.score_slots()) {
    for (size_t i = 0; i < batch.lengths.size(); ++i) {
      TaskEstimate estimate;
      estimate.name = std::to_string(i);
      estimate.dataset = static_cast<int>(i);
      const double device_s = batch.lengths[i] * kGenerate;
      estimate.documents = std::max<int64_t>(1, std::llround(device_s / kDocumentSeconds));
      const auto documents = static_cast<double>(estimate.documents);
      estimate.device_s = estimate.request_s = device_s / documents;
      estimate.score_s = batch.lengths[i] * kAfter / documents;
      work.Add(estimate, {{0, estimate.documents}});
    }
  }
  std::unique_ptr<Policy> policy;
  OpenWork work;
  double last_score = 0;
};

struct Free {
  double at = 0;
  size_t batch = SIZE_MAX;  ///< whose weights the device has
  bool operator>(const Free& other) const { return at > other.at; }
};
template <typename T>
using Earliest = std::priority_queue<T, std::vector<T>, std::greater<>>;

/// All days of one policy, trial by trial in the order in which devices become free.
class Pool {
 public:
  Pool(const JobDay& day, const std::vector<Batch>& batches, const std::string& policy)
      : day_(day), batches_(batches), parts_(MakePolicy(policy)->decouplings()) {
    for (const Batch& batch : batches)
      open_.push_back(std::make_unique<Open>(batch, day.cluster, policy));
    stage_s_ = parts_.load_once ? day.weights_bytes / day.cluster.storage_bytes_per_s : 0;
    pull_s_ = parts_.stay_warm ? day.weights_bytes / day.cluster.pcie_bytes_per_s : 0;
    for (int d = 0; d < day.cluster.devices(); ++d) devices_.push({});
    for (int s = 0; s < day.cluster.score_slots(); ++s) slots_.push(0);
  }

  JobDayReport::OfPolicy Run(const std::string& name) {
    while (!devices_.empty()) Next();
    JobDayReport::OfPolicy report;
    report.name = name;
    std::vector<double> latencies;
    double end = 0;
    for (size_t b = 0; b < batches_.size(); ++b) {
      latencies.push_back(open_[b]->last_score - batches_[b].arrival);
      end = std::max(end, open_[b]->last_score);
    }
    report.latency_s = Summarise(std::move(latencies));
    report.held_share = held_s_ / (end * day_.cluster.devices());
    report.generate_share = generate_s_ / held_s_;
    return report;
  }

 private:
  // The device that is free first takes a trial of the oldest checkpoint that has one, or waits.
  void Next() {
    Free device = devices_.top();
    devices_.pop();
    while (first_ < open_.size() && open_[first_]->work.documents() == 0) ++first_;
    for (size_t b = first_; b < open_.size(); ++b) {
      const double there = batches_[b].arrival + stage_s_;
      if (there > device.at) {
        device.at = there;
        devices_.push(device);
        return;
      }
      const std::vector<Cut> cuts = open_[b]->policy->Next(open_[b]->work, 0);
      if (cuts.empty()) continue;
      Take(b, cuts, &device);
      devices_.push(device);
      return;
    }
  }

  void Take(size_t b, const std::vector<Cut>& cuts, Free* device) {
    Open& open = *open_[b];
    double before = day_.cluster.lease_s, generate = 0, after = 0;
    if (parts_.stay_warm && device->batch != b) before += pull_s_;
    for (const Cut& cut : cuts) {
      const TaskEstimate& estimate = open.work.estimate(cut.task);
      const auto documents = static_cast<double>(cut.documents);
      if (!parts_.stay_warm) before += estimate.device_s * documents / kGenerate * kBefore;
      generate += estimate.device_s * documents;
      after += estimate.score_s * documents;
    }
    device->batch = b;
    device->at += before + generate + (parts_.score_elsewhere ? 0 : after);
    held_s_ += before + generate + (parts_.score_elsewhere ? 0 : after);
    generate_s_ += generate;
    for (const Cut& cut : cuts) {
      if (parts_.score_elsewhere) {
        Score(&open, open.work.estimate(cut.task).score_s * static_cast<double>(cut.documents),
              device->at);
      }
      open.work.Take(cut.task, cut.documents);
    }
    open.last_score = std::max(open.last_score, device->at);
  }

  void Score(Open* open, double seconds, double at) {
    const double begin = std::max(at, slots_.top());
    slots_.pop();
    slots_.push(begin + seconds);
    open->last_score = std::max(open->last_score, begin + seconds);
  }

  const JobDay& day_;
  const std::vector<Batch>& batches_;
  Decouplings parts_;
  std::vector<std::unique_ptr<Open>> open_;
  size_t first_ = 0;  // before it, nothing is open
  Earliest<Free> devices_;
  Earliest<double> slots_;
  double stage_s_ = 0, pull_s_ = 0;
  double held_s_ = 0, generate_s_ = 0;
};

// Checkpoints come as a Poisson process, so many that coupled jobs hold `load` of the devices.
std::vector<Batch> DrawBatches(const JobDay& day, const JobLengths& lengths, double mean_s) {
  std::mt19937_64 random(day.seed);
  const auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  const double apart = mean_s * day.datasets / (day.load * day.cluster.devices());
  std::vector<Batch> batches;
  for (double at = 0;;) {
    at -= apart * std::log(1 - unit());
    if (at >= day.days * kDay) return batches;
    batches.push_back({at, {}});
    for (int i = 0; i < day.datasets; ++i)
      batches.back().lengths.push_back(lengths.Quantile(unit()));
  }
}

double MeanOf(const JobLengths& lengths) {
  constexpr int kSteps = 100'000;
  double sum = 0;
  for (int i = 0; i < kSteps; ++i) sum += lengths.Quantile((i + 0.5) / kSteps);
  return sum / kSteps;
}

void CheckPolicies(const JobDay& day) {
  for (const std::string& name : day.policies) {
    const Decouplings parts = MakePolicy(name)->decouplings();
    const bool whole = !parts.load_once && !parts.score_elsewhere && !parts.stay_warm;
    const bool apart = parts.load_once && parts.score_elsewhere && parts.stay_warm;
    if (whole || apart) continue;
    throw Error(
        ErrorKind::kUsage,
        fmt::format(
            "--policy {}: how much of the time before the first token is loading is not published",
            name),
        "for a cluster's day give some of coupled, decoupled-fifo, elastic");
  }
}

}  // namespace

double JobLengths::Quantile(double u) const {
  double low_share = 0, low_s = 1, high_s = 8;
  for (const double share : at_most_share) {
    if (u < share) return low_s * std::pow(high_s / low_s, (u - low_share) / (share - low_share));
    low_share = share;
    low_s = high_s;
    high_s *= 2;
  }
  return low_s * std::pow(high_s / low_s, (u - low_share) / (1 - low_share));
}

const std::vector<JobLengths>& PublishedJobLengths() {
  static const std::vector<JobLengths> lengths = {
      {"seren", {0.106, 0.252, 0.328, 0.374, 0.497, 0.672, 0.800, 0.888, 0.939, 0.965, 0.982}},
      {"kalos", {0.000, 0.015, 0.195, 0.399, 0.527, 0.718, 0.812, 0.870, 0.938, 0.981, 0.996}},
  };
  return lengths;
}

JobDayReport SimulateJobDay(const JobDay& day) {
  CheckPolicies(day);
  JobDayReport report;
  report.day = day;
  for (const JobLengths& lengths : PublishedJobLengths()) {
    JobDayReport::OfCluster of;
    of.lengths = lengths.name;
    of.mean_s = MeanOf(lengths);
    const std::vector<Batch> batches = DrawBatches(day, lengths, of.mean_s);
    of.jobs = static_cast<int64_t>(batches.size()) * day.datasets;
    for (const std::string& policy : day.policies)
      of.policies.push_back(Pool(day, batches, policy).Run(policy));
    report.clusters.push_back(std::move(of));
  }
  return report;
}

Json ToJson(const JobDayReport& report) {
  const JobDay& day = report.day;
  Json clusters = Json::array();
  for (const JobDayReport::OfCluster& of : report.clusters) {
    Json policies = Json::array();
    for (const JobDayReport::OfPolicy& policy : of.policies) {
      policies.push_back({{"name", policy.name},
                          {"latency_s", ToJson(policy.latency_s)},
                          {"held_share", policy.held_share},
                          {"generate_share_of_held", policy.generate_share}});
    }
    clusters.push_back({{"lengths", of.lengths},
                        {"jobs", of.jobs},
                        {"mean_job_s", of.mean_s},
                        {"policies", std::move(policies)}});
  }
  return {{"schema", "evald-cluster-day/1"},
          {"evald_version", kEvaldVersion},
          {"arguments", {{"days", day.days}, {"seed", day.seed}, {"policies", day.policies}}},
          {"cluster",
           {{"name", day.cluster.name},
            {"devices", day.cluster.devices()},
            {"score_slots", day.cluster.score_slots()}}},
          {"coupled_load", day.load},
          {"jobs_per_checkpoint", day.datasets},
          {"days", std::move(clusters)}};
}

std::string JobDayText(const JobDayReport& report) {
  const JobDay& day = report.day;
  std::string text = fmt::format(
      "{} day{} on {} devices of {}; checkpoints at random, {} jobs each, {:.0f} % of the devices "
      "were they coupled\n",
      day.days, day.days == 1 ? "" : "s", day.cluster.devices(), day.cluster.name, day.datasets,
      100 * day.load);
  for (const JobDayReport::OfCluster& of : report.clusters) {
    std::vector<TextRow> rows = {{of.lengths, "arrival to scores p50 s", "p95", "worst",
                                  "devices held %", "of that generating %"}};
    for (const JobDayReport::OfPolicy& policy : of.policies) {
      rows.push_back({policy.name, fmt::format("{:.0f}", policy.latency_s.p50),
                      fmt::format("{:.0f}", policy.latency_s.p95),
                      fmt::format("{:.0f}", policy.latency_s.most),
                      fmt::format("{:.1f}", 100 * policy.held_share),
                      fmt::format("{:.1f}", 100 * policy.generate_share)});
    }
    text += fmt::format("\n  {}: {} jobs, {:.0f} s in the mean\n\n", of.lengths,
                        GroupedDigits(of.jobs), of.mean_s) +
            TextTable(rows, {.indent = 2});
  }
  return text;
}

}  // namespace evald
