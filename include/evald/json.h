#pragma once

#include <nlohmann/json.hpp>

namespace evald {

/// The one JSON type of the project. Keeps the order of object members, so that a document read
/// from a dataset is rendered and written back as it was.
using Json = nlohmann::ordered_json;

}  // namespace evald
