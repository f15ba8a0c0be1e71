#pragma once

#include <functional>
#include <optional>
#include <string>

namespace evald {

/// A Slurm allocation in which this process runs.
struct Allocation {
  std::string job;  ///< "4711"
  int nodes = 1;
  /// This process runs on one of the nodes (sbatch, or srun), not on a login node (salloc)
  bool on_node = false;
  double ends_at = 0;  ///< seconds since 1970; 0: not known
};

/// Reads an environment variable; nothing if it is not set.
using ReadVariable = std::function<std::optional<std::string>(const std::string& name)>;

/// The allocation that Slurm's variables describe (sbatch(1), salloc(1)); nothing outside one.
/// Throws Error(kUsage) if srun starts this process several times: one is enough.
std::optional<Allocation> AllocationHere(const ReadVariable& variable);
/// The variables of this process.
std::optional<std::string> OwnVariable(const std::string& name);

}  // namespace evald
