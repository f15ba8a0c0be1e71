// Messages of processes. First the run that a message is about hears it, then the machine, if it
// needs it to decide.
#include <fmt/format.h>

#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "evald/engine_info.h"
#include "evald/error.h"
#include "orchestrator/fleet_machine/fleet_machine.h"
#include "orchestrator/run/wire_id.h"
#include "orchestrator/service/fleet.h"
#include "orchestrator/service/process_id.h"

namespace evald {
namespace {

constexpr size_t kTrialsKept = 64;  // of a worker, with their finished requests

}  // namespace

// If a message cannot be taken, the run that it is about ends, and other runs go on. A process that
// sends messages of an invalid form is killed.
void Fleet::OnMessage(const std::string& id, const protocol::Message& message) {
  if (processes_.count(id) == 0) return;
  const LoopTurn part("a message of", id);
  const int64_t now = MonotonicMicros();
  for (const auto& [number, entry] : runs_) entry.run->Alive(id, now);
  try {
    if (machine_.FindWorker(id) != nullptr) {
      OnWorkerMessage(id, message);
    } else {
      OnMetricProcessMessage(id, message);
    }
  } catch (const Error& e) {
    log::Error("{}: {}", id, e.what());
    if (RunEntry* entry = Find(RunNamedBy(id, message))) entry->run->Fail(e.kind(), e.what());
  } catch (const std::exception& e) {  // the message's content has another form than it should
    machine_.Hung(id, fmt::format("it does not keep to the protocol: {}", e.what()), now);
  }
}

// The run that a message is about; 0 for a message about the process alone.
int64_t Fleet::RunNamedBy(const std::string& id, const protocol::Message& message) const {
  const WorkerSlot* slot = machine_.FindWorker(id);
  const int64_t of_slot = slot == nullptr ? 0 : slot->run;
  if (const auto* slice = std::get_if<protocol::SliceDone>(&message))
    return RunOfWireId(slice->trial);
  if (const auto* done = std::get_if<protocol::TrialDone>(&message))
    return RunOfWireId(done->trial);
  if (const auto* shortened = std::get_if<protocol::Shortened>(&message))
    return RunOfWireId(shortened->trial);
  if (const auto* job = std::get_if<protocol::JobDone>(&message)) return RunOfWireId(job->job);
  if (const auto* bad = std::get_if<protocol::JobFailed>(&message)) return RunOfWireId(bad->job);
  if (const auto* progress = std::get_if<protocol::Progress>(&message)) {
    return progress->trial >= 0 ? RunOfWireId(progress->trial) : 0;
  }
  if (const auto* failed = std::get_if<protocol::TrialFailed>(&message)) {
    return failed->trial >= 0 ? RunOfWireId(failed->trial) : of_slot;  // otherwise the load failed
  }
  if (const auto* loaded = std::get_if<protocol::Loaded>(&message)) {
    return slot != nullptr && slot->loading == loaded->fingerprint ? of_slot : 0;
  }
  if (const auto* span = std::get_if<protocol::Span>(&message)) {
    if (slot != nullptr) return of_slot;
    return span->args.is_object() ? RunOfWireId(span->args.value("job", int64_t{0})) : 0;
  }
  return 0;
}

// Keeps the last failure on each host, for people.
void Fleet::NoteFailure(const std::string& id, const protocol::Message& message) {
  const auto* trial = std::get_if<protocol::TrialFailed>(&message);
  const auto* job = std::get_if<protocol::JobFailed>(&message);
  const bool good = std::holds_alternative<protocol::TrialDone>(message) ||
                    std::holds_alternative<protocol::JobDone>(message);
  if (trial == nullptr && job == nullptr && !good) return;
  const auto host = hosts_.find(PlaceOfProcess(id).first);
  if (host == hosts_.end()) return;
  host->second.last_failure = trial != nullptr ? trial->message
                              : job != nullptr ? job->message
                                               : "";
}

// Passes the message on to its run, and the run's change to the machine. Returns the run; null if
// it is over. Sets *device_s to the run's answer (Evaluation::Heard).
Fleet::RunEntry* Fleet::PassOn(const std::string& id, const protocol::Message& message,
                               std::optional<double>* device_s) {
  NoteFailure(id, message);
  RunEntry* entry = Find(RunNamedBy(id, message));
  if (entry == nullptr) return nullptr;
  const std::optional<double> counted = entry->run->Heard(id, message);
  if (device_s != nullptr) *device_s = counted;
  TakeRevoked(entry);
  entry->changed = true;
  Settle();
  return entry;
}

// Tells the machine which trials workers let go because another worker has committed them.
void Fleet::TakeRevoked(RunEntry* entry) {
  for (const auto& [worker, held] : entry->run->TakeRevoked()) {
    machine_.Answered(answer::Revoked{worker, held}, MonotonicMicros());
  }
}

// ---- workers

void Fleet::OnWorkerMessage(const std::string& id, const protocol::Message& message) {
  const int64_t now = MonotonicMicros();
  if (const auto* hello = std::get_if<protocol::Hello>(&message)) {
    OnHello(id, *hello);
  } else if (const auto* loaded = std::get_if<protocol::Loaded>(&message)) {
    OnLoaded(id, *loaded);
  } else if (const auto* want = std::get_if<protocol::Want>(&message)) {
    machine_.Heard(id, news::Want{want->count}, now);
  } else if (const auto* progress = std::get_if<protocol::Progress>(&message)) {
    OnProgress(id, *progress);
  } else if (const auto* failed = std::get_if<protocol::TrialFailed>(&message);
             failed && failed->trial < 0) {
    machine_.Heard(
        id, news::Failed{failed->message, failed->retry, failed->device, failed->lasting}, now);
  } else {
    OnTrialMessage(id, message);
  }
}

void Fleet::OnHello(const std::string& id, const protocol::Hello& hello) {
  const int64_t now = MonotonicMicros();
  const bool waits = !hello.waits.empty();
  // The worker could make no engine; the reason comes next, then its end
  if (!waits && !hello.engine.is_object()) return;
  processes_.at(id).pid = hello.pid;
  if (!waits) return machine_.Heard(id, news::Hello{hello.engine.value("follows", false)}, now);
  if (machine_.FindWorker(id)->waits != hello.waits)
    log::Warn("worker {} waits: {}", id, hello.waits);
  machine_.Heard(id, news::Waits{hello.waits}, now);
}

void Fleet::OnLoaded(const std::string& id, const protocol::Loaded& loaded) {
  const WorkerSlot& slot = *machine_.FindWorker(id);
  // The answer to an earlier Load
  if (slot.state() != WorkerState::kLoading || slot.loading != loaded.fingerprint) return;
  EngineInfoFromJson(loaded.engine, "message 'loaded'");  // throws if it has another form
  processes_.at(id).loaded = loaded;
  machine_.Heard(id, news::Loaded{loaded.fingerprint, FactsOf(loaded.engine)}, MonotonicMicros());
}

void Fleet::OnProgress(const std::string& id, const protocol::Progress& progress) {
  const int64_t now = MonotonicMicros();
  if (static_cast<double>(progress.engine_silent_ms) > 1e3 * options_.stall_timeout_s) {
    const std::string why =
        fmt::format("its engine has not come back for {} s", progress.engine_silent_ms / 1000);
    return machine_.Hung(id, why, now);
  }
  const WorkerSlot& slot = *machine_.FindWorker(id);
  if (slot.pulls() && progress.to_pull > 0) {
    if (RunEntry* entry = Find(slot.run)) entry->run->Pulled(id, progress.pulled, progress.to_pull);
    machine_.Heard(id, news::Pulled{progress.pulled, progress.to_pull}, now);
  }
  if (progress.trial < 0) {
    machine_.Heard(id, news::Idle{progress.engine_silent_ms * 1000}, now);
  } else {
    NoteFinished(id, progress, now);
    PassOn(id, progress);
  }
}

// A request of the worker has ended. The heartbeats of other hosts do not count: they may be made
// up.
void Fleet::NoteFinished(const std::string& id, const protocol::Progress& progress, int64_t now) {
  const auto host = machine_.hosts().find(machine_.FindWorker(id)->host);
  if (host == machine_.hosts().end() || !host->second.spec.trusted) return;
  std::map<int64_t, int64_t>& finished = processes_.at(id).finished;
  if (finished.size() > kTrialsKept) finished.clear();
  int64_t& requests = finished[progress.trial];
  if (progress.requests_done > std::exchange(requests, progress.requests_done))
    machine_.Heard(id, news::Moved{}, now);
}

// A message about a trial, or a span.
void Fleet::OnTrialMessage(const std::string& id, const protocol::Message& message) {
  const int64_t now = MonotonicMicros();
  if (std::holds_alternative<protocol::SliceDone>(message))
    machine_.Heard(id, news::Progressed{}, now);
  std::optional<double> device_s;
  const RunEntry* entry = PassOn(id, message, &device_s);
  if (entry == nullptr) return;
  const int64_t run = entry->run->number();
  if (const auto* done = std::get_if<protocol::TrialDone>(&message)) {
    const HeldTrial held{run, IdOfWireId(done->trial), done->attempt};
    machine_.Heard(id, news::TrialOver{held, true, device_s.has_value(), device_s.value_or(0)},
                   now);
  } else if (const auto* failed = std::get_if<protocol::TrialFailed>(&message)) {
    machine_.Heard(id, news::TrialOver{{run, IdOfWireId(failed->trial), failed->attempt}}, now);
  }
}

// ---- metric processes

void Fleet::OnMetricProcessMessage(const std::string& id, const protocol::Message& message) {
  const int64_t now = MonotonicMicros();
  if (const auto* hello = std::get_if<protocol::Hello>(&message)) {
    processes_.at(id).isolation = hello->engine;
    machine_.Heard(id, news::Hello{}, now);
  } else if (const auto* want = std::get_if<protocol::Want>(&message)) {
    machine_.Heard(id, news::Want{want->count}, now);
  } else {
    if (std::holds_alternative<protocol::JobDone>(message))
      machine_.Heard(id, news::Progressed{}, now);
    PassOn(id, message);
  }
}

}  // namespace evald
