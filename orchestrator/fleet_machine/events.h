#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "orchestrator/fleet_machine/run_view.h"

/// The events of the fleet machine.
namespace evald {

/// A host and its slots. Its workers are called `prefix` + "w0", "w1", …, one for each device. Its
/// metric processes are called `prefix` + "m0", "m1", ….
struct HostSpec {
  std::string name;
  std::string prefix;
  bool stages_here = false;  ///< the host in whose memory the service stages checkpoints
  std::vector<std::string> devices;
  int metric_processes = 1;
  /// Whether a refusal from this host ends the run. If not, the run decides whether to believe it:
  /// another host's agent may claim anything.
  bool trusted = true;
  std::string owner = {};  ///< name of the token that its agent came with
};

enum class HostNews {
  /// It cannot be reached: it gets nothing, and its leases wait for the heartbeat's time-out
  kAway,
  kBack,     ///< it can be reached again, and missed no message
  kLeaving,  ///< it gets nothing more
  kLeft,     ///< it holds nothing and ends with its processes; no one waits for it
};

/// A process that runs on a host whose agent began anew. It holds no trial.
struct AdoptedProcess {
  std::string id;                      ///< with the host's prefix
  bool ready = false;                  ///< it has said hello; a worker: with an engine
  std::string profile;                 ///< of a worker
  bool on_gpu = false;                 ///< the worker's program computes on a GPU
  bool follows = false;                ///< its engine can follow a staging
  std::optional<std::string> loading;  ///< fingerprint of the last Load sent to it
  std::optional<EngineFacts> loaded;   ///< the engine that answered that Load
  int wants = 0;                       ///< wants that wait for an answer
};

/// The messages of a process that the fleet machine needs for its decisions.
namespace news {
struct Hello {  ///< the process is there; a worker has made its engine
  bool follows = false;
};
struct Waits {  ///< the worker cannot make its engine yet, since another process holds its GPU
  std::string who;
};
struct Loaded {
  std::string fingerprint;
  EngineFacts engine;
};
/// `bytes` of the checkpoint that the worker loads or follows have arrived, out of `of`
struct Pulled {
  int64_t bytes = 0;
  int64_t of = 0;
};
struct Want {
  int count = 1;
};
struct Idle {  ///< a worker's heartbeat that names no trial
  /// How long ago its engine last came back from a call; -1: the heartbeat does not tell
  int64_t silent_us = -1;
};
struct Progressed {};  ///< a slice is whole or a job is done: earlier failures no longer count
struct Moved {};       ///< a trusted worker's requests come to an end one by one
struct TrialOver {     ///< the trial is done or has failed; the run was told before
  HeldTrial held;
  bool done = false;
  bool counts = false;  ///< the attempt held the lease
  double device_s = 0;  ///< device seconds of the trial
};
struct Failed {  ///< the worker as a whole has failed
  std::string message;
  bool retry = true;     ///< false: it would happen anywhere
  bool device = false;   ///< its GPU is at fault
  bool lasting = false;  ///< if not `retry`: the host is at fault, not the input
};
}  // namespace news
using ProcessNews =
    std::variant<news::Hello, news::Waits, news::Loaded, news::Pulled, news::Want, news::Idle,
                 news::Progressed, news::Moved, news::TrialOver, news::Failed>;

/// How a process ended.
struct ProcessEnd {
  std::string how;          ///< "killed by signal 9"
  bool could_start = true;  ///< false: no process was ever started
  bool usage = false;       ///< its exit status says that its command line is unusable
  bool with_agent = false;  ///< the agent of its host has ended, and all its processes
};

/// The answers of runs to questions, and one message that a run sends unasked.
namespace answer {
struct Leased {  ///< answers LeaseTrial and Steal; the lease has been sent
  std::string worker;
  HeldTrial held;
};
struct Stolen {  ///< answers Steal: other workers were told to give work back
  std::string worker;
  int64_t run = 0;
};
struct JobLeased {  ///< answers LeaseJob; the job has been sent
  std::string metric_process;
  int64_t run = 0;
};
struct NothingToLease {  ///< answers all three
  std::string id;
  int64_t run = 0;
};
struct Revoked {  ///< another worker has committed the trial: this worker need not go on
  std::string worker;
  HeldTrial held;
};
}  // namespace answer
using RunAnswer = std::variant<answer::Leased, answer::Stolen, answer::JobLeased,
                               answer::NothingToLease, answer::Revoked>;

}  // namespace evald
