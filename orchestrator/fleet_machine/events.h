#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "orchestrator/fleet_machine/run_view.h"

/// The events of the fleet machine.
namespace evald {

/// A host and its slots. Its workers are called `prefix` + "w0", "w1", …, one for each device, its
/// metric processes `prefix` + "m0", "m1", ….
struct HostSpec {
  std::string name;
  std::string prefix;
  bool stages_here = false;  ///< the host in whose memory the service stages checkpoints
  std::vector<std::string> devices;
  int metric_processes = 1;
  /// A refusal there ends the run. At another host, whose agent may say what it likes, it is for
  /// the run to believe.
  bool trusted = true;
};

enum class HostNews {
  kAway,     ///< it cannot be reached: it is given nothing, and what it holds waits for the
             ///< heartbeat's time-out
  kBack,     ///< it can be reached again, and missed nothing
  kLeaving,  ///< it is to be given nothing more
  kLeft,     ///< it holds nothing and ends with its processes: nobody waits for it
};

/// A process that runs on a host whose agent began anew. It holds no trial.
struct AdoptedProcess {
  std::string id;                      ///< with the host's prefix
  bool ready = false;                  ///< it has said hello; a worker: with an engine
  std::string profile;                 ///< of a worker
  bool on_gpu = false;                 ///< the worker's program computes on a GPU
  bool follows = false;                ///< its engine can follow a staging
  std::optional<std::string> loading;  ///< fingerprint of the last Load sent to it
  std::optional<EngineFacts> loaded;   ///< that Load was answered by this engine
  int wants = 0;                       ///< that wait for an answer
};

/// The messages of a process, as far as the fleet decides by them.
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
struct Pulled {  ///< so many bytes of the checkpoint that the worker loads or follows are there, of
                 ///< so many
  int64_t bytes = 0;
  int64_t of = 0;
};
struct Want {
  int count = 1;
};
struct Idle {};        ///< a worker's heartbeat that names no trial
struct Progressed {};  ///< a slice is whole, a job is done: failures before do not count any more
struct TrialOver {     ///< done or failed; the run has been told
  HeldTrial held;
  bool done = false;
  bool counts = false;  ///< the attempt held the lease
  double device_s = 0;  ///< that it took
};
struct Failed {  ///< the worker as a whole
  std::string message;
  bool retry = true;    ///< false: the same would happen anywhere
  bool device = false;  ///< its GPU is at fault
};
}  // namespace news
using ProcessNews = std::variant<news::Hello, news::Waits, news::Loaded, news::Pulled, news::Want,
                                 news::Idle, news::Progressed, news::TrialOver, news::Failed>;

/// How a process ended.
struct ProcessEnd {
  std::string how;          ///< "killed by signal 9"
  bool could_start = true;  ///< false: there was never a process
  bool usage = false;       ///< its exit status says that it cannot read what it was started with
};

/// The answers of runs to questions, and one thing that a run says unasked.
namespace answer {
struct Leased {  ///< answers LeaseTrial and Relieve; the lease has been sent
  std::string worker;
  HeldTrial held;
};
struct Relieved {  ///< answers Relieve: others were told to give something back
  std::string worker;
  int64_t run = 0;
};
struct JobLeased {  ///< answers LeaseJob; the job has been sent
  std::string scorer;
  int64_t run = 0;
};
struct NothingToLease {  ///< answers all three
  std::string id;
  int64_t run = 0;
};
struct Withdrawn {  ///< another worker has committed the trial: this one need not go on
  std::string worker;
  HeldTrial held;
};
}  // namespace answer
using RunAnswer = std::variant<answer::Leased, answer::Relieved, answer::JobLeased,
                               answer::NothingToLease, answer::Withdrawn>;

}  // namespace evald
