// The ends of processes: which run or device they count against, and what runs in their place.
#include <fmt/format.h>

#include "base/clock.h"
#include "base/log.h"
#include "evald/error.h"
#include "orchestrator/devices/programs.h"
#include "orchestrator/service/fleet.h"

namespace evald {
namespace {

// So a worker ends that cannot read what it was started with.
bool IsRefusal(const ProcessExit& exit) {
  return exit.signal == 0 && exit.error.empty() && exit.exit_code == static_cast<int>(ExitStatus::kUsage);
}

}  // namespace

// With `by_itself`, nobody wanted it to end.
void Fleet::OnExit(const std::string& id, const ProcessExit& exit, bool by_itself) {
  const std::string how = ToString(exit);
  if (workers_.Owns(id)) {
    OnWorkerExit(id, exit, by_itself && !stopping_ && !workers_.stopping(id));
  } else {
    for (const auto& [number, entry] : runs_) {
      entry.run->ScorerLost(id, fmt::format("metric process {}: {}", id, how));
    }
    scorers_.Exited(id, how);
  }
  if (stopping_) return;
  Serve();
  TellExhausted();
  ServeGivenUp();
}

// The run whose settings the worker was started with; null where it is over. A worker is given nothing before it says
// hello with an engine, so that until then `slot.run` is the run that it was started for.
Evaluation* Fleet::StartedFor(const std::string& id) {
  Entry* entry = Find(slots_.at(id).run);
  return entry != nullptr && TagOf(entry->run->profile()) == workers_.tag(id) ? entry->run.get() : nullptr;
}

// The worker can make no engine of what it was started with. That is the run's fault, not the device's: the run ends,
// and the worker is not started again for it.
void Fleet::OnRefusal(const std::string& id, const std::string& why) {
  slots_.at(id).refuses = true;
  workers_.NoteCause(id, why);
  if (Evaluation* run = StartedFor(id)) run->LoadRefused(id, why);
}

// It loads what nobody has managed to load yet.
bool Fleet::LoadsUnproven(const Slot& slot) {
  const Entry* entry = slot.pulls() ? Find(slot.run) : nullptr;
  return entry != nullptr && !entry->run->engine_known();
}

// It ended before it had an engine, while no worker has had one with these settings. What ends a GPU's worker then is
// the GPU, unless the worker said otherwise.
bool Fleet::StartsUnproven(const std::string& id) {
  const Slot& slot = slots_.at(id);
  if (workers_.connected(id) || !slot.waits.empty() || slot.refuses) return false;
  const Evaluation* run = StartedFor(id);
  return run != nullptr && !run->engine_known() && (slot.excused || !slot.computes_on_gpu);
}

// Other runs shall not lose their workers to a checkpoint that none survives: after some ends those that it ended are
// not given it again, unless another loads it meanwhile.
bool Fleet::TriedInVain(const std::string& id, const Evaluation& run) const {
  const auto found = runs_.find(run.number());
  if (run.engine_known() || found == runs_.end() || found->second.ended_loads.count(id) == 0) return false;
  int all = 0;
  for (const auto& [worker, times] : found->second.ended_loads) all += times;
  return all >= run.config().workers.max_attempts;
}

bool Fleet::MayYetLoad(const Evaluation& run) const {
  for (const auto& [id, slot] : slots_) {
    if (slot.device.empty() || HostOf(id).left || Aside(id)) continue;
    if (Suits(id, run) || (slot.loads() && slot.loading == run.load().fingerprint)) return true;
  }
  return false;
}

void Fleet::TellVain() {
  const auto runs = runs_;  // they may leave while they are told
  for (const auto& [number, entry] : runs) {
    if (entry.ended_loads.empty() || entry.run->engine_known() || MayYetLoad(*entry.run)) continue;
    entry.run->Fail(ErrorKind::kInfrastructure,
                    fmt::format("no worker survives loading {}: {}; see {}",
                                entry.run->fingerprint().empty() ? "the engine" : "the checkpoint", entry.load_ended,
                                options_.log_dir.string()));
  }
}

void Fleet::OnWorkerExit(const std::string& id, const ProcessExit& exit, bool by_itself) {
  Slot& slot = slots_.at(id);
  const std::string how = ToString(exit);
  const bool had_engine = workers_.connected(id);
  if (by_itself && !had_engine && !slot.refuses && IsRefusal(exit)) {
    OnRefusal(id, fmt::format("{} before it had an engine; see {}", how, options_.log_dir.string()));
  }
  const bool loads = by_itself && (LoadsUnproven(slot) || StartsUnproven(id));
  slot.loading.reset();
  slot.loaded.reset();
  slot.following.reset();
  slot.follows = false;
  slot.pid = 0;
  slot.held.clear();
  const std::string& noted = workers_.cause(id);
  const std::string cause = noted.empty() ? how : noted;
  const bool may_be_checkpoint = loads && noted.empty();
  const bool at_fault =
      by_itself && slot.computes_on_gpu && !slot.excused && !slot.refuses && slot.waits.empty() && !may_be_checkpoint;
  slot.excused = false;
  slot.waits.clear();
  const bool aside = at_fault && devices_.Failed(DeviceOf(slot), cause, MonotonicMicros());
  const std::string why = Aside(id).value_or("");
  if (aside) log::Error("device {} of host {} is set aside: {}", slot.device, slot.host, why);
  const std::string worker = IsGpu(slot.device) ? fmt::format("worker {} ({})", id, slot.device) : "worker " + id;
  if (loads && !at_fault) {
    Entry* entry = Find(slot.run);
    ++entry->ended_loads[id];
    entry->load_ended = worker + ": " + cause;
    workers_.Progressed(id);  // it is the run that has its attempts counted
  }
  for (const auto& [number, entry] : runs_) {
    if (aside) entry.run->DeviceSetAside(slot.device, why);
    entry.run->WorkerLost(id, worker + ": " + cause, at_fault);
  }
  if (aside) {
    workers_.GaveUp(id, fmt::format("device {} is set aside: {}", slot.device, why));
    TellDevices();
  } else if (by_itself && !had_engine && MayNotStartAgain(id)) {
    workers_.GaveUp(id, cause);
  } else {
    workers_.Exited(id, how);
  }
  slot.refuses = false;
  Changed(id);
  ReleaseStaged();
}

// A worker that gets no engine cannot be given to another run either: it is not started again for a run that is over
// or has tried it in vain, and other runs have their own started (ServeGivenUp).
bool Fleet::MayNotStartAgain(const std::string& id) {
  const Evaluation* run = StartedFor(id);
  return slots_.at(id).refuses || run == nullptr || run->ending() || TriedInVain(id, *run);
}

// Its restarts were used up with the run's settings: it is not started with them again.
bool Fleet::Spent(const std::string& id, const Evaluation& run) const {
  const std::set<std::string>& spent = slots_.at(id).spent;
  if (spent.empty() && !workers_.used_up(id)) return false;
  const std::string tag = TagOf(run.profile());
  return workers_.tag(id) == tag ? workers_.used_up(id) : spent.count(tag) > 0;
}

// A worker that one run's settings have brought down is started for others.
void Fleet::ServeGivenUp() {
  if (stopping_) return;
  for (const std::string& id : workers_.ids()) {
    if (!workers_.given_up(id) || !Usable(id)) continue;
    Evaluation* run = Choose(id);
    if (run == nullptr) continue;
    Guard(run->number(), id, [&] {
      StartWorker(id, *run);
      return false;
    });
  }
}

// There is no worker for it, and none will be started.
bool Fleet::Exhausted(const Evaluation& run) const {
  bool any = false;
  for (const std::string& id : workers_.ids()) {
    if (workers_.retired(id) || !Suits(id, run)) continue;
    if (!Spent(id, run) && (!workers_.given_up(id) || Usable(id))) return false;
    any = true;
  }
  return any;
}

void Fleet::TellExhausted() {
  const std::string see = "; see " + options_.log_dir.string();
  const auto runs = runs_;  // they may leave while they are told
  for (const auto& [number, entry] : runs) {
    if (Exhausted(*entry.run)) entry.run->NoWorkers(workers_.last_exit() + see);
    if (scorers_.exhausted()) entry.run->NoScorers(scorers_.last_exit() + see);
  }
}

}  // namespace evald
