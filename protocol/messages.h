#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "evald/json.h"

/// The protocol between an agent and its workers and metric processes: newline-delimited JSON over
/// a Unix stream socket, one message a line. Messages carry names and hashes, never payloads. The
/// page docs/protocol.md shows each message. All times are microseconds of CLOCK_MONOTONIC.
namespace evald::protocol {

inline constexpr int kVersion = 1;
inline constexpr size_t kLineBytesMax = 4 * 1024 * 1024;
/// The limit for the JSON of one line: a tree takes some 100 bytes for a value that may be two
/// bytes of the line.
inline constexpr size_t kLineValuesMax = 200'000;

/// A slice: documents [first, end) of one prepared task, whose generations go into one file.
struct Slice {
  std::string task;
  std::string prepared;       ///< folder of the prepared task
  std::string tokenizer_key;  ///< names the tokens file to attach; "" for none
  int64_t first = 0;
  int64_t end = 0;
  std::string file;  ///< the generations file to write (final name)
  /// Files of earlier attempts, complete or `.part`. Whole lines for documents of this slice are
  /// copied from them instead of being generated again.
  std::vector<std::string> salvage;
};

// ---- from a worker or metric process to its agent

struct Hello {  ///< the first message
  int version = kVersion;
  std::string role;  ///< "worker" or "metric"
  std::string id;    ///< given on the command line: "w0", "m1"
  int64_t pid = 0;
  Json engine;  ///< a worker's EngineInfo as JSON; for a metric process, how it isolates code
  /// The process that holds this worker's device, if any. The worker then has no engine and cannot
  /// be given work. It repeats this every ten seconds, and sends another hello, without this, when
  /// it has an engine.
  std::string waits;
};
struct Loaded {  ///< the checkpoint of a Load is ready to answer
  std::string fingerprint;
  Json engine;  ///< EngineInfo, now with max_length
  Json report;  ///< Engine::LoadReport
};
struct Want {  ///< asks for up to `count` trials (for a metric process: jobs)
  int count = 1;
};
struct Progress {      ///< the heartbeat; sent at least once a second, also when idle
  int64_t trial = -1;  ///< -1: idle
  int attempt = 0;
  int64_t requests_done = 0;
  int64_t tokens_in = 0;
  int64_t tokens_out = 0;
  int64_t engine_silent_ms = 0;  ///< since the engine last returned from a call
  /// The task of the trial's request that the engine has had for longest
  std::string oldest_task;
  double oldest_seconds = 0;  ///< how long it has had that request
  int64_t pulled = 0;         ///< bytes of the checkpoint that is being loaded, if the engine tells
  int64_t to_pull = 0;        ///< bytes in all; 0: it loads nothing, or does not tell
  /// Of requests_done, answered by an earlier attempt, in slices that are not done
  int64_t salvaged = 0;
};
struct SliceDone {  ///< the file is complete under its final name
  int64_t trial = 0;
  int attempt = 0;
  std::string task;
  int64_t first = 0;
  int64_t end = 0;
  std::string file;
  std::string hash;  ///< XXH3-128 of the file
  uint64_t bytes = 0;
  int64_t requests = 0;
  int64_t truncated = 0;  ///< requests whose prompts lost tokens
  int64_t tokens_in = 0;
  int64_t tokens_out = 0;
  double device_seconds = 0;   ///< time that the engine computed for it
  double longest_seconds = 0;  ///< the longest time from a request to its answer
  int64_t salvaged = 0;        ///< requests that an earlier attempt had answered
};
struct TrialDone {
  int64_t trial = 0;
  int attempt = 0;
  double device_seconds = 0;  ///< time that the engine computed for it
};
struct TrialFailed {
  int64_t trial = 0;  ///< -1: the worker as a whole (loading)
  int attempt = 0;
  bool retry = true;  ///< false: it would fail again anywhere (bad input)
  std::string message;
  bool device = false;  ///< with trial -1: the fault is its GPU's, not the load's
  /// If not `retry`: the task with a request that can never be answered; "": none
  std::string task;
  bool lasting = false;  ///< with trial -1, if not `retry`: the input is fine, the host is at fault
};
/// The most entries of JobDone::unscored. A job with more ends early.
inline constexpr size_t kUnscoredMax = 256;
/// Documents [first, end) of a job that could not be judged
struct Unscored {
  int64_t first = 0;
  int64_t end = 0;
  std::string cause;
};
struct JobDone {
  int64_t job = 0;
  std::string file;
  std::string hash;
  uint64_t bytes = 0;
  double cpu_seconds = 0;  ///< of the process, and of its children that have ended
  /// From its begin to its end: the time for which it held a slot of the pool
  double slot_seconds = 0;
  int attempt = 0;
  /// The first document of the job that the file does not hold, since the metric process ended the
  /// job early; 0: the file holds all
  int64_t end = 0;
  /// Documents before `end` that the file does not hold, since a judge gave no verdict on them
  std::vector<Unscored> unscored;
  std::string stopped;  ///< why it is vain to ask the task's judge any more; "" while it is not
};
struct JobFailed {
  int64_t job = 0;
  bool retry = true;
  std::string message;
  int attempt = 0;
};
/// Answers a Revoke: nothing more is written for the attempt, and its files are at rest
struct Revoked {
  int64_t trial = 0;
  int attempt = 0;
};
struct Shortened {  ///< answers a Shorten: the slice now ends here; documents behind were not begun
  int64_t trial = 0;
  int attempt = 0;
  std::string task;
  int64_t first = 0;
  int64_t end = 0;  ///< the slice's new end; its old one if everything was begun
};
struct Span {        ///< a span of the timeline
  std::string name;  ///< pull, generate, score, idle, ...
  int64_t begin = 0;
  int64_t end = 0;
  Json args;
};

// ---- from the agent

struct Load {
  std::string directory;  ///< the staged checkpoint; "" if the engine needs none
  std::string fingerprint;
};
struct Follow {  ///< pull the files that land in this folder; the Load of the checkpoint comes next
  std::string directory;  ///< holds a record of what has landed (checkpoint/landed.h)
};
struct Lease {
  int64_t trial = 0;
  int attempt = 0;
  std::vector<Slice> slices;
  std::string fingerprint;  ///< of the checkpoint that must answer: that of the last Load
  std::string run;          ///< the run's id: files of one run are never taken for another's
};
struct Job {  ///< score documents [first, end) of a task
  int64_t job = 0;
  std::string task;
  std::string prepared;
  int64_t first = 0;
  int64_t end = 0;
  std::string generations;  ///< a committed generations file with these documents
  std::string hash;         ///< XXH3-128 of that file
  std::string file;         ///< the scores file to write
  std::string run;          ///< as in Lease
  int attempt = 0;
  Json judge;  ///< where the task's judge is asked (metrics/judge/settings.h); null: it has none
};
struct Revoke {  ///< stop working on a trial: its lease is gone
  int64_t trial = 0;
  int attempt = 0;
};
/// Give back the documents of a slice from `end` on that are not begun: another device is free
struct Shorten {
  int64_t trial = 0;
  int attempt = 0;
  std::string task;
  int64_t first = 0;  ///< identifies the slice
  int64_t end = 0;
};
struct Drain {};  ///< finish leased trials, take nothing new, then leave
struct Stop {};   ///< leave now; committed and half-written files stay

using Message = std::variant<Hello, Loaded, Want, Progress, SliceDone, TrialDone, TrialFailed,
                             JobDone, JobFailed, Span, Load, Lease, Job, Revoke, Drain, Stop,
                             Revoked, Shorten, Shortened, Follow>;

Json ToJson(const Message& message);
/// Throws Error(kInput) like Decode.
Message MessageFromJson(const Json& json);

/// One line, with its newline.
std::string Encode(const Message& message);
/// Throws Error(kInput) that says which member of which message is wrong. Unknown members are
/// ignored, so that a later version may add some. Decoded messages are typed and bounded
/// (checks.h), including `engine`, `report` and `args`, which stay JSON.
Message Decode(std::string_view line);

/// Cuts a byte stream into lines. Throws Error(kInput) for a line longer than kLineBytesMax, and
/// forgets its buffer, so that memory stays bounded.
class LineSplitter {
 public:
  void Feed(std::string_view bytes) { buffer_.append(bytes); }
  /// The next whole line without its newline. False if there is none yet.
  bool Next(std::string* line);

 private:
  [[noreturn]] void ThrowTooLong(size_t bytes);

  std::string buffer_;
  size_t begin_ = 0;    ///< of the next line
  size_t scanned_ = 0;  ///< no newline lies between begin_ and this byte
};

}  // namespace evald::protocol
