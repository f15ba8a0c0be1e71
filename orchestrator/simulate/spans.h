#pragma once

#include <vector>

#include "orchestrator/simulate/simulation.h"

namespace evald {

/// What each device did, device by device from 0, in order and without overlap: a warm device's
/// trials follow one another though each was leased before the last had run dry, and a trial's
/// generation begins when its process has started, loaded and prepared. Stretches without a span
/// were idle.
std::vector<std::vector<SimSpan>> SpansByDevice(const std::vector<SimSpan>& spans, int devices);

/// Devices that a picture shows, from 0: all, or `most` evenly taken.
std::vector<int> ShownDevices(int devices, int most);

}  // namespace evald
