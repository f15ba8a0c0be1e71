#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "orchestrator/run/run_results.h"
#include "orchestrator/service/process_id.h"
#include "orchestrator/service/service.h"
#include "orchestrator/staging/stager.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

// The progress of a run is shown again after so many times the time that showing it took.
constexpr int64_t kShare = 50;
constexpr int64_t kPausedShare = 500;
// Listing staged checkpoints reads the file system
constexpr int64_t kStagedEveryMicros = 1'000'000;

Json OrNull(double value, bool known) { return known ? Json(value) : Json(); }

Json ProgressOf(const ProgressSnapshot& snapshot) {
  Json phases = Json::array(), tasks = Json::array();
  int64_t documents = 0, generated = 0, scored = 0;
  for (const PhaseProgress& phase : snapshot.phases) {
    phases.push_back({{"name", phase.name},
                      {"done", phase.done},
                      {"total", phase.total},
                      {"unit", phase.bytes               ? "bytes"
                               : phase.name == "prepare" ? "tasks"
                                                         : "documents"},
                      {"note", phase.note}});
  }
  for (const TaskProgress& task : snapshot.tasks) {
    documents += task.documents;
    generated += task.generated;
    scored += task.scored;
    tasks.push_back({{"task", task.name},
                     {"documents", task.documents},
                     {"generated", task.generated},
                     {"scored", task.scored},
                     {"headline", task.headline.empty() ? Json() : Json(task.headline)}});
  }
  return {{"documents", documents},
          {"generated", generated},
          {"scored", scored},
          {"elapsed_seconds", snapshot.elapsed_s},
          {"documents_per_second", OrNull(snapshot.documents_per_s, snapshot.documents_per_s > 0)},
          {"remaining_seconds", OrNull(snapshot.remaining_s, snapshot.remaining_s >= 0)},
          {"phases", std::move(phases)},
          {"tasks", std::move(tasks)}};
}

// Progress of a run that an earlier life finished, from its results.
Json PastProgress(const Json& results) {
  ProgressSnapshot snapshot;
  const Json counts = results.value("n-samples", Json::object());
  for (const auto& [task, samples] : counts.items()) {
    const int64_t documents = samples.value("effective", int64_t{0});
    snapshot.tasks.push_back({task, documents, documents, documents, ""});
  }
  return ProgressOf(snapshot);
}

// The members of an object by name: finding one in it takes time in proportion to its size.
std::map<std::string_view, const Json*> MembersByName(const Json& object) {
  std::map<std::string_view, const Json*> members;
  if (!object.is_object()) return members;
  for (const auto& [name, value] : object.items()) members.emplace(name, &value);
  return members;
}

const Json& MemberOr(const Json& object, const char* name, const Json& other) {
  const auto found = object.find(name);
  return found == object.end() ? other : *found;
}

// Those of the tasks, then those of the groups that have values.
Json PastScores(const Json& results) {
  const Json none = Json::object();
  Json scores = Json::object();
  const auto entries = MembersByName(MemberOr(results, "results", none));
  for (const auto& [task, samples] : MemberOr(results, "n-samples", none).items()) {
    const auto entry = entries.find(task);
    scores[task] = HeadlineScore(entry == entries.end() ? none : *entry->second);
  }
  for (const auto& [group, entry] : MemberOr(results, "groups", none).items()) {
    Json score = HeadlineScore(entry);
    if (!score.is_null()) scores[group] = std::move(score);
  }
  return scores;
}

Json StagedResources(const fs::path& root) {
  Json staged = Json::array();
  for (const StagedInfo& info : ListStaged(root)) {
    staged.push_back({{"fingerprint", info.fingerprint},
                      {"host", "local"},
                      {"directory", (root / info.fingerprint).string()},
                      {"bytes", info.bytes},
                      {"leases", info.leases},
                      {"last_used", Rfc3339(info.last_used)}});
  }
  return staged;
}

}  // namespace

constexpr double kYear10000 = 253'402'300'800;  // in seconds since 1970

Json Rfc3339(double seconds) {
  // The number comes from a file or a row and may be anything
  if (!(seconds > 0 && seconds < kYear10000)) return nullptr;
  const auto whole = static_cast<std::time_t>(std::floor(seconds));
  const int millis = static_cast<int>((seconds - std::floor(seconds)) * 1000);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(whole), millis);
}

Json StoredResource(const RunRow& row) {
  Json whole = {{"id", row.run},
                {"name", row.name},
                {"user", row.user},
                {"priority", row.priority},
                {"state", row.state},
                {"checkpoint", row.checkpoint},
                {"fingerprint", nullptr},
                {"created", Rfc3339(row.created)},
                {"started", nullptr},
                {"ended", nullptr},
                {"directory", row.output},
                {"progress", PastProgress(Json::object())},
                {"exit_status", nullptr},
                {"problems", Json::array()},
                {"scores", Json::object()},
                {"groups", Json::object()},
                {"verdict", nullptr}};
  AddLabels({}, &whole);
  const std::string where = "state.db: the resource of run " + row.run;
  try {
    const Json stored = ParseJson(row.resource, where);
    if (Field<std::string>(stored, "id", where) != row.run)
      throw Error(ErrorKind::kInput, where + ": is another run's");
    whole.update(stored);
  } catch (const Error& e) {
    log::Warn("{}", e.what());
    whole["problems"] = {"the database's row of this run is damaged; its folder says more"};
  }
  return whole;
}

Json Service::Resource(const QueuedRun& run) const {
  const bool over = run.outcome.has_value() && IsOver(run.state);
  static const Json nothing = Json::object();
  const Json& past = over && run.outcome->results.is_object() ? run.outcome->results : nothing;
  Json problems = over ? Json(run.outcome->problems) : Json::array();
  if (!over && run.evaluation && !run.evaluation->waiting().empty()) {
    problems.push_back("it waits for " + run.evaluation->waiting());
  }
  if (!over && run.evaluation && !run.evaluation->failing().empty())
    problems.push_back(run.evaluation->failing());
  if (run.state == "queued" && !run.waits_for.empty())
    problems.push_back("it waits for " + run.waits_for);
  if (!over && !run.resumes.empty()) problems.push_back("it is resumed once it has ended");
  // The evaluation outlives the run's end for a while, and knows no groups.
  const bool has_results = past.contains("results");
  const Json scores = run.evaluation && !has_results ? run.evaluation->Scores() : PastScores(past);
  Json resource = {
      {"id", run.id},
      {"name", run.config.name},
      {"user", run.user},
      {"priority", run.priority},
      {"state", run.state},
      {"checkpoint", run.config.checkpoint.string()},
      {"fingerprint", run.evaluation && !run.evaluation->fingerprint().empty()
                          ? Json(run.evaluation->fingerprint())
                          : Json()},
      {"created", Rfc3339(run.created)},
      {"started", Rfc3339(run.started)},
      {"ended", over ? Rfc3339(run.ended) : Json()},
      {"directory", run.path.string()},
      {"progress", run.evaluation ? ProgressOf(run.evaluation->Progress()) : PastProgress(past)},
      {"exit_status", over ? Json(static_cast<int>(run.outcome->status)) : Json()},
      {"problems", std::move(problems)},
      {"scores", scores},
      {"groups",
       run.evaluation ? run.evaluation->Groups() : MemberOr(past, "group_subtasks", nothing)},
      {"verdict", run.verdict}};
  AddLabels(run.labels, &resource);
  return resource;
}

// The resource of a run of many tasks takes long to make. It is made anew at once if something
// about the run itself has changed. Progress is shown anew at each look, but not if the loop would
// spend more than a small share of its time on that.
std::shared_ptr<const Json> Service::Shown(const QueuedRun& run) {
  const std::string waiting = run.evaluation ? run.evaluation->waiting() : run.waits_for;
  const auto what =
      std::tuple(run.state, run.priority, run.outcome.has_value(), run.verdict,
                 !run.resumes.empty(), run.evaluation != nullptr, waiting, run.labels);
  ShownRun& shown = shown_[run.number];
  const int64_t now = MonotonicMicros();
  if (shown.resource && shown.what == what && (!run.evaluation || now < shown.due_us))
    return shown.resource;
  shown.resource = std::make_shared<const Json>(Resource(run));
  shown.what = what;
  const int64_t cost_us = MonotonicMicros() - now;
  shown.due_us = now + cost_us * (run.paused ? kPausedShare : kShare);
  return shown.resource;
}

void Service::Save(const QueuedRun& run) {
  database_->Post([id = run.id, state = run.state, priority = run.priority,
                   resource = Shown(run)->dump(-1, ' ', false, Json::error_handler_t::replace)](
                      RunStore& store) {
    service_store::UpdateRun(store.database(), id, state, priority, resource);
  });
}

void Service::SetState(QueuedRun* run, const std::string& state) {
  run->state = state;
  Save(*run);
  Json data = {{"state", state}, {"name", run->config.name}};
  if (run->outcome) {
    data["exit_status"] = static_cast<int>(run->outcome->status);
    data["problems"] = run->outcome->problems;
    if (run->evaluation) data["scores"] = run->evaluation->Scores();
  }
  Emit(run->id, "run.state", data);
}

void Service::CountFinished(const QueuedRun& run) {
  if (IsOver(run.state)) counters_[fmt::format("runs_{}_total", run.state)] += 1;
  const ProgressSnapshot progress = run.evaluation->Progress();
  for (const TaskProgress& task : progress.tasks) {
    counters_["documents_generated_total"] += static_cast<double>(task.generated);
    counters_["documents_scored_total"] += static_cast<double>(task.scored);
  }
  if (run.outcome->results.is_object()) {
    const Json& work = run.outcome->results["evald"]["work"];
    for (const char* kind : {"requests", "tokens_in", "tokens_out"}) {
      counters_[fmt::format("{}_total", kind)] +=
          work.value(kind, 0.0) - work["earlier"].value(kind, 0.0);
    }
  }
}

std::map<std::string, double> Service::Counters() {
  std::map<std::string, double> counters = counters_;
  for (const auto& [number, run] : queue_.runs()) {
    if (!run.evaluation || run.outcome) continue;
    const Json& progress = Shown(run)->at("progress");
    counters["documents_generated_total"] += progress.at("generated").get<double>();
    counters["documents_scored_total"] += progress.at("scored").get<double>();
  }
  return counters;
}

// One view for all changes of a moment. It is there before what is posted afterwards, for example
// an answer.
void Service::Publish() {
  if (std::exchange(publishing_, true)) return;
  loop_.Post([this] { PublishNow(); });
}

void Service::PublishNow() {
  publishing_ = false;
  auto view = std::make_shared<ServiceView>();
  {
    const std::lock_guard lock(events_mutex_);
    view->sequence = recent_.empty() ? next_event_ - 1 : recent_.back().sequence;
  }
  for (const auto& [number, run] : queue_.runs()) view->active_runs[run.id] = Shown(run);
  view->queue = queue_.Waiting();
  view->workers = fleet_->Workers();
  ListStagedSoon();
  view->staged = staged_;
  view->hosts = Json::array();
  for (Json& host : fleet_->Hosts()) {
    host.update(hub_->About(host["id"]));
    if (host["ends_at"].is_number()) host["ends_at"] = Rfc3339(host["ends_at"].get<double>());
    if (host["id"] == kLocalHost) {
      host["staged"] = Json::array();
      for (const Json& one : staged_) host["staged"].push_back(one["fingerprint"]);
    }
    view->hosts.push_back(std::move(host));
  }
  for (Json refusal : hub_->Refusals()) {
    refusal["at"] = Rfc3339(refusal["at"].get<double>());
    view->refused.push_back(std::move(refusal));
  }
  view->launchers = LauncherResources();
  view->counters = Counters();
  view->loop_turns = loop_.turns();
  view->ready = !draining_ && !stopping_;
  const std::lock_guard lock(view_mutex_);
  view_ = std::move(view);
}

// Lists the staged checkpoints on another thread, for a later view.
void Service::ListStagedSoon() {
  const int64_t now = MonotonicMicros();
  if (listing_staged_ || now - staged_listed_us_ < kStagedEveryMicros) return;
  listing_staged_ = true;
  staged_listed_us_ = now;
  auto staged = std::make_shared<Json>();
  looks_->Post([staged, root = options_.staging_root] { *staged = StagedResources(root); },
               [this, staged](const std::optional<Error>& error) {
                 listing_staged_ = false;
                 const std::string problem = error ? error->what() : "";
                 if (problem != staged_problem_ && error)
                   log::Warn("staged checkpoints cannot be listed: {}", problem);
                 staged_problem_ = problem;
                 if (!error) staged_ = std::move(*staged);
               });
}

std::vector<WatchRow> Service::SavedWatches() const {
  const std::lock_guard lock(reader_mutex_);
  return service_store::ListWatches(*reader_);
}

void Service::SaveWatch(WatchRow row, std::function<void()> done) {
  loop_.Post([this, row = std::move(row), done = std::move(done)] {
    database_->Post([row](RunStore& store) { service_store::AddWatch(store.database(), row); },
                    done);
  });
}

void Service::DropWatch(const std::string& watch, std::function<void()> done) {
  loop_.Post([this, watch, done = std::move(done)] {
    database_->Post(
        [watch](RunStore& store) { service_store::RemoveWatch(store.database(), watch); }, done);
  });
}

void Service::LookBeside(std::function<void()> work, WorkThread::Done done) {
  looks_->Post(std::move(work), std::move(done));
}

std::shared_ptr<const ServiceView> Service::View() const {
  const std::lock_guard lock(view_mutex_);
  return view_;
}

RunPage Service::Runs(const RunFilter& filter) const {
  RunQuery query{filter.state,
                 filter.user,
                 filter.name,
                 filter.checkpoint,
                 filter.before == 0 ? INT64_MAX : filter.before,
                 filter.limit + 1};
  std::vector<RunRow> rows;
  {
    const std::lock_guard lock(reader_mutex_);
    rows = service_store::ListRuns(*reader_, query);
  }
  const auto view = View();
  RunPage page;
  const size_t limit = static_cast<size_t>(filter.limit);
  for (size_t i = 0; i < std::min(rows.size(), limit); ++i) {
    const auto active = view->active_runs.find(rows[i].run);
    page.runs.push_back(active != view->active_runs.end() ? *active->second
                                                          : StoredResource(rows[i]));
  }
  if (rows.size() > limit) page.next = rows[limit - 1].number;
  return page;
}

std::optional<Json> Service::Run(const std::string& run) const {
  const auto view = View();
  const auto active = view->active_runs.find(run);
  if (active != view->active_runs.end()) return *active->second;
  const std::lock_guard lock(reader_mutex_);
  const auto row = service_store::ShowRun(*reader_, run);
  return row ? std::optional(StoredResource(*row)) : std::nullopt;
}

std::optional<fs::path> Service::Directory(const std::string& run) const {
  const std::lock_guard lock(reader_mutex_);
  const auto row = service_store::ShowRun(*reader_, run);
  return row ? std::optional(fs::path(row->output)) : std::nullopt;
}

}  // namespace evald
