#pragma once

#include <vector>

#include "orchestrator/api/api_server.h"

namespace evald {

/// The web page's files, which are part of this program: "/" and "/assets/...".
std::vector<WebAsset> WebAssets();

}  // namespace evald
