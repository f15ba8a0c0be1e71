#include "orchestrator/report/timeline.h"

#include <algorithm>

#include "base/file.h"
#include "base/jsonl.h"

namespace evald {
namespace {

// Shorter gaps are not drawn: they are the time between two messages.
constexpr int64_t kIdleMinUs = 1000;
constexpr size_t kSpanBytes = 64;  // bytes of a span in the file, without its name and args

Json NewEvents() {
  return Json::array(
      {{{"ph", "M"}, {"pid", 1}, {"name", "process_name"}, {"args", {{"name", "evald"}}}}});
}

std::vector<TimelineSpan> Sorted(std::vector<TimelineSpan> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const TimelineSpan& a, const TimelineSpan& b) { return a.begin < b.begin; });
  return spans;
}

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

std::vector<TimelineSpan> Timeline::WithIdle(std::vector<TimelineSpan> spans, int64_t begin,
                                             int64_t end) {
  std::vector<TimelineSpan> all;
  int64_t until = begin;
  for (TimelineSpan& span : spans) {
    if (span.begin - until >= kIdleMinUs) all.push_back({"idle", until, span.begin});
    until = std::max(until, span.end);
    all.push_back(std::move(span));
  }
  if (end - until >= kIdleMinUs) all.push_back({"idle", until, end});
  return all;
}

void Timeline::AddEvents(size_t row, const std::vector<TimelineSpan>& spans, Json* events) const {
  const auto tid = static_cast<int64_t>(row + 1);
  events->push_back({{"ph", "M"},
                     {"pid", 1},
                     {"tid", tid},
                     {"name", "thread_name"},
                     {"args", {{"name", rows_[row].title}}}});
  events->push_back({{"ph", "M"},
                     {"pid", 1},
                     {"tid", tid},
                     {"name", "thread_sort_index"},
                     {"args", {{"sort_index", tid}}}});
  for (const TimelineSpan& span : spans) {
    events->push_back({{"ph", "X"},
                       {"pid", 1},
                       {"tid", tid},
                       {"name", span.name},
                       {"ts", span.begin - begin_us_},
                       {"dur", span.end - span.begin},
                       {"args", span.args.is_null() ? Json::object() : span.args}});
  }
}

void Timeline::Write(const std::filesystem::path& path, int64_t end_us) const {
  Json events = NewEvents();
  for (size_t i = 0; i < rows_.size(); ++i) {
    std::vector<TimelineSpan> spans = Sorted(rows_[i].spans);
    if (rows_[i].is_device) spans = WithIdle(std::move(spans), begin_us_, end_us);
    AddEvents(i, spans, &events);
  }
  Json trace = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  for (const Row& row : rows_) {
    if (row.dropped > 0)
      trace["otherData"]["dropped spans of " + row.id] = std::to_string(row.dropped);
  }
  WriteOutput(path, ToLine(trace) + "\n");
}

Json Timeline::Live(int64_t end_us, size_t spans_max) const {
  Json events = NewEvents();
  const size_t most = spans_max / std::max<size_t>(rows_.size(), 1);
  for (size_t i = 0; i < rows_.size(); ++i) {
    const std::vector<TimelineSpan>& all = rows_[i].spans;
    const size_t left_out = all.size() - std::min(all.size(), most);
    std::vector<TimelineSpan> spans;
    for (size_t at = left_out; at < all.size(); ++at)
      spans.push_back({all[at].name, all[at].begin, all[at].end});
    spans = Sorted(std::move(spans));
    if (rows_[i].is_device && !spans.empty()) {
      int64_t last = 0;
      for (const TimelineSpan& span : spans) last = std::max(last, span.end);
      const int64_t begin = left_out > 0 ? spans.front().begin : begin_us_;
      spans = WithIdle(std::move(spans), begin, last);
    }
    AddEvents(i, spans, &events);
  }
  return {{"displayTimeUnit", "ms"},
          {"traceEvents", std::move(events)},
          {"otherData", {{"live until", std::to_string(end_us - begin_us_)}}}};
}

}  // namespace evald
