#pragma once

#include <cstddef>

namespace evald::task_code {

/// A Python file of task_code/runtime, built into the program: "start", or a module of evald_task.
struct RuntimeFile {
  const char* name;
  const char* text;
};

extern const RuntimeFile kRuntimeFiles[];
extern const size_t kRuntimeFileCount;

}  // namespace evald::task_code
