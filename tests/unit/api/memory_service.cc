#include "memory_service.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <fstream>

#include "base/jsonl.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald::test {

namespace fs = std::filesystem;

namespace {

constexpr const char* kTime = "2026-01-02T10:15:00.000Z";

Json JobOf(const std::string& number, const std::string& state, const Json& node) {
  return {{"name", "evald-0-slurm-" + number},
          {"job", "471" + number},
          {"host", "slurm-" + number},
          {"state", state},
          {"word", node.is_null() ? "PENDING" : "RUNNING"},
          {"reason", node.is_null() ? Json("Resources") : Json()},
          {"node", node},
          {"devices", node.is_null() ? 0 : 2},
          {"submitted_at", kTime},
          {"starts_at", node.is_null() ? Json(kTime) : Json()},
          {"started_at", node.is_null() ? Json() : Json(kTime)},
          {"ends_at", nullptr},
          {"why", nullptr}};
}

// A launcher with a job that works and one that waits.
Json LauncherWith(const Json& excluded) {
  return {{"name", "slurm"},
          {"kind", "slurm"},
          {"nodes", {{"min", 0}, {"max", 16}, {"wanted", 2}}},
          {"start_s", 60.0},
          {"node_hours", 1.5},
          {"node_hours_per_day", nullptr},
          {"jobs", {JobOf("1", "working", "n2"), JobOf("2", "waiting", Json())}},
          {"excluded", excluded},
          {"problems", Json::array()},
          {"next_try_at", nullptr}};
}

Json TaskEntry(const std::string& task, int documents, bool done) {
  return {{"task", task},
          {"documents", documents},
          {"generated", done ? documents : 0},
          {"scored", done ? documents : 0},
          {"headline", done ? Json("exact_match 0.5000") : Json()}};
}

void WriteSampleFile(const fs::path& path, int count) {
  std::ofstream out(path);
  for (int i = 0; i < count; ++i) {
    const Json sample = {
        {"doc_id", i},
        {"doc", {{"question", "What is <b>" + std::to_string(i) + "</b>?"}}},
        {"target", std::to_string(i)},
        {"arguments",
         {{"gen_args_0", {{"arg_0", "Q: " + std::to_string(i)}, {"arg_1", {{"until", {"\n"}}}}}}}},
        {"resps", {{"answer " + std::to_string(i)}}},
        {"filtered_resps", {std::to_string(i)}},
        {"filter", i % 4 < 2 ? "strict" : "flexible"},
        {"metrics", {"exact_match"}},
        {"exact_match", i % 2 == 0 ? 1.0 : 0.0}};
    out << ToLine(sample) << "\n";
  }
}

}  // namespace

MemoryService::MemoryService(fs::path folder) : folder_(std::move(folder)) {}

Json MemoryService::MakeRun(const Submission& submission) {
  const std::string id = fmt::format("run-{}", runs_.size() + 1);
  fs::create_directories(folder_ / id);
  return {{"id", id},
          {"name", "model"},
          {"user", submission.user},
          {"priority", submission.priority},
          {"state", "queued"},
          {"checkpoint", "/models/one"},
          {"fingerprint", nullptr},
          {"created", kTime},
          {"started", nullptr},
          {"ended", nullptr},
          {"directory", (folder_ / id).string()},
          {"progress",
           {{"documents", 20},
            {"generated", 0},
            {"scored", 0},
            {"elapsed_seconds", 0.5},
            {"documents_per_second", nullptr},
            {"remaining_seconds", nullptr},
            {"phases", Json::array()},
            {"tasks", {TaskEntry("sums", 10, false), TaskEntry("choice", 10, false)}}}},
          {"exit_status", nullptr},
          {"problems", Json::array()},
          {"scores", Json::object()},
          {"groups", {{"all", {"sums", "choice"}}}},
          {"title", ""},
          {"tags", Json::array()},
          {"note", ""},
          {"verdict", nullptr}};
}

void MemoryService::Submit(Submission submission, Done<Submitted> done) {
  bool understood = false;
  try {
    understood = YAML::Load(submission.yaml).IsMap();
  } catch (const YAML::Exception&) {
  }
  if (!understood) return done(Error(ErrorKind::kUsage, "expected a mapping"));
  if (submission.yaml.find("refuse") != std::string::npos) {
    return done(Error(ErrorKind::kUsage, "key 'refuse': not understood", "leave it out"));
  }
  if (!refuse_submissions.empty())
    return done(OverQuota{"runs", refuse_submissions, "submit again when some are over"});
  Submitted submitted;
  {
    const std::lock_guard lock(mutex_);
    last_submission_ = submission;
    const std::string key = submission.user + "\n" + submission.idempotency_key;
    const auto known = submission.idempotency_key.empty() ? keys_.end() : keys_.find(key);
    if (known != keys_.end()) {
      for (const Json& run : runs_) {
        if (run.at("id") == known->second) submitted = {run, false};
      }
    } else {
      submitted.run = MakeRun(submission);
      runs_.push_back(submitted.run);
      keys_[key] = submitted.run.at("id");
    }
  }
  if (submitted.created) Emit(submitted.run.at("id"), "run.state", {{"state", "queued"}});
  done(submitted);
}

void MemoryService::Act(const std::string& run, RunAction action, Done<Json> done) {
  Json changed;
  {
    const std::lock_guard lock(mutex_);
    for (Json& entry : runs_) {
      if (entry.at("id") != run) continue;
      const bool again = entry.at("state") == "cancelled" && action == RunAction::kResume;
      if (entry.at("state") == "done" || (entry.at("state") == "cancelled" && !again)) {
        return done(
            Error(ErrorKind::kUsage, "the run is over: " + entry.at("state").get<std::string>()));
      }
      entry["state"] = action == RunAction::kCancel  ? "cancelled"
                       : action == RunAction::kPause ? "paused"
                                                     : "queued";
      changed = entry;
    }
  }
  if (changed.is_null()) return done(Error(ErrorKind::kUsage, "no such run"));
  Emit(run, "run.state", {{"state", changed.at("state")}});
  done(changed);
}

void MemoryService::SetPriority(const std::string& run, int priority, Done<Json> done) {
  Json changed;
  {
    const std::lock_guard lock(mutex_);
    for (Json& entry : runs_) {
      if (entry.at("id") != run) continue;
      entry["priority"] = priority;
      changed = entry;
    }
  }
  if (changed.is_null()) return done(Error(ErrorKind::kUsage, "no such run"));
  done(changed);
}

void MemoryService::Timeline(const std::string& run, Done<Json> done) {
  const std::lock_guard lock(mutex_);
  for (const Json& entry : runs_) {
    if (entry.at("id") == run && entry.at("state") == "running")
      return done(Json{{"traceEvents", {{{"ph", "X"}}}}});
  }
  done(Error(ErrorKind::kUsage, "the run is not at work"));
}

void MemoryService::Samples(const std::string& run, const std::string& task, bool renew,
                            Done<std::shared_ptr<const SamplesSoFar>> done) {
  done(SamplesOf(run, task, renew));
}

std::shared_ptr<const SamplesSoFar> MemoryService::SamplesOf(const std::string& run,
                                                             const std::string& task, bool renew) {
  const std::lock_guard lock(mutex_);
  const auto scored = scored_.find(run);
  if (scored == scored_.end() || task != "sums") return nullptr;
  if (renew || !so_far_[run]) {
    const fs::path path = folder_ / run / "so-far";
    WriteSampleFile(path, scored->second);
    auto made = std::make_shared<SamplesSoFar>();
    made->file.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    made->scored = scored->second;
    made->documents = 10;
    fs::remove(path);
    so_far_[run] = made;
  }
  return so_far_[run];
}

void MemoryService::Score(const std::string& run, int samples) {
  const std::lock_guard lock(mutex_);
  scored_[run] = samples;
}

void MemoryService::SetLabels(const std::string& run, LabelChange change, Done<Json> done) {
  const std::lock_guard lock(mutex_);
  for (Json& entry : runs_) {
    if (entry.at("id") != run) continue;
    RunLabels labels = LabelsOf(entry);
    Apply(change, &labels);
    AddLabels(labels, &entry);
    return done(entry);
  }
  done(Error(ErrorKind::kUsage, "no such run"));
}

void MemoryService::Announce(const fs::path& checkpoint, const std::string&, Done<Json> done) {
  done(Json{{"checkpoint", checkpoint.string()}, {"runs", Json::array()}, {"known", false}});
}

std::shared_ptr<ServiceView> MemoryService::MakeView() const {
  auto view = std::make_shared<ServiceView>();
  view->sequence = static_cast<int64_t>(events_.size());
  for (const Json& run : runs_) {
    const std::string state = run.at("state");
    if (state == "done" || state == "cancelled") continue;
    view->active_runs[run.at("id")] = std::make_shared<const Json>(run);
    if (state == "queued") view->queue.push_back(run.at("id"));
  }
  view->workers = {{{"id", "w0"},
                    {"host", "local"},
                    {"device", "cpu:0"},
                    {"state", "idle"},
                    {"run", nullptr},
                    {"fingerprint", nullptr},
                    {"trials", 3},
                    {"pid", 4711},
                    {"engine", "native"},
                    {"pull", nullptr},
                    {"waits", nullptr},
                    {"restarts", 0}}};
  view->hosts = {{{"id", "local"},
                  {"state", "connected"},
                  {"version", "0.1.0"},
                  {"pid", 4710},
                  {"devices", {{{"id", "cpu:0"}, {"worker", "w0"}, {"set_aside", nullptr}}}},
                  {"ends_at", nullptr},
                  {"staged", {"ab"}},
                  {"shared_memory", {{"total", 1000}, {"free", 500}}}}};
  view->refused = {{{"name", "node7"},
                    {"reason", "it is evald 0.0.9, and this is 0.1.0; both must be the same"},
                    {"at", kTime}}};
  view->staged = {{{"fingerprint", "ab"},
                   {"host", "local"},
                   {"directory", "/dev/shm/x/ab"},
                   {"bytes", 10},
                   {"leases", 0},
                   {"last_used", kTime}}};
  view->launchers = {LauncherWith({{{"node", "n1"}, {"why", "its agent has not come"}}})};
  view->counters = {{"documents_generated_total", 7}};
  view->ready = ready_;
  return view;
}

void MemoryService::ReleaseNode(const std::string& launcher, const std::string& node,
                                Done<Json> done) {
  if (launcher == "slurm" && node == "n1") return done(LauncherWith(Json::array()));
  done(
      Error(ErrorKind::kUsage, "launcher '" + launcher + "' does not exclude node '" + node + "'"));
}

std::shared_ptr<const ServiceView> MemoryService::View() const {
  const std::lock_guard lock(mutex_);
  return MakeView();
}

RunPage MemoryService::Runs(const RunFilter& filter) const {
  const std::lock_guard lock(mutex_);
  RunPage page;
  for (size_t number = runs_.size(); number > 0; --number) {
    const Json& run = runs_[number - 1];
    if (filter.before != 0 && static_cast<int64_t>(number) >= filter.before) continue;
    if (!filter.state.empty() && run.at("state") != filter.state) continue;
    if (!filter.user.empty() && run.at("user") != filter.user) continue;
    if (!filter.name.empty() && run.at("name") != filter.name) continue;
    if (!filter.checkpoint.empty() && run.at("checkpoint") != filter.checkpoint) continue;
    if (static_cast<int>(page.runs.size()) == filter.limit) {
      page.next = static_cast<int64_t>(number) + 1;
      break;
    }
    page.runs.push_back(run);
  }
  return page;
}

std::optional<Json> MemoryService::Run(const std::string& run) const {
  const std::lock_guard lock(mutex_);
  for (const Json& entry : runs_) {
    if (entry.at("id") == run) return entry;
  }
  return std::nullopt;
}

std::optional<fs::path> MemoryService::Directory(const std::string& run) const {
  if (!Run(run)) return std::nullopt;
  return folder_ / run;
}

std::vector<Event> MemoryService::EventsAfter(const std::string& run, int64_t sequence,
                                              int limit) const {
  ++asked_events_;
  const std::lock_guard lock(mutex_);
  std::vector<Event> found;
  for (const Event& event : events_) {
    if (event.sequence <= sequence || (!run.empty() && event.run != run)) continue;
    if (static_cast<int>(found.size()) == limit) break;
    found.push_back(event);
  }
  return found;
}

std::shared_ptr<void> MemoryService::OnEvents(std::function<void()> listener) {
  auto shared = std::make_shared<std::function<void()>>(std::move(listener));
  const std::lock_guard lock(mutex_);
  listeners_.push_back(shared);
  return shared;
}

void MemoryService::Emit(const std::string& run, const std::string& type, const Json& data) {
  std::vector<std::shared_ptr<std::function<void()>>> listeners;
  {
    const std::lock_guard lock(mutex_);
    events_.push_back({static_cast<int64_t>(events_.size()) + 1, run, type, ToLine(data)});
    for (const auto& weak : listeners_) {
      if (auto listener = weak.lock()) listeners.push_back(std::move(listener));
    }
  }
  for (const auto& listener : listeners) (*listener)();
}

void MemoryService::Finish(const std::string& run, int samples) {
  const fs::path folder = folder_ / run;
  WriteSampleFile(folder / "samples_sums.jsonl", samples);
  WriteSampleFile(folder / "samples_choice.jsonl", samples);
  const Json results = {{"results", {{"sums", {{"exact_match,none", 0.5}}}}},
                        {"versions", {{"sums", 1}}},
                        {"n-shot", {{"sums", 0}}},
                        {"n-samples", {{"sums", {{"original", 2}, {"effective", 2}}}}},
                        {"configs", {{"sums", Json::object()}}},
                        {"higher_is_better", {{"sums", {{"exact_match", true}}}}},
                        {"date", 1.0},
                        {"evald", Json::object()}};
  std::ofstream(folder / "results.json") << results.dump() << "\n";
  std::ofstream(folder / "timeline.json") << "{\"traceEvents\":[]}\n";
  std::ofstream(folder / "report.html") << "<!doctype html><title>report</title>\n";
  {
    const std::lock_guard lock(mutex_);
    for (Json& entry : runs_) {
      if (entry.at("id") != run) continue;
      entry["state"] = "done";
      entry["started"] = entry["ended"] = kTime;
      entry["exit_status"] = 0;
      entry["scores"] = {
          {"sums", {{"metric", "exact_match"}, {"value", 0.5}, {"stderr", nullptr}}}};
      entry["progress"]["tasks"] = {TaskEntry("sums", samples, true),
                                    TaskEntry("choice", samples, true)};
    }
  }
  Emit(run, "run.state", {{"state", "done"}, {"exit_status", 0}});
}

void MemoryService::SetReady(bool ready) {
  const std::lock_guard lock(mutex_);
  ready_ = ready;
}

Submission MemoryService::last_submission() const {
  const std::lock_guard lock(mutex_);
  return last_submission_;
}

namespace {

Json WatchResource(const std::string& id, const WatchDefinition& watch, bool configured) {
  return {{"id", id},
          {"checkpoints", watch.checkpoints.string()},
          {"which", watch.which},
          {"every", watch.which == "every" ? Json(watch.every) : Json()},
          {"marker", watch.marker.empty() ? Json() : Json(watch.marker)},
          {"settle_s", watch.settle_s},
          {"poll_s", watch.poll_s},
          {"user", watch.user},
          {"priority", watch.priority},
          {"configured", configured},
          {"created", configured ? Json() : Json(kTime)},
          {"submitted", 1},
          {"passed_over", 0},
          {"refused", 0},
          {"recent",
           {{{"checkpoint", "step-1"},
             {"decision", "submitted"},
             {"run", "run-1"},
             {"detail", nullptr},
             {"time", kTime}}}},
          {"problem", nullptr}};
}

}  // namespace

MemoryWatches::MemoryWatches() {
  WatchDefinition watch;
  watch.checkpoints = "/configured";
  watches_.push_back(WatchResource("watch-0", watch, true));
}

void MemoryWatches::Add(WatchDefinition definition, Done<RegisteredWatch> done) {
  if (definition.yaml.find("refuse") != std::string::npos)
    return done(Error(ErrorKind::kUsage, "key 'refuse': not understood"));
  Json made;
  {
    const std::lock_guard lock(mutex_);
    last_ = definition;
    for (const Json& watch : watches_) {
      if (watch.at("checkpoints") == definition.checkpoints.string() &&
          watch.at("user") == definition.user) {
        return done(RegisteredWatch{watch, false});
      }
    }
    made = WatchResource("watch-" + std::to_string(++made_), definition, false);
    watches_.push_back(made);
  }
  done(RegisteredWatch{made, true});
}

std::vector<Json> MemoryWatches::List() const {
  const std::lock_guard lock(mutex_);
  return watches_;
}

std::optional<Json> MemoryWatches::Find(const std::string& id) const {
  for (const Json& watch : List()) {
    if (watch.at("id") == id) return watch;
  }
  return std::nullopt;
}

void MemoryWatches::Remove(const std::string& id, Done<Json> done) {
  const std::optional<Json> watch = Find(id);
  if (!watch || watch->at("configured").get<bool>())
    return done(Error(ErrorKind::kUsage, "it stands in the configuration"));
  {
    const std::lock_guard lock(mutex_);
    std::erase(watches_, *watch);
  }
  done(*watch);
}

WatchDefinition MemoryWatches::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

}  // namespace evald::test
