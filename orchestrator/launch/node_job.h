#pragma once

#include <cstdint>
#include <string>

namespace evald {

/// A job that a launcher (Slurm, or a user's programs) runs on one node, with one agent. Its number
/// and name are given before it is submitted, so that it is found again whatever is killed
/// meanwhile. Times are seconds since 1970; 0: not yet.
struct NodeJob {
  enum class State {
    kIntended,   ///< it is being submitted; or nobody knows whether it was
    kSubmitted,  ///< the launcher has it
    kStopping,   ///< it is to end
    kOver,
  };
  int64_t number = 0;  ///< grows with each job of a service
  std::string name;    ///< of the job; nothing else is called so
  State state = State::kIntended;
  std::string job;   ///< the launcher's id of it, "4711"; "" before it is known
  std::string node;  ///< where it runs or ran
  double intended_at = 0;
  double started_at = 0;
  double ended_at = 0;
  double used_s = 0;  ///< seconds on a node before it was put back into the launcher's queue
  std::string why;    ///< why it stops or is over, for people
  bool operator==(const NodeJob&) const = default;
};

/// A job as a launcher lists it.
struct ListedJob {
  enum class State { kPending, kRunning, kOver };
  std::string job;
  std::string name;
  State state = State::kPending;
  std::string word;      ///< the launcher's own word for the state: "PREEMPTED"
  std::string reason;    ///< why it waits, in the launcher's words; "" for none
  std::string node;      ///< "" before it starts
  double starts_at = 0;  ///< seconds since 1970: when it started, or is expected to; 0: not known
  double ends_at = 0;    ///< seconds since 1970: the end of its time limit; 0: not known
};

/// A launcher's answer to a submission.
struct SubmitAnswer {
  enum class Outcome {
    kAccepted,
    kRefused,  ///< the job does not exist
    kUnknown,  ///< it may exist
  };
  Outcome outcome = Outcome::kUnknown;
  std::string job;       ///< the launcher's id, if accepted
  std::string why;       ///< otherwise
  bool passing = false;  ///< of a refusal: the launcher cannot be reached, and may be later
};

/// What the fleet knows of the host of a job's agent.
struct NodeHost {
  bool connected = false;
  bool leaving = false;  ///< it gets no more work
  bool busy = false;     ///< one of its processes holds a trial or job, or loads a checkpoint
  int devices = 0;       ///< one worker each
  std::string broken;    ///< why it can compute nothing; "" if it can
  bool at_fault = true;  ///< if it is broken: itself, not what it was given, as far as others show
  std::string refused;   ///< why its agent was turned away; "" if it was not, or has come since
  bool operator==(const NodeHost&) const = default;
};

}  // namespace evald
