#include "orchestrator/report/timeline.h"

#include <algorithm>

#include "base/file.h"
#include "base/jsonl.h"

namespace evald {
namespace {

// Shorter gaps are not drawn: they are the time between two messages.
constexpr int64_t kIdleMinUs = 1000;
constexpr size_t kSpanBytes = 64;  // bytes of a span in the file, without its name and args

}  // namespace

void Timeline::AddRow(const std::string& row, const std::string& title, bool is_device) {
  if (Find(row) == nullptr) rows_.push_back({row, title, is_device, {}});
}

void Timeline::Add(const std::string& row, TimelineSpan span) {
  AddRow(row, row, false);
  Row& of = *Find(row);
  const size_t bytes = kSpanBytes + span.name.size() + ToLine(span.args).size();
  if (of.bytes + bytes > kRowBytesMax || bytes_ + bytes > kBytesMax) {
    ++of.dropped;
    return;
  }
  of.bytes += bytes;
  bytes_ += bytes;
  of.spans.push_back(std::move(span));
}

Timeline::Row* Timeline::Find(const std::string& id) {
  const auto found =
      std::find_if(rows_.begin(), rows_.end(), [&](const Row& r) { return r.id == id; });
  return found == rows_.end() ? nullptr : &*found;
}

std::map<std::string, double> Timeline::Share(const std::string& name, int64_t end_us) const {
  std::map<std::string, double> shares;
  for (const Row& row : rows_) {
    if (!row.is_device) continue;
    std::vector<std::pair<int64_t, int64_t>> busy;
    for (const TimelineSpan& span : row.spans) {
      if (span.name == name) busy.emplace_back(span.begin, span.end);
    }
    std::sort(busy.begin(), busy.end());
    int64_t covered = 0, until = begin_us_;
    for (const auto& [begin, end] : busy) {
      covered += std::max<int64_t>(0, std::min(end, end_us) - std::max(begin, until));
      until = std::max(until, end);
    }
    shares[row.id] = end_us > begin_us_
                         ? static_cast<double>(covered) / static_cast<double>(end_us - begin_us_)
                         : 0;
  }
  return shares;
}

std::vector<TimelineSpan> Timeline::WithIdle(const Row& row, int64_t end_us) const {
  std::vector<TimelineSpan> spans = row.spans;
  std::sort(spans.begin(), spans.end(),
            [](const TimelineSpan& a, const TimelineSpan& b) { return a.begin < b.begin; });
  if (!row.is_device) return spans;
  std::vector<TimelineSpan> all;
  int64_t until = begin_us_;
  for (TimelineSpan& span : spans) {
    if (span.begin - until >= kIdleMinUs) all.push_back({"idle", until, span.begin});
    until = std::max(until, span.end);
    all.push_back(std::move(span));
  }
  if (end_us - until >= kIdleMinUs) all.push_back({"idle", until, end_us});
  return all;
}

void Timeline::Write(const std::filesystem::path& path, int64_t end_us) const {
  Json events = Json::array();
  events.push_back(
      {{"ph", "M"}, {"pid", 1}, {"name", "process_name"}, {"args", {{"name", "evald"}}}});
  for (size_t i = 0; i < rows_.size(); ++i) {
    const auto tid = static_cast<int64_t>(i + 1);
    events.push_back({{"ph", "M"},
                      {"pid", 1},
                      {"tid", tid},
                      {"name", "thread_name"},
                      {"args", {{"name", rows_[i].title}}}});
    events.push_back({{"ph", "M"},
                      {"pid", 1},
                      {"tid", tid},
                      {"name", "thread_sort_index"},
                      {"args", {{"sort_index", tid}}}});
    for (const TimelineSpan& span : WithIdle(rows_[i], end_us)) {
      events.push_back({{"ph", "X"},
                        {"pid", 1},
                        {"tid", tid},
                        {"name", span.name},
                        {"ts", span.begin - begin_us_},
                        {"dur", span.end - span.begin},
                        {"args", span.args.is_null() ? Json::object() : span.args}});
    }
  }
  Json trace = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  for (const Row& row : rows_) {
    if (row.dropped > 0)
      trace["otherData"]["dropped spans of " + row.id] = std::to_string(row.dropped);
  }
  WriteOutput(path, ToLine(trace) + "\n");
}

}  // namespace evald
