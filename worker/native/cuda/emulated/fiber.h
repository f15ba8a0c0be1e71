#pragma once

#include <cstddef>

namespace evald::native::cuda::emulated {

/// A stack with a place in a function, to be resumed by the thread that made it. An exception
/// that is thrown in the function must be caught in it. If a fiber is destroyed before its function
/// returned, nothing on its stack is destroyed.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// The next Resume runs entry(argument) on this stack. An earlier function is forgotten.
  void Start(void (*entry)(void*), void* argument);
  /// Runs the fiber until it calls Suspend or its function returns. Not from within a fiber.
  void Resume();
  /// Returns to the caller of Resume. Only from within this fiber.
  void Suspend();

 private:
  struct Context;
  static void Run(Fiber* fiber);
  void Leave(bool for_good);

  char* mapping_ = nullptr;  // a page that may not be touched, then the stack
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
  Context* context_ = nullptr;
};

}  // namespace evald::native::cuda::emulated
