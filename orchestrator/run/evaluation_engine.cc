// The engine that a run is computed with: the first worker that loads the checkpoint decides it.
#include <fmt/format.h>

#include "base/log.h"
#include "base/text.h"
#include "orchestrator/run/evaluation_scheduling.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

// So long may a run have nothing from the host whose engine it began with, though that holds trials
constexpr int64_t kBarrenMicros = 3'600'000'000;

std::string ModelOf(const Json& engine) { return engine.value("model", ""); }

// The parts of an engine's description that decide its answers.
Json Identity(Json engine) {
  for (const char* key : {"concurrency", "device", "device_id", "devices", "driver", "follows",
                          "parity", "refused"}) {
    engine.erase(key);
  }
  return engine;
}

}  // namespace

void Evaluation::Loaded(const std::string& worker, const protocol::Loaded& loaded) {
  if (ending_) return;
  // The worker pulled it, perhaps between two heartbeats
  if (loaded.report.is_object() && loaded.report.contains("gb_per_s")) {
    const auto bytes = loaded.report.value("bytes", int64_t{0});
    Pulled(worker, bytes, bytes);
  }
  Json engine = loaded.engine;
  const Json scoring = loaded.report.value("scoring", Json());  // from an engine that tests itself
  if (scoring.is_object() && !scoring.value("offered", true))
    engine["refused"] = scoring.value("reason", "");
  if (doubts_.doubted(WitnessOf(worker))) return;
  if (!engine_info_.is_null()) return RequireSameModel(worker, engine);
  const Json before = json_.record().value("engine", Json());
  Json now = Identity(engine);
  // Until 2026-11-26, no run noted the model of a server's replies.
  if (before.is_object() && !before.contains("model")) now.erase("model");
  if (!before.is_null() && Identity(before) != now) {
    const HostDoubts::Refusal refusal{
        "engine", ErrorKind::kUsage,
        fmt::format("{}: this run was begun with another engine: {} then, {} on worker {} now; "
                    "start a new run",
                    path_.string(), Identity(before).dump(), now.dump(), worker)};
    if (Believed(worker, refusal)) CarryOut(refusal);
    return;
  }
  engine_info_ = std::move(engine);
  engine_by_ = worker;
  engine_from_ = WitnessOf(worker);
  Record({{"engine", engine_info_}}, [] {});
  MaybePlan();
}

// Workers may reach different servers behind one address, and a server may get other weights while
// the run is at work.
void Evaluation::RequireSameModel(const std::string& worker, const Json& engine) {
  const std::string then = ModelOf(engine_info_), now = ModelOf(engine);
  if (then == now) return;
  const HostDoubts::Refusal refusal{
      "engine", ErrorKind::kUsage,
      fmt::format(
          "the server's replies name the model '{}' on worker {}, and '{}' on worker {}; a "
          "run has one model: see what answers at the server's address, and start a new run",
          PrintableLine(now), worker, PrintableLine(then), engine_by_)};
  if (Believed(worker, refusal)) CarryOut(refusal);
}

// Whether no number of any engine counts yet.
bool Evaluation::NothingKept() const {
  return planned_ && record_.generations.empty() && pending_commits_ == 0;
}

// All numbers of a run come from one kind of engine. The worker that answers a load first decides
// the kind. If no other worker has this kind, and the worker leaves or does nothing, the run would
// wait for ever.
void Evaluation::Tick(int64_t now, const std::function<bool(const std::string& host)>& works) {
  if (engine_from_.trusted || engine_info_.is_null() || !NothingKept() || ending_ || draining_ ||
      paused_) {
    engine_since_us_ = engine_idle_us_ = now;
    return;
  }
  if (machine_.trials().leased() > 0 || !wants_workers() || works(engine_from_.host))
    engine_idle_us_ = now;
  const double patience_s = config_.workers.heartbeat_timeout_s;
  if (Seconds(now - engine_idle_us_) > patience_s) {
    DropEngine(fmt::format("has done nothing for {:.0f} s", patience_s));
  } else if (now - engine_since_us_ > kBarrenMicros) {
    DropEngine(fmt::format("has brought nothing for {:.0f} s", Seconds(kBarrenMicros)));
  }
}

// The run begins anew with the next engine. Files of this one are removed, since none counts.
void Evaluation::DropEngine(const std::string& why) {
  log::Warn("run {}: host '{}', with whose engine it began, {}: it begins anew with another", id_,
            engine_from_.host, why);
  doubts_.Stalled(engine_from_);
  for (const auto& [worker, device] : device_of_) {
    for (const Grant& grant : machine_.trials().HeldBy(processes_.Of(worker))) {
      dropped_leases_.push_back({worker, {number_, grant.item, grant.attempt}});
    }
  }
  std::vector<MachineTask> tasks = machine_.tasks();
  machine_ = MakeMachine(config_);
  machine_.SetTasks(std::move(tasks));
  engine_info_ = Json();
  planned_ = false;
  planning_ = true;  // until the files are gone
  Record({{"engine", nullptr}, {"generation", nullptr}, {"devices", Json::object()}}, [] {});
  std::vector<std::string> names;
  for (const SuiteTask& task : suite_->tasks) names.push_back(task.definition.name);
  OffLoop(
      [run = path_, names = std::move(names)] {
        fs::remove_all(run / "generations");
        MakeTaskFolders(run, names);
      },
      [this] {
        planning_ = false;
        MaybePlan();
      });
  hooks_.changed();
}

// Notes a device in run.json. Results name every GPU that computed for the run, in earlier lives
// too.
void Evaluation::NoteDevice(const Json& engine) {
  const std::string device = engine.value("device_id", "");
  if (device.empty()) return;
  Json devices = json_.record().value("devices", Json::object());
  const Json about = {{"kind", engine.value("device", "")}, {"driver", engine.value("driver", "")}};
  if (devices.contains(device) && devices[device] == about) return;
  devices[device] = about;
  Note("devices", std::move(devices));
}

}  // namespace evald
