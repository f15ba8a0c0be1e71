#include "metrics/judged_job.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/text.h"

namespace evald {
namespace {

constexpr std::chrono::milliseconds kLook{50};  // how often `stop` is looked at
// After so long no call is made again, so that a judge that hangs holds the metric process for this
// time and one call (docs/metrics.md, "A judge").
constexpr int64_t kHurryMicros = 120'000'000;
constexpr size_t kOpenDocumentsMax = 256;                // of which scores may be held in memory
constexpr uint64_t kHeldBytesMax = uint64_t{256} << 20;  // of these scores
constexpr size_t kCauseBytesMax = 400;

class JudgedDocuments {
 public:
  JudgedDocuments(const protocol::Job& job, const JudgedWork& work, JudgePanel* panel,
                  protocol::JobDone* result)
      : job_(job), work_(work), panel_(panel), result_(result), next_(job.first) {}

  bool Run(const std::atomic<bool>& stop, std::atomic<int64_t>* done) {
    while (!over()) {
      if (stop) return false;
      OpenSome(stop);
      TryOpen();
      WriteFirst(done);
      if (over()) break;
      if (MonotonicMicros() - begun_us_ > kHurryMicros) panel_->Hurry();
      if (!any_ready()) panel_->Poll(kLook);
    }
    const int64_t written = open_.empty() ? next_ : open_.front().document;
    result_->end = written < job_.end ? written : 0;
    result_->stopped = panel_->stopped();
    return true;
  }

 private:
  struct Open {
    int64_t document = 0;
    std::vector<std::string> missing;  // questions without a verdict
    std::optional<std::string> line;
    std::optional<std::string> cause;  // why it has no score
    bool ended() const { return line || cause; }
  };

  bool time_is_up() const { return MonotonicMicros() - begun_us_ >= work_.time.count(); }
  bool full() const { return result_->unscored.size() >= protocol::kUnscoredMax; }
  // Once a judge is down, the documents behind are the next job's, which will not be leased.
  bool begins_more() const {
    if (next_ >= job_.end || full()) return false;
    if (next_ == job_.first) return true;
    return !time_is_up() && panel_->stopped().empty();
  }
  bool over() const { return open_.empty() && !begins_more(); }
  bool any_ready() const { return !open_.empty() && open_.front().ended(); }

  void OpenSome(const std::atomic<bool>& stop) {
    while (begins_more() && !stop && open_.size() < kOpenDocumentsMax &&
           held_bytes_ < kHeldBytesMax &&
           panel_->calls() < static_cast<size_t>(panel_->concurrency())) {
      open_.push_back({.document = next_++});
      Try(&open_.back());
    }
  }

  // Documents whose questions are all settled.
  void TryOpen() {
    for (Open& open : open_) {
      if (open.ended()) continue;
      std::erase_if(open.missing,
                    [&](const std::string& question) { return panel_->settled(question); });
      if (open.missing.empty()) Try(&open);
    }
  }

  void Try(Open* open) {
    panel_->Begin(open->document);
    try {
      std::string line = work_.line(open->document);
      open->missing = panel_->TakeMissing();
      if (!open->missing.empty()) return;
      held_bytes_ += line.size();
      open->line = std::move(line);
    } catch (const NotJudged& e) {
      open->missing =
          panel_->TakeMissing();  // those of other metrics, which are asked all the same
      open->cause = Shortened(e.message(), kCauseBytesMax);
    }
  }

  void WriteFirst(std::atomic<int64_t>* done) {
    while (!open_.empty() && open_.front().ended() && !full()) {
      const Open& first = open_.front();
      if (first.line) {
        held_bytes_ -= first.line->size();
        work_.append(*first.line);
        FailPoint("metric.after_line");
      } else {
        Note(first.document, *first.cause);
      }
      ++*done;
      open_.pop_front();
    }
    if (full()) GiveBack();
  }

  void Note(int64_t document, const std::string& cause) {
    std::vector<protocol::Unscored>& unscored = result_->unscored;
    const bool more =
        !unscored.empty() && unscored.back().end == document && unscored.back().cause == cause;
    if (more) {
      ++unscored.back().end;
    } else {
      unscored.push_back({document, document + 1, cause});
    }
  }

  // What is open goes to the next job. Its answers are kept.
  void GiveBack() {
    if (open_.empty()) return;
    next_ = open_.front().document;
    open_.clear();
    held_bytes_ = 0;
  }

  const protocol::Job& job_;
  const JudgedWork& work_;
  JudgePanel* panel_;
  protocol::JobDone* result_;
  const int64_t begun_us_ = MonotonicMicros();
  int64_t next_;  // the first document that is not begun
  std::deque<Open> open_;
  uint64_t held_bytes_ = 0;
};

}  // namespace

bool ScoreJudged(const protocol::Job& job, const JudgedWork& work, JudgePanel* panel,
                 const std::atomic<bool>& stop, std::atomic<int64_t>* done,
                 protocol::JobDone* result) {
  return JudgedDocuments(job, work, panel, result).Run(stop, done);
}

}  // namespace evald
