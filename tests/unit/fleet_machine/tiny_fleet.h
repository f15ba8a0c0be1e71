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
#include "orchestrator/run/run_machine.h"

namespace evald {

/// What a fleet was ordered, in words.
using Log = std::vector<std::string>;

/// A run with this number, whose workers load `load` and are started with `profile`.
RunView ViewOf(int64_t number, const std::string& load = "", const std::string& profile = "p");
/// The same of a run of the native engine.
RunView NativeView(int64_t number, const std::string& load = "c1");

/// A run of the tests: a real RunMachine, and the little that the fleet sees of an Evaluation
/// around it.
struct TinyRun {
  explicit TinyRun(RunView of, std::vector<MachineTask> tasks, int attempts_max);

  RunView view;  ///< what does not follow from the machine; the rest is filled in by TinyFleet
  RunMachine machine;
  bool staged = true;
  bool plans_at_once = true;  ///< as soon as its engine is known
  int devices = 1;
  std::string failure;  ///< how it ended, where it was not complete
  std::string waiting;
  std::map<std::pair<size_t, int64_t>, int> committed, scored;  ///< how often, by task and document
  std::map<std::string, std::string> makers;                    ///< by generations file
  std::map<int64_t, TrialLease> live;  ///< leases by trial, as they were given
  bool done() const { return view.planned && machine.idle() && machine.complete(); }
  /// Nothing is left to do, or nothing is done for it any more.
  bool over() const { return view.ending || (view.planned && machine.idle()); }
};

/// A process on a made-up host. Messages to and from it are on their way until they are delivered.
struct TinyProcess {
  std::string id, host, profile;
  bool scorer = false, on_gpu = false;
  bool dead = false;    ///< its end is on its way
  bool engine = false;  ///< it said hello with one
  bool follows = true;
  std::optional<std::string> target;  ///< fingerprint of the last Load that it got
  bool loaded = false;
  int asked = 0;
  struct Lease {
    TrialLease trial;
    size_t next = 0;    ///< the slice to end next
    int64_t since = 0;  ///< its first document is in the engine
  };
  std::map<HeldTrial, Lease> leases;
  std::deque<std::pair<int64_t, MetricJob>> jobs;
  std::deque<std::function<void()>> inbox, outbox;
  /// Its GPU's engine, or the processor's.
  EngineFacts engine_facts() const;
};

/// A FleetMachine, an executor of its orders, and hosts whose processes do what the test has them
/// do. Each order is checked against what the process is at; what is wrong fails the test.
class TinyFleet {
 public:
  explicit TinyFleet(FleetMachine::Options options = {}) : machine(options) {}

  FleetMachine machine;
  int64_t now = 1'000'000;
  std::map<int64_t, TinyRun> runs;
  std::map<std::string, std::unique_ptr<TinyProcess>> processes;
  std::set<std::string> away;       ///< hosts
  std::set<std::string> untrusted;  ///< hosts, before they are added: runs doubt what they refuse
  std::set<std::string> dropped;    ///< fingerprints of staged checkpoints
  int64_t events = 0;
  int64_t copies = 0, relieved = 0, withdrawn = 0, abandoned = 0;  ///< that happened
  /// Processes say hello, load and ask at once, when Deliver finds them at it.
  bool prompt = true;
  std::function<void(TinyProcess*)> on_load;   ///< instead of its being loaded
  std::function<void(TinyProcess*)> on_start;  ///< instead of hello
  bool ignores_stop = false;                   ///< processes do not leave in order
  std::string unstartable;                     ///< the host cannot start this process

  // what happens
  void AddHost(const std::string& name, std::vector<std::string> devices, int scorers = 0);
  /// Its agent begins anew; with its processes, which hold nothing then, or without.
  void AgentAnew(const std::string& name, bool with_processes);
  void HostIs(const std::string& name, HostNews news);
  TinyRun& AddRun(RunView view, std::vector<MachineTask> tasks = {{"t", 8}}, bool staged = true,
                  int attempts_max = 3);
  void Changed(int64_t run);
  void Stage(int64_t run);
  void Remove(int64_t run, bool leaves_staged = false);
  void Fail(int64_t run, const std::string& why);
  void Pass(double seconds);
  void Tick();

  // what processes do; their messages go to the outbox
  void Hello(TinyProcess* process);
  void Loaded(TinyProcess* process);
  void Want(TinyProcess* process);
  void Beat(TinyProcess* process);
  void EndSlice(TinyProcess* process);
  void FailTrial(TinyProcess* process, bool retry);
  void EndJob(TinyProcess* process, bool fails = false);
  void SayFailed(TinyProcess* process, const std::string& message, bool retry, bool device = false);
  void Die(TinyProcess* process, const std::string& how = "killed by signal 9", bool usage = false);

  // the same by name, all of it and what follows; for stories
  TinyProcess& At(const std::string& id);
  void Dies(const std::string& id, const std::string& how = "killed by signal 9",
            bool usage = false);
  void Says(const std::string& id, const ProcessNews& news);
  /// The worker ends what it holds and asks again.
  void Works(const std::string& id);
  /// All processes work until nothing is left to do, or `rounds` are over.
  void WorkAll(int rounds = 200);

  /// Delivers what is on its way, until nothing is, but for hosts that are away.
  void Deliver();
  bool DeliverTo(TinyProcess* process);
  bool DeliverFrom(TinyProcess* process);
  /// The orders since the last call, as text, but for those that only people look at.
  std::vector<std::string> Take();
  WorkerState StateOf(const std::string& id) const { return machine.FindWorker(id)->state(); }
  /// Fails the test unless all that must hold between events holds.
  void Check();

 private:
  struct Carry;
  void Settle();
  void CheckLease(TinyRun* run, const TrialLease& lease);
  void Commit(TinyRun* run, const std::string& worker, const HeldTrial& held,
              const LeasedSlice& slice);
  void OnTrialEnd(const std::string& worker, const HeldTrial& held, bool failed, bool retry);
  void OnTrialBeat(const std::string& worker, const HeldTrial& held, int64_t done, int64_t since);
  void OnJobEnd(const std::string& scorer, int64_t run, const MetricJob& job, bool fails);
  void Withdrawals(TinyRun* run);
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
