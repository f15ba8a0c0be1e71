#pragma once

#include <cstdint>

namespace evald {

/// Numbers on the wire. Trials and metric jobs are numbered within their run, and processes work
/// for several runs. So on the wire a number has the run's number in its upper bits and its own in
/// the lower 32. Both stay below 2^31.
inline int64_t WireId(int64_t run_number, int64_t id) { return run_number << 32 | id; }
inline int64_t RunOfWireId(int64_t wire) { return wire >> 32; }
inline int64_t IdOfWireId(int64_t wire) { return wire & 0xffffffff; }

}  // namespace evald
