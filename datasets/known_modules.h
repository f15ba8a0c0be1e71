#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/read_roots.h"

namespace evald {

/// The name under which a `!function` of a task file is kept.
///
/// `name` is the name in the file: "utils.f" for a function of utils.py beside it. If utils.py
/// exists, its content decides. If it is one of lm_eval's own, the name is "humaneval/utils.f",
/// where f is a function that evald has built in. Otherwise the name is the function's place,
/// "<folder>/utils.f", which no built-in function has. If utils.py does not exist,
/// "humaneval/utils.f" and "lm_eval.tasks.humaneval.utils.f" name a function of lm_eval 0.4.13 (the
/// latter that of the file, if `folder` lies in a folder lm_eval/tasks that has it), and any other
/// name stays one of `folder`. `folder` is an absolute path, read below `roots`. Throws
/// Error(kInput) for a name that has not the form "module.function", and for a file of more than
/// 4 MiB.
std::string FunctionBeside(const std::filesystem::path& folder, const std::string& name,
                           const ReadRoots& roots);

/// The same for a task file that is built into the program, in `folder` below datasets/tasks.
std::string BuiltinFunction(const std::string& folder, const std::string& name);

/// The name of the built-in function that stands for `function` of a file with this SHA-256; "" if
/// none does.
std::string FunctionOfContent(std::string_view sha256, std::string_view function);

}  // namespace evald
