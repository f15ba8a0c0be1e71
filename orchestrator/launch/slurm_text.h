#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/launch/node_job.h"

namespace evald::slurm {

/// The format in which squeue is asked for jobs. With SLURM_TIME_FORMAT=%s its times are seconds
/// since 1970.
inline constexpr const char* kListFormat = "%i|%j|%T|%N|%S|%e|%r";

/// Jobs of squeue's output in kListFormat (squeue(1)) whose names begin with `prefix`. Lines of
/// other jobs are left out, whatever they hold. Throws Error(kInfrastructure) for a line of such a
/// job that is not of this form.
std::vector<ListedJob> ParseList(std::string_view output, std::string_view prefix);

/// The state behind squeue's word, "RUNNING".
ListedJob::State StateOf(std::string_view word);

/// The cause in what a program of Slurm writes to standard error, in one line: each of its lines
/// once, without "sbatch: error: " and the like. The first line often names what the last one
/// refuses.
std::string CauseIn(std::string_view errors);

/// What an sbatch that failed with these errors says about its job. Only some failures of the
/// connection leave open whether Slurm has taken the job.
SubmitAnswer FailedSubmission(std::string_view errors);

/// A duration as sbatch takes it, in whole minutes, rounded up; at least one.
std::string Minutes(double seconds);

/// "D-HH:MM:SS", "MM:SS" and the like in seconds (squeue's %L); -1 for "UNLIMITED" and all else.
double SecondsOf(std::string_view duration);

}  // namespace evald::slurm
