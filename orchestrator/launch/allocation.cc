#include "orchestrator/launch/allocation.h"

#include <fmt/format.h>

#include <cstdlib>

#include "evald/error.h"

namespace evald {
namespace {

double NumberIn(const ReadVariable& variable, const char* name, double otherwise) {
  const auto text = variable(name);
  if (!text || text->empty()) return otherwise;
  char* end = nullptr;
  const double value = std::strtod(text->c_str(), &end);
  return *end == '\0' ? value : otherwise;
}

}  // namespace

std::optional<std::string> OwnVariable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::optional<Allocation> AllocationHere(const ReadVariable& variable) {
  const auto job = variable("SLURM_JOB_ID");
  if (!job || job->empty()) return std::nullopt;
  if (NumberIn(variable, "SLURM_STEP_NUM_TASKS", 1) > 1) {
    throw Error(ErrorKind::kUsage,
                fmt::format("srun starts this command {:.0f} times, and each would evaluate alone",
                            NumberIn(variable, "SLURM_STEP_NUM_TASKS", 1)),
                "leave srun out: 'evald run' uses all nodes of the allocation by itself");
  }
  Allocation allocation;
  allocation.job = *job;
  allocation.nodes = static_cast<int>(NumberIn(variable, "SLURM_JOB_NUM_NODES", 1));
  allocation.on_node = variable("SLURMD_NODENAME").has_value();
  allocation.ends_at = NumberIn(variable, "SLURM_JOB_END_TIME", 0);
  return allocation;
}

}  // namespace evald
