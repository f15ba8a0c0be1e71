#pragma once

#include <cstddef>
#include <string_view>

namespace evald {

/// A file of datasets/tasks that is built into the program.
struct BuiltinFile {
  std::string_view path;  ///< under datasets/tasks: "gsm8k/gsm8k.yaml"
  std::string_view text;
};

/// All built-in files, in order of their paths. cmake/embed_tasks.cmake makes the list at build
/// time.
extern const BuiltinFile kBuiltinFiles[];
extern const size_t kBuiltinFileCount;

/// Sets `text` to the text of a built-in file. Returns false if no built-in file has this path.
bool FindBuiltinFile(std::string_view path, std::string_view* text);

}  // namespace evald
