#pragma once

#include <optional>
#include <string>
#include <vector>

#include "evald/json.h"
#include "worker/parity/reference.h"

namespace evald::parity {

/// How far an engine's scores are from the reference's, in nats per root of the tokens in a window.
struct Distance {
  double mean = 0;
  double largest = 0;
  double expected = 0;  ///< the reference's own mean distance between fp32 and the engine's type
  int scores = 0;
};

/// The comparison of an engine's scores with a reference.
struct Verdict {
  Distance all;
  /// "" if the scores agree; else what differs, for a message.
  std::string difference;
  /// If they differ: likely causes, for a message.
  std::string causes;
};

/// The limits of Judge, as multiples of Distance::expected, each with a floor in nats. Where they
/// come from: docs/engines.md, "The parity check".
inline constexpr double kMeanFactor = 3, kMeanFloor = 0.002;
inline constexpr double kLargestFactor = 20, kLargestFloor = 0.02;

/// `found[i]`: the scores of the windows of the reference's part i; no value where the engine
/// cannot score a window. Short parts are judged together and each long part alone, so that a fault
/// of long texts shows among many short ones. Scores for which the reference has no finite number
/// are passed over, and so are those that are not there. A score that is not finite differs.
Verdict Judge(const Reference& reference,
              const std::vector<std::vector<std::optional<double>>>& found);

}  // namespace evald::parity
