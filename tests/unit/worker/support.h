#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "evald/generation.h"
#include "prepared/prepared_task.h"
#include "protocol/channel.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald::test {

/// The shape of the task that MakePrepared writes.
struct PreparedShape {
  std::string name = "task";
  int64_t documents = 10;
  int requests = 1;  ///< per document
  RequestKind kind = RequestKind::kGenerateUntil;
  int repeats = 1;
};

/// Writes a prepared task under `folder`/prepared-<name>. Returns its folder.
std::string MakePrepared(const std::filesystem::path& folder, const PreparedShape& shape);

/// The parsed lines of a generations file. A line that is no generation fails the test.
std::vector<Generation> ReadGenerations(const std::filesystem::path& file);

/// The tests' side of an evald-worker process: starts the worker, and talks to it as its agent
/// does.
class TestAgent {
 public:
  struct Options {
    Json settings = Json::object();
    std::string engine = "emulated";
    std::map<std::string, std::string> environment;
    std::string id = "w0";
    std::string device = "cpu:0";
  };

  explicit TestAgent(const Options& options);
  TestAgent() : TestAgent(Options{}) {}
  ~TestAgent();

  void Send(const protocol::Message& message) { channel_->Send(message); }
  void SendRaw(const std::string& bytes);
  /// The next message that is not a Progress, a Span or a Want. Fails the test after 2 minutes.
  /// Nothing if the worker has gone.
  std::optional<protocol::Message> Next();
  /// Reads up to the next Progress. Passes over all messages except a Want. False if there is none
  /// within 2 minutes.
  bool ReadProgress();
  /// Reads until a Progress says that `count` requests are done. False as in ReadProgress.
  bool AwaitRequests(int64_t count);
  /// The next message, which must be a T.
  template <typename T>
  T Expect() {
    const auto message = Next();
    if (message && std::holds_alternative<T>(*message)) return std::get<T>(*message);
    Fail(message);
    return T{};
  }
  /// Waits for a Want, unless one came that no call has waited for yet.
  void AwaitWant();
  /// Hello, Load, Loaded, and the Want that follows.
  void StartUp();
  void HangUp() { channel_.reset(); }
  /// Waits for the worker's end. Returns its exit status, or 128 + signal. Fails the test after 2
  /// minutes.
  int Wait();
  void Kill(int signal);
  pid_t pid() const { return pid_; }

  std::vector<protocol::Progress> progress;  ///< seen by Next
  std::vector<protocol::Span> spans;         ///< seen by Next

 private:
  std::optional<protocol::Message> Read(bool until_want);
  void Fail(const std::optional<protocol::Message>& found);

  TemporaryFolder folder_;
  pid_t pid_ = -1;
  int wants_ = 0;
  std::optional<protocol::Channel> channel_;
};

}  // namespace evald::test
