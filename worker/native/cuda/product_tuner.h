#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "worker/native/cuda/lt_product.h"

namespace evald::native::cuda {

/// Numbers of rows are taken together in buckets: up to 8, up to 16, 32, …
int BucketOf(int64_t rows);
int64_t RowsOfBucket(int bucket);

/// What is used for one bucket of rows.
struct BucketChoice {
  LtAlgorithm algorithm;
  int64_t rows_at_once = 0;  ///< > 0: products are computed in parts of so many rows, each by the
                             ///< choice of its own bucket, since none of more rows agrees
  double seconds = 0;        ///< of the bucket's largest product; 0: not measured
  double best_seconds = 0;   ///< of the fastest algorithm, whatever its bits
};

struct TunedProduct {
  LtAlgorithm reference;
  std::vector<BucketChoice> buckets;
};

/// Chooses algorithms so that a row's bits do not depend on the rows beside it. On random matrices,
/// the rows that an algorithm gives are compared with the reference's, all bits, for the largest
/// and the smallest product of each bucket; of those that agree, the fastest is taken.
///
/// The reference is chosen without a clock, from what the library recommends and from the bits that
/// come out: the same library gives the same reference on every GPU of a kind, so that two workers
/// agree. How fast an algorithm is decides nothing that a result could show. It is measured with
/// weights that lie in no cache, as in a model, and by the shortest of some runs.
class ProductTuner {
 public:
  ProductTuner(const CublasLt& lt, const Memory& workspace, Stream* stream)
      : lt_(lt), workspace_(workspace), stream_(stream) {}

  /// `known`: the reference from before. Takes memory for matrices of the shape meanwhile. Throws
  /// Error(kInfrastructure) where no algorithm can be the reference.
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
  int64_t rows_ = 0;  ///< that there is room for
  Matrices matrices_;
  std::vector<std::vector<LtAlgorithm>> candidates_;  ///< by bucket, as they are recommended
};

}  // namespace evald::native::cuda
