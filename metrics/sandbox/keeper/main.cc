// The keeper's loop: files and steps from the runner, one after the other.

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <initializer_list>

#include "metrics/sandbox/guest/control.h"
#include "metrics/sandbox/keeper/keeper.h"

namespace evald::keeper {
namespace {

using guest::ReadAll;
using guest::SendAll;
using sandbox::KeeperRequest;
using sandbox::KeeperRequestKind;
using sandbox::kKeeperMagic;

Keeper g_keeper;

bool ReadConfig() {
  KeeperConfig& config = g_keeper.config;
  if (!ReadAll(&config, sizeof(config)) || config.magic != kKeeperMagic) return false;
  for (int i = 0; i < 2; ++i) {
    if (config.instructions[i] > sandbox::kFilterInstructionsMax) return false;
    if (!ReadAll(g_keeper.filters[i], config.instructions[i] * sizeof(sock_filter))) return false;
  }
  return true;
}

bool GiveToProgram(const char* path) {
  const uid_t uid = g_keeper.config.program_uid;
  return uid == 0 || chown(path, uid, uid) == 0;
}

/// Makes the folders of a path below the program's folder.
bool MakeFolders(char* path) {
  for (char* at = path + strlen(g_keeper.folder) + 1; (at = strchr(at, '/')) != nullptr; ++at) {
    *at = '\0';
    const bool made = mkdir(path, 0755) == 0 ? GiveToProgram(path) : errno == EEXIST;
    *at = '/';
    if (!made) return false;
  }
  return true;
}

/// Moves `bytes` from the socket to a file. False if the runner is gone.
bool Copy(uint64_t bytes, int file, bool* written) {
  static char piece[64 << 10];
  while (bytes > 0) {
    const uint64_t count = bytes < sizeof(piece) ? bytes : sizeof(piece);
    if (!ReadAll(piece, count)) return false;
    if (file < 0 || write(file, piece, count) != static_cast<ssize_t>(count)) *written = false;
    bytes -= count;
  }
  return true;
}

/// A file of the program. The runner has checked its name. What does not fit is told by the step
/// that misses it.
bool TakeFile(const KeeperRequest& request, const char* name) {
  char path[4096];
  const int length = snprintf(path, sizeof(path), "%s/%s", g_keeper.folder, name);
  const bool fits = length > 0 && static_cast<size_t>(length) < sizeof(path) && MakeFolders(path);
  const int file = fits ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;
  bool written = file >= 0;
  const bool alive = Copy(request.text_bytes, file, &written);
  if (file >= 0) close(file);
  if (written) written = GiveToProgram(path);
  KeeperReport report;
  memset(&report, 0, sizeof(report));
  report.magic = kKeeperMagic;
  if (!written) {
    report.setup_errno = errno == 0 ? ENOSPC : errno;
    strncpy(report.setup_step, "writing a file of the program", sizeof(report.setup_step) - 1);
  }
  return alive && SendAll(&report, sizeof(report));
}

/// Fills `list` with the texts of `words`, each of which ends with NUL.
void Split(char* words, const char* end, uint32_t count, char** list) {
  char* at = words;
  for (uint32_t i = 0; i < count; ++i) {
    list[i] = at;
    at += strlen(at) + 1;
    if (at > end) _exit(1);
  }
}

bool TakeStep(const KeeperRequest& request, char* words) {
  static char* list[sandbox::kKeeperWordsMax + 1];
  static char* environment[sandbox::kKeeperWordsMax + 1];
  const char* const end = words + request.words_bytes;
  uint32_t all = 0;
  for (const char* at = words; at < end; at += strlen(at) + 1) ++all;
  if (request.words == 0 || request.words > all || all > sandbox::kKeeperWordsMax) return false;
  Split(words, end, all, environment);
  for (uint32_t i = 0; i < request.words; ++i) list[i] = environment[i];
  list[request.words] = nullptr;
  environment[all] = nullptr;

  Step step;
  step.limits = request.limits;
  step.arguments = list;
  step.environment = environment + request.words;
  step.input = memfd_create("input", MFD_CLOEXEC);
  bool written = step.input >= 0;
  if (!Copy(request.text_bytes, step.input, &written)) return false;
  KeeperReport report;
  memset(&report, 0, sizeof(report));
  report.magic = kKeeperMagic;
  Said said;
  memset(&said, 0, sizeof(said));
  if (written && lseek(step.input, 0, SEEK_SET) == 0) {
    RunStep(g_keeper, step, &report, &said);
  } else {
    report.setup_errno = errno == 0 ? ENOSPC : errno;
    strncpy(report.setup_step, "memfd_create(input)", sizeof(report.setup_step) - 1);
  }
  if (step.input >= 0) close(step.input);
  const uint64_t most = sandbox::kStepErrorBytes;
  const uint64_t skipped = said.errors.count > most ? said.errors.count - most : 0;
  report.output_bytes = said.output.count;
  report.error_bytes = said.errors.count - skipped;
  const bool sent = SendAll(&report, sizeof(report)) &&
                    SendAll(said.output.bytes, said.output.count) &&
                    SendAll(said.errors.bytes + skipped, report.error_bytes);
  free(said.output.bytes);
  free(said.errors.bytes);
  return sent;
}

/// False if the runner is gone, or asks for what it never asks for.
bool ServeOne() {
  KeeperRequest request;
  if (!ReadAll(&request, sizeof(request)) || request.magic != kKeeperMagic) return false;
  constexpr uint32_t kWordsBytesMax = 1 << 20;
  if (request.words_bytes > kWordsBytesMax || request.text_bytes > sandbox::kKeeperTextBytesMax)
    return false;
  char* const words = static_cast<char*>(malloc(request.words_bytes + 1));
  if (words == nullptr || !ReadAll(words, request.words_bytes)) return false;
  words[request.words_bytes] = '\0';
  const bool served = request.kind == KeeperRequestKind::kFile ? TakeFile(request, words)
                                                               : TakeStep(request, words);
  free(words);
  return served;
}

/// The folder in which the program lives, and its home.
bool MakeHome() {
  char home[4096];
  if (snprintf(home, sizeof(home), "%s/../home", g_keeper.folder) >= static_cast<int>(sizeof(home)))
    return false;
  for (const char* path : {g_keeper.folder, static_cast<const char*>(home)}) {
    if (mkdir(path, 0755) != 0 || !GiveToProgram(path)) return false;
  }
  return true;
}

[[noreturn]] void Serve(const char* folder) {
  g_keeper.folder = folder;
  signal(SIGPIPE, SIG_IGN);
  if (!ReadConfig() || !MakeHome()) _exit(1);
  if (g_keeper.config.namespaces == 0) {
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  }
  const sandbox::KeeperReady ready = {kKeeperMagic, access("/proc/self/fd", X_OK) == 0 ? 1u : 0u};
  if (!SendAll(&ready, sizeof(ready))) _exit(0);
  while (ServeOne()) {
  }
  _exit(0);
}

}  // namespace
}  // namespace evald::keeper

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  evald::keeper::Serve(argv[1]);
}
