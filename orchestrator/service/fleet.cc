#include "orchestrator/service/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/clock.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "evald/engine_info.h"
#include "orchestrator/devices/programs.h"
#include "orchestrator/fleet/work_thread.h"
#include "orchestrator/run/wire_id.h"
#include "orchestrator/schedule/placement.h"
#include "orchestrator/service/process_id.h"

namespace evald {
namespace {

constexpr std::chrono::milliseconds kStopGrace{5000};
constexpr int64_t kHelloMicros = 60'000'000;
constexpr double kUseHalfLifeSeconds = 600;  // how long a user's past counts against them

}  // namespace

std::string Fleet::TagOf(const WorkerProfile& profile) {
  return ToLine(Json({profile.engine, profile.settings, profile.threads, profile.seed}));
}

Fleet::Fleet(Loop* loop, FleetOptions options)
    : loop_(loop),
      options_(std::move(options)),
      router_(this),
      devices_(options_.device_limits),
      use_decayed_us_(MonotonicMicros()),
      workers_(loop, &router_, options_.worker_restarts_max),
      scorers_(loop, &router_, options_.metric_restarts_max) {}

Fleet::~Fleet() = default;

void Fleet::Add(std::shared_ptr<Evaluation> run, int priority, const std::string& user) {
  for (const std::string& id : workers_.ids()) ShowRow(run.get(), id);
  for (const std::string& id : scorers_.ids()) ShowRow(run.get(), id);
  const int64_t number = run->number();
  runs_[number] = {std::move(run), priority, user};
  for (auto& [id, slot] : slots_) slot.spent.clear();  // what failed before may work by now
  for (const auto& [name, host] : hosts_) StartWhatIsMissing(name);
  Serve();
}

void Fleet::SetPriority(int64_t run_number, int priority) {
  if (Entry* entry = Find(run_number)) entry->priority = priority;
  Serve();
}

void Fleet::Remove(int64_t run_number) {
  Entry* entry = Find(run_number);
  if (entry == nullptr) return;
  for (const std::string& id : workers_.ids()) {
    for (const protocol::Revoke& revoke : entry->run->HeldTrials(id)) {
      router_.Send(id, revoke);
      slots_.at(id).held.erase({revoke.trial, revoke.attempt});
    }
  }
  if (auto staged = entry->run->TakeStaged()) {
    const std::string fingerprint = staged->fingerprint();
    held_.emplace(fingerprint, std::move(*staged));
  }
  runs_.erase(run_number);
  ReleaseStaged();
  Serve();
}

std::set<std::string> Fleet::FingerprintsOfRuns() const {
  std::set<std::string> fingerprints;
  for (const auto& [number, entry] : runs_) fingerprints.insert(entry.run->fingerprint());
  return fingerprints;
}

// A worker of another host has its host's own copy once it has loaded it.
void Fleet::ReleaseStaged() {
  std::set<std::string> used = FingerprintsOfRuns();
  for (const auto& [id, slot] : slots_) {
    if (slot.loads()) used.insert(*slot.loading);
    if (slot.loaded && slot.host == kLocalHost) used.insert(slot.loaded->fingerprint);
  }
  for (auto held = held_.begin(); held != held_.end();) {
    const auto next = std::next(held);
    if (used.count(held->first) == 0) {
      auto node = held_.extract(held);
      if (release) release(std::move(node.mapped()));
    }
    held = next;
  }
}

bool Fleet::FreeStaged() {
  ReleaseStaged();
  std::set<std::string> used = FingerprintsOfRuns();
  used.insert("");  // an engine without a checkpoint
  bool on_its_way = false;
  for (const std::string& id : workers_.ids()) {
    const Slot& slot = slots_.at(id);
    const bool idle = slot.loaded && slot.loading == slot.loaded->fingerprint && slot.held.empty();
    if (slot.host != kLocalHost || !idle || used.count(slot.loaded->fingerprint) > 0) continue;
    if (slot.loaded->fingerprint.starts_with(kUnstaged)) continue;
    on_its_way = true;
    if (!workers_.stopping(id)) {
      log::Info("{} starts anew: what it has loaded takes room that another checkpoint needs", id);
      workers_.Renew(id);
    }
  }
  return on_its_way;
}

Fleet::Entry* Fleet::Find(int64_t run_number) {
  const auto found = runs_.find(run_number);
  return found == runs_.end() ? nullptr : &found->second;
}

Evaluation* Fleet::RunOf(int64_t wire_id) {
  Entry* entry = Find(RunOfWireId(wire_id));
  return entry == nullptr ? nullptr : entry->run.get();
}

void Fleet::StartWorker(const std::string& id, const Evaluation& run) {
  Slot& slot = slots_.at(id);
  const WorkerProfile profile = run.profile();
  slot.run = run.number();
  const int threads = HostOf(id).info.threads > 0 ? HostOf(id).info.threads : profile.threads;
  slot.refuses = false;
  if (workers_.used_up(id)) slot.spent.insert(workers_.tag(id));
  slot.spent.erase(TagOf(profile));  // it has all its restarts again
  const std::string program = WorkerProgram(profile.engine, slot.device);
  slot.computes_on_gpu = program == kGpuWorker;
  std::vector<std::string> arguments = {"--engine",   profile.engine,
                                        "--settings", ToLine(profile.settings),
                                        "--device",   slot.device,
                                        "--threads",  std::to_string(threads),
                                        "--seed",     std::to_string(profile.seed),
                                        "--log-level", options_.log_level};
  for (const std::filesystem::path& root : run.config().roots.folders()) {
    arguments.insert(arguments.end(), {"--read-root", root.string()});
  }
  workers_.Assign({id, program, std::move(arguments), TagOf(profile)}, TagOf(profile));
  Changed(id);
}

void Fleet::StartScorers(const std::string& host) {
  const HostEntry& entry = hosts_.at(host);
  for (int i = 0; i < entry.info.metric_processes; ++i) {
    const std::string id = FullProcessId(host, fmt::format("m{}", i));
    if (scorers_.given_up(id)) scorers_.Assign({id, "evald-metric", {"--log-level", options_.log_level}, ""}, "");
  }
}

// ---- giving out

// Giving out changes what is to give out (an evaluation may call back): one round after another.
void Fleet::Serve() {
  if (serving_) {
    serve_again_ = true;
    return;
  }
  struct Serving {  // however it ends
    bool* flag;
    explicit Serving(bool* flag) : flag(flag) { *flag = true; }
    ~Serving() { *flag = false; }
  };
  const Serving serving(&serving_);
  do {
    serve_again_ = false;
    ServeRound();
  } while (serve_again_);
}

void Fleet::ServeRound() {
  // One each in turn, so that the first to ask does not take what another could do at once.
  for (bool gave = true; gave && !stopping_;) {
    gave = false;
    for (const std::string& id : workers_.ids()) gave = ServeWorker(id) || gave;
    // Scores are made where the generations lie, unless that host is busy and another is not.
    for (const bool own_only : {true, false}) {
      for (const std::string& id : scorers_.ids()) gave = ServeScorer(id, own_only) || gave;
    }
  }
}

// What `serve` says. Where it throws, the run that `id` is being served for ends: true, since what it was to do goes to
// others now. A run that is ending anyway changes nothing for others.
bool Fleet::Guard(int64_t run_number, const std::string& id, const std::function<bool()>& serve) {
  try {
    return serve();
  } catch (...) {
    const Error error = CurrentError();
    log::Error("{}: {}", id, error.what());
    const Entry* entry = Find(run_number);
    if (entry == nullptr || entry->run->ending()) return false;
    entry->run->Fail(error.kind(), error.what());
    return true;
  }
}

// Of one run all numbers come from one kind of engine. Where there are GPUs, it is theirs. A worker that would be
// started anew for the run may come to be of another kind than it is, but no processor becomes a GPU.
bool Fleet::Suits(const std::string& id, const Evaluation& run) const {
  const Slot& slot = slots_.at(id);
  if (TriedInVain(id, run)) return false;
  const bool native = run.config().engine.name == "native";
  if (native && run.engine_known() && run.engine_on_gpu() != IsGpu(slot.device)) return false;
  const bool other = slot.loaded && !run.Suits(slot.loaded->engine);
  if (other && workers_.tag(id) == TagOf(run.profile())) return false;
  return run.engine_known() || !native || IsGpu(slot.device) || !HasGpuFor(run);
}

Evaluation* Fleet::Choose(const std::string& id) const {
  const Slot& slot = slots_.at(id);
  std::vector<DispatchRun> wanting;
  for (const auto& [number, entry] : runs_) {
    if (!Suits(id, *entry.run) || Spent(id, *entry.run)) continue;
    const bool loads = slot.loading != entry.run->load().fingerprint;
    if (loads && !WorthLoading(slot, *entry.run)) continue;
    if (entry.run->wants_workers() || (loads && entry.run->wants_more_workers())) {
      wanting.push_back({number, entry.priority, entry.user});
    }
  }
  const auto chosen = ChooseRun(wanting, use_, slot.run);
  return chosen ? runs_.at(*chosen).run.get() : nullptr;
}

// What the service stages is in the memory of its own host.
bool Fleet::HostHas(const std::string& host, const Evaluation& run) const {
  const std::string& fingerprint = run.fingerprint();
  return fingerprint.empty() || host == kLocalHost || hosts_.at(host).staged.count(fingerprint) > 0;
}

bool Fleet::WorthLoading(const Slot& slot, const Evaluation& run) const {
  if (HostHas(slot.host, run)) return true;
  StagingCase at;
  for (const auto& [id, other] : slots_) {
    if (workers_.given_up(id) || !Usable(id) || !HostHas(other.host, run) || !Suits(id, run)) continue;
    if (!other.waits.empty()) continue;
    if (other.held.empty() || other.run == run.number()) ++at.devices_beside;
  }
  at.open_s = run.open_s();
  at.stage_s = run.checkpoint_bytes() / hosts_.at(slot.host).stage_bytes_per_s;
  return WorthStaging(at);
}

void Fleet::NoteStaged(const Slot& slot, const std::string& fingerprint) {
  HostEntry& host = hosts_.at(slot.host);
  if (fingerprint.empty() || !host.staged.insert(fingerprint).second || slot.load_sent_us == 0) return;
  const Entry* entry = Find(slot.run);
  const double seconds = static_cast<double>(MonotonicMicros() - slot.load_sent_us) / 1e6;
  if (entry != nullptr && entry->run->fingerprint() == fingerprint && entry->run->checkpoint_bytes() > 0 && seconds > 0) {
    host.stage_bytes_per_s = entry->run->checkpoint_bytes() / seconds;
  }
}

bool Fleet::ServeWorker(const std::string& id) {
  const Slot& slot = slots_.at(id);
  const bool fresh = workers_.connected(id) && !slot.loading;
  if (!Usable(id) || workers_.stopping(id) || (!fresh && !workers_.HasWant(id))) return false;
  if (Evaluation* run = Choose(id)) return Guard(run->number(), id, [&] { return ServeWorkerFor(id, run); });
  FollowStaging(id);
  return false;
}

// True when it was given a trial.
bool Fleet::ServeWorkerFor(const std::string& id, Evaluation* run) {
  Slot& slot = slots_.at(id);
  if (workers_.tag(id) != TagOf(run->profile())) {
    if (slot.held.empty()) StartWorker(id, *run);
    return false;
  }
  if (slot.loading != run->load().fingerprint) {
    SendLoad(id, *run);
    return false;
  }
  slot.run = run->number();
  if (!run->planned()) {  // another run of this checkpoint had it loaded
    if (slot.loaded) run->WorkerLoaded(id, *slot.loaded);
    return false;
  }
  if (!workers_.HasWant(id)) return false;
  const auto lease = run->LeaseTrial(id, slot.loaded ? slot.loaded->engine.value("device", "") : "");
  if (!lease) return false;
  Give(id, *lease);
  return workers_.TakeWant(id);
}

// What is not sent is not held either.
void Fleet::Give(const std::string& id, const protocol::Lease& lease) {
  Slot& slot = slots_.at(id);
  if (Entry* entry = Find(slot.run); entry != nullptr && slot.loaded) entry->run->NoteDevice(slot.loaded->engine);
  router_.Send(id, lease);
  slot.held.insert({lease.trial, lease.attempt});
}

void Fleet::SendLoad(const std::string& id, const Evaluation& run) {
  Slot& slot = slots_.at(id);
  slot.run = run.number();
  slot.loading = run.load().fingerprint;
  slot.load_sent_us = slot.load_moved_us = MonotonicMicros();
  slot.pulled = slot.to_pull = 0;
  workers_.SetReady(id, false);
  workers_.ClearWants(id);  // a Load cancels them
  router_.Send(id, run.load());
  Changed(id);
}

// A worker of this host that has nothing to do pulls what is being staged, as far as it has landed. Not where a
// run may yet ask for what it has loaded.
void Fleet::FollowStaging(const std::string& id) {
  const Slot& slot = slots_.at(id);
  if (slot.host != kLocalHost || !slot.follows || !slot.held.empty()) return;
  if (slot.loads() || (slot.loading && FingerprintsOfRuns().count(*slot.loading) > 0)) return;
  const Entry* best = nullptr;
  for (const auto& [number, entry] : runs_) {
    if (!entry.run->followable() || TagOf(entry.run->profile()) != workers_.tag(id)) continue;
    if (TriedInVain(id, *entry.run)) continue;
    if (best == nullptr || entry.priority > best->priority) best = &entry;
  }
  if (best == nullptr) return;
  Guard(best->run->number(), id, [&] {
    TellToFollow(id, *best->run);
    return false;
  });
}

void Fleet::TellToFollow(const std::string& id, const Evaluation& run) {
  Slot& slot = slots_.at(id);
  const Evaluation::Followable staging = *run.followable();
  const std::pair<int64_t, int> what(run.number(), staging.times);
  if (slot.following == what) return;
  slot.following = what;
  slot.pulled = slot.to_pull = 0;
  slot.run = what.first;
  slot.loading.reset();
  slot.loaded.reset();
  workers_.SetReady(id, false);
  workers_.ClearWants(id);  // as a Load does
  router_.Send(id, protocol::Follow{staging.folder});
  Changed(id);
}

// Of the runs with something to score, the highest priority first, then the oldest.
bool Fleet::ServeScorer(const std::string& id, bool own_only) {
  if (!Usable(id) || !scorers_.HasWant(id)) return false;
  Entry* best = nullptr;
  for (auto& [number, entry] : runs_) {
    if (entry.run->wants_scorers() && (best == nullptr || entry.priority > best->priority)) best = &entry;
  }
  if (best == nullptr) return false;
  std::function<bool(const std::string&)> made_by;
  if (own_only) made_by = [&](const std::string& worker) { return places_.at(worker).first == places_.at(id).first; };
  return Guard(best->run->number(), id, [&] {
    const auto job = best->run->LeaseJob(id, made_by);
    if (!job) return false;
    router_.Send(id, *job);
    return scorers_.TakeWant(id);
  });
}

// The run that a message is about; null for one about the process alone, or about a run that is gone.
Evaluation* Fleet::RunNamedBy(const std::string& id, const protocol::Message& message) {
  const auto of_slot = [&]() -> Evaluation* {
    Entry* entry = workers_.Owns(id) ? Find(slots_.at(id).run) : nullptr;
    return entry == nullptr ? nullptr : entry->run.get();
  };
  if (const auto* slice = std::get_if<protocol::SliceDone>(&message)) return RunOf(slice->trial);
  if (const auto* done = std::get_if<protocol::TrialDone>(&message)) return RunOf(done->trial);
  if (const auto* shortened = std::get_if<protocol::Shortened>(&message)) return RunOf(shortened->trial);
  if (const auto* job = std::get_if<protocol::JobDone>(&message)) return RunOf(job->job);
  if (const auto* bad = std::get_if<protocol::JobFailed>(&message)) return RunOf(bad->job);
  if (const auto* progress = std::get_if<protocol::Progress>(&message)) {
    return progress->trial >= 0 ? RunOf(progress->trial) : nullptr;
  }
  if (const auto* failed = std::get_if<protocol::TrialFailed>(&message)) {
    return failed->trial >= 0 ? RunOf(failed->trial) : of_slot();  // else of a load
  }
  if (const auto* loaded = std::get_if<protocol::Loaded>(&message)) {
    return workers_.Owns(id) && slots_.at(id).loading == loaded->fingerprint ? of_slot() : nullptr;
  }
  return nullptr;
}

// ---- what processes say

void Fleet::OnMessage(const std::string& id, const protocol::Message& message) {
  const LoopTurn part("a message of", id);
  try {
    if (workers_.Owns(id)) {
      OnWorkerMessage(id, message);
    } else {
      OnScorerMessage(id, message);
    }
  } catch (const Error& e) {  // the run that it is about ends, others go on
    log::Error("{}: {}", id, e.what());
    if (Evaluation* run = RunNamedBy(id, message)) run->Fail(e.kind(), e.what());
  } catch (const Json::exception& e) {  // what it carries is of another form than it should be
    KillHung(id, fmt::format("it does not keep to the protocol: {}", e.what()));
  }
}

void Fleet::OnWorkerMessage(const std::string& id, const protocol::Message& message) {
  const int64_t now = MonotonicMicros();
  for (const auto& [number, entry] : runs_) entry.run->WorkerHeard(id, now);
  if (const auto* hello = std::get_if<protocol::Hello>(&message)) {
    if (!hello->waits.empty()) return OnWaiting(id, *hello);
    if (!hello->engine.is_object()) return;  // it could make no engine: why not comes next, and then its end
    workers_.Connected(id);
    slots_.at(id).waits.clear();
    slots_.at(id).pid = hello->pid;
    slots_.at(id).follows = hello->engine.value("follows", false);
    Changed(id);
    Serve();
  } else if (const auto* loaded = std::get_if<protocol::Loaded>(&message)) {
    OnLoaded(id, *loaded);
  } else if (const auto* want = std::get_if<protocol::Want>(&message)) {
    workers_.AddWants(id, want->count);
    Serve();
  } else if (const auto* progress = std::get_if<protocol::Progress>(&message)) {
    OnWorkerProgress(id, *progress);
  } else if (const auto* slice = std::get_if<protocol::SliceDone>(&message)) {
    workers_.Progressed(id);
    if (Evaluation* run = RunOf(slice->trial)) {
      run->OnSliceDone(id, *slice);
      SendWithdrawn(run);
    }
  } else if (const auto* shortened = std::get_if<protocol::Shortened>(&message)) {
    if (Evaluation* run = RunOf(shortened->trial)) run->OnShortened(*shortened);
  } else if (const auto* done = std::get_if<protocol::TrialDone>(&message)) {
    Entry* entry = Find(RunOfWireId(done->trial));
    if (entry == nullptr) return;
    if (entry->run->OnTrialDone(id, *done)) use_[entry->user] += done->device_seconds;
    devices_.Finished(DeviceOf(slots_.at(id)));
    SendWithdrawn(entry->run.get());
    slots_.at(id).held.erase({done->trial, done->attempt});
    Serve();
  } else if (const auto* failed = std::get_if<protocol::TrialFailed>(&message)) {
    OnTrialFailed(id, *failed);
  } else if (const auto* span = std::get_if<protocol::Span>(&message)) {
    if (Entry* entry = Find(slots_.at(id).run)) entry->run->OnSpan(id, *span);
  }
}

void Fleet::OnScorerMessage(const std::string& id, const protocol::Message& message) {
  const int64_t now = MonotonicMicros();
  for (const auto& [number, entry] : runs_) entry.run->ScorerHeard(id, now);
  if (const auto* hello = std::get_if<protocol::Hello>(&message)) {
    isolation_[id] = hello->engine;
    scorers_.Connected(id);
    scorers_.SetReady(id, true);
  } else if (const auto* want = std::get_if<protocol::Want>(&message)) {
    scorers_.AddWants(id, want->count);
    Serve();
  } else if (const auto* done = std::get_if<protocol::JobDone>(&message)) {
    scorers_.Progressed(id);
    if (Evaluation* run = RunOf(done->job)) run->OnJobDone(id, *done, isolation_[id]);
  } else if (const auto* failed = std::get_if<protocol::JobFailed>(&message)) {
    if (Evaluation* run = RunOf(failed->job)) run->OnJobFailed(id, *failed);
    Serve();
  } else if (const auto* span = std::get_if<protocol::Span>(&message)) {
    const int64_t job = span->args.is_object() ? span->args.value("job", int64_t{-1}) : -1;
    if (Evaluation* run = RunOf(job)) run->OnSpan(id, *span);
  }
}

// Another process computes on its device, which is no fault of the device's: others do the work meanwhile.
void Fleet::OnWaiting(const std::string& id, const protocol::Hello& hello) {
  Slot& slot = slots_.at(id);
  workers_.StillStarting(id, MonotonicMicros());
  slot.pid = hello.pid;
  if (slot.waits == hello.waits) return;
  slot.waits = hello.waits;
  log::Warn("worker {} waits: {}", id, slot.waits);
  Changed(id);
}

void Fleet::OnLoaded(const std::string& id, const protocol::Loaded& loaded) {
  Slot& slot = slots_.at(id);
  if (slot.loading != loaded.fingerprint) return;  // the answer to a Load before the last one
  EngineInfoFromJson(loaded.engine, "message 'loaded'");  // throws where it is another form
  slot.loaded = loaded;
  NoteStaged(slot, loaded.fingerprint);
  workers_.SetReady(id, true);
  if (Entry* entry = Find(slot.run)) entry->run->WorkerLoaded(id, loaded);
  Changed(id);
  ReleaseStaged();
  Serve();
}

void Fleet::OnTrialFailed(const std::string& id, const protocol::TrialFailed& failed) {
  Slot& slot = slots_.at(id);
  if (failed.trial >= 0) {
    Evaluation* run = RunOf(failed.trial);
    if (run == nullptr) return;
    slot.held.erase({failed.trial, failed.attempt});
    run->OnTrialFailed(id, failed);
    return Serve();
  }
  if (failed.retry) {
    log::Warn("worker {}: {}", id, failed.message);
    slot.excused = !failed.device;
    workers_.NoteCause(id, failed.message);
    router_.Kill(id);
    return;
  }
  if (!workers_.connected(id)) return OnRefusal(id, failed.message);
  slot.loading.reset();
  slot.loaded.reset();
  if (Entry* entry = Find(slot.run)) entry->run->LoadRefused(id, failed.message);
}

void Fleet::OnWorkerProgress(const std::string& id, const protocol::Progress& progress) {
  if (static_cast<double>(progress.engine_silent_ms) > 1e3 * options_.stall_timeout_s) {
    return KillHung(id, fmt::format("its engine has not come back for {} s", progress.engine_silent_ms / 1000));
  }
  Slot& slot = slots_.at(id);
  if (slot.pulls() && progress.to_pull > 0) {
    if (progress.pulled != slot.pulled) slot.load_moved_us = MonotonicMicros();
    slot.pulled = progress.pulled;
    slot.to_pull = progress.to_pull;
    if (Entry* entry = Find(slot.run)) entry->run->OnPull(id, progress.pulled, progress.to_pull);
  }
  if (progress.trial >= 0) {
    if (Evaluation* run = RunOf(progress.trial)) run->OnProgress(id, progress);
  } else if (workers_.HasWant(id)) {
    Relieve(id);
  } else if (!slot.loading) {
    Serve();  // it came late, and others may have more than they need by now
  }
}

// What another worker has committed in the meantime, nobody need end.
void Fleet::SendWithdrawn(Evaluation* run) {
  for (const auto& [worker, revoke] : run->TakeWithdrawn()) {
    slots_.at(worker).held.erase({revoke.trial, revoke.attempt});
    router_.Send(worker, revoke);
  }
}

// A worker that found nothing to do takes part in what another of its checkpoint has not begun, or does again what
// another is late with.
void Fleet::Relieve(const std::string& id) {
  const Slot& slot = slots_.at(id);
  if (!slot.loaded || !Usable(id)) return;
  for (const auto& [number, entry] : runs_) {
    if (!Suits(id, *entry.run)) continue;
    if (entry.run->load().fingerprint != *slot.loading || workers_.tag(id) != TagOf(entry.run->profile())) continue;
    Evaluation* run = entry.run.get();
    if (Guard(number, id, [&] { return RelieveBy(id, run); })) return;
  }
}

// True when the worker got something, will get it, or asks for nothing.
bool Fleet::RelieveBy(const std::string& id, Evaluation* run) {
  const auto orders = run->Relieve(id);
  for (const auto& [victim, shorten] : orders) router_.Send(victim, shorten);
  if (!orders.empty() || !workers_.HasWant(id)) return true;
  const auto copy = run->LeaseCopy(id, slots_.at(id).loaded->engine.value("device", ""));
  if (!copy) return false;
  slots_.at(id).run = run->number();
  Give(id, *copy);
  return workers_.TakeWant(id);
}

// ---- time

void Fleet::KillHung(const std::string& id, const std::string& why) {
  log::Warn("{}: {}; it is killed", id, why);
  (workers_.Owns(id) ? workers_ : scorers_).NoteCause(id, why);
  router_.Kill(id);
}

// Whether a run that is there wants what the worker loads.
bool Fleet::Needed(const std::string& id, const Slot& slot) const {
  return std::any_of(runs_.begin(), runs_.end(), [&](const auto& entry) {
    const Evaluation& run = *entry.second.run;
    return !run.ending() && run.load().fingerprint == *slot.loading && TagOf(run.profile()) == workers_.tag(id);
  });
}

// A load that nobody waits for any more, or that does not come on, keeps the device from other runs. The device is
// not at fault.
void Fleet::EndStalledLoads(int64_t now) {
  for (auto& [id, slot] : slots_) {
    if (!slot.loads() || !workers_.connected(id) || workers_.stopping(id) || !HostOf(id).here) continue;
    const double waited_s = static_cast<double>(now - slot.load_moved_us) / 1e6;
    if (waited_s > options_.needless_load_s && !Needed(id, slot)) {
      log::Warn("{} starts anew: it loads what no run needs any more", id);
      workers_.Renew(id);
    } else if (waited_s > options_.stall_timeout_s) {
      slot.excused = true;
      slot.load_moved_us = now;  // said once, though the process may take its time to end
      KillHung(id, fmt::format("its load has not come on for {:.0f} s", waited_s));
    }
  }
}

void Fleet::Tick() {
  if (stopping_) return;
  const int64_t now = MonotonicMicros();
  const double decay = std::exp2(-static_cast<double>(now - use_decayed_us_) / 1e6 / kUseHalfLifeSeconds);
  for (auto& [user, seconds] : use_) seconds *= decay;
  use_decayed_us_ = now;
  std::set<std::string> silent;
  for (const auto& [number, entry] : runs_) {
    Guard(number, entry.run->id(), [&] {
      SendWithdrawn(entry.run.get());
      return true;
    });
    for (const std::string& id : entry.run->SilentWorkers(now)) silent.insert(id);
    for (const std::string& id : entry.run->SilentScorers(now)) silent.insert(id);
  }
  for (const std::string& id : silent) {
    if (HostOf(id).here) {
      KillHung(id, "it has been silent for too long");
    } else {
      Abandon(id);
    }
  }
  EndStalledLoads(now);
  if (AllAside()) TellExhausted();  // a run that was added since has to hear of it
  ServeGivenUp();
  TellVain();
  TellWaiting(now);
  for (ProcessPool* pool : {&workers_, &scorers_}) {
    for (const std::string& id : pool->NotConnectedFor(kHelloMicros, now)) {
      if (HostOf(id).here) KillHung(id, "it was started and has not said hello");
    }
  }
}

void Fleet::StopAll(std::function<void()> done) {
  stopping_ = true;
  workers_.Close();
  scorers_.Close();
  router_.StopAll(kStopGrace, std::move(done));
}

// ---- looking

void Fleet::Changed(const std::string& id) {
  if (on_change) on_change(id);
}

Json Fleet::Workers() const {
  Json workers = Json::array();
  for (const std::string& id : workers_.ids()) {
    const Slot& slot = slots_.at(id);
    if (slot.device.empty() || HostOf(id).left) continue;
    const auto run = runs_.find(slot.run);
    const char* state = !HostOf(id).here         ? "away"
                        : Aside(id)                 ? "set aside"
                        : workers_.given_up(id)     ? (workers_.restarts(id) > 0 ? "failed" : "idle")
                        : !workers_.running(id)   ? "restarting"
                        : !slot.waits.empty()     ? "waiting"
                        : !workers_.connected(id) ? "starting"
                        : slot.loads()             ? "loading"
                        : slot.following && !slot.loading && run != runs_.end() && run->second.run->followable()
                            ? "loading"
                        : !slot.held.empty()       ? "working"
                                                   : "idle";
    workers.push_back({{"id", id},
                       {"host", slot.host},
                       {"device", slot.device},
                       {"state", state},
                       {"run", run == runs_.end() || slot.held.empty() ? Json() : Json(run->second.run->id())},
                       {"fingerprint", slot.loaded ? Json(slot.loaded->fingerprint) : Json()},
                       {"trials", slot.held.size()},
                       {"pid", slot.pid},
                       {"engine", slot.loaded ? slot.loaded->engine.value("name", "") : ""},
                       {"pull", slot.pulls() && slot.to_pull > 0 ? Json({{"done", slot.pulled}, {"total", slot.to_pull}}) : Json()},
                       {"waits", slot.waits.empty() ? Json() : Json(slot.waits)},
                       {"restarts", workers_.restarts(id)}});
  }
  return workers;
}

Json Fleet::Devices(const std::string& host) const {
  Json devices = Json::array();
  if (hosts_.at(host).left) return devices;
  for (const auto& [id, slot] : slots_) {
    if (slot.host != host || slot.device.empty()) continue;
    const auto aside = Aside(id);
    devices.push_back({{"id", slot.device},
                       {"worker", workers_.running(id) ? Json(id) : Json()},
                       {"set_aside", aside ? Json(*aside) : Json()}});
  }
  return devices;
}

}  // namespace evald
