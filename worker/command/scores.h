#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "evald/json.h"
#include "evald/task.h"

namespace evald::command {

/// The most that a results file may have; Inspect's logs hold all samples.
inline constexpr uint64_t kResultsBytesMax = uint64_t{256} << 20;
inline constexpr size_t kResultsValuesMax = size_t{16} << 20;

/// The one file below `folder` that `pattern` (relative; `*`, `?` and `[...]` as in glob(7)) names.
/// Throws Error(kInput) if there is none, or more than one.
std::filesystem::path FindResults(const std::filesystem::path& folder, const std::string& pattern);

/// The scores in `text`, the content of `file`: {"accuracy": 0.5}, in the order of their names.
/// Throws Error(kInput), which names the file and the path, if the text is no JSON, and for a score
/// that is not there, is no number, or is not finite. NaN and Infinity, which are no JSON but which
/// Python writes, may stand elsewhere in the text.
Json ScoresIn(const std::string& text, const std::string& file,
              const std::vector<CommandScore>& scores);

/// Both of these for a command's file, which must be a regular file within the limits.
Json ReadScores(const std::filesystem::path& folder, const CommandSpec& spec);

}  // namespace evald::command
