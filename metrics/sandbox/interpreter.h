#pragma once

#include <string>
#include <vector>

#include "evald/json.h"

namespace evald::sandbox {

/// A Python interpreter and the files it needs, all by absolute real paths.
struct Interpreter {
  std::string executable;
  std::string loader;                ///< the dynamic loader's path in the executable; may be a link
  std::string version;               ///< "3.11.2"
  std::vector<std::string> folders;  ///< standard library, as on sys.path
  std::vector<std::string> libraries;  ///< folders of its shared libraries
  std::vector<std::string> packages;   ///< site-packages of a virtual environment, if any
  /// Packages that are installed for everybody (Debian: dist-packages); programs of models do not
  /// see them
  std::vector<std::string> site_packages;
};

/// The packages that `interpreter` finds: {name: version}. Their code is not run. Throws
/// Error(kInfrastructure).
Json InstalledPackages(const Interpreter& interpreter);

/// Asks the interpreter itself. `python` is a path or a name on PATH. For a virtual environment,
/// the base interpreter is used with the environment's packages. Throws Error(kInfrastructure) if
/// it is missing, does not run, or is no CPython. Takes about 0.1 s the first time; the answer is
/// kept for each path. Any thread.
const Interpreter& FindInterpreter(const std::string& python);

}  // namespace evald::sandbox
