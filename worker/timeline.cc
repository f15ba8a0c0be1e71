#include "worker/timeline.h"

namespace evald {
namespace {

constexpr int64_t kShortestMicros = 100 * 1000;
constexpr int64_t kLongestMicros = 5 * 1000 * 1000;

}  // namespace

Timeline::Timeline(Sender send, int64_t now)
    : send_(std::move(send)), begin_(now), idle_begin_(now) {}

void Timeline::EmitGenerate(int64_t end) {
  if (computed_ > 0 && end > begin_) {
    Json args = Json::object();
    args["device_seconds"] = static_cast<double>(computed_) / 1e6;
    args["trials"] = trials_;
    send_(protocol::Span{"generate", begin_, end, std::move(args)});
    computed_ = 0;
    trials_.clear();
  }
  begin_ = end;
}

void Timeline::EmitIdle(int64_t end) {
  EmitGenerate(idle_begin_);
  send_(protocol::Span{"idle", idle_begin_, end, Json::object()});
  begin_ = idle_begin_ = end;
}

void Timeline::Busy(int64_t now) {
  if (!busy_) {
    if (now - idle_begin_ >= kShortestMicros) EmitIdle(now);
    busy_ = true;
  }
  if (now - begin_ >= kLongestMicros) EmitGenerate(now);
}

void Timeline::Idle(int64_t now) {
  if (busy_) {
    busy_ = false;
    idle_begin_ = now;
  }
  if (now - idle_begin_ >= kLongestMicros) EmitIdle(now);
}

void Timeline::TrialFinished(int64_t trial, int64_t now) {
  trials_.push_back(trial);
  if (now - begin_ >= kShortestMicros) EmitGenerate(now);
}

void Timeline::Skip(int64_t begin, int64_t end) {
  Close(begin);
  begin_ = idle_begin_ = end;
}

void Timeline::Close(int64_t now) {
  if (busy_) {
    EmitGenerate(now);
    busy_ = false;
    idle_begin_ = now;
  } else if (now - idle_begin_ >= kShortestMicros) {
    EmitIdle(now);
  } else {
    EmitGenerate(idle_begin_);
  }
}

}  // namespace evald
