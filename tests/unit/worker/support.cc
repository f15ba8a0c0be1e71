#include "support.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "base/jsonl.h"
#include "evald/error.h"
#include "evald/task.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald::test {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{120};

UniqueFd Listen(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path.c_str());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(fd.get(), 4), 0);
  timeval patience{kPatience.count(), 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return fd;
}

pid_t Start(const std::vector<std::string>& command,
            const std::map<std::string, std::string>& environment) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

}  // namespace

std::string MakePrepared(const fs::path& folder, const PreparedShape& shape) {
  TaskDefinition task;
  task.name = task.alias = shape.name;
  task.output_type = std::string(ToString(shape.kind));
  task.repeats = shape.repeats;
  task.original_documents = task.effective_documents = shape.documents;
  const fs::path directory = folder / ("prepared-" + shape.name);
  PreparedTaskWriter writer(directory, ToJson(task));
  for (int64_t doc_id = 0; doc_id < shape.documents; ++doc_id) {
    std::vector<Request> requests;
    for (int idx = 0; idx < shape.requests; ++idx) {
      Request request;
      request.doc_id = doc_id;
      request.idx = idx;
      request.kind = shape.kind;
      request.context = fmt::format("Question {} of {}:", doc_id, shape.name);
      if (shape.kind == RequestKind::kLoglikelihood) request.continuation = fmt::format(" {}", idx);
      request.sampling.until = {"\n"};
      requests.push_back(std::move(request));
    }
    writer.Add({doc_id, Json{{"id", doc_id}}, "x", Json()}, requests);
  }
  writer.Finish();
  return directory;
}

std::vector<Generation> ReadGenerations(const fs::path& file) {
  std::vector<Generation> generations;
  ForEachJsonLine(file, [&](size_t line, Json&& json) {
    generations.push_back(GenerationFromJson(json, fmt::format("{}:{}", file.string(), line)));
  });
  return generations;
}

TestAgent::TestAgent(const Options& options) {
  const fs::path socket = folder_.path() / "agent.sock";
  const UniqueFd listener = Listen(socket);
  pid_ =
      Start({EVALD_BINARY_DIR "/evald-worker", "--socket", socket, "--id", options.id, "--engine",
             options.engine, "--device", options.device, "--settings", ToLine(options.settings),
             "--log-level", "off", "--parent", std::to_string(::getpid())},
            options.environment);
  UniqueFd connection(::accept(listener.get(), nullptr, nullptr));
  if (!connection) {
    ADD_FAILURE() << "the worker did not connect";
    return;
  }
  channel_.emplace(std::move(connection));
}

TestAgent::~TestAgent() {
  channel_.reset();
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

void TestAgent::SendRaw(const std::string& bytes) { channel_->SendLine(bytes); }

std::optional<protocol::Message> TestAgent::Next() { return Read(false); }

void TestAgent::AwaitWant() {
  if (wants_ == 0) {
    const auto message = Read(true);
    if (message || wants_ == 0) return Fail(message);
  }
  --wants_;
}

std::optional<protocol::Message> TestAgent::Read(bool until_want) {
  const Clock::time_point deadline = Clock::now() + kPatience;
  while (channel_ && Clock::now() < deadline) {
    std::optional<protocol::Message> message;
    try {
      message = channel_->Receive(std::chrono::milliseconds(200));
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
      return std::nullopt;
    }
    if (!message && channel_->closed()) return std::nullopt;
    if (!message) continue;
    if (const auto* one = std::get_if<protocol::Progress>(&*message)) {
      progress.push_back(*one);
    } else if (const auto* span = std::get_if<protocol::Span>(&*message)) {
      spans.push_back(*span);
    } else if (std::holds_alternative<protocol::Want>(*message)) {
      ++wants_;
      if (until_want) return std::nullopt;
    } else {
      return message;
    }
  }
  ADD_FAILURE() << "nothing came from the worker";
  return std::nullopt;
}

bool TestAgent::ReadProgress() {
  const Clock::time_point deadline = Clock::now() + kPatience;
  while (channel_ && !channel_->closed() && Clock::now() < deadline) {
    const auto message = channel_->Receive(std::chrono::milliseconds(200));
    if (message && std::holds_alternative<protocol::Want>(*message)) ++wants_;
    if (!message || !std::holds_alternative<protocol::Progress>(*message)) continue;
    progress.push_back(std::get<protocol::Progress>(*message));
    return true;
  }
  return false;
}

bool TestAgent::AwaitRequests(int64_t count) {
  while (progress.empty() || progress.back().requests_done < count) {
    if (!ReadProgress()) return false;
  }
  return true;
}

void TestAgent::Fail(const std::optional<protocol::Message>& found) {
  ADD_FAILURE() << "an unexpected message: " << (found ? protocol::Encode(*found) : "none");
}

void TestAgent::StartUp() {
  EXPECT_EQ(Expect<protocol::Hello>().role, "worker");
  Send(protocol::Load{folder_.path(), "f00d"});
  EXPECT_EQ(Expect<protocol::Loaded>().fingerprint, "f00d");
  AwaitWant();
}

void TestAgent::Kill(int signal) { ::kill(pid_, signal); }

int TestAgent::Wait() {
  const Clock::time_point deadline = Clock::now() + kPatience;
  int status = 0;
  while (Clock::now() < deadline) {
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ADD_FAILURE() << "the worker did not end";
  return -1;
}

}  // namespace evald::test
