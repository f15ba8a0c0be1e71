// The samples of tasks that are not finished yet, for people who look at a run at work.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/names.h"
#include "orchestrator/run/evaluation_scheduling.h"

namespace evald {
namespace {

// The file is made anew after so many times the time that making it took, and not before this time.
constexpr int64_t kShareOfTime = 20;
constexpr int64_t kEveryMicros = 2'000'000;

}  // namespace

/// One task's samples: those made last, and who waits for newer ones. The thread that makes them
/// may outlive the evaluation.
struct Evaluation::SoFar {
  std::shared_ptr<const SamplesSoFar> made;
  int64_t begun_us = 0;
  int64_t again_us = 0;  ///< until then `made` will do
  std::vector<SamplesSoFarDone> waiting;

  void Answer(const std::shared_ptr<const SamplesSoFar>& samples,
              const std::optional<Error>& error) {
    if (samples) made = samples;
    const int64_t now = MonotonicMicros();
    again_us = now + std::max(kEveryMicros, kShareOfTime * (now - begun_us));
    for (const SamplesSoFarDone& done : std::exchange(waiting, {})) done(samples, error);
  }
};

void Evaluation::MakeSamplesSoFar(const std::string& task, bool renew, SamplesSoFarDone done) {
  const auto index = task_index_.find(task);
  const auto scored = record_.scored.find(task);
  if (ending_ || index == task_index_.end() || scored == record_.scored.end() ||
      scored->second.empty()) {
    return done(nullptr, std::nullopt);
  }
  std::shared_ptr<SoFar>& so_far = so_far_[task];
  if (!so_far) so_far = std::make_shared<SoFar>();
  const bool enough =
      so_far->made && (!renew || MonotonicMicros() < so_far->again_us ||
                       so_far->made->scored == static_cast<int64_t>(scored->second.size()));
  if (enough) return done(so_far->made, std::nullopt);
  so_far->waiting.push_back(std::move(done));
  if (so_far->waiting.size() > 1) return;
  so_far->begun_us = MonotonicMicros();
  FinishedTask asked = TaskWithFiles(index->second);
  asked.samples += kSoFar;
  support_.finisher->WriteSoFar(
      std::move(asked),
      [so_far = so_far](const std::shared_ptr<const SamplesSoFar>& samples,
                        const std::optional<Error>& error) { so_far->Answer(samples, error); });
}

}  // namespace evald
