#pragma once

#include <cstddef>
#include <string_view>

namespace evald {

/// A file of datasets/tasks that was built into the program.
struct BuiltinFile {
  std::string_view path;  ///< under datasets/tasks: "gsm8k/gsm8k.yaml"
  std::string_view text;
};

/// All of them, in order of their paths. Made by cmake/embed_tasks.cmake at build time.
extern const BuiltinFile kBuiltinFiles[];
extern const size_t kBuiltinFileCount;

/// The text of a built-in file, or false.
bool FindBuiltinFile(std::string_view path, std::string_view* text);

}  // namespace evald
