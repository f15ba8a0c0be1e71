#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evald/engine_info.h"
#include "evald/generation.h"
#include "evald/request.h"
#include "evald/task.h"
#include "prepared/prepared_task.h"
#include "protocol/messages.h"
#include "worker/generations_file.h"

namespace evald {

/// The prepared tasks that this worker has open, so that the next slice of a task need not map it
/// again. One thread at a time.
class PreparedCache {
 public:
  /// Opens the folder, and attaches its tokens if `tokenizer_key` is not empty. Throws
  /// Error(kInput) if it is no prepared task, and Error(kInfrastructure) if the tokens are absent.
  std::shared_ptr<const PreparedTask> Open(const std::string& folder,
                                           const std::string& tokenizer_key);

 private:
  std::map<std::string, std::shared_ptr<const PreparedTask>> open_;
};

/// The data of a trial that a worker's threads share.
struct TrialState {
  int64_t trial = 0;
  int attempt = 0;
  std::atomic<bool> over{false};  ///< failed or revoked: no more work and no more messages
};

/// One request on its way to an engine.
struct Feed {
  size_t slice = 0;
  Request request;
};

/// A leased trial: hands out its requests in order and keeps their generations. Knows neither the
/// engine nor the socket. One thread at a time.
class OpenTrial {
 public:
  /// Checks the lease against its prepared tasks and the engine. Throws Error(kInput) for an
  /// invalid slice, or one whose requests the engine does not serve.
  OpenTrial(const protocol::Lease& lease, const EngineInfo& engine, PreparedCache* prepared);

  /// The next request without a generation that is not in flight. False if there is none. Begins
  /// the slice's file at its first request, with everything that can be salvaged. With `one_slice`,
  /// a slice's requests come only while none of another slice are in flight.
  bool Next(Feed* feed, bool one_slice = false);
  /// The command that Next will return the request of; null for any other request, or none.
  const CommandSpec* next_command() const;
  /// The command whose request the slice has; null for a slice of another task.
  const CommandSpec* command_of(size_t slice) const;
  const std::string& file_of(size_t slice) const { return slices_[slice].spec.file; }
  /// The task that Next looks at, or last looked at.
  const std::string& feeding_task() const;
  /// Slices with requests in flight.
  std::vector<size_t> slices_in_flight() const;

  /// Keeps the answer to a request of Next, `seconds` after the engine got the request. Throws like
  /// GenerationsFile::Add.
  void Finish(size_t slice, Generation generation, double seconds);

  /// Shortens the slice of `task` that begins at document `first`: the slice ends at `end`, or, if
  /// more documents are begun already, after these. Returns its new end; nothing if the slice is
  /// complete or not of this trial.
  std::optional<int64_t> Shorten(const std::string& task, int64_t first, int64_t end);

  /// Adds this trial's share of `seconds` in which the engine computed. `of_all` is the number of
  /// all requests in flight, of this trial and of others.
  void Charge(double seconds, int64_t of_all);
  /// Hands finished generations to the kernel.
  void Flush();

  /// Forgets which requests are in flight: Next will return them again.
  void Rewind();

  /// A completed slice.
  struct Complete {
    protocol::Slice spec;
    std::unique_ptr<GenerationsFile> file;
    double device_seconds = 0;
    double longest_seconds = 0;  ///< of its requests
  };
  /// The next completed slice, each once.
  std::optional<Complete> TakeComplete();
  bool complete() const { return taken_ == slices_.size(); }

  /// Estimated number of requests that Next will still return.
  int64_t Remaining() const;
  int64_t in_flight() const { return in_flight_; }
  const std::shared_ptr<TrialState>& state() const { return state_; }
  protocol::Progress progress() const { return progress_; }
  const std::string& task_of(size_t slice) const { return slices_[slice].spec.task; }

  double device_seconds() const { return device_seconds_; }

 private:
  struct OpenSlice {
    protocol::Slice spec;
    std::shared_ptr<const PreparedTask> task;
    std::optional<CommandSpec> command;
    std::unique_ptr<GenerationsFile> file;  ///< null before the first request, and once taken
    int64_t next_document = 0;
    int64_t in_flight = 0;
    int64_t done = 0;
    int64_t salvaged = 0;  // of these
    std::deque<Request> todo;
    double device_seconds = 0;
    double longest_seconds = 0;
    bool opened = false;
    bool taken = false;

    bool fed() const { return opened && todo.empty() && next_document == spec.end; }
  };

  void LoadMore(OpenSlice* slice);
  void Begin(OpenSlice* slice);

  std::shared_ptr<TrialState> state_;
  EngineInfo engine_;
  std::vector<OpenSlice> slices_;
  size_t feeding_ = 0;  ///< the slice that Next looks at
  size_t taken_ = 0;
  int64_t in_flight_ = 0;
  double device_seconds_ = 0;
  protocol::Progress progress_;
};

}  // namespace evald
