#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/sandbox/language.h"
#include "metrics/sandbox/sandbox.h"

namespace evald::sandbox {

/// The files of a program, and the commands that make and run it.
struct ProgramPlan {
  std::vector<SourceFile> files;
  std::vector<std::string> build;  ///< empty: nothing to compile
  std::vector<std::string> run;
};

/// Names files that have none, adds what the language's compiler needs beside them, and fills the
/// placeholders of the language's commands. Throws Error(kInput) for a name that leads out of the
/// program's folder or that two files have.
ProgramPlan PlanProgram(const Language& language, const std::vector<SourceFile>& files,
                        const std::string& python, uint64_t memory_bytes);

/// Whether a program's file may have this name: a relative path without "..", of at most 200 bytes.
bool IsProgramPath(std::string_view name);

/// What a Java file says about itself.
struct JavaClasses {
  std::string package;       ///< "" or "a.b"
  std::string public_class;  ///< gives the file its name; "" if there is none
  std::string main_class;    ///< the outermost class around `static void main`
};
JavaClasses FindJavaClasses(std::string_view text);

/// Whether a Go file is a program, and not a test: it has a function `main`.
bool HasGoMain(std::string_view text);

}  // namespace evald::sandbox
