#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "worker/native/cuda/attention.h"
#include "worker/native/device.h"

namespace evald::native::cuda {

/// The limits that a batch's plan depends on, beside its segments.
struct BatchLimits {
  int64_t group = 1;             ///< heads / kv_heads
  std::vector<int64_t> windows;  ///< the layers' windows, each once
  int64_t last_window = 0;       ///< the last layer's, which has only the kept rows
  /// The most partial results that one call of Attend may have, unless a single row needs more.
  int64_t partials_max = std::numeric_limits<int64_t>::max();
};

/// One call of Attend: rows [first_row, first_row + rows). Places are byte offsets into the batch's
/// data.
struct AttendPart {
  int64_t first_row = 0;
  int64_t rows = 0;
  int64_t items = 0;  ///< padding items included
  int64_t partials = 0;
  uint64_t items_at = 0;
  uint64_t partials_at = 0;
};

struct RowSet {
  struct Windowed {
    int64_t window = 0;
    std::vector<AttendPart> parts;
  };
  int64_t rows = 0;    ///< of the segments
  int64_t padded = 0;  ///< rows that are computed; those behind `rows` are padding
  uint64_t positions_at = 0;
  uint64_t tables_at = 0;
  std::vector<Windowed> attention;

  const std::vector<AttendPart>& Attention(int64_t window) const;
};

/// All that the device must know about a batch, laid out to be sent there in one copy: tokens,
/// positions and page tables, attention's plans and the kept rows. Pages come last, so that all
/// other places depend on the numbers of rows and items alone.
class BatchPlan {
 public:
  BatchPlan() = default;
  /// `padded_rows`, for a batch that is captured: the rows including padding, at least the
  /// segments' rows; numbers of items are padded too. 0: no padding.
  BatchPlan(const std::vector<Segment>& segments, const BatchLimits& limits, int64_t padded_rows);

  const RowSet& all() const { return all_; }
  const RowSet& kept() const { return all_wanted_ ? all_ : kept_; }
  bool all_wanted() const { return all_wanted_; }
  uint64_t tokens_at() const { return tokens_at_; }
  uint64_t wanted_at() const { return wanted_at_; }  ///< indices of the kept rows, if not all are
  uint64_t pages_at() const { return pages_at_; }
  const std::vector<char>& data() const { return data_; }
  int64_t positions() const { return positions_; }  ///< the largest position, plus one
  int64_t partials() const { return partials_; }    ///< the most of any call of Attend

 private:
  template <typename T>
  uint64_t Put(const std::vector<T>& values);
  std::vector<int32_t> PutRows(const std::vector<Segment>& segments, int64_t padded, RowSet* rows);
  void PutAttention(const std::vector<Segment>& segments, const BatchLimits& limits, int64_t window,
                    const std::vector<int32_t>& tables, RowSet* rows);

  RowSet all_, kept_;
  bool all_wanted_ = true;
  bool pads_ = false;
  std::vector<char> data_;
  std::vector<int32_t> tables_;  ///< by segment of the whole batch
  uint64_t tokens_at_ = 0, wanted_at_ = 0, pages_at_ = 0;
  int64_t positions_ = 0, partials_ = 0;
};

/// The number of chunks of keys that the row at `position` sees.
int64_t ChunksSeen(int64_t position, int64_t window);

}  // namespace evald::native::cuda
