#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/read_roots.h"

namespace evald {

/// One import of a Python text: `from a.b import c, d` is {"a.b", {"c", "d"}}.
struct PythonImport {
  std::string module;
  std::vector<std::string> names;  ///< none for `import a.b`
};

/// The imports of a Python text, without relative ones and those below `if TYPE_CHECKING:`. The
/// text is read line by line and not run, so that modules imported by other means are not found.
std::vector<PythonImport> ImportsOf(std::string_view text);

/// Folders that hold task files, below `roots`. Modules in them are also known as those of
/// lm_eval.tasks.
struct TaskModules {
  std::vector<std::filesystem::path> folders;
  ReadRoots roots;
};

/// The Python file of a function that is not built in (datasets/known_modules.h): "ifeval/utils.f"
/// is looked for in each folder. "" if there is none.
std::filesystem::path ModuleOf(const std::string& function, const TaskModules& modules);

/// The packages that a Python file imports, by itself and through other files of tasks.
std::set<std::string> PackagesOf(const std::filesystem::path& module, const TaskModules& modules);

}  // namespace evald
