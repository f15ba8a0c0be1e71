#pragma once

#include <nlohmann/json.hpp>

namespace evald {

/// The one JSON type of the project. It keeps the order of object members, so a document read from
/// a dataset is rendered and written back in its own order.
using Json = nlohmann::ordered_json;

}  // namespace evald
