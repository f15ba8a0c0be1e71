#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "worker/native/cuda/attention.h"

namespace evald::native::cuda {

/// The shape of a test's attention.
struct WorldShape {
  WeightType type = WeightType::kBF16;
  int64_t head_dim = 64;
  int64_t kv_heads = 2;
  int64_t group = 1;
  bool packed = false;
  int64_t window = 0;

  int64_t heads() const { return kv_heads * group; }
  int64_t row_width() const { return (heads() + 2 * kv_heads) * head_dim; }
};

/// Rows of one sequence that are computed, and the number of its first pages that it shares with
/// the sequence of another part (which has them).
struct Part {
  int sequence = 0;
  int64_t first_position = 0;
  int count = 1;
  int64_t shared_pages = 0;
  int shared_with = 0;
};

/// Random keys, values and queries of some sequences. They do not depend on the parts that are
/// computed. Memory that belongs to no position is NaN: the rest of the last pages, the other
/// layers, the results.
class World {
 public:
  World(const WorldShape& shape, const std::vector<Part>& parts, unsigned seed);

  /// Attention of these parts, in this order, in one batch: [row][heads * head_dim], as bits.
  /// `padding` rows and items without content are added.
  std::vector<uint32_t> Attend(const std::vector<Part>& parts, int padding = 0);
  /// The same in double precision.
  struct Expected {
    double value = 0;
    double size = 0;  ///< the weighted sum of the values' absolute numbers
    double keys = 0;  ///< the number of keys seen
  };
  std::vector<Expected> Reference(const std::vector<Part>& parts) const;
  /// The number that a result's bits represent.
  double Number(uint32_t bits) const;
  /// `group` 0: the group of the shape.
  AttentionPlan Plan(const std::vector<Part>& parts, int64_t group = 0);
  /// Every sequence gets pages of its own with the same content.
  void Unshare();

 private:
  struct Sequence {
    std::vector<int64_t> pages;  // indices into pages_
    int64_t positions = 0;
    std::vector<uint32_t> queries;  // [position][heads][head_dim], bits
  };

  uint32_t Bits(double value) const;
  size_t NumberBytes() const { return shape_.type == WeightType::kF32 ? 4 : 2; }
  char* Place(int64_t page, bool values, int64_t head, int64_t slot) const;
  double At(const char* place, int64_t index) const;
  void Put(char* place, int64_t index, uint32_t bits) const;
  std::vector<Segment> Segments(const std::vector<Part>& parts);
  void Upload();
  /// Keys or values of one head at all positions: [position][head_dim].
  std::vector<double> Decode(const Sequence& sequence, bool values, int64_t head) const;

  WorldShape shape_;
  KvLayout kv_;
  std::mt19937 random_;
  Stream stream_;
  std::vector<Sequence> sequences_;
  std::vector<std::vector<char>> pages_;
  Memory arena_;
  std::vector<std::vector<Page*>> tables_;  // the device's page tables, by sequence
};

}  // namespace evald::native::cuda
