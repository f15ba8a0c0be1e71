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

namespace evald::test {

/// A folder under /tmp that goes with its owner.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// What MakePrepared writes.
struct PreparedShape {
  std::string name = "task";
  int64_t documents = 10;
  int requests = 1;  ///< per document
  RequestKind kind = RequestKind::kGenerateUntil;
  int repeats = 1;
};

/// A prepared task under `folder`/prepared-<name>; gives its folder.
std::string MakePrepared(const std::filesystem::path& folder, const PreparedShape& shape);

/// The lines of a generations file, each parsed; fails the test for a line that is not one.
std::vector<Generation> ReadGenerations(const std::filesystem::path& file);

/// The tests' side of an evald-worker process: starts it, and speaks to it as its agent does.
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
  /// The next message that is not a Progress, a Span or a Want; fails the test after 2 minutes.
  /// Nothing when the worker has gone.
  std::optional<protocol::Message> Next();
  /// Reads on until a Progress came, past all but a Want; false when there was none within 2
  /// minutes.
  bool ReadProgress();
  /// Reads on until a Progress says that `count` requests are done; false as ReadProgress.
  bool AwaitRequests(int64_t count);
  /// Next, which must be a T.
  template <typename T>
  T Expect() {
    const auto message = Next();
    if (message && std::holds_alternative<T>(*message)) return std::get<T>(*message);
    Fail(message);
    return T{};
  }
  /// Waits for a Want, unless one came that was not yet waited for.
  void AwaitWant();
  /// Hello, Load, Loaded, and the Want that follows.
  void StartUp();
  void HangUp() { channel_.reset(); }
  /// The worker's end: its exit status, or 128 + signal. Fails the test after 2 minutes.
  int Wait();
  void Kill(int signal);
  pid_t pid() const { return pid_; }

  std::vector<protocol::Progress> progress;  ///< seen by Next
  std::vector<protocol::Span> spans;         ///< likewise

 private:
  std::optional<protocol::Message> Read(bool until_want);
  void Fail(const std::optional<protocol::Message>& found);

  TemporaryFolder folder_;
  pid_t pid_ = -1;
  int wants_ = 0;
  std::optional<protocol::Channel> channel_;
};

}  // namespace evald::test
