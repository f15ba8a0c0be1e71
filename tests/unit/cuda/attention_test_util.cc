#include "tests/unit/cuda/attention_test_util.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "worker/native/cuda/emulated/numbers.h"

namespace evald::native::cuda {
namespace {

constexpr int64_t kLayers = 2, kLayer = 1;

template <typename T>
Memory OnDevice(const std::vector<T>& values, const Stream& stream) {
  const size_t bytes = std::max<size_t>(1, values.size() * sizeof(T));
  Memory memory(MemoryKind::kDevice, bytes);
  CopyToDevice(memory.data(), values.data(), values.size() * sizeof(T), stream);
  return memory;
}

}  // namespace

World::World(const WorldShape& shape, const std::vector<Part>& parts, unsigned seed)
    : shape_(shape), kv_{shape.type, kLayers, shape.kv_heads, shape.head_dim}, random_(seed) {
  for (const Part& part : parts) {
    const auto index = static_cast<size_t>(part.sequence);
    if (sequences_.size() <= index) sequences_.resize(index + 1);
    Sequence& sequence = sequences_[index];
    sequence.positions = std::max(sequence.positions, part.first_position + part.count);
    if (part.shared_pages > 0) {
      const auto& from = sequences_[static_cast<size_t>(part.shared_with)].pages;
      sequence.pages.assign(from.begin(), from.begin() + part.shared_pages);
    }
    while (static_cast<int64_t>(sequence.pages.size()) < PagesFor(sequence.positions)) {
      sequence.pages.push_back(static_cast<int64_t>(pages_.size()));
      pages_.emplace_back(kv_.page_bytes(), static_cast<char>(0xFF));
    }
  }
  std::normal_distribution<double> normal;
  for (Sequence& sequence : sequences_) {
    for (int64_t p = 0; p < sequence.positions; ++p) {
      for (int64_t head = 0; head < shape.kv_heads; ++head) {
        for (const bool values : {false, true}) {
          const int64_t page = sequence.pages[static_cast<size_t>(p / kPagePositions)];
          char* place = Place(page, values, head, p % kPagePositions);
          if (!std::isnan(At(place, 0))) continue;  // shared, and filled already
          for (int64_t d = 0; d < shape.head_dim; ++d) Put(place, d, Bits(normal(random_)));
        }
      }
      for (int64_t i = 0; i < shape.heads() * shape.head_dim; ++i) {
        sequence.queries.push_back(Bits(2 * normal(random_)));
      }
    }
  }
  Upload();
}

uint32_t World::Bits(double value) const {
  const auto x = static_cast<float>(value);
  if (shape_.type == WeightType::kF16) return From<F16>(x).bits;
  if (shape_.type == WeightType::kBF16) return From<BF16>(x).bits;
  return std::bit_cast<uint32_t>(x);
}

double World::Number(uint32_t bits) const {
  if (shape_.type == WeightType::kF16) return ToFloat(F16{static_cast<uint16_t>(bits)});
  if (shape_.type == WeightType::kBF16) return ToFloat(BF16{static_cast<uint16_t>(bits)});
  return std::bit_cast<float>(bits);
}

char* World::Place(int64_t page, bool values, int64_t head, int64_t slot) const {
  const auto at = static_cast<uint64_t>((kLayer * 2 + (values ? 1 : 0)) * kv_.kv_heads + head);
  const char* begin = pages_[static_cast<size_t>(page)].data() + at * kv_.head_bytes();
  return const_cast<char*>(begin) + static_cast<size_t>(slot * kv_.head_dim) * NumberBytes();
}

double World::At(const char* place, int64_t index) const {
  uint32_t bits = 0;
  std::memcpy(&bits, place + static_cast<size_t>(index) * NumberBytes(), NumberBytes());
  return Number(bits);
}

void World::Put(char* place, int64_t index, uint32_t bits) const {
  std::memcpy(place + static_cast<size_t>(index) * NumberBytes(), &bits, NumberBytes());
}

void World::Upload() {
  arena_ = Memory(MemoryKind::kDevice, pages_.size() * kv_.page_bytes());
  for (size_t i = 0; i < pages_.size(); ++i) {
    CopyToDevice(arena_.data() + i * kv_.page_bytes(), pages_[i].data(), kv_.page_bytes(), stream_);
  }
  stream_.Synchronize();
  tables_.clear();
  for (const Sequence& sequence : sequences_) {
    auto& table = tables_.emplace_back();
    for (const int64_t page : sequence.pages) {
      char* at = arena_.data() + static_cast<uint64_t>(page) * kv_.page_bytes();
      table.push_back(reinterpret_cast<Page*>(at));
    }
  }
}

void World::Unshare() {
  std::vector<std::vector<char>> pages;
  for (Sequence& sequence : sequences_) {
    for (int64_t& page : sequence.pages) {
      pages.push_back(pages_[static_cast<size_t>(page)]);
      page = static_cast<int64_t>(pages.size()) - 1;
    }
  }
  pages_ = std::move(pages);
  Upload();
}

std::vector<Segment> World::Segments(const std::vector<Part>& parts) {
  std::vector<Segment> segments;
  for (const Part& part : parts) {
    Segment segment;
    segment.count = part.count;
    segment.first_position = part.first_position;
    segment.pages = tables_[static_cast<size_t>(part.sequence)].data();
    segments.push_back(segment);
  }
  return segments;
}

AttentionPlan World::Plan(const std::vector<Part>& parts, int64_t group) {
  return PlanAttention(Segments(parts), shape_.window, group > 0 ? group : shape_.group);
}

std::vector<uint32_t> World::Attend(const std::vector<Part>& parts, int padding) {
  const AttentionPlan plan = Plan(parts);
  std::vector<int32_t> positions, tables;
  std::vector<char*> pages;
  std::vector<char> qkv;  // keys and values are not read here: NaN
  for (const Part& part : parts) {
    const Sequence& sequence = sequences_[static_cast<size_t>(part.sequence)];
    for (int64_t p = part.first_position; p < part.first_position + part.count; ++p) {
      positions.push_back(static_cast<int32_t>(p));
      tables.push_back(static_cast<int32_t>(pages.size()));
      const size_t begin = qkv.size();
      qkv.resize(begin + static_cast<size_t>(shape_.row_width()) * NumberBytes(),
                 static_cast<char>(0xFF));
      for (int64_t head = 0; head < shape_.heads(); ++head) {
        const int64_t kv_head = head / shape_.group;
        const int64_t at = (head + (shape_.packed ? 2 * kv_head : 0)) * shape_.head_dim;
        for (int64_t d = 0; d < shape_.head_dim; ++d) {
          const int64_t query = (p * shape_.heads() + head) * shape_.head_dim + d;
          Put(qkv.data() + begin, at + d, sequence.queries[static_cast<size_t>(query)]);
        }
      }
    }
    const auto& table = tables_[static_cast<size_t>(part.sequence)];
    for (int64_t i = 0; i < PagesFor(part.first_position + part.count); ++i) {
      pages.push_back(reinterpret_cast<char*>(table[static_cast<size_t>(i)]));
    }
  }
  const size_t rows = positions.size();
  auto items = plan.items;
  auto partials = plan.partials;
  for (int i = 0; i < padding; ++i) {
    positions.push_back(-1);
    tables.push_back(0);
    partials.push_back(partials.back());
    items.push_back({});
    qkv.resize(qkv.size() + static_cast<size_t>(shape_.row_width()) * NumberBytes(),
               static_cast<char>(0xFF));
  }
  const Memory positions_on = OnDevice(positions, stream_), tables_on = OnDevice(tables, stream_);
  const Memory pages_on = OnDevice(pages, stream_), qkv_on = OnDevice(qkv, stream_);
  const Memory items_on = OnDevice(items, stream_), partials_on = OnDevice(partials, stream_);
  const auto width = static_cast<size_t>(shape_.heads() * shape_.head_dim);
  std::vector<char> out(positions.size() * width * NumberBytes(), static_cast<char>(0xFF));
  const Memory out_on = OnDevice(out, stream_);
  const Memory scratch =
      OnDevice(std::vector<char>(
                   AttentionScratchBytes(plan.partials.back(), shape_.heads(), shape_.head_dim),
                   static_cast<char>(0xFF)),
               stream_);
  AttendArgs args;
  args.batch = {static_cast<int64_t>(positions.size()), positions_on.as<int32_t>(),
                tables_on.as<int32_t>(), pages_on.as<char*>()};
  args.qkv = qkv_on.data();
  args.kv = kv_;
  args.layer = kLayer;
  args.heads = shape_.heads();
  args.packed = shape_.packed;
  args.window = shape_.window;
  args.scale = 1 / std::sqrt(static_cast<float>(shape_.head_dim));
  args.items = items_on.as<AttendItem>();
  args.item_count = static_cast<int64_t>(items.size());
  args.partials = partials_on.as<int32_t>();
  args.scratch = scratch.data();
  args.out = out_on.data();
  cuda::Attend(args, stream_);
  CopyToHost(out.data(), out_on.data(), out.size(), stream_);
  stream_.Synchronize();
  for (size_t i = rows * width * NumberBytes(); i < out.size(); ++i) {
    if (out[i] != static_cast<char>(0xFF))
      throw std::runtime_error("wrote to a row that only pads");
  }
  std::vector<uint32_t> bits(rows * width);
  for (size_t i = 0; i < bits.size(); ++i) {
    std::memcpy(&bits[i], out.data() + i * NumberBytes(), NumberBytes());
  }
  return bits;
}

std::vector<double> World::Decode(const Sequence& sequence, bool values, int64_t head) const {
  std::vector<double> numbers;
  for (int64_t p = 0; p < sequence.positions; ++p) {
    const int64_t page = sequence.pages[static_cast<size_t>(p / kPagePositions)];
    const char* place = Place(page, values, head, p % kPagePositions);
    for (int64_t d = 0; d < shape_.head_dim; ++d) numbers.push_back(At(place, d));
  }
  return numbers;
}

std::vector<World::Expected> World::Reference(const std::vector<Part>& parts) const {
  const int64_t dim = shape_.head_dim;
  std::vector<Expected> expected;
  int64_t row = 0;
  for (const Part& part : parts) {
    expected.resize(expected.size() + static_cast<size_t>(part.count * shape_.heads() * dim));
    const Sequence& sequence = sequences_[static_cast<size_t>(part.sequence)];
    for (int64_t head = 0; head < shape_.heads(); ++head) {
      const std::vector<double> keys = Decode(sequence, false, head / shape_.group);
      const std::vector<double> values = Decode(sequence, true, head / shape_.group);
      for (int64_t i = 0; i < part.count; ++i) {
        const int64_t end = part.first_position + i + 1;
        const int64_t first = shape_.window > 0 ? std::max<int64_t>(0, end - shape_.window) : 0;
        std::vector<double> query, weights;
        for (int64_t d = 0; d < dim; ++d) {
          const int64_t at = ((end - 1) * shape_.heads() + head) * dim + d;
          query.push_back(Number(sequence.queries[static_cast<size_t>(at)]));
        }
        double top = -std::numeric_limits<double>::infinity(), total = 0;
        for (int64_t p = first; p < end; ++p) {
          const double* key = keys.data() + p * dim;
          double score = 0;
          for (int64_t d = 0; d < dim; ++d) score += query.data()[d] * key[d];
          weights.push_back(score / std::sqrt(static_cast<double>(dim)));
          top = std::max(top, weights.back());
        }
        for (double& weight : weights) total += weight = std::exp(weight - top);
        Expected* out = expected.data() + ((row + i) * shape_.heads() + head) * dim;
        for (int64_t p = first; p < end; ++p) {
          const double weight = weights.data()[p - first] / total;
          const double* value = values.data() + p * dim;
          for (int64_t d = 0; d < dim; ++d) {
            out[d].value += weight * value[d];
            out[d].size += weight * std::abs(value[d]);
          }
        }
        for (int64_t d = 0; d < dim; ++d) out[d].keys = static_cast<double>(end - first);
      }
    }
    row += part.count;
  }
  return expected;
}

}  // namespace evald::native::cuda
