#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/native/cuda/cublaslt_library.h"
#include "worker/native/cuda/products.h"

namespace evald::native::cuda {

/// A way in which cuBLASLt can compute a product.
struct LtAlgorithm {
  lt::Algorithm algorithm;
  uint64_t workspace_bytes = 0;

  /// The algorithm's configuration: "id 66 tile 20 stages 36 split 1 …".
  std::string Describe(const CublasLt& lt) const;
  /// Whether it may spread one sum over several blocks: then bits may depend on the number of rows.
  bool Splits(const CublasLt& lt) const;
};

/// One shape of product in cuBLASLt's terms. Its matrices are column by column, so that y^T
/// [outputs][rows] = W x^T is computed, with W transposed. For one thread at a time.
class LtProduct {
 public:
  LtProduct(const CublasLt& lt, lt::Handle handle, const ProductShape& shape);
  ~LtProduct();
  LtProduct(const LtProduct&) = delete;
  LtProduct& operator=(const LtProduct&) = delete;

  const ProductShape& shape() const { return shape_; }
  /// The library's recommendations for so many rows, the best first. `splits`: include algorithms
  /// that split sums.
  std::vector<LtAlgorithm> Recommend(int64_t rows, int count, bool splits,
                                     uint64_t workspace_bytes);
  /// Queues the product. Not every algorithm can compute every number of rows.
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
