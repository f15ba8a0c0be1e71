#include "worker/native/cuda/emulated/fiber.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EVALD_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define EVALD_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define EVALD_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define EVALD_TSAN 1
#endif
#ifdef EVALD_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef EVALD_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace evald::native::cuda::emulated {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10;  // takes memory only as far as it is used
constexpr size_t kGuardBytes = 4096;

}  // namespace

// A switch saves the registers that a function must keep by the calling convention, and changes the
// stack. The sanitizers are told, otherwise they confuse the stacks' frames.
#if defined(__x86_64__)
extern "C" void EvaldSwitchStack(void** save, void* load);
extern "C" void EvaldEnterFiber();
__asm__(
    ".text\n"
    ".globl EvaldSwitchStack\n"
    ".type EvaldSwitchStack, @function\n"
    "EvaldSwitchStack:\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
    "  ret\n"
    ".size EvaldSwitchStack, .-EvaldSwitchStack\n"
    // The first switch to a stack comes here, with the function in rbx and its argument in r12.
    ".globl EvaldEnterFiber\n"
    ".type EvaldEnterFiber, @function\n"
    "EvaldEnterFiber:\n"
    "  .cfi_startproc\n"
    "  .cfi_undefined rip\n"
    "  movq %r12, %rdi\n"
    "  callq *%rbx\n"
    "  ud2\n"
    "  .cfi_endproc\n"
    ".size EvaldEnterFiber, .-EvaldEnterFiber\n");

struct Fiber::Context {
  void* inside = nullptr;   // the fiber's stack pointer
  void* outside = nullptr;  // the resumer's stack pointer

  void Prepare(char* stack, void (*run)(Fiber*), Fiber* fiber) {
    auto** top = reinterpret_cast<void**>(stack + kStackBytes) - 9;
    top[0] = top[1] = top[2] = nullptr;  // r15, r14, r13
    top[3] = fiber;                      // r12
    top[4] = reinterpret_cast<void*>(run);
    top[5] = nullptr;  // rbp
    top[6] = reinterpret_cast<void*>(&EvaldEnterFiber);
    // So that the call in EvaldEnterFiber finds the stack aligned to 16 bytes
    top[7] = top[8] = nullptr;
    inside = top;
  }
  void Enter() { EvaldSwitchStack(&outside, inside); }
  void Leave() { EvaldSwitchStack(&inside, outside); }
#else
struct Fiber::Context {
  ucontext_t inside{};
  ucontext_t outside{};

  // makecontext passes ints only.
  static void Call(unsigned run_high, unsigned run_low, unsigned fiber_high, unsigned fiber_low) {
    const auto join = [](unsigned high, unsigned low) {
      return static_cast<uintptr_t>((static_cast<uint64_t>(high) << 32) | low);
    };
    reinterpret_cast<void (*)(Fiber*)>(join(run_high, run_low))(
        reinterpret_cast<Fiber*>(join(fiber_high, fiber_low)));
  }
  void Prepare(char* stack, void (*run)(Fiber*), Fiber* fiber) {
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = kStackBytes;
    const auto r = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(run));
    const auto f = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(fiber));
    makecontext(&inside, reinterpret_cast<void (*)()>(&Call), 4, static_cast<unsigned>(r >> 32),
                static_cast<unsigned>(r), static_cast<unsigned>(f >> 32), static_cast<unsigned>(f));
  }
  void Enter() { swapcontext(&outside, &inside); }
  void Leave() { swapcontext(&inside, &outside); }
#endif

#ifdef EVALD_ASAN
  void* inside_frames = nullptr;
  void* outside_frames = nullptr;
  const void* outside_stack = nullptr;
  size_t outside_bytes = 0;
#endif
#ifdef EVALD_TSAN
  void* inside_thread = nullptr;
  void* outside_thread = nullptr;
#endif
};

Fiber::Fiber() : context_(new Context) {
  void* p = ::mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (p == MAP_FAILED) {
    delete context_;
    throw std::bad_alloc();
  }
  mapping_ = static_cast<char*>(p);
  ::mprotect(mapping_, kGuardBytes, PROT_NONE);
}

Fiber::~Fiber() {
#ifdef EVALD_ASAN
  __asan_unpoison_memory_region(mapping_ + kGuardBytes, kStackBytes);
#endif
#ifdef EVALD_TSAN
  if (context_->inside_thread != nullptr) __tsan_destroy_fiber(context_->inside_thread);
#endif
  ::munmap(mapping_, kGuardBytes + kStackBytes);
  delete context_;
}

void Fiber::Start(void (*entry)(void*), void* argument) {
  entry_ = entry;
  argument_ = argument;
#ifdef EVALD_ASAN  // frames of a forgotten function
  __asan_unpoison_memory_region(mapping_ + kGuardBytes, kStackBytes);
  context_->inside_frames = nullptr;
#endif
#ifdef EVALD_TSAN
  if (context_->inside_thread != nullptr) __tsan_destroy_fiber(context_->inside_thread);
  context_->inside_thread = __tsan_create_fiber(0);
#endif
  context_->Prepare(mapping_ + kGuardBytes, &Fiber::Run, this);
}

void Fiber::Resume() {
#ifdef EVALD_ASAN
  __sanitizer_start_switch_fiber(&context_->outside_frames, mapping_ + kGuardBytes, kStackBytes);
#endif
#ifdef EVALD_TSAN
  context_->outside_thread = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(context_->inside_thread, 0);
#endif
  context_->Enter();
#ifdef EVALD_ASAN
  __sanitizer_finish_switch_fiber(context_->outside_frames, nullptr, nullptr);
#endif
}

void Fiber::Suspend() { Leave(false); }

void Fiber::Leave([[maybe_unused]] bool for_good) {
#ifdef EVALD_ASAN
  __sanitizer_start_switch_fiber(for_good ? nullptr : &context_->inside_frames,
                                 context_->outside_stack, context_->outside_bytes);
#endif
#ifdef EVALD_TSAN
  __tsan_switch_to_fiber(context_->outside_thread, 0);
#endif
  context_->Leave();
#ifdef EVALD_ASAN
  __sanitizer_finish_switch_fiber(context_->inside_frames, &context_->outside_stack,
                                  &context_->outside_bytes);
#endif
}

void Fiber::Run(Fiber* fiber) {
#ifdef EVALD_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &fiber->context_->outside_stack,
                                  &fiber->context_->outside_bytes);
#endif
  fiber->entry_(fiber->argument_);
  fiber->Leave(true);
  __builtin_unreachable();
}

}  // namespace evald::native::cuda::emulated
