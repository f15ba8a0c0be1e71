#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/fleet_machine/fleet_machine.h"
#include "orchestrator/run_machine/run_machine.h"
#include "tests/unit/schedule/holders.h"

namespace evald {

/// The orders that a fleet got, in words.
using Log = std::vector<std::string>;

/// A view of the run with this number. Its workers load `load` and are started with `profile`.
RunView ViewOf(int64_t number, const std::string& load = "", const std::string& profile = "p");
/// The same for a run of the native engine.
RunView NativeView(int64_t number, const std::string& load = "c1");

/// A run of the tests: a real RunMachine, and around it the few parts of an Evaluation that the
/// fleet sees.
struct TinyRun {
  explicit TinyRun(RunView of, std::vector<MachineTask> tasks, int attempts_max);

  RunView view;  ///< fields that do not follow from the machine; TinyFleet fills in the others
  RunMachine machine;
  bool staged = true;
  bool plans_at_once = true;  ///< plans as soon as its engine is known
  int devices = 1;
  std::string failure;  ///< the cause of its end, if it was not complete
  std::string waiting;
  /// numbers of times, by task and document
  std::map<std::pair<size_t, int64_t>, int> committed, scored;
  std::map<std::string, std::string> makers;  ///< worker by generations file
  std::map<int64_t, TrialLease> live;         ///< leases by trial, as granted
  bool done() const { return view.planned && machine.idle() && machine.complete(); }
  /// No work is left, or the run is ending.
  bool over() const { return view.ending || (view.planned && machine.idle()); }
};

/// A process on a made-up host. Messages to and from the process are under way until they are
/// delivered.
struct TinyProcess {
  std::string id, host, profile;
  bool metric_process = false, on_gpu = false;
  bool dead = false;    ///< the message of its end is under way
  bool engine = false;  ///< its hello named an engine
  bool follows = true;
  std::optional<std::string> target;  ///< fingerprint of the last Load received
  bool loaded = false;
  bool offered = false;  // the worker said that it is idle, and may get a trial unasked
  int asked = 0;
  struct Lease {
    TrialLease trial;
    size_t next = 0;    ///< the slice that ends next
    int64_t since = 0;  ///< when its first document went into the engine
    int64_t begun = 1;  ///< documents of the slice `next` that are begun
  };
  std::map<HeldTrial, Lease> leases;
  std::deque<std::pair<int64_t, MetricJob>> jobs;
  std::deque<std::function<void()>> inbox, outbox;
  /// The facts of its engine, on a GPU or the processor.
  EngineFacts engine_facts() const;
};

/// A FleetMachine, an executor of its orders, and hosts whose processes act as the test says. Each
/// order is checked against the state of its process. A wrong order fails the test.
class TinyFleet {
 public:
  explicit TinyFleet(FleetMachine::Options options = {}) : machine(options) {}

  FleetMachine machine;
  int64_t now = 1'000'000;
  std::map<int64_t, TinyRun> runs;
  std::map<std::string, std::unique_ptr<TinyProcess>> processes;
  std::set<std::string> away;  ///< hosts
  /// hosts, named before they are added; runs doubt their refusals
  std::set<std::string> untrusted;
  std::set<std::string> dropped;  ///< fingerprints of staged checkpoints
  int64_t events = 0;
  int64_t backups = 0, stolen = 0, revoked = 0, abandoned = 0;  ///< counts of these events
  /// Deliver makes processes say hello, load and ask without delay.
  bool prompt = true;
  std::function<void(TinyProcess*)> on_load;   ///< called instead of loading
  std::function<void(TinyProcess*)> on_start;  ///< called instead of saying hello
  bool ignores_stop = false;                   ///< processes do not stop when told to
  std::string unstartable;                     ///< the host cannot start this process

  // events
  void AddHost(const std::string& name, std::vector<std::string> devices, int metric_processes = 0);
  /// The host's agent begins anew: with its processes, which hold nothing then, or without them.
  void AgentAnew(const std::string& name, bool with_processes);
  void HostIs(const std::string& name, HostNews news);
  /// The host ends in so many seconds; negative: no end is known.
  void HostEnds(const std::string& name, double in_s);
  TinyRun& AddRun(RunView view, std::vector<MachineTask> tasks = {{"t", 8}}, bool staged = true,
                  int attempts_max = 3);
  void Changed(int64_t run);
  void Stage(int64_t run);
  void Remove(int64_t run, bool leaves_staged = false);
  void Fail(int64_t run, const std::string& why);
  void Pass(double seconds);
  void Tick();

  // steps of processes; their messages go to the outbox
  void Hello(TinyProcess* process);
  void Loaded(TinyProcess* process);
  void Want(TinyProcess* process);
  void Beat(TinyProcess* process);
  void EndSlice(TinyProcess* process);
  void FailTrial(TinyProcess* process, bool retry);
  void EndJob(TinyProcess* process, bool fails = false);
  void SayFailed(TinyProcess* process, const std::string& message, bool retry, bool device = false);
  void Die(TinyProcess* process, const std::string& how = "killed by signal 9", bool usage = false);

  // the same by name, with everything that follows, for stories
  TinyProcess& At(const std::string& id);
  void Dies(const std::string& id, const std::string& how = "killed by signal 9",
            bool usage = false);
  void Says(const std::string& id, const ProcessNews& news);
  /// The worker ends its work and asks again.
  void Works(const std::string& id);
  /// All processes work until no work is left, or for `rounds` rounds.
  void WorkAll(int rounds = 200);

  /// Delivers messages until none is under way, except those of hosts that are away.
  void Deliver();
  bool DeliverTo(TinyProcess* process);
  bool DeliverFrom(TinyProcess* process);
  /// The orders since the last call, as text, without those that only people look at.
  std::vector<std::string> Take();
  WorkerState StateOf(const std::string& id) const { return machine.FindWorker(id)->state(); }
  /// Fails the test if a condition that must hold between events does not hold.
  void Check();

 private:
  struct Carry;
  void Settle();
  void CheckLease(TinyRun* run, const TrialLease& lease);
  void Commit(TinyRun* run, const std::string& worker, const HeldTrial& held,
              const LeasedSlice& slice);
  void OnTrialEnd(const std::string& worker, const HeldTrial& held, bool failed, bool retry);
  void OnTrialBeat(const std::string& worker, const HeldTrial& held, int64_t done, int64_t since);
  void OnJobEnd(const std::string& metric_process, int64_t run, const MetricJob& job, bool fails);
  void Revocations(TinyRun* run);
  void Send(TinyProcess* from, std::function<void()> message) {
    from->outbox.push_back(std::move(message));
  }
  RunView ViewOf(TinyRun* run);
  HostSpec SpecOf(const std::string& name) const { return specs_.at(name); }

  std::map<std::string, HostSpec> specs_;
  std::vector<std::string> log_;
  bool settling_ = false;
};

}  // namespace evald
