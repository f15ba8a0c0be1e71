#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "evald/json.h"
#include "worker/native/cuda/convert.h"
#include "worker/native/cuda/runtime.h"
#include "worker/native/kernels.h"

namespace evald::native::cuda {

/// y[row][outputs] = x[row][inputs] times W^T. Accumulated in fp32.
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

/// Of the product only the rows [first, first + rows).
inline Product RowsOf(Product product, int64_t first, int64_t rows) {
  const auto bytes = [first](int64_t width, WeightType type) {
    return static_cast<uint64_t>(first * width) * ElementBytes(type);
  };
  product.x = static_cast<const char*>(product.x) + bytes(product.inputs, product.type);
  product.y = static_cast<char*>(product.y) + bytes(product.outputs, product.y_type);
  product.rows = rows;
  return product;
}

/// RowsFor gives at most so many rows more than it is asked for.
inline constexpr int64_t kRowsSlack = 64;

/// A product that will be asked for, with any number of rows up to `rows_max`.
struct ProductShape {
  WeightType type = WeightType::kBF16;
  WeightType y_type = WeightType::kBF16;
  int64_t outputs = 0;
  int64_t inputs = 0;
  int64_t rows_max = 0;
};

/// Large matrix products. By default each row of y has the same bits whatever `rows`: for each
/// shape one algorithm is the reference, and for each bucket of rows the fastest one is used whose
/// rows were compared with the reference's, bit by bit, on the device (no split of the inner
/// dimension over blocks, no stream-K). `fast` takes the library's own choice. One thread at a
/// time.
class Products {
 public:
  virtual ~Products() = default;
  /// Chooses algorithms for shapes; those that are known cost nothing. Must have been called with a
  /// shape before it is multiplied, and not within a capture.
  virtual void Prepare(const std::vector<ProductShape>& shapes, const Stream& stream) = 0;
  /// Queues the product. x and y must have room for RowsFor(rows) rows, whose rest is garbage.
  virtual void Multiply(const Product& product, const Stream& stream) = 0;
  /// `rows` rounded up to what may be written.
  virtual int64_t RowsFor(int64_t rows) const = 0;
  /// What was chosen, for reports: by shape and bucket the algorithm and its time.
  virtual Json Report() const = 0;
};

/// Of the device that is current. Throws Error(kInfrastructure) where the library is not found.
std::unique_ptr<Products> MakeProducts(bool fast);

/// The usual RowsFor: in decoding few different numbers of rows come up, elsewhere little is
/// wasted.
inline int64_t RowBucket(int64_t rows) {
  const int64_t step = rows <= 64 ? 8 : rows <= 256 ? 16 : kRowsSlack;
  return (rows + step - 1) / step * step;
}

}  // namespace evald::native::cuda
