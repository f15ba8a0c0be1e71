#include "worker/native/cuda/attention.h"

#include <algorithm>
#include <vector>

#include "bench/gpu/gpu_bench.h"
#include "bench/run_evald.h"
#include "worker/native/cuda/tuning.h"
#include "worker/native/kv_cache.h"

namespace evald::bench {
namespace {

using namespace native;
using namespace native::cuda;

// Sequences that are computed together: `count` of them, each with `rows` rows after `before`
// positions, of which the first `shared` lie in the same pages for all. `spread`: the last
// sequence has so many positions more before its rows than the first, the others lie between.
struct Case {
  const char* name;
  int count, rows;
  int64_t before, shared, spread;
};
constexpr Case kCases[] = {{"questions that share a prefix", 80, 100, 1024, 1024, 0},
                           {"prompts", 16, 512, 0, 0, 0},
                           {"decode, 256 sequences", 256, 1, 100, 0, 800},
                           {"decode, 8 sequences", 8, 1, 1200, 0, 0}};
constexpr int64_t kHeads = 32, kKvHeads = 8, kHeadDim = 128, kLayers = 32;

// A batch in device memory.
class Batch {
 public:
  Batch(const Case& work, const Options& options) : shrink_(options.quick ? 8 : 1) {
    kv_ = {WeightType::kBF16, kLayers / shrink_, kKvHeads / shrink_, kHeadDim};
    heads_ = kHeads / shrink_;
    MakeSequences(work);
    TakePages();
    const AttentionPlan plan = PlanAttention(segments_, 0, heads_ / kv_.kv_heads);
    items_ = Upload(plan.items);
    item_count_ = static_cast<int64_t>(plan.items.size());
    partials_ = Upload(plan.partials);
    const uint64_t scratch = AttentionScratchBytes(plan.partials.back(), heads_, kHeadDim);
    scratch_ = Memory(MemoryKind::kDevice, scratch);
    UploadRows();
  }

  int64_t layers() const { return kv_.layers; }
  // Of one layer.
  double flops() const { return 4.0 * pairs_ * static_cast<double>(heads_ * kHeadDim); }
  // Keys and values of one layer, each page once.
  double bytes() const {
    return static_cast<double>(keys_) * 2 * static_cast<double>(kv_.kv_heads * kHeadDim) * 2;
  }

  void Attend(int64_t layer, const Stream& stream) const {
    native::cuda::AttendArgs args;
    args.batch.rows = rows_;
    args.batch.positions = positions_.as<int32_t>();
    args.batch.tables = tables_.as<int32_t>();
    args.batch.pages = pages_.as<char*>();
    args.qkv = qkv_.data();
    args.kv = kv_;
    args.layer = layer;
    args.heads = heads_;
    args.packed = false;
    args.window = 0;
    args.scale = 0.088F;
    args.items = items_.as<AttendItem>();
    args.item_count = item_count_;
    args.partials = partials_.as<int32_t>();
    args.scratch = scratch_.data();
    args.out = out_.data();
    native::cuda::Attend(args, stream);
  }

 private:
  template <typename T>
  Memory Upload(const std::vector<T>& values) {
    Memory memory(MemoryKind::kDevice, std::max<size_t>(1, values.size()) * sizeof(T));
    CopyToDevice(memory.data(), values.data(), values.size() * sizeof(T), stream_);
    stream_.Synchronize();
    return memory;
  }

  // Page tables with numbers of pages in place of addresses.
  void MakeSequences(const Case& work) {
    const int count = std::max(1, work.count / shrink_);
    const int64_t shared_pages = work.shared / kPagePositions;
    pages_taken_ = shared_pages;
    keys_ = work.shared;
    for (int i = 0; i < count; ++i) {
      Segment segment;
      segment.count = work.rows;
      segment.first_position = work.before + work.spread * i / count;
      const int64_t end = segment.first_position + segment.count;
      std::vector<uint64_t> table;
      for (int64_t page = 0; page < PagesFor(end); ++page) {
        table.push_back(static_cast<uint64_t>(page < shared_pages ? page : pages_taken_++));
      }
      keys_ += end - work.shared;
      pairs_ += static_cast<double>(segment.count) * (static_cast<double>(segment.first_position) +
                                                      static_cast<double>(segment.count + 1) / 2);
      rows_ += segment.count;
      numbers_.push_back(std::move(table));
      segments_.push_back(segment);
    }
  }

  void TakePages() {
    arena_ = Memory(MemoryKind::kDevice, static_cast<uint64_t>(pages_taken_) * kv_.page_bytes());
    FillRandom(kv_.type, arena_.data(), static_cast<int64_t>(arena_.bytes() / 2), 1, stream_);
    for (size_t i = 0; i < segments_.size(); ++i) {
      auto& table = places_.emplace_back();
      for (const uint64_t number : numbers_[i]) {
        table.push_back(reinterpret_cast<Page*>(arena_.data() + number * kv_.page_bytes()));
      }
    }
    for (size_t i = 0; i < segments_.size(); ++i) segments_[i].pages = places_[i].data();
  }

  void UploadRows() {
    std::vector<int32_t> positions, tables;
    std::vector<uint64_t> pages;  // addresses
    for (size_t i = 0; i < segments_.size(); ++i) {
      for (int row = 0; row < segments_[i].count; ++row) {
        positions.push_back(static_cast<int32_t>(segments_[i].first_position + row));
        tables.push_back(static_cast<int32_t>(pages.size()));
      }
      for (Page* const page : places_[i]) pages.push_back(reinterpret_cast<uint64_t>(page));
    }
    positions_ = Upload(positions);
    tables_ = Upload(tables);
    pages_ = Upload(pages);
    const int64_t numbers = rows_ * (heads_ + 2 * kv_.kv_heads) * kHeadDim;
    qkv_ = Memory(MemoryKind::kDevice, static_cast<uint64_t>(numbers) * 2);
    out_ = Memory(MemoryKind::kDevice, static_cast<uint64_t>(rows_ * heads_ * kHeadDim) * 2);
    FillRandom(kv_.type, qkv_.data(), numbers, 2, stream_);
    stream_.Synchronize();
  }

  int shrink_;
  Stream stream_;
  KvLayout kv_{};
  int64_t heads_ = 0, rows_ = 0, keys_ = 0, pages_taken_ = 0, item_count_ = 0;
  double pairs_ = 0;
  std::vector<std::vector<uint64_t>> numbers_;
  std::vector<std::vector<Page*>> places_;
  std::vector<Segment> segments_;
  Memory arena_, positions_, tables_, pages_, qkv_, out_, items_, partials_, scratch_;
};

// Seconds of one layer: the median of rounds over all layers, each of which has keys and values of
// its own.
double SecondsOf(const Batch& batch, int rounds) {
  Stream stream;
  Event begin(true), end(true);
  std::vector<double> seconds;
  for (int round = 0; round <= rounds; ++round) {
    begin.Record(stream);
    for (int64_t layer = 0; layer < batch.layers(); ++layer) batch.Attend(layer, stream);
    end.Record(stream);
    end.Synchronize();
    if (round > 0) {
      seconds.push_back(SecondsBetween(begin, end) / static_cast<double>(batch.layers()));
    }
  }
  return Median(seconds);
}

}  // namespace

Result RunAttention(const Options& options) {
  UseBenchGpu(options);
  const double matrix_rate = MatrixRate(SizesOf(options));
  const double memory_rate = MemoryRate(SizesOf(options));
  Json details = Json::object();
  double total = 0, least = 0;
  for (const Case& work : kCases) {
    const Batch batch(work, options);
    const double seconds = SecondsOf(batch, options.quick ? 1 : 5);
    const double bound = std::max(batch.flops() / matrix_rate, batch.bytes() / memory_rate);
    details[work.name] = {{"us", seconds * 1e6},
                          {"tflops", batch.flops() / seconds / 1e12},
                          {"gb_per_s", batch.bytes() / seconds / 1e9},
                          {"of_bound", bound / seconds}};
    total += seconds;
    least += bound;
  }
  Result result;
  result.unit = "s";
  result.smaller_is_better = true;
  result.value = total;
  result.baseline = "its operations at the rate of a large product, or its bytes at the memory's";
  result.baseline_value = least;
  result.target = 0;
  result.details = details;
  return result;
}

}  // namespace evald::bench
