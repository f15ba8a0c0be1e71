#include "bench/gpu/activity.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald::bench {
namespace fs = std::filesystem;
namespace {

constexpr double kNano = 1e-9;
constexpr double kGapEdges[] = {1e-5, 1e-4, 1e-3, 1e-2, 1e-1};
constexpr size_t kLongestMax = 10;

std::string Readable(const std::string& mangled) {
  int status = 0;
  char* const text = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  std::string name = status == 0 && text != nullptr ? text : mangled;
  std::free(text);
  return name;
}

// The time at which copies to the device had brought `bytes` bytes; 0 if they never did.
uint64_t WeightsIn(std::vector<Activity> activities, uint64_t bytes) {
  std::erase_if(activities,
                [](const Activity& activity) { return activity.kind != Activity::kCopyToDevice; });
  std::sort(activities.begin(), activities.end(),
            [](const Activity& a, const Activity& b) { return a.end < b.end; });
  uint64_t brought = 0;
  for (const Activity& copy : activities) {
    brought += copy.bytes;
    if (brought >= bytes) return copy.end;
  }
  return 0;
}

struct Stretch {
  uint64_t begin;
  uint64_t end;
};

// The union of the stretches within [from, to), in order. No two of its stretches touch.
std::vector<Stretch> Union(std::vector<Stretch> stretches, uint64_t from, uint64_t to) {
  std::sort(stretches.begin(), stretches.end(),
            [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
  std::vector<Stretch> joined;
  for (Stretch stretch : stretches) {
    stretch.begin = std::max(stretch.begin, from);
    stretch.end = std::min(stretch.end, to);
    if (stretch.begin >= stretch.end) continue;
    if (joined.empty() || stretch.begin > joined.back().end) {
      joined.push_back(stretch);
    } else {
      joined.back().end = std::max(joined.back().end, stretch.end);
    }
  }
  return joined;
}

double Seconds(const std::vector<Stretch>& stretches) {
  double seconds = 0;
  for (const Stretch& stretch : stretches)
    seconds += kNano * static_cast<double>(stretch.end - stretch.begin);
  return seconds;
}

std::vector<Stretch> Of(const ActivityTrace& trace, bool kernels, bool copies) {
  std::vector<Stretch> stretches;
  for (const Activity& activity : trace.activities) {
    if (activity.kind == Activity::kKernel ? kernels : copies)
      stretches.push_back({activity.begin, activity.end});
  }
  return stretches;
}

void MeasureGaps(const std::vector<Stretch>& busy, uint64_t from, uint64_t to, BusyShare* share) {
  share->gaps_seconds.assign(std::size(kGapEdges) + 1, 0);
  uint64_t at = from;
  const auto gap = [&](uint64_t end) {
    const double seconds = kNano * static_cast<double>(end - at);
    if (end == at) return;
    const auto edge = std::lower_bound(std::begin(kGapEdges), std::end(kGapEdges), seconds);
    share->gaps_seconds[static_cast<size_t>(edge - std::begin(kGapEdges))] += seconds;
    share->longest.push_back({kNano * static_cast<double>(at - from), seconds});
  };
  for (const Stretch& stretch : busy) {
    gap(stretch.begin);
    at = stretch.end;
  }
  gap(to);
  const auto longer = [](const BusyShare::Gap& a, const BusyShare::Gap& b) {
    return a.seconds > b.seconds;
  };
  std::sort(share->longest.begin(), share->longest.end(), longer);
  share->longest.resize(std::min(share->longest.size(), kLongestMax));
}

}  // namespace

std::map<int, ActivityTrace> ReadActivity(const fs::path& folder) {
  std::map<int, ActivityTrace> traces;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".activity") continue;
    const std::string bytes = ReadFile(entry.path());
    if (bytes.size() % sizeof(Activity) != 0) {
      throw Error(ErrorKind::kInput, entry.path().string() + ": ends within a record");
    }
    ActivityTrace& trace = traces[std::stoi(entry.path().stem().string())];
    trace.activities.resize(bytes.size() / sizeof(Activity));
    if (!bytes.empty()) std::memcpy(trace.activities.data(), bytes.data(), bytes.size());
    fs::path names = entry.path();
    names.replace_extension(".names");
    if (!fs::exists(names)) continue;
    trace.names = Split(ReadFile(names), '\n');
    if (!trace.names.empty() && trace.names.back().empty()) trace.names.pop_back();
  }
  return traces;
}

BusyShare ShareBusy(const ActivityTrace& trace, uint64_t weights_bytes) {
  BusyShare share;
  const uint64_t from = WeightsIn(trace.activities, weights_bytes);
  uint64_t to = 0;
  for (const Activity& activity : trace.activities) {
    if (activity.kind == Activity::kKernel) to = std::max(to, activity.end);
  }
  if (from == 0 || to <= from) return share;
  share.window_seconds = kNano * static_cast<double>(to - from);
  const std::vector<Stretch> busy = Union(Of(trace, true, false), from, to);
  share.busy_seconds = Seconds(busy);
  share.copies_seconds = Seconds(Union(Of(trace, true, true), from, to)) - share.busy_seconds;
  share.share = share.busy_seconds / share.window_seconds;
  MeasureGaps(busy, from, to, &share);
  std::map<uint32_t, double> by_name;
  for (const Activity& activity : trace.activities) {
    if (activity.kind != Activity::kKernel || activity.end <= from) continue;
    by_name[activity.name] +=
        kNano * static_cast<double>(activity.end - std::max(activity.begin, from));
  }
  for (const auto& [name, seconds] : by_name) {
    share.kernel_seconds[name < trace.names.size() ? Readable(trace.names[name]) : "unnamed"] +=
        seconds;
  }
  return share;
}

}  // namespace evald::bench
