#include "orchestrator/simulate/bound.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>

namespace evald {

namespace {

// Lengths at which long documents are counted: each is so much of the one before.
constexpr double kLengthStep = 0.98;
constexpr size_t kLengths = 200;

std::vector<LongDocuments> LongDocumentsOf(const std::vector<SimTask>& tasks, double longest_s) {
  std::vector<LongDocuments> lengths;
  for (size_t i = 0; i < kLengths; ++i)
    lengths.push_back({longest_s * std::pow(kLengthStep, static_cast<double>(i)), 0});
  if (longest_s <= 0) return {};
  for (const SimTask& task : tasks) {
    for (const float place_s : task.place_s) {
      if (place_s < lengths.back().seconds) continue;
      const double steps = std::log(place_s / longest_s) / std::log(kLengthStep);
      auto at = static_cast<size_t>(std::max(0.0, std::floor(steps)));
      while (at < kLengths && lengths[at].seconds > place_s) ++at;
      if (at < kLengths) ++lengths[at].count;
    }
  }
  for (size_t i = 1; i < kLengths; ++i) lengths[i].count += lengths[i - 1].count;
  return lengths;
}

}  // namespace

SimWork WorkOf(const std::vector<SimTask>& tasks, int places) {
  SimWork work;
  work.first_generation_s = std::numeric_limits<double>::infinity();
  for (const SimTask& task : tasks) {
    const TaskEstimate truth = TrueEstimate(task, places);
    const auto documents = static_cast<double>(truth.documents);
    work.device_s += truth.device_s * documents;
    work.longest_request_s = std::max(work.longest_request_s, truth.request_s);
    work.score_s += truth.score_s * documents;
    if (truth.score_s <= 0) continue;
    for (const float place_s : task.place_s) {
      work.first_generation_s = std::min(work.first_generation_s, static_cast<double>(place_s));
    }
  }
  double longest_s = 0;
  for (const SimTask& task : tasks) {
    for (const float place_s : task.place_s)
      longest_s = std::max(longest_s, static_cast<double>(place_s));
  }
  work.long_documents = LongDocumentsOf(tasks, longest_s);
  return work;
}

// The tree begins when the first node has the checkpoint. Level 1 has `fan_out` nodes, and each
// further level so many times as many.
std::vector<double> StagedTimes(const SimCluster& cluster, double weights_bytes) {
  const double first_s = weights_bytes / cluster.storage_bytes_per_s;
  std::vector<double> times;
  if (cluster.staging != SimStaging::kTree) {
    const bool in_turn = cluster.staging == SimStaging::kLink;
    for (int node = 0; node < cluster.nodes; ++node)
      times.push_back(in_turn ? (node + 1) * first_s : first_s);
    return times;
  }
  const double copy_s = weights_bytes / cluster.node_bytes_per_s;
  times.push_back(first_s);
  double of_level = 1;
  for (int level = 1; static_cast<int>(times.size()) < cluster.nodes; ++level) {
    of_level *= cluster.fan_out;
    const double more = std::min(of_level, static_cast<double>(cluster.nodes) - times.size());
    times.insert(times.end(), static_cast<size_t>(more), first_s + copy_s + level * cluster.hop_s);
  }
  return times;
}

double WorkEnd(const std::vector<double>& times, const std::vector<double>& devices,
               double work_s) {
  double count = 0, late_s = 0, end = 0;  // of the devices that have begun by the end
  for (size_t i = 0; i < times.size(); ++i) {
    if (i > 0 && end <= times[i]) break;
    count += devices[i];
    late_s += devices[i] * times[i];
    end = (work_s + late_s) / count;
  }
  return end;
}

double PlacesEnd(const std::vector<double>& times, int places,
                 const std::vector<LongDocuments>& documents) {
  double end = 0;
  for (const LongDocuments& of : documents) {
    if (of.count == 0) continue;
    // Whether so many documents of that length can have ended by then
    const auto enough = [&](double time) {
      double count = 0;
      for (const double begin : times) {
        if (begin > time) break;
        count += places * std::floor((time - begin) / of.seconds);
      }
      return count >= static_cast<double>(of.count);
    };
    if (enough(end)) continue;
    double low = end, high = end + of.seconds;
    while (!enough(high)) high += high - low;
    while (high - low > 1e-6 * high) (enough((low + high) / 2) ? high : low) = (low + high) / 2;
    end = low;
  }
  return end;
}

double InOrderEnd(const std::vector<double>& times, int places, const std::vector<float>& place_s) {
  std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
  size_t nodes = 0;  // that have begun
  double end = 0;
  for (const float seconds : place_s) {
    for (; nodes < times.size() && (free_at.empty() || times[nodes] <= free_at.top()); ++nodes) {
      for (int place = 0; place < places; ++place) free_at.push(times[nodes]);
    }
    const double document_end = free_at.top() + seconds;
    free_at.pop();
    free_at.push(document_end);
    end = std::max(end, document_end);
  }
  return end;
}

double SimBound::total_s() const {
  return stage_s + std::max({work_s, longest_request_s, long_requests_s, scoring_s});
}

double SimBound::unknowing_s() const { return std::max(total_s(), stage_s + in_order_s); }

namespace {

// When the nodes can have the checkpoint: the first of them, and all from then on.
struct Staged {
  Staged(const SimCluster& cluster, double weights_bytes)
      : after_first(StagedTimes(cluster, weights_bytes)), first_s(after_first[0]) {
    for (double& time : after_first) time -= first_s;
  }
  std::vector<double> after_first;
  double first_s;
};

SimBound BoundOf(const SimWork& work, const SimCluster& cluster, const Staged& staged) {
  const std::vector<double> devices(staged.after_first.size(), cluster.devices_per_node);
  SimBound bound;
  bound.stage_s = staged.first_s;
  bound.work_s = WorkEnd(staged.after_first, devices, work.device_s);
  bound.longest_request_s = work.longest_request_s;
  bound.long_requests_s =
      PlacesEnd(staged.after_first, cluster.devices_per_node * cluster.places, work.long_documents);
  if (work.score_s > 0)
    bound.scoring_s = work.first_generation_s + work.score_s / cluster.score_slots();
  return bound;
}

}  // namespace

SimBound BoundOf(const SimWork& work, const SimCluster& cluster, double weights_bytes) {
  return BoundOf(work, cluster, Staged(cluster, weights_bytes));
}

SimBound BoundOf(const std::vector<SimTask>& tasks, const SimCluster& cluster,
                 double weights_bytes) {
  const Staged staged(cluster, weights_bytes);
  SimBound bound = BoundOf(WorkOf(tasks, cluster.places), cluster, staged);
  for (const SimTask& task : tasks) {
    bound.in_order_s = std::max(
        bound.in_order_s,
        InOrderEnd(staged.after_first, cluster.devices_per_node * cluster.places, task.place_s));
  }
  return bound;
}

}  // namespace evald
