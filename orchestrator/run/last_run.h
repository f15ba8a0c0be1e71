#pragma once

#include <filesystem>
#include <string>

namespace evald {

/// Makes the links `last` and `last-<name>` beside a run's folder lead to the run. `name` is that
/// of the configuration; characters that a folder's name should not have become '-'. Each link
/// changes in one step, so that readers find the run before or this one. Only warns if a link
/// cannot be made, or if a folder or file that is no link has its name. Any thread.
void PointLastAt(const std::filesystem::path& directory, const std::string& name);

}  // namespace evald
