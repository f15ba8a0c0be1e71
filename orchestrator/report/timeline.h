#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald {

/// A span of time on one row of a run's timeline, in microseconds of CLOCK_MONOTONIC.
struct TimelineSpan {
  std::string name;  ///< stage, prepare, pull, generate, score
  int64_t begin = 0;
  int64_t end = 0;
  Json args = Json::object();
};

/// The work of every worker and metric slot of a run over time. Processes report their spans
/// themselves, so spans beyond kRowBytesMax for a row, or kBytesMax for all rows, are dropped and
/// counted. Loop thread only.
class Timeline {
 public:
  static constexpr size_t kRowBytesMax = size_t{8} << 20;  ///< text of a row's spans
  static constexpr size_t kBytesMax = size_t{64} << 20;    ///< text of all rows' spans

  /// `begin_us` is time zero of the picture.
  explicit Timeline(int64_t begin_us) : begin_us_(begin_us) {}

  /// Adds a row. Rows appear in the order in which they are first named. A device's row gets `idle`
  /// spans while it did nothing.
  void AddRow(const std::string& row, const std::string& title, bool is_device);
  void Add(const std::string& row, TimelineSpan span);

  /// The share of the time up to `end_us` in which each device row was in a span called `name`, by
  /// row.
  std::map<std::string, double> Share(const std::string& name, int64_t end_us) const;

  /// The Trace Event Format of a run that goes on, with at most the newest `spans_max` spans,
  /// without their args. What a device does since its last span is not known yet and is not drawn.
  Json Live(int64_t end_us, size_t spans_max) const;

  /// Writes the Trace Event Format in its JSON object form, which Perfetto and chrome://tracing
  /// open (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).
  /// "otherData" has the number of dropped spans of each row.
  void Write(const std::filesystem::path& path, int64_t end_us) const;

 private:
  struct Row {
    std::string id;
    std::string title;
    bool is_device = false;
    std::vector<TimelineSpan> spans;
    size_t bytes = 0;
    int64_t dropped = 0;
  };
  Row* Find(const std::string& id);
  /// Adds `idle` spans between `spans`, from `begin` to `end`.
  static std::vector<TimelineSpan> WithIdle(std::vector<TimelineSpan> spans, int64_t begin,
                                            int64_t end);
  /// The events that name a row, and those of its spans.
  void AddEvents(size_t row, const std::vector<TimelineSpan>& spans, Json* events) const;

  int64_t begin_us_;
  std::vector<Row> rows_;
  size_t bytes_ = 0;
};

}  // namespace evald
