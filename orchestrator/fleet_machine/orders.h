#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "orchestrator/fleet_machine/run_view.h"

/// The orders of the fleet machine. The executor carries orders out one by one, in their order.
/// Where carrying one out brings an event about (an answer of a run, a run that changes, a process
/// that cannot be started), the executor passes the event on at once; the orders that follow from
/// it come after those that are there already.
namespace evald::order {

// ---- to processes; each is one that runs, unless it says otherwise
struct StartWorker {
  std::string worker;
  std::string profile;  ///< what the worker is started with (RunView::profile)
  int64_t run = 0;      ///< the run that it is started for, which may be over by now
};
struct StartScorer {
  std::string scorer;
};
struct Stop {  ///< the process is to leave in order; something else comes next in its slot
  std::string id;
  std::string why;  ///< for the log: why the same process is started anew; "" where another profile
                    ///< comes next
};
struct Kill {  ///< also of a process that the machine does not know: its host holds it without a
               ///< slot for it
  std::string id;
  std::string why;
};
struct Load {  ///< of the run's checkpoint. The worker has an engine
  std::string worker;
  int64_t run = 0;
};
struct Follow {  ///< the run's staging. The worker has an engine that can, and holds no trial
  std::string worker;
  int64_t run = 0;
};
struct Revoke {  ///< the worker holds the trial no more
  std::string worker;
  HeldTrial held;
};

// ---- questions to runs, each answered at once (answers.h)
struct LeaseTrial {  ///< the worker asked, and has loaded the run's checkpoint; answer Leased or
                     ///< NothingToLease
  std::string worker;
  int64_t run = 0;
};
struct Relieve {  ///< the worker asked, got nothing and is idle; answer Relieved, Leased (a copy)
                  ///< or NothingToLease
  std::string worker;
  int64_t run = 0;
};
struct LeaseJob {  ///< answer JobLeased or NothingToLease
  std::string scorer;
  int64_t run = 0;
  bool own_only = false;  ///< only a job whose generations were made on the metric process's host
};

// ---- news for runs
/// The worker has the run's checkpoint loaded. A Load of another may be among the orders that
/// follow: so an executor keeps what a worker said of its load until it carries the next Load or
/// Follow out.
struct TellLoaded {
  int64_t run = 0;
  std::string worker;
  EngineFacts engine;
};
struct TellRefused {  ///< what the worker says of the run's load or settings would be the same
                      ///< anywhere: the run ends, unless it doubts the worker's host
  int64_t run = 0;
  std::string worker;
  std::string why;
  bool see_logs = false;
};
struct TellWorkerLost {  ///< to all runs
  std::string worker;
  std::string why;
  bool at_fault = false;  ///< the worker's device may be the cause (LeaseTable::Lose)
};
struct TellScorerLost {  ///< to all runs
  std::string scorer;
  std::string why;
};
struct TellSetAside {  ///< to all runs: nothing is computed on the device any more
  std::string host, device;
  std::string why;
};
struct TellDevices {  ///< to all runs: so many devices are there
  int count = 0;
};
struct TellNoWorkers {  ///< no worker is left for the run, and none will come
  int64_t run = 0;
  std::string why;
};
struct TellNoScorers {
  int64_t run = 0;
  std::string why;
};
struct TellNobodyElse {  ///< no host is left for the run but those that it doubts
                         ///< (RunView::doubted)
  int64_t run = 0;
};
struct TellVain {  ///< no worker survives loading the run's checkpoint (engine, where it has none):
                   ///< the run ends
  int64_t run = 0;
  std::string why;
};
struct TellWaiting {  ///< what the run waits for, for people; "" for nothing
  int64_t run = 0;
  std::string what;
};

// ---- the rest
struct DropStaged {  ///< nobody uses the staged checkpoint of runs that are over
  std::string fingerprint;
};
struct ShowChange {  ///< what people see of the worker has changed
  std::string worker;
};
struct StopHosts {};  ///< end all processes that need not outlive the orchestrator
struct Ignored {      ///< for the log: an event that says nothing to the process's slot, as it is
  std::string id;
  const char* event = "";
  const char* state = "";
};

}  // namespace evald::order

namespace evald {

using Order = std::variant<order::StartWorker, order::StartScorer, order::Stop, order::Kill,
                           order::Load, order::Follow, order::Revoke, order::LeaseTrial,
                           order::Relieve, order::LeaseJob, order::TellLoaded, order::TellRefused,
                           order::TellWorkerLost, order::TellScorerLost, order::TellSetAside,
                           order::TellDevices, order::TellNoWorkers, order::TellNoScorers,
                           order::TellNobodyElse, order::TellVain, order::TellWaiting,
                           order::DropStaged, order::ShowChange, order::StopHosts, order::Ignored>;

}  // namespace evald
