#pragma once

#include <filesystem>
#include <string>

#include "base/read_roots.h"

namespace evald {

/// The name that a `!function` of a task file is kept under.
///
/// `name` is what the file says: "utils.f" for a function of utils.py beside it. Where that file is
/// there, its content decides: "humaneval/utils.f" when it is one of lm_eval's own, in which f does
/// what evald has built in, and else the function's place, "<folder>/utils.f", which no built-in
/// function is called. Where it is not there, "humaneval/utils.f" and
/// "lm_eval.tasks.humaneval.utils.f" name a function of lm_eval 0.4.13; any other name stays one of
/// `folder`. `folder` is an absolute path, read below `roots`. Throws Error(kInput) for a name that
/// is no module's and function's, or a file of more than 4 MiB.
std::string FunctionBeside(const std::filesystem::path& folder, const std::string& name,
                           const ReadRoots& roots);

/// The same for a task file that is built into the program, in `folder` below datasets/tasks.
std::string BuiltinFunction(const std::string& folder, const std::string& name);

}  // namespace evald
