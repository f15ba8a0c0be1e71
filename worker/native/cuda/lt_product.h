#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/native/cuda/cublaslt_library.h"
#include "worker/native/cuda/products.h"

namespace evald::native::cuda {

/// A way in which cuBLASLt computes a product.
struct LtAlgorithm {
  lt::Algorithm algorithm;
  uint64_t workspace_bytes = 0;

  /// Its configuration: "id 66 tile 20 stages 36 split 1 …".
  std::string Describe(const CublasLt& lt) const;
  /// True when it may spread one sum over several blocks: then bits may depend on the rows.
  bool Splits(const CublasLt& lt) const;
};

/// One shape of product as cuBLASLt sees it. Its matrices are column by column, so that y^T
/// [outputs][rows] = W x^T is computed, with W transposed. One thread at a time.
class LtProduct {
 public:
  LtProduct(const CublasLt& lt, lt::Handle handle, const ProductShape& shape);
  ~LtProduct();
  LtProduct(const LtProduct&) = delete;
  LtProduct& operator=(const LtProduct&) = delete;

  const ProductShape& shape() const { return shape_; }
  /// What the library recommends for so many rows, the best first. `splits`: also such algorithms.
  std::vector<LtAlgorithm> Recommend(int64_t rows, int count, bool splits,
                                     uint64_t workspace_bytes);
  /// Queues the product. Not all algorithms can compute all numbers of rows.
  lt::Status Run(const LtAlgorithm& algorithm, const Product& product, const Memory& workspace,
                 const Stream& stream);

 private:
  void SetRows(int64_t rows);

  const CublasLt& lt_;
  lt::Handle handle_;
  ProductShape shape_;
  lt::MatmulDesc operation_ = nullptr;
  lt::MatrixLayout weights_ = nullptr, x_ = nullptr, y_ = nullptr;
};

}  // namespace evald::native::cuda
