#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "evald/json.h"
#include "worker/native/cuda/convert.h"
#include "worker/native/cuda/runtime.h"
#include "worker/native/kernels.h"

namespace evald::native::cuda {

/// y[row][outputs] = x[row][inputs] times W^T. Sums are kept in fp32.
struct Product {
  WeightType type = WeightType::kBF16;  ///< of W and x
  const void* weights = nullptr;        ///< [outputs][inputs]
  const void* x = nullptr;              ///< [rows][inputs]
  void* y = nullptr;                    ///< [rows][outputs]
  WeightType y_type = WeightType::kBF16;
  int64_t rows = 0;
  int64_t outputs = 0;
  int64_t inputs = 0;
};

/// The rows [first, first + rows) of the product.
inline Product RowsOf(Product product, int64_t first, int64_t rows) {
  const auto bytes = [first](int64_t width, WeightType type) {
    return static_cast<uint64_t>(first * width) * ElementBytes(type);
  };
  product.x = static_cast<const char*>(product.x) + bytes(product.inputs, product.type);
  product.y = static_cast<char*>(product.y) + bytes(product.outputs, product.y_type);
  product.rows = rows;
  return product;
}

/// RowsFor returns at most this many rows more than it is given.
inline constexpr int64_t kRowsSlack = 64;

/// A product that will be needed, with any number of rows up to `rows_max`.
struct ProductShape {
  WeightType type = WeightType::kBF16;
  WeightType y_type = WeightType::kBF16;
  int64_t outputs = 0;
  int64_t inputs = 0;
  int64_t rows_max = 0;
};

/// Large matrix products, by cuBLASLt. By default each row of y has the same bits for every number
/// of rows. For each shape one algorithm is the reference. Numbers of rows are grouped into buckets
/// (BucketOf in product_tuner.h). For each bucket, algorithms are tried on the device, and the
/// fastest one is used whose results have the same bits as the reference's. Algorithms that split
/// the inner dimension over blocks (split-K, stream-K) are not tried. With MakeProducts(fast),
/// cuBLASLt chooses the algorithm instead. Not thread-safe.
class Products {
 public:
  virtual ~Products() = default;
  /// Chooses algorithms for the shapes. A shape that was prepared before is skipped, unless its
  /// rows_max is larger now. Call this before Multiply of that shape, and not during the capture of
  /// a CUDA graph.
  virtual void Prepare(const std::vector<ProductShape>& shapes, const Stream& stream) = 0;
  /// Queues the product. x and y must have space for RowsFor(rows) rows; the rows after `rows` are
  /// garbage.
  virtual void Multiply(const Product& product, const Stream& stream) = 0;
  /// The number of rows that Multiply may write if it is asked for `rows`.
  virtual int64_t RowsFor(int64_t rows) const = 0;
  /// The choices, for reports: by shape and bucket the algorithm and its time.
  virtual Json Report() const = 0;
};

/// Products of the current device. Throws Error(kInfrastructure) if the library is not found.
std::unique_ptr<Products> MakeProducts(bool fast);

/// The default for RowsFor: rounds up to a multiple of 8, beyond 64 rows of 16, and beyond 256 rows
/// of 64. So batches of decoding have few different sizes, and large batches waste few rows.
inline int64_t RowBucket(int64_t rows) {
  const int64_t step = rows <= 64 ? 8 : rows <= 256 ? 16 : kRowsSlack;
  return (rows + step - 1) / step * step;
}

}  // namespace evald::native::cuda
