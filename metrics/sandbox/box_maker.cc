// The process that starts boxes for another one, and its messages: a request, and an answer of text
// with two descriptors.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>

#include "base/file.h"
#include "base/jsonl.h"
#include "metrics/sandbox/box_process.h"
#include "metrics/sandbox/contained.h"

namespace evald::sandbox {
namespace {

constexpr size_t kTextBytesMax = 1 << 20;
constexpr const char* kAnswerName = "the answer of the process that starts boxes";

/// Sends text with descriptors. False if the other end is gone.
bool SendText(int socket, const std::string& text, const std::vector<int>& descriptors) {
  iovec part = {const_cast<char*>(text.data()), text.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control = {};
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
  }
  while (sendmsg(socket, &message, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

/// Receives text, and descriptors if any came. Nothing if the other end is gone.
std::optional<std::string> ReceiveText(int socket, std::vector<UniqueFd>* descriptors) {
  std::string text(kTextBytesMax, '\0');
  iovec part = {text.data(), text.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control = {};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return std::nullopt;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      descriptors->emplace_back(fd);
    }
  }
  text.resize(static_cast<size_t>(got));
  return text;
}

/// The forked process: answers {"make": true} and {"stop": id, "grace_ms": n}.
class Maker {
 public:
  Maker(const BoxOptions& options, int socket) : options_(options), socket_(socket) {}

  void Run(bool at_once) {
    if (at_once) Prepare();
    std::vector<UniqueFd> none;
    while (const auto text = ReceiveText(socket_, &none)) {
      const Json request = ParseJson(*text, kAnswerName);
      if (request.contains("make") ? !Make() : !Stop(request)) return;
    }
  }

 private:
  /// Starts the next box in advance, or keeps the error.
  void Prepare() {
    try {
      next_ = StartBoxProcess(options_);
    } catch (const Error& error) {
      failure_ = error;
    }
  }

  bool Make() {
    if (next_ == nullptr && !failure_) Prepare();
    if (next_ == nullptr) {
      const Error error = *failure_;
      return SendText(socket_, Json{{"error", error.message()}, {"remedy", error.remedy()}}.dump(),
                      {});
    }
    const int id = ++count_;
    if (installed_.is_null()) installed_ = next_->Installed();
    const Json answer = {{"id", id}, {"installed", installed_}};
    const bool sent = SendText(socket_, answer.dump(), {next_->control(), next_->errors()});
    boxes_[id] = std::move(next_);
    if (sent) Prepare();
    return sent;
  }

  bool Stop(const Json& request) {
    const auto box = boxes_.find(Field<int>(request, "stop", kAnswerName));
    int status = -1;
    if (box != boxes_.end()) {
      status = box->second->Stop(Field<int>(request, "grace_ms", kAnswerName));
      boxes_.erase(box);
    }
    return SendText(socket_, Json{{"status", status}}.dump(), {});
  }

  const BoxOptions& options_;
  int socket_;
  int count_ = 0;
  Json installed_;
  std::unique_ptr<BoxProcess> next_;
  std::optional<Error> failure_;
  std::map<int, std::unique_ptr<BoxProcess>> boxes_;
};

[[noreturn]] void RunMaker(const BoxOptions& options, bool at_once, int socket, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != parent) _exit(0);
  for (const int signal_number : {SIGTERM, SIGINT}) signal(signal_number, SIG_IGN);
  // The parent's input and output end when the parent does.
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null, 0);
  dup2(null, 1);
  try {
    Maker(options, socket).Run(at_once);
  } catch (const std::exception&) {  // the parent sees that this process is gone
  }
  _exit(0);
}

}  // namespace

struct BoxMaker::Child {
  ~Child() {
    socket.reset();
    if (pid <= 0) return;
    kill(pid, SIGKILL);
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  Json Ask(const Json& request, std::vector<UniqueFd>* descriptors) const {
    const bool sent = SendText(socket.get(), request.dump(), {});
    const auto text = sent ? ReceiveText(socket.get(), descriptors) : std::nullopt;
    if (!text) throw Infrastructure("the process that starts boxes for task code has ended");
    return ParseJson(*text, kAnswerName);
  }

  UniqueFd socket;
  pid_t pid = -1;
};

BoxMaker::BoxMaker(const BoxOptions& options, bool at_once) : child_(std::make_shared<Child>()) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    ThrowErrno("socketpair", "opening", errno);
  child_->socket.reset(ends[0]);
  UniqueFd theirs(ends[1]);
  const pid_t parent = getpid();
  child_->pid = fork();
  if (child_->pid < 0) ThrowErrno("process", "fork", errno);
  if (child_->pid == 0) {
    child_->socket.reset();
    RunMaker(options, at_once, theirs.get(), parent);
  }
}

BoxMaker::~BoxMaker() = default;

std::unique_ptr<BoxProcess> BoxMaker::Make() {
  /// A box of the other process.
  class Remote : public BoxProcess {
   public:
    Remote(std::shared_ptr<Child> child, const Json& answer, std::vector<UniqueFd> descriptors)
        : child_(std::move(child)),
          id_(Field<int>(answer, "id", kAnswerName)),
          installed_(Field<Json>(answer, "installed", kAnswerName)),
          control_(std::move(descriptors.at(0))),
          errors_(std::move(descriptors.at(1))) {}
    ~Remote() override {
      try {
        Stop(0);
      } catch (const Error&) {  // it is gone
      }
    }

    int control() const override { return control_.get(); }
    int errors() const override { return errors_.get(); }
    int Stop(int grace_ms) override {
      if (stopped_) return -1;
      stopped_ = true;
      control_.reset();
      std::vector<UniqueFd> none;
      return Field<int>(child_->Ask({{"stop", id_}, {"grace_ms", grace_ms}}, &none), "status",
                        kAnswerName);
    }
    Json Installed() const override { return installed_; }

   private:
    std::shared_ptr<Child> child_;
    int id_;
    Json installed_;
    UniqueFd control_;
    UniqueFd errors_;
    bool stopped_ = false;
  };

  std::vector<UniqueFd> descriptors;
  const Json answer = child_->Ask({{"make", true}}, &descriptors);
  if (answer.contains("error")) {
    throw Infrastructure(Field<std::string>(answer, "error", kAnswerName),
                         Field<std::string>(answer, "remedy", kAnswerName));
  }
  if (descriptors.size() != 2) throw Infrastructure("no descriptors of a box for task code came");
  return std::make_unique<Remote>(child_, answer, std::move(descriptors));
}

}  // namespace evald::sandbox
