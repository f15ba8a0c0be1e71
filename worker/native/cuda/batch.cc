#include "worker/native/cuda/batch.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "evald/error.h"

namespace evald::native::cuda {
namespace {

constexpr uint64_t kAlignment = 16;
constexpr uint64_t kItemsMin = 64;  // of a padded list

// The segments without the rows whose logits are not wanted.
std::vector<Segment> WantedOnly(const std::vector<Segment>& segments) {
  std::vector<Segment> kept;
  for (Segment segment : segments) {
    segment.tokens += segment.logits_from;
    segment.first_position += segment.logits_from;
    segment.count -= segment.logits_from;
    segment.logits_from = 0;
    kept.push_back(segment);  // even if no row is left, so that segments keep their numbers
  }
  return kept;
}

// The segments, cut into parts whose partial results fit into one call.
std::vector<std::vector<Segment>> CutForScratch(const std::vector<Segment>& segments,
                                                int64_t window, int64_t partials_max) {
  std::vector<std::vector<Segment>> parts(1);
  int64_t partials = 0;
  for (Segment rest : segments) {
    int taken = 0;
    const auto take = [&] {
      if (taken == 0) return;
      Segment part = rest;
      part.count = taken;
      parts.back().push_back(part);
      rest.tokens += taken;
      rest.first_position += taken;
      rest.count -= taken;
      taken = 0;
    };
    while (taken < rest.count) {
      const int64_t seen = ChunksSeen(rest.first_position + taken, window);
      if (partials > 0 && partials + seen > partials_max) {
        take();
        parts.emplace_back();
        partials = 0;
      }
      partials += seen;
      ++taken;
    }
    take();
  }
  return parts;
}

}  // namespace

int64_t ChunksSeen(int64_t position, int64_t window) {
  const int64_t first = window > 0 ? std::max<int64_t>(position + 1 - window, 0) : 0;
  return position / kChunkPositions - first / kChunkPositions + 1;
}

const std::vector<AttendPart>& RowSet::Attention(int64_t window) const {
  for (const Windowed& windowed : attention) {
    if (windowed.window == window) return windowed.parts;
  }
  throw Error(ErrorKind::kInternal, "no attention was planned for a layer's window");
}

BatchPlan::BatchPlan(const std::vector<Segment>& segments, const BatchLimits& limits,
                     int64_t padded_rows) {
  std::vector<Page*> pages;
  std::vector<int32_t> tokens, wanted;
  int32_t row = 0;
  for (const Segment& segment : segments) {
    const int64_t end = segment.first_position + segment.count;
    positions_ = std::max(positions_, end);
    tables_.push_back(static_cast<int32_t>(pages.size()));
    pages.insert(pages.end(), segment.pages, segment.pages + PagesFor(end));
    for (int i = 0; i < segment.count; ++i, ++row) {
      if (i >= segment.logits_from) wanted.push_back(row);
    }
  }
  all_wanted_ = static_cast<int64_t>(wanted.size()) == row;
  pads_ = padded_rows > 0;
  std::vector<int32_t> row_tables = PutRows(segments, std::max<int64_t>(padded_rows, row), &all_);
  for (const Segment& segment : segments) {
    tokens.insert(tokens.end(), segment.tokens, segment.tokens + segment.count);
  }
  tokens.resize(static_cast<size_t>(all_.padded), 0);
  tokens_at_ = Put(tokens);
  for (const int64_t window : limits.windows) {
    PutAttention(segments, limits, window, row_tables, &all_);
  }
  if (!all_wanted_) {
    const std::vector<Segment> kept = WantedOnly(segments);
    row_tables = PutRows(kept, static_cast<int64_t>(wanted.size()), &kept_);
    if (!wanted.empty()) PutAttention(kept, limits, limits.last_window, row_tables, &kept_);
    wanted_at_ = Put(wanted);
  }
  pages_at_ = Put(pages);
}

template <typename T>
uint64_t BatchPlan::Put(const std::vector<T>& values) {
  const uint64_t at = (data_.size() + kAlignment - 1) / kAlignment * kAlignment;
  data_.resize(at + values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(data_.data() + at, values.data(), values.size() * sizeof(T));
  return at;
}

// Returns where each row's page table begins.
std::vector<int32_t> BatchPlan::PutRows(const std::vector<Segment>& segments, int64_t padded,
                                        RowSet* rows) {
  std::vector<int32_t> positions, tables;
  for (size_t s = 0; s < segments.size(); ++s) {
    for (int i = 0; i < segments[s].count; ++i) {
      positions.push_back(static_cast<int32_t>(segments[s].first_position + i));
      tables.push_back(tables_[s]);
    }
  }
  rows->rows = static_cast<int64_t>(positions.size());
  rows->padded = padded;
  positions.resize(static_cast<size_t>(padded), -1);
  tables.resize(static_cast<size_t>(padded), 0);
  rows->positions_at = Put(positions);
  rows->tables_at = Put(tables);
  return tables;
}

void BatchPlan::PutAttention(const std::vector<Segment>& segments, const BatchLimits& limits,
                             int64_t window, const std::vector<int32_t>& tables, RowSet* rows) {
  RowSet::Windowed windowed;
  windowed.window = window;
  int64_t first_row = 0;
  const auto cut = CutForScratch(segments, window, limits.partials_max);
  for (const std::vector<Segment>& part_segments : cut) {
    AttentionPlan plan = PlanAttention(part_segments, window, limits.group);
    AttendPart part;
    part.first_row = first_row;
    part.rows = static_cast<int64_t>(plan.partials.size()) - 1;
    part.partials = plan.partials.back();
    for (AttendItem& item : plan.items) {  // tables of the whole batch
      item.table = tables[static_cast<size_t>(first_row + item.first)];
    }
    first_row += part.rows;
    if (pads_ && cut.size() == 1) {
      plan.items.resize(std::bit_ceil(std::max(kItemsMin, uint64_t{plan.items.size()})));
      part.rows = rows->padded;
      plan.partials.resize(static_cast<size_t>(part.rows) + 1, plan.partials.back());
    }
    part.items = static_cast<int64_t>(plan.items.size());
    part.items_at = Put(plan.items);
    part.partials_at = Put(plan.partials);
    partials_ = std::max(partials_, part.partials);
    windowed.parts.push_back(part);
  }
  rows->attention.push_back(std::move(windowed));
}

}  // namespace evald::native::cuda
