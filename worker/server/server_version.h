#pragma once

#include <string>
#include <vector>

namespace evald::server {

/// Whether a version, such as "0.32.0+cpu", is older than the numbers in `oldest`. A version that
/// does not begin with a number ("dev") is not.
bool OlderThan(const std::string& version, const std::vector<int>& oldest);

/// Throws Error(kInput) if the version of `server` ("vLLM") is older than `oldest`, the oldest that
/// evald drives. `install` is the command that installs a newer one.
void RefuseOlder(const std::string& server, const std::string& version,
                 const std::vector<int>& oldest, const std::string& install);

}  // namespace evald::server
