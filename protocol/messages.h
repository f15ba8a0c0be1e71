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
/// Of the JSON of one line: a tree takes some 100 bytes for a value that two bytes of the line may
/// hold.
inline constexpr size_t kLineValuesMax = 200'000;

/// A slice: documents [first, end) of one prepared task, whose generations go into one file.
struct Slice {
  std::string task;
  std::string prepared;       ///< folder of the prepared task
  std::string tokenizer_key;  ///< names the tokens file to attach; "" for none
  int64_t first = 0;
  int64_t end = 0;
  std::string file;  ///< the generations file to write (final name)
  /// Left by earlier attempts, complete or `.part`: whole lines of documents of this slice are
  /// copied from there instead of generated again.
  std::vector<std::string> salvage;
};

// ---- from a worker or metric process to its agent

struct Hello {  ///< the first message
  int version = kVersion;
  std::string role;  ///< "worker" or "metric"
  std::string id;    ///< given on the command line: "w0", "m1"
  int64_t pid = 0;
  Json engine;  ///< a worker's EngineInfo as JSON; for a metric process what it isolates code with
  /// Of a worker whose device another process holds, which: it has no engine yet and can be given
  /// nothing. It says so again every ten seconds, and another hello, without this, when it has one.
  std::string waits;
};
struct Loaded {  ///< the checkpoint of a Load is ready to answer
  std::string fingerprint;
  Json engine;  ///< EngineInfo, now with max_length
  Json report;  ///< Engine::LoadReport
};
struct Want {  ///< gives me up to so many trials (jobs, for a metric process)
  int count = 1;
};
struct Progress {      ///< the heartbeat; sent at least once a second, also when idle
  int64_t trial = -1;  ///< -1: idle
  int attempt = 0;
  int64_t requests_done = 0;
  int64_t tokens_in = 0;
  int64_t tokens_out = 0;
  int64_t engine_silent_ms = 0;  ///< since the engine last came back from what it was asked
  std::string oldest_task;    ///< of the trial's requests, the one that the engine was given first
  double oldest_seconds = 0;  ///< since then
  int64_t pulled = 0;   ///< bytes of the checkpoint that is being loaded, where the engine tells
  int64_t to_pull = 0;  ///< of so many; 0: it loads nothing, or does not tell
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
  int64_t truncated = 0;  ///< requests whose prompt lost tokens
  int64_t tokens_in = 0;
  int64_t tokens_out = 0;
  double device_seconds = 0;   ///< time the engine computed for it
  double longest_seconds = 0;  ///< from when the engine was given a request to its answer, at most
  int64_t salvaged = 0;        ///< of the requests: an earlier attempt had answered them
};
struct TrialDone {
  int64_t trial = 0;
  int attempt = 0;
  double device_seconds = 0;  ///< time the engine computed for it
};
struct TrialFailed {
  int64_t trial = 0;  ///< -1: the worker as a whole (loading)
  int attempt = 0;
  bool retry = true;  ///< false: would fail again anywhere (bad input)
  std::string message;
  bool device = false;  ///< with trial -1: its GPU is at fault, not what it was to load
  std::string
      task;  ///< with retry false: the task whose request can never be answered; "": no one's
};
struct JobDone {
  int64_t job = 0;
  std::string file;
  std::string hash;
  uint64_t bytes = 0;
  double cpu_seconds = 0;   ///< of the process, and of children that have ended
  double slot_seconds = 0;  ///< from its beginning to its end: what it held a slot of the pool for
  int attempt = 0;
};
struct JobFailed {
  int64_t job = 0;
  bool retry = true;
  std::string message;
  int attempt = 0;
};
struct Revoked {  ///< answers a Revoke: nothing more is written for the attempt, its files are at
                  ///< rest
  int64_t trial = 0;
  int attempt = 0;
};
struct Shortened {  ///< answers a Shorten: the slice ends here now; what lies behind was not begun
  int64_t trial = 0;
  int attempt = 0;
  std::string task;
  int64_t first = 0;
  int64_t end = 0;  ///< the slice's new end; its old one where everything was begun
};
struct Span {        ///< a stretch of the timeline
  std::string name;  ///< pull, generate, score, idle, ...
  int64_t begin = 0;
  int64_t end = 0;
  Json args;
};

// ---- from the agent

struct Load {
  std::string directory;  ///< the staged checkpoint; "" where the engine needs none
  std::string fingerprint;
};
struct Follow {  ///< pull what lands in this folder: the Load of what becomes of it comes next
  std::string directory;  ///< with a record of what has landed (checkpoint/landed.h)
};
struct Lease {
  int64_t trial = 0;
  int attempt = 0;
  std::vector<Slice> slices;
  std::string fingerprint;  ///< of the checkpoint that has to answer: that of the last Load
  std::string run;  ///< the run's id: what was written for one run is never taken for another's
};
struct Job {  ///< score documents [first, end) of a task
  int64_t job = 0;
  std::string task;
  std::string prepared;
  int64_t first = 0;
  int64_t end = 0;
  std::string generations;  ///< a committed generations file that holds them
  std::string hash;         ///< XXH3-128 of that file
  std::string file;         ///< the scores file to write
  std::string run;          ///< as in Lease
  int attempt = 0;
};
struct Revoke {  ///< stop working on a trial; its lease is gone
  int64_t trial = 0;
  int attempt = 0;
};
struct Shorten {  ///< another device is free: give back what was not begun of a slice, from `end`
                  ///< on
  int64_t trial = 0;
  int attempt = 0;
  std::string task;
  int64_t first = 0;  ///< names the slice
  int64_t end = 0;
};
struct Drain {};  ///< finish what is leased, take nothing new, then leave
struct Stop {};   ///< leave now; committed and half-written files stay

using Message = std::variant<Hello, Loaded, Want, Progress, SliceDone, TrialDone, TrialFailed,
                             JobDone, JobFailed, Span, Load, Lease, Job, Revoke, Drain, Stop,
                             Revoked, Shorten, Shortened, Follow>;

Json ToJson(const Message& message);
/// Throws Error(kInput) as Decode does.
Message MessageFromJson(const Json& json);

/// One line, with its newline.
std::string Encode(const Message& message);
/// Throws Error(kInput) that says which member of which message is wrong. Members that are not
/// known are passed over, so that a later version may add some. What decoded is typed and bounded
/// (checks.h): also `engine`, `report` and `args`, which stay JSON.
Message Decode(std::string_view line);

/// Cuts a byte stream into lines. Throws Error(kInput) for a line longer than kLineBytesMax, and
/// forgets what it held, so that memory stays bounded.
class LineSplitter {
 public:
  void Feed(std::string_view bytes) { buffer_.append(bytes); }
  /// The next whole line without its newline; false when there is none yet.
  bool Next(std::string* line);

 private:
  [[noreturn]] void ThrowTooLong(size_t bytes);

  std::string buffer_;
  size_t begin_ = 0;    ///< of the next line
  size_t scanned_ = 0;  ///< no newline lies before this byte, from begin_ on
};

}  // namespace evald::protocol
