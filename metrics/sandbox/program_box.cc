#include "metrics/sandbox/program_box.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/clock.h"
#include "base/own_folder.h"
#include "evald/error.h"
#include "metrics/sandbox/embedded.h"

namespace evald::sandbox {
namespace {

constexpr int64_t kStepGraceUs = 60'000'000;

std::string MakeProgramFolder() {
  std::string name = (TmpFolder() / "evald-program-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) ThrowErrno(name, "making", errno);
  return name;
}

UniqueFd KeeperMemfd() {
  UniqueFd file(memfd_create("evald-keeper", 0));
  const std::string_view program = KeeperProgram();
  if (!file ||
      write(file.get(), program.data(), program.size()) != static_cast<ssize_t>(program.size())) {
    ThrowErrno("memfd", "writing the keeper to", errno);
  }
  return file;
}

/// Each word with its NUL.
std::string Packed(const std::vector<std::string>& words) {
  std::string packed;
  for (const std::string& word : words) packed.append(word.c_str(), word.size() + 1);
  return packed;
}

}  // namespace

ProgramBox::ProgramBox(const ProgramBoxPlan& plan)
    : scratch_(plan.unsafe ? MakeProgramFolder() : ""), folder_(plan.unsafe ? scratch_ : "/tmp") {
  const UniqueFd keeper = plan.unsafe ? KeeperMemfd() : UniqueFd();
  const UniqueFd proc(open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
  ContainPlan contain;
  contain.namespaces = !plan.unsafe;
  contain.guest = keeper.get();
  contain.proc = proc.get();
  const std::string path =
      plan.unsafe ? "/proc/self/fd/" + std::to_string(kGuestFd) : std::string(kGuestPath);
  contain.arguments = {path, folder_ + "/program"};
  if (contain.namespaces) {
    contain.user = ChooseUser();
    contain.root = plan.root;
    contain.root.guest_library = KeeperProgram();
    contain.root.tmp_bytes = plan.tmpfs_bytes;
    contain.root.tmp_owner = contain.user.own_ids ? kProgramUid : 0;
  }
  const bool own_ids = contain.user.own_ids;
  process_ = std::make_unique<Contained>(std::move(contain));
  SendConfig(plan, own_ids);
}

ProgramBox::~ProgramBox() {
  process_->Stop(50);
  std::error_code ignored;
  if (!scratch_.empty()) std::filesystem::remove_all(scratch_, ignored);
}

void ProgramBox::SendConfig(const ProgramBoxPlan& plan, bool own_ids) {
  KeeperConfig config = {};
  config.magic = kKeeperMagic;
  config.namespaces = plan.unsafe ? 0 : 1;
  config.program_uid = !plan.unsafe && own_ids ? kProgramUid : 0;
  config.filter_required = plan.unsafe ? 0 : 1;
  for (int i = 0; i < 2; ++i)
    config.instructions[i] = static_cast<uint32_t>(plan.filters[i].size());
  Send(&config, sizeof(config));
  for (const auto& filter : plan.filters) Send(filter.data(), filter.size() * sizeof(sock_filter));
  KeeperReady ready = {};
  Receive(&ready, sizeof(ready), MonotonicMicros() + kStartTimeoutUs);
  if (ready.magic != kKeeperMagic) process_->ThrowDead("being set up");
}

std::string ProgramBox::Write(const SourceFile& file) {
  KeeperRequest request = {};
  request.magic = kKeeperMagic;
  request.kind = KeeperRequestKind::kFile;
  request.words_bytes = static_cast<uint32_t>(file.path.size() + 1);
  request.text_bytes = file.text.size();
  Send(&request, sizeof(request));
  Send(file.path.c_str(), file.path.size() + 1);
  Send(file.text.data(), file.text.size());
  KeeperReport report = {};
  Receive(&report, sizeof(report), MonotonicMicros() + kStepGraceUs);
  if (report.magic != kKeeperMagic) process_->ThrowDead("writing a file of a program");
  return report.setup_errno == 0 ? "" : std::strerror(report.setup_errno);
}

StepResult ProgramBox::Run(const std::vector<std::string>& words,
                           const std::vector<std::string>& environment, const StepLimits& limits,
                           std::string_view input) {
  const std::string packed = Packed(words) + Packed(environment);
  KeeperRequest request = {};
  request.magic = kKeeperMagic;
  request.kind = KeeperRequestKind::kStep;
  request.words = static_cast<uint32_t>(words.size());
  request.words_bytes = static_cast<uint32_t>(packed.size());
  request.text_bytes = input.size();
  request.limits = limits;
  Send(&request, sizeof(request));
  Send(packed.data(), packed.size());
  Send(input.data(), input.size());
  StepResult result;
  const int64_t longest_us = static_cast<int64_t>(limits.wall_us) * limits.wall_windows;
  const int64_t deadline = MonotonicMicros() + longest_us + kStepGraceUs;
  Receive(&result.report, sizeof(result.report), deadline);
  KeeperReport& report = result.report;
  report.setup_step[kStepBytes - 1] = '\0';
  if (report.magic != kKeeperMagic || report.output_bytes > limits.output_bytes ||
      report.error_bytes > kStepErrorBytes) {
    process_->ThrowDead("running a program");
  }
  result.output.resize(report.output_bytes);
  Receive(result.output.data(), result.output.size(), deadline);
  result.errors.resize(report.error_bytes);
  Receive(result.errors.data(), result.errors.size(), deadline);
  if (report.setup_errno != 0 && report.is_exec == 0) {
    throw Infrastructure("a program's sandbox cannot be set up: " + std::string(report.setup_step) +
                             ": " + std::strerror(report.setup_errno),
                         SetupRemedy(report.setup_errno));
  }
  return result;
}

void ProgramBox::Send(const void* data, size_t bytes) {
  const int64_t deadline = MonotonicMicros() + kStepGraceUs;
  if (!SendWithin(process_->control(), data, bytes, deadline))
    process_->ThrowDead("taking a program");
}

void ProgramBox::Receive(void* data, size_t bytes, int64_t deadline_us) {
  if (ReadWithin(process_->control(), data, bytes, deadline_us) != bytes)
    process_->ThrowDead("running a program");
}

}  // namespace evald::sandbox
