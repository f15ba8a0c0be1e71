#include "worker/native/cuda/attention.h"

#include <algorithm>
#include <array>

#include "worker/native/cuda/attention_tiles.h"

namespace evald::native::cuda {
namespace {

// Collects the items, one chunk after the other.
class Planner {
 public:
  Planner(int64_t window, int64_t group)
      : window_(window), group_(group), rows_max_(std::max<int64_t>(1, kWideRows / group)) {}

  // Adds the rows of `segment` that see the chunk. `row` is the batch's number of the segment's
  // first row. Segments come in order.
  void Add(const Segment& segment, int64_t row, int64_t table, int64_t chunk);
  void EndChunk() { Close(); }
  std::vector<AttendItem> Sorted() const;

  int64_t Hidden(int64_t position) const {  // keys before this position are not seen
    return window_ > 0 ? std::max<int64_t>(position + 1 - window_, 0) : 0;
  }

 private:
  void Close();
  bool Joins(const Segment& segment, int64_t row, int64_t pages_end) const;

  int64_t window_, group_, rows_max_;
  AttendItem item_{};                 // count 0: none
  const Segment* segment_ = nullptr;  // the segment of one of its rows
  bool mixed_ = false;                // rows of more than one segment
  int64_t first_page_ = 0;            // the first page that one of its rows sees
  int64_t pages_end_ = 0;             // one past the last one
  // Items by cost: those of many rows first, in each kind those with many pages first.
  std::array<std::vector<AttendItem>, 2 * kChunkPages> by_cost_;
};

void Planner::Close() {
  if (item_.count == 0) return;
  const bool wide = item_.count * group_ > kNarrowRows;
  const int64_t pages = pages_end_ - first_page_;
  by_cost_[static_cast<size_t>((wide ? 0 : kChunkPages) + kChunkPages - pages)].push_back(item_);
  item_ = AttendItem();
}

// Whether rows of `segment` that end in page `pages_end` can share the item's pages.
bool Planner::Joins(const Segment& segment, int64_t row, int64_t pages_end) const {
  if (item_.count == 0 || item_.count == rows_max_ || item_.first + item_.count != row)
    return false;
  if (&segment == segment_ && !mixed_) return true;
  const int64_t begin = item_.chunk * kChunkPages;
  return pages_end == pages_end_ &&
         std::equal(segment.pages + begin, segment.pages + pages_end, segment_->pages + begin);
}

void Planner::Add(const Segment& segment, int64_t row, int64_t table, int64_t chunk) {
  const int64_t begin = chunk * kChunkPositions, end = begin + kChunkPositions;
  int64_t next = std::max<int64_t>(0, begin - segment.first_position);
  int64_t last = segment.count;
  if (window_ > 0) last = std::min(last, end + window_ - 1 - segment.first_position);
  const auto pages_to = [&](int64_t rows_end) {
    return PagesFor(std::min(segment.first_position + rows_end, end));
  };
  while (next < last) {
    int64_t take = std::min(last - next, rows_max_ - item_.count);
    if (!Joins(segment, row + next, pages_to(next + take))) {
      Close();
      take = std::min(last - next, rows_max_);
      item_ = {static_cast<int32_t>(row + next), 0, static_cast<int32_t>(chunk),
               static_cast<int32_t>(table)};
      segment_ = &segment;
      mixed_ = false;
      first_page_ = INT64_MAX;
      pages_end_ = 0;
    }
    mixed_ = mixed_ || &segment != segment_;
    item_.count += static_cast<int32_t>(take);
    const int64_t hidden = Hidden(segment.first_position + next) / kPagePositions;
    first_page_ = std::min(first_page_, std::max(hidden, chunk * kChunkPages));
    pages_end_ = std::max(pages_end_, pages_to(next + take));
    next += take;
  }
}

std::vector<AttendItem> Planner::Sorted() const {
  std::vector<AttendItem> items;
  for (const auto& same : by_cost_) items.insert(items.end(), same.begin(), same.end());
  return items;
}

}  // namespace

AttentionPlan PlanAttention(const std::vector<Segment>& segments, int64_t window, int64_t group) {
  AttentionPlan plan;
  Planner planner(window, group);
  plan.partials.push_back(0);
  int64_t first_chunk = INT64_MAX, end_chunk = 0;
  for (const Segment& segment : segments) {
    for (int64_t i = 0; i < segment.count; ++i) {
      const int64_t position = segment.first_position + i;
      const int64_t first = planner.Hidden(position) / kChunkPositions;
      const int64_t seen = position / kChunkPositions + 1 - first;
      plan.partials.push_back(plan.partials.back() + static_cast<int32_t>(seen));
      plan.chunks_max = std::max(plan.chunks_max, seen);
      first_chunk = std::min(first_chunk, first);
      end_chunk = std::max(end_chunk, first + seen);
    }
  }
  for (int64_t chunk = first_chunk; chunk < end_chunk; ++chunk) {
    int64_t row = 0, table = 0;
    for (const Segment& segment : segments) {
      planner.Add(segment, row, table, chunk);
      row += segment.count;
      table += PagesFor(segment.first_position + segment.count);
    }
    planner.EndChunk();
  }
  plan.items = planner.Sorted();
  return plan;
}

uint64_t AttentionScratchBytes(int64_t partials, int64_t heads, int64_t head_dim) {
  return static_cast<uint64_t>(partials * heads * (head_dim + kPartialTail)) * sizeof(float);
}

}  // namespace evald::native::cuda
