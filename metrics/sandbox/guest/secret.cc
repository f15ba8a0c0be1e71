// The secret of a program's process. Its place and its form are drawn anew for each program.
//
// Every program's process is a fork of one zygote without address space randomisation, so
// everything that the zygote has mapped has the same address in each. The nonce and the pages
// shared with the zygote must not: they move to a random address, the nonce in two halves at a
// random offset. No memory at a known address holds that address. The kernel keeps it, as the head
// of the thread's list of robust futexes (set_robust_list(2)), which is empty and which a fork does
// not inherit.

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "metrics/sandbox/guest/guest.h"

namespace evald::guest {
namespace {

constexpr int kPlaceTries = 64;

struct Secret {
  robust_list_head head;  ///< known to the kernel; an empty list points to itself
  uint8_t pad[sandbox::kNonceBytes];
  uint8_t padded_nonce[sandbox::kNonceBytes];  ///< the nonce, xor `pad`
  CompletionPage* completion;
};

/// The program's own process. Only this one reports: processes that it forks have other ids.
pid_t g_first_process = 0;

pid_t ProcessId() { return static_cast<pid_t>(syscall(SYS_getpid)); }

void Draw(SetupPage* setup, void* bytes, size_t count) {
  if (getrandom(bytes, count, 0) != static_cast<ssize_t>(count)) FailSetup(setup, "getrandom()");
}

/// Reserves a free range of addresses of this size, from 47 bits of address space, or from 38 if
/// pages are mapped in only three levels.
void* DrawPlace(SetupPage* setup, size_t bytes) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  for (int i = 0; i < kPlaceTries; ++i) {
    uint64_t place = 0;
    Draw(setup, &place, sizeof(place));
    place &= (1ull << (i < kPlaceTries / 2 ? 47 : 38)) - page;
    if (place < (1ull << 32)) continue;
    void* const wanted = reinterpret_cast<void*>(place);
    void* const got =
        mmap(wanted, bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == wanted) return got;
    if (got != MAP_FAILED) munmap(got, bytes);
  }
  FailSetup(setup, "mmap(a random address)");
}

/// Not inlined, so that WipeStack overwrites its frame, which holds the address.
__attribute__((noinline)) void MoveSecret(Program& program) {
  constexpr size_t kBytes = sizeof(SecretPages);
  void* const place = DrawPlace(program.setup, kBytes);
  void* const moved = mremap(program.secret, kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, place);
  if (moved == MAP_FAILED) FailSetup(program.setup, "mremap(the shared pages)");
  if (madvise(moved, kBytes, MADV_DONTFORK) != 0) FailSetup(program.setup, "MADV_DONTFORK");
  auto* const pages = static_cast<SecretPages*>(moved);
  uint16_t offset = 0;
  Draw(program.setup, &offset, sizeof(offset));
  offset = static_cast<uint16_t>(offset % (sizeof(pages->hiding) - sizeof(Secret)) & ~15u);
  auto* const secret = reinterpret_cast<Secret*>(pages->hiding + offset);
  Draw(program.setup, secret->pad, sizeof(secret->pad));
  for (size_t i = 0; i < sandbox::kNonceBytes; ++i) {
    secret->padded_nonce[i] = program.request.nonce[i] ^ secret->pad[i];
  }
  secret->completion = &pages->completion;
  secret->head = {{&secret->head.list}, 0, nullptr};
  if (syscall(SYS_set_robust_list, &secret->head, sizeof(secret->head)) != 0) {
    FailSetup(program.setup, "set_robust_list()");
  }
}

__attribute__((noinline)) void WipeStack() {
  volatile char dead[16 << 10];
  for (volatile char& byte : dead) byte = 0;
}

Secret* Find() {
  if (ProcessId() != g_first_process) return nullptr;
  robust_list_head* head = nullptr;
  size_t bytes = 0;
  if (syscall(SYS_get_robust_list, 0, &head, &bytes) != 0) return nullptr;
  return reinterpret_cast<Secret*>(head);
}

}  // namespace

void HideSecret(Program& program) {
  g_first_process = ProcessId();
  MoveSecret(program);
  WipeStack();
  program.secret = nullptr;
  explicit_bzero(program.request.nonce, sizeof(program.request.nonce));
}

CompletionPage* OwnCompletion() {
  const Secret* secret = Find();
  return secret == nullptr ? nullptr : secret->completion;
}

void RecordCompletion() {
  const Secret* secret = Find();
  if (secret == nullptr) return;
  for (size_t i = 0; i < sandbox::kNonceBytes; ++i) {
    secret->completion->record[i] = secret->padded_nonce[i] ^ secret->pad[i];
  }
}

}  // namespace evald::guest
