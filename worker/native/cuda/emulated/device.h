#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "worker/native/cuda/runtime.h"

/// Three numbers, as in CUDA.
struct dim3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}  // NOLINT
};

/// Runs kernels on the CPU as a GPU would, so that the kernels' own source is tested without a GPU.
/// Blocks run one after the other, the threads of a block as fibers on the calling thread: each
/// runs until it has to wait for others. So every run is the same, several streams' threads may run
/// kernels at once, and a kernel that never waits runs as a plain loop.
///
/// The emulation is stricter than a GPU. DeviceError(kKernel) with the kernel's name is thrown if a
/// thread ends while others wait for it at a barrier, if lanes diverge at a warp operation, or if
/// shared memory is touched beyond its size. Dynamic shared memory holds NaN (all bits set) when a
/// block begins. The target of an asynchronous copy holds NaN from the copy's issue until the wait
/// for it.
namespace evald::native::cuda::emulated {

using Place = std::source_location;

/// The operation that a thread waits in.
struct Waiting {
  const char* operation = nullptr;  ///< null: nothing
  Place place;
  uint32_t mask = 0;           ///< of the warp's lanes; 0: the whole block
  void* argument = nullptr;    ///< the operation's
  const void* kind = nullptr;  ///< tells operations apart
};

struct AsyncCopy {
  char* to = nullptr;
  std::array<char, 16> bytes{};
  unsigned group = 0;
};

/// One thread of the running block, as its kernel sees it.
struct Thread {
  dim3 index, block, block_size, grid_size;
  unsigned number = 0;  ///< in its block
  bool ended = false;
  Waiting waiting;
  std::vector<AsyncCopy> copies;  ///< not yet waited for
  unsigned copy_groups = 0;       ///< committed
};

/// The emulated thread whose kernel runs on the calling thread.
extern constinit thread_local Thread* current;

/// Runs all blocks and returns. Errors name `kernel`.
void RunGrid(const char* kernel, dim3 grid, dim3 block, size_t shared_bytes,
             const std::function<void()>& body);

/// Queues `work` on the stream. Its exception is thrown by the next call that synchronizes.
void Enqueue(const Stream& stream, std::function<void()> work);

// The parts that device code is made of. Only to be called from within a kernel.

/// Ends the kernel with this error.
[[noreturn]] void Fail(const std::string& what);
char* DynamicShared();
/// Fails if the bytes touch the room of dynamic shared memory but not all lie within its size, or
/// are not aligned to `bytes`.
void CheckAccess(const void* p, size_t bytes, Place place);
void WaitForBlock(Place place);
/// Waits until all lanes of `mask` have come to the same place with the same `operation`; the last
/// one calls `complete` with each lane's argument (null for lanes not in the mask).
using Arguments = std::array<void*, 32>;
void WaitForLanes(const char* operation, uint32_t mask, void* argument,
                  void (*complete)(const Arguments& arguments, uint32_t mask), Place place);
/// `from` null: 16 zeros.
void CopyAsync(void* to, const void* from, Place place);
void CommitCopies();
void WaitForCopies(unsigned groups_left);

}  // namespace evald::native::cuda::emulated

namespace evald::native::cuda {

/// See EVALD_LAUNCH.
template <typename... Parameters, typename... Arguments>
void Launch(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block,
            size_t shared_bytes, const Stream& stream, Arguments... arguments) {
  std::tuple<Parameters...> values(static_cast<Parameters>(arguments)...);
  emulated::Enqueue(stream, [=] {
    emulated::RunGrid(name, grid, block, shared_bytes, [&] { std::apply(kernel, values); });
  });
}

/// Few, so that blocks have more than one turn in tests.
template <typename... Parameters>
int BlocksAtOnce(const char*, void (*)(Parameters...), int, size_t) {
  return 5;
}

}  // namespace evald::native::cuda
