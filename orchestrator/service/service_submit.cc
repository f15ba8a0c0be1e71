#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/log.h"
#include "base/names.h"
#include "orchestrator/config/engine_section.h"
#include "orchestrator/prepare/preparer.h"
#include "orchestrator/service/engine_access.h"
#include "orchestrator/service/service.h"
#include "orchestrator/service/submission.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFileName = "eval.yaml";
// Aggregation takes cores of the service's own host, for this many times the documents of a task.
constexpr int kBootstrapItersSubmittedMax = 100'000;

// What of a configuration is read from where it says.
std::vector<fs::path> PathsOf(const EvalConfig& config) {
  std::vector<fs::path> paths = config.task_dirs;
  for (const fs::path& path : {config.checkpoint, config.data_dir, config.gates.baseline}) {
    if (!path.empty()) paths.push_back(path);
  }
  for (const fs::path& path : PathsOf(config.engine)) paths.push_back(path);
  return paths;
}

// That what it names can be read says so at once; whoever reads it later goes by the roots again.
void CheckPaths(const EvalConfig& config) {
  if (config.roots.anywhere()) return;
  for (const fs::path& path : PathsOf(config)) {
    if (!config.roots.HasFile(path) && !config.roots.HasFolder(path)) config.roots.Refuse(path, ENOENT);
  }
}

Error StoppingError() { return Error(ErrorKind::kInfrastructure, "the service is stopping; submit again later"); }

}  // namespace

// The submitted eval.yaml, as far as it may be asked for here.
EvalConfig Service::Parse(const Submission& submission, EvalOverrides::Folders folders) const {
  if (submission.priority < -100 || submission.priority > 100) {
    throw Error(ErrorKind::kUsage, fmt::format("priority: found {}, expected -100 to 100", submission.priority));
  }
  if (const std::string wrong = WrongWithLabel(submission.user); !submission.user.empty() && !wrong.empty()) {
    throw Error(ErrorKind::kUsage, "user: " + wrong);
  }
  const fs::path base = submission.base.empty() ? fs::path("/") : submission.base;
  if (!base.is_absolute()) {
    throw Error(ErrorKind::kUsage, fmt::format("base: found '{}', expected an absolute path", base.string()));
  }
  EvalOverrides overrides;
  overrides.set = submission.set;
  overrides.roots = options_.roots;
  overrides.limits = options_.limits;
  overrides.folders = folders;
  EvalConfig config = ParseEvalConfig(submission.yaml, base / kFileName, overrides);
  CheckEngineIsAllowed(config.engine, options_.engines);
  if (config.bootstrap_iters > kBootstrapItersSubmittedMax) {
    throw Error(ErrorKind::kUsage, fmt::format("key 'bootstrap_iters': found {}, expected at most {} in a submitted run",
                                               config.bootstrap_iters, kBootstrapItersSubmittedMax),
                "leave it out, or use 'evald run' for more");
  }
  return config;
}

EvalConfig Service::ReadSubmission(const Submission& submission, bool weights, const Cancelled& cancelled) const {
  EvalConfig config = Parse(submission, EvalOverrides::Folders::kLookedAt);
  CheckPaths(config);
  PreparationInput input = InputOf(config, PreparationInput::Work::kCheck);
  input.weights = input.weights && weights;
  // Says now what is wrong with a task or a checkpoint. A service that stops takes no submission.
  Preparer(options_.binaries).Ask(input, [&] { return draining_ || stopping_ || (cancelled && cancelled()); });
  return config;
}

EvalConfig Service::Configure(const Submission& submission, const Cancelled& cancelled) const {
  return ForThisHost(ReadSubmission(submission, true, cancelled));
}

EvalConfig Service::Resolve(const Submission& submission, EvalOverrides::Folders folders) const {
  return ForThisHost(Parse(submission, folders));
}

EvalConfig Service::ForThisHost(EvalConfig config) const {
  config.workers.devices = options_.devices;
  config.workers.count = static_cast<int>(options_.devices.size());
  config.workers.threads = options_.threads;
  config.metrics.processes = options_.metric_processes;
  config.metrics.sandbox = options_.sandbox;
  config.staging.root = options_.staging_root;
  config.staging.keep_bytes = options_.staging_keep;
  config.output_dir = options_.output_dir;
  config.state_dir = options_.state_dir;
  config.cache_dir = options_.cache_dir;
  return config;
}

// The folder stands for the checkpoints that will be in it.
void Service::CheckWatch(const Submission& submission, const fs::path& folder) const {
  Submission example = submission;
  example.set.push_back("checkpoint=" + Json(folder.string()).dump());
  ReadSubmission(example, false, {});
}

void Service::Submit(Submission submission, Done<Submitted> done, const Cancelled& cancelled) {
  try {
    auto config = std::make_shared<EvalConfig>(Configure(submission, cancelled));
    loop_.Post([this, config, submission = std::move(submission), done = std::move(done)]() mutable {
      if (draining_) return done(StoppingError());
      Register(std::move(config), std::move(submission), std::move(done));
    });
  } catch (...) {
    done(draining_ || stopping_ ? StoppingError() : CurrentError());
  } catch (const Json::exception& e) {  // nobody has looked at the type of a value
    done(Error(ErrorKind::kUsage, fmt::format("eval.yaml: a value is of another type than it should be ({})", e.what()),
               "docs/eval-yaml.md says what each key takes"));
  }
}

// Why no further run of this user is taken now; "" when one is.
std::string Service::OverLimit(const std::string& user) const {
  if (user.empty()) return "";
  const auto own = std::count_if(queue_.runs().begin(), queue_.runs().end(), [&](const auto& entry) { return entry.second.user == user; });
  const auto registering = registering_.find(user);
  const auto count = own + (registering == registering_.end() ? 0 : registering->second);
  if (count < options_.runs_per_user_max) return "";
  return fmt::format("the user '{}' has {} runs that are not over, and may have {}", user, count, options_.runs_per_user_max);
}

// The folder first, then the row in the database, then the folder says what was submitted: the answer waits for all.
void Service::Register(std::shared_ptr<EvalConfig> config, Submission submission, Done<Submitted> done) {
  auto run = std::make_shared<QueuedRun>();
  run->config = std::move(*config);
  run->user = submission.user;
  run->priority = submission.priority;
  const std::string refused = OverLimit(run->user);  // unless the key is known
  ++registering_[run->user];
  auto registered = [this, user = run->user, done = std::move(done)](const std::variant<Submitted, Error>& result) {
    if (--registering_[user] == 0) registering_.erase(user);
    done(result);
  };
  files_->Post(
      [run] {
        run->directory = RunDirectory::Create(run->config);
        FailPoint("service.folder_made");
      },
      [this, run, refused, submission = std::move(submission),
       done = std::move(registered)](const std::optional<Error>& error) {
        if (error) return done(*error);
        AddRow(run, submission, refused, done);
      });
}

void Service::AddRow(std::shared_ptr<QueuedRun> run, const Submission& submission, const std::string& refused,
                     const Done<Submitted>& done) {
  run->id = run->directory->id();
  run->path = run->directory->path();
  run->created = run->directory->record().value("created", WallSeconds());
  auto row = std::make_shared<RunRow>();
  *row = {0,        run->id,        run->path.string(), run->created, "queued", run->config.name,
          run->user, run->priority, run->config.checkpoint.string(), ToJson(submission).dump(),
          submission.idempotency_key, Resource(*run).dump()};
  auto known = std::make_shared<std::optional<RunRow>>();
  database_->Post(
      [row, known, refused](RunStore& store) {
        *known = service_store::FindByKey(store.database(), row->user, row->idempotency_key);
        if (!*known && refused.empty()) row->number = service_store::AddRun(store.database(), *row);
      },
      [this, run, row, known, refused, done] {
        if (!*known && refused.empty()) return OnRegistered(run, *row, done);
        ForgetFolder(run, *known, refused, done);
      });
}

void Service::OnRegistered(std::shared_ptr<QueuedRun> run, const RunRow& row, const Done<Submitted>& done) {
  FailPoint("service.run_registered");
  run->number = row.number;
  files_->Post([run, row, state_dir = options_.state_dir] { RecordSubmission(&*run->directory, SubmissionOf(row), state_dir); },
               [this, run, done](const std::optional<Error>&) {
                 QueuedRun* queued = queue_.Add(std::move(*run));
                 counters_["runs_submitted_total"] += 1;
                 Emit(queued->id, "run.state", {{"state", "queued"}, {"name", queued->config.name}});
                 const Json resource = Resource(*queued);
                 StartRuns();
                 Publish();
                 done(Submitted{resource, true, ""});
               });
}

// The key was submitted before: that run answers. It is in the queue by then: its folder was written before this one
// is removed. Or the user has too many runs.
void Service::ForgetFolder(std::shared_ptr<QueuedRun> run, const std::optional<RunRow>& known,
                           const std::string& refused, const Done<Submitted>& done) {
  files_->Post(
      [run] {
        std::error_code ignored;
        run->directory.reset();
        fs::remove_all(run->path, ignored);
      },
      [this, known, refused, done](const std::optional<Error>&) {
        if (!known) return done(Submitted{Json(), false, refused});
        QueuedRun* active = queue_.Find(known->run);
        done(Submitted{active ? Resource(*active) : Json::parse(known->resource), false, ""});
      });
}

}  // namespace evald
