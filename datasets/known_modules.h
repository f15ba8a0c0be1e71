#pragma once

#include <filesystem>
#include <string>

#include "base/read_roots.h"

namespace evald {

/// The name under which a `!function` of a task file is kept.
///
/// `name` is the name in the file: "utils.f" for a function of utils.py beside it. If utils.py
/// exists, its content decides. If it is one of lm_eval's own, the name is "humaneval/utils.f",
/// where f is a function that evald has built in. Otherwise the name is the function's place,
/// "<folder>/utils.f", which no built-in function has. If utils.py does not exist,
/// "humaneval/utils.f" and "lm_eval.tasks.humaneval.utils.f" name a function of lm_eval 0.4.13, and
/// any other name stays one of `folder`. `folder` is an absolute path, read below `roots`. Throws
/// Error(kInput) for a name that has not the form "module.function", and for a file of more than
/// 4 MiB.
std::string FunctionBeside(const std::filesystem::path& folder, const std::string& name,
                           const ReadRoots& roots);

/// The same for a task file that is built into the program, in `folder` below datasets/tasks.
std::string BuiltinFunction(const std::string& folder, const std::string& name);

}  // namespace evald
