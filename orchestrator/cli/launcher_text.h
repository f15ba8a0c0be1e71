#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald::cli {

/// What there is to say of these Launcher resources: for each a sentence about its nodes and its
/// waiting jobs, then its problems.
std::vector<std::string> LauncherLines(const Json& launchers);

/// The same with a table of the jobs below each first sentence, in lines of at most `columns`. A
/// table that is wider loses the ends of its reasons. With `whole_words`, a word that is longer
/// than a line stays whole.
std::vector<std::string> LauncherTables(const Json& launchers, size_t columns, bool whole_words);

/// Names of the launchers that exclude this node.
std::vector<std::string> ExcludedBy(const Json& launchers, const std::string& node);

}  // namespace evald::cli
