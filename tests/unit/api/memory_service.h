#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <mutex>

#include "orchestrator/service/run_service.h"
#include "orchestrator/service/watch_registry.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald::test {

/// A RunService that keeps runs in memory and evaluates nothing. `done` callbacks come on the
/// caller's thread. A submission that is no mapping, or that contains "refuse", is refused.
class MemoryService : public RunService {
 public:
  /// Runs' folders are made below `folder`.
  explicit MemoryService(std::filesystem::path folder);

  void Submit(Submission submission, Done<Submitted> done) override;
  void Act(const std::string& run, RunAction action, Done<Json> done) override;
  void SetPriority(const std::string& run, int priority, Done<Json> done) override;
  void Timeline(const std::string& run, Done<Json> done) override;
  /// Those of Score.
  void Samples(const std::string& run, const std::string& task, bool renew,
               Done<std::shared_ptr<const SamplesSoFar>> done) override;
  void SetLabels(const std::string& run, LabelChange change, Done<Json> done) override;
  void Announce(const std::filesystem::path& checkpoint, const std::string& user,
                Done<Json> done) override;
  void ReleaseNode(const std::string& launcher, const std::string& node, Done<Json> done) override;
  std::shared_ptr<const ServiceView> View() const override;
  RunPage Runs(const RunFilter& filter) const override;
  std::optional<Json> Run(const std::string& run) const override;
  std::optional<std::filesystem::path> Directory(const std::string& run) const override;
  std::vector<Event> EventsAfter(const std::string& run, int64_t sequence,
                                 int limit) const override;
  std::shared_ptr<void> OnEvents(std::function<void()> listener) override;

  void Emit(const std::string& run, const std::string& type, const Json& data);
  /// Sets the run's state and writes a finished run's files: two tasks, `samples` lines each.
  void Finish(const std::string& run, int samples = 10);
  /// From now on the first `samples` documents of the run's task "sums" are scored.
  void Score(const std::string& run, int samples);
  void SetReady(bool ready);
  Submission last_submission() const;
  /// the reason for which no further run is accepted; set it before the first request
  std::string refuse_submissions;
  int asked_events() const { return asked_events_; }

 private:
  Json MakeRun(const Submission& submission);
  std::shared_ptr<const SamplesSoFar> SamplesOf(const std::string& run, const std::string& task,
                                                bool renew);
  std::shared_ptr<ServiceView> MakeView() const;

  std::filesystem::path folder_;
  mutable std::mutex mutex_;
  std::vector<Json> runs_;  // oldest first
  std::map<std::string, std::string> keys_;
  std::vector<Event> events_;
  std::map<std::string, std::shared_ptr<const SamplesSoFar>> so_far_;  // made anew with `renew`
  std::map<std::string, int> scored_;
  std::vector<std::weak_ptr<std::function<void()>>> listeners_;
  Submission last_submission_;
  bool ready_ = true;
  mutable std::atomic<int> asked_events_{0};
};

/// A WatchRegistry that only remembers. A watch that contains "refuse" is refused. The first watch
/// comes from the configuration.
class MemoryWatches : public WatchRegistry {
 public:
  MemoryWatches();
  void Add(WatchDefinition definition, Done<RegisteredWatch> done) override;
  std::vector<Json> List() const override;
  std::optional<Json> Find(const std::string& id) const override;
  void Remove(const std::string& id, Done<Json> done) override;
  WatchDefinition last() const;

 private:
  mutable std::mutex mutex_;
  std::vector<Json> watches_;
  WatchDefinition last_;
  int made_ = 0;
};

}  // namespace evald::test
