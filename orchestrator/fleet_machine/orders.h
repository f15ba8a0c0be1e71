#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "orchestrator/fleet_machine/run_view.h"
#include "orchestrator/schedule/lease_table.h"

/// The orders of the fleet machine. The executor carries them out one by one, in their order. If an
/// order causes an event (a run's answer, a changed run, a process that cannot be started), the
/// executor passes the event on at once. The orders that follow from it come after those already
/// given.
namespace evald::order {

// ---- to processes, which run unless a comment says otherwise
struct StartWorker {
  std::string worker;
  std::string profile;  ///< the command line to start with (RunView::profile)
  int64_t run = 0;      ///< the run that it is started for; may be over by now
};
struct StartMetricProcess {
  std::string metric_process;
};
struct Stop {  ///< the process is to leave in order; another one comes next in its slot
  std::string id;
  /// For the log: why the same process is restarted; "" if another profile comes next
  std::string why;
};
struct Kill {  ///< may name a process that the machine does not know: its host has no slot for it
  std::string id;
  std::string why;
};
struct Load {  ///< the run's checkpoint; the worker has an engine
  std::string worker;
  int64_t run = 0;
};
struct Follow {  ///< the run's staging; the worker's engine can follow, and it holds no trial
  std::string worker;
  int64_t run = 0;
};
struct Revoke {  ///< the worker no longer holds the trial
  std::string worker;
  HeldTrial held;
};

/// The run takes the trial back from the worker, without a failure, and says so (answer::Revoked).
struct TakeBack {
  std::string worker;
  HeldTrial held;
  const char* why = "others wait for the device";  ///< for the log
};
/// The worker's host ends soon. The run tells the worker to end the trial's slices after the
/// documents that are begun; the others are open again
struct HandBack {
  std::string worker;
  HeldTrial held;
};
/// The run looks whether the worker holds trials of which nothing has come for too long. If so, it
/// takes them back, doubts the worker's host, and says so (answer::Revoked)
struct TakeStalled {
  std::string worker;
  int64_t run = 0;
};
/// The run takes its jobs back from the metric process, without a failure. The process is killed
/// next
struct TakeJobsBack {
  std::string metric_process;
  int64_t run = 0;
  bool distrust = false;  ///< the run doubts the host from now on
};

// ---- questions to runs, each answered at once (answers.h)
/// The worker asked, and has loaded the run's checkpoint; answer Leased or NothingToLease
struct LeaseTrial {
  std::string worker;
  int64_t run = 0;
  /// The trial must be expected to end before this time, since the worker's host ends; 0: no limit
  int64_t until_us = 0;
};
/// The worker asked, got nothing and is idle; answer Stolen, Leased (a backup) or NothingToLease
struct Steal {
  std::string worker;
  int64_t run = 0;
  int64_t until_us = 0;  ///< as in LeaseTrial
};
struct LeaseJob {  ///< answer JobLeased or NothingToLease
  std::string metric_process;
  int64_t run = 0;
  bool own_only = false;  ///< only a job whose generations were made on the metric process's host
  int64_t until_us = 0;   ///< as in LeaseTrial
};

// ---- news for runs
/// The worker has the run's checkpoint loaded. A later order may be a Load of another checkpoint,
/// so the executor keeps the worker's answer to its load until it carries out the next Load or
/// Follow.
struct TellLoaded {
  int64_t run = 0;
  std::string worker;
  EngineFacts engine;
};
/// The worker refuses the run's load or settings, and any worker would. The run ends, unless it
/// doubts the worker's host.
struct TellRefused {
  int64_t run = 0;
  std::string worker;
  std::string why;
  bool see_logs = false;
  bool lasting = false;  ///< the host is at fault, not the input
};
struct TellWorkerLost {  ///< to all runs
  std::string worker;
  std::string why;
  Suspect suspect = Suspect::kItem;
};
struct TellMetricProcessLost {  ///< to all runs
  std::string metric_process;
  std::string why;
  Suspect suspect = Suspect::kItem;
};
struct TellSetAside {  ///< to all runs: nothing is computed on the device any more
  std::string host, device;
  std::string why;
};
struct TellDevices {  ///< to all runs: the number of devices that are there
  int count = 0;
};
struct TellNoWorkers {  ///< no worker is left for the run, and none will come
  int64_t run = 0;
  std::string why;
};
struct TellNoMetricProcesses {
  int64_t run = 0;
  std::string why;
};
struct TellNobodyElse {  ///< all hosts left for the run are doubted by it (RunView::doubted)
  int64_t run = 0;
};
/// No worker survives loading the run's checkpoint, or its engine if it has none: the run ends
struct TellVain {
  int64_t run = 0;
  std::string why;
};
struct TellWaiting {  ///< what the run waits for, for people; "": it does not wait
  int64_t run = 0;
  std::string what;
  bool no_device = false;  ///< no device is there that could do what the run needs, idle or busy
};

// ---- the rest
struct DropStaged {  ///< no run and no worker uses this staged checkpoint any more
  std::string fingerprint;
};
struct ShowChange {  ///< the worker has changed in a way that people see
  std::string worker;
};
struct StopHosts {};  ///< end all processes that need not outlive the orchestrator
struct Ignored {      ///< for the log: an event that has no meaning in the slot's state
  std::string id;
  const char* event = "";
  const char* state = "";
};

}  // namespace evald::order

namespace evald {

using Order =
    std::variant<order::StartWorker, order::StartMetricProcess, order::Stop, order::Kill,
                 order::Load, order::Follow, order::Revoke, order::TakeBack, order::HandBack,
                 order::TakeStalled, order::TakeJobsBack, order::LeaseTrial, order::Steal,
                 order::LeaseJob, order::TellLoaded, order::TellRefused, order::TellWorkerLost,
                 order::TellMetricProcessLost, order::TellSetAside, order::TellDevices,
                 order::TellNoWorkers, order::TellNoMetricProcesses, order::TellNobodyElse,
                 order::TellVain, order::TellWaiting, order::DropStaged, order::ShowChange,
                 order::StopHosts, order::Ignored>;

}  // namespace evald
