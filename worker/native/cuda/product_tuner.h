#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "worker/native/cuda/lt_product.h"

namespace evald::native::cuda {

/// Numbers of rows are grouped into buckets: up to 8, up to 16, 32, …
int BucketOf(int64_t rows);
int64_t RowsOfBucket(int bucket);

/// The choice for one bucket of rows.
struct BucketChoice {
  LtAlgorithm algorithm;
  int64_t rows_at_once = 0;  ///< > 0: products are computed in parts of so many rows, each by the
                             ///< choice of its own bucket, since none of more rows agrees
  double seconds = 0;        ///< of the bucket's largest product; 0: not measured
  double best_seconds = 0;   ///< of the fastest algorithm, whether or not its bits agree
};

struct TunedProduct {
  LtAlgorithm reference;
  std::vector<BucketChoice> buckets;
};

/// Chooses algorithms so that a row's bits do not depend on the rows beside it. Algorithms are
/// tried on random matrices, with the largest and the smallest product of each bucket, and all bits
/// are compared with the reference's. Of the algorithms that agree, the fastest is taken.
///
/// The reference is chosen without a clock, from the library's recommendations and from the bits of
/// the results: the same library gives the same reference on every GPU of a kind, so that two
/// workers agree. The speed of an algorithm never changes a result. Speed is measured with
/// weights that lie in no cache, as in a model, and the shortest of some runs counts.
class ProductTuner {
 public:
  ProductTuner(const CublasLt& lt, const Memory& workspace, Stream* stream)
      : lt_(lt), workspace_(workspace), stream_(stream) {}

  /// `known`: the reference from before. Takes memory for matrices of the shape while it runs.
  /// Throws Error(kInfrastructure) if no algorithm can be the reference.
  TunedProduct Tune(LtProduct* product, const std::optional<LtAlgorithm>& known);

 private:
  struct Candidate {
    LtAlgorithm algorithm;
    double seconds = 0;  ///< 0: not measured
  };
  struct Matrices {
    Memory weights, x, y, reference, differences;
    Memory cache;  ///< zeros, to fill the cache with
  };

  void TakeMatrices(const ProductShape& shape, int64_t rows);
  Product ProductOf(int64_t rows, const Memory& y) const;
  bool Run(const LtAlgorithm& algorithm, const Product& product);
  bool RunReference(const LtAlgorithm& algorithm, int64_t rows);
  bool SameBits(const LtAlgorithm& algorithm, int64_t rows);
  bool Agrees(const LtAlgorithm& algorithm, int bucket);
  void EmptyCache();
  double Measure(const LtAlgorithm& algorithm, int64_t rows);
  std::vector<LtAlgorithm> References() const;
  std::optional<int64_t> RankSum(const LtAlgorithm& reference);
  LtAlgorithm ChooseReference();
  BucketChoice ChooseForBucket(int bucket, const LtAlgorithm& reference);

  const CublasLt& lt_;
  const Memory& workspace_;
  Stream* stream_;
  LtProduct* product_ = nullptr;
  int64_t rows_ = 0;  ///< for which the matrices have space
  Matrices matrices_;
  std::vector<std::vector<LtAlgorithm>> candidates_;  ///< by bucket, in the recommended order
};

}  // namespace evald::native::cuda
