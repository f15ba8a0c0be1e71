#include "worker/native/cuda/product_tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "evald/error.h"
#include "worker/native/cuda/convert.h"
#include "worker/native/cuda/tuning.h"

namespace evald::native::cuda {
namespace {

constexpr int kCandidates = 12;       // of a bucket
constexpr int64_t kRowsJudged = 512;  // references are compared up to here, whatever the batches
constexpr int64_t kRowsFew = 64;      // as in decoding
constexpr int64_t kRowsMany = 2048;   // from here on three runs are enough to measure
constexpr size_t kReferences = 3;     // compared; more only if none of them will do
constexpr uint32_t kSeedOfWeights = 1;
constexpr uint32_t kSeedOfRows = 2;

}  // namespace

int BucketOf(int64_t rows) {
  return rows <= 8 ? 0 : std::bit_width(static_cast<uint64_t>(rows - 1)) - 3;
}

int64_t RowsOfBucket(int bucket) { return int64_t{8} << bucket; }

TunedProduct ProductTuner::Tune(LtProduct* product, const std::optional<LtAlgorithm>& known) {
  product_ = product;
  const ProductShape& shape = product->shape();
  const int last = std::max(BucketOf(shape.rows_max), BucketOf(kRowsJudged));
  // The last bucket is used up to rows_max only.
  rows_ = std::max(kRowsJudged, std::min(RowsOfBucket(last), (shape.rows_max + 7) / 8 * 8));
  TakeMatrices(shape, rows_);
  candidates_.clear();
  for (int bucket = 0; bucket <= last; ++bucket) {
    candidates_.push_back(product->Recommend(std::min(RowsOfBucket(bucket), rows_), kCandidates,
                                             /*splits=*/false, 0));
  }
  TunedProduct tuned;
  tuned.reference = known ? *known : ChooseReference();
  if (!RunReference(tuned.reference, rows_)) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("cuBLASLt: the algorithm chosen for [{}][{}] ({}) computes no more",
                            shape.outputs, shape.inputs, tuned.reference.Describe(lt_)),
                "use the setting fast");
  }
  for (int bucket = 0; bucket <= last; ++bucket) {
    tuned.buckets.push_back(ChooseForBucket(bucket, tuned.reference));
  }
  matrices_ = Matrices();
  return tuned;
}

void ProductTuner::TakeMatrices(const ProductShape& shape, int64_t rows) {
  const auto memory = [](int64_t count, WeightType type) {
    return Memory(MemoryKind::kDevice, static_cast<uint64_t>(count) * ElementBytes(type));
  };
  matrices_.weights = memory(shape.outputs * shape.inputs, shape.type);
  matrices_.x = memory(rows * shape.inputs, shape.type);
  matrices_.y = memory(rows * shape.outputs, shape.y_type);
  matrices_.reference = memory(rows * shape.outputs, shape.y_type);
  matrices_.differences = Memory(MemoryKind::kDevice, sizeof(unsigned long long));
  matrices_.cache = Memory(MemoryKind::kDevice, 4 * CacheBytesOfDevice());
  FillBytes(matrices_.cache.data(), 0, matrices_.cache.bytes(), *stream_);
  FillRandom(shape.type, matrices_.weights.data(), shape.outputs * shape.inputs, kSeedOfWeights,
             *stream_);
  FillRandom(shape.type, matrices_.x.data(), rows * shape.inputs, kSeedOfRows, *stream_);
}

Product ProductTuner::ProductOf(int64_t rows, const Memory& y) const {
  const ProductShape& shape = product_->shape();
  Product product;
  product.type = shape.type;
  product.weights = matrices_.weights.data();
  product.x = matrices_.x.data();
  product.y = y.data();
  product.y_type = shape.y_type;
  product.rows = rows;
  product.outputs = shape.outputs;
  product.inputs = shape.inputs;
  return product;
}

// Returns false if the algorithm does not compute so many rows, whatever error the library gives:
// one candidate less is no reason to give up. Throws only if the device is broken or full.
bool ProductTuner::Run(const LtAlgorithm& algorithm, const Product& product) {
  const lt::Status status = product_->Run(algorithm, product, workspace_, *stream_);
  if (status == lt::kSuccess) return true;
  if (status == lt::kAllocFailed) lt_.Check(status, "trying an algorithm");
  ClearError();  // so that the next launch is not blamed for it
  if (status == lt::kExecutionFailed) stream_->Synchronize();
  return false;
}

// Computes in parts of kRowsJudged rows, as when references are compared; `rows` is at least that.
bool ProductTuner::RunReference(const LtAlgorithm& algorithm, int64_t rows) {
  const Product product = ProductOf(rows, matrices_.reference);
  for (int64_t first = 0; first < rows; first += kRowsJudged) {
    const int64_t from = std::min(first, rows - kRowsJudged);
    if (!Run(algorithm, RowsOf(product, from, kRowsJudged))) return false;
  }
  return true;
}

// Compares with the first rows of the reference's result.
bool ProductTuner::SameBits(const LtAlgorithm& algorithm, int64_t rows) {
  const ProductShape& shape = product_->shape();
  const auto bytes =
      static_cast<int64_t>(ElementBytes(shape.y_type)) * rows * shape.outputs / 4 * 4;
  FillBytes(matrices_.y.data(), 0xFF, static_cast<size_t>(bytes), *stream_);
  FillBytes(matrices_.differences.data(), 0, matrices_.differences.bytes(), *stream_);
  if (!Run(algorithm, ProductOf(rows, matrices_.y))) return false;
  CountDifferences(matrices_.y.data(), matrices_.reference.data(), bytes,
                   matrices_.differences.as<unsigned long long>(), *stream_);
  unsigned long long differences = 0;
  CopyToHost(&differences, matrices_.differences.data(), sizeof differences, *stream_);
  stream_->Synchronize();
  return differences == 0;
}

// Compares for the bucket's largest and smallest numbers of rows.
bool ProductTuner::Agrees(const LtAlgorithm& algorithm, int bucket) {
  const int64_t most = std::min(RowsOfBucket(bucket), rows_);
  const int64_t least = bucket == 0 ? 1 : RowsOfBucket(bucket - 1) + 1;
  return SameBits(algorithm, most) && (least >= most || SameBits(algorithm, least)) &&
         (least + 1 >= most || SameBits(algorithm, least + 1));
}

// Empties the cache by reading other memory, four times as large. This takes so long that
// operations queued after it are ready when it has ended.
void ProductTuner::EmptyCache() {
  const uint64_t half = matrices_.cache.bytes() / 2;
  CountDifferences(matrices_.cache.data(), matrices_.cache.data() + half,
                   static_cast<int64_t>(half / 4 * 4),
                   matrices_.differences.as<unsigned long long>(), *stream_);
}

double ProductTuner::Measure(const LtAlgorithm& algorithm, int64_t rows) {
  const Product product = ProductOf(rows, matrices_.y);
  double shortest = std::numeric_limits<double>::infinity();
  if (!Run(algorithm, product)) return shortest;
  const int runs = rows >= kRowsMany ? 3 : 5;
  for (int i = 0; i < runs; ++i) {
    Event begin(true), end(true);
    EmptyCache();
    begin.Record(*stream_);
    Run(algorithm, product);
    end.Record(*stream_);
    end.Synchronize();
    shortest = std::min(shortest, SecondsBetween(begin, end));
  }
  return shortest;
}

// The candidates for the reference: first the recommended ones for many rows and for few.
std::vector<LtAlgorithm> ProductTuner::References() const {
  const auto& many = candidates_[static_cast<size_t>(BucketOf(kRowsJudged))];
  const auto& few = candidates_[static_cast<size_t>(BucketOf(kRowsFew))];
  std::vector<LtAlgorithm> references;
  if (!many.empty()) references.push_back(many.front());
  if (!few.empty()) references.push_back(few.front());
  if (many.size() > 1) references.push_back(many[1]);
  if (many.size() > 2) references.insert(references.end(), many.begin() + 2, many.end());
  if (few.size() > 1) references.insert(references.end(), few.begin() + 1, few.end());
  return references;
}

// The ranks of the first algorithm that agrees, summed up over buckets. Nothing if in some bucket
// none agrees, not even the reference itself.
std::optional<int64_t> ProductTuner::RankSum(const LtAlgorithm& reference) {
  if (!RunReference(reference, kRowsJudged)) return std::nullopt;
  int64_t sum = 0;
  for (int bucket = 0; bucket <= BucketOf(kRowsJudged); ++bucket) {
    const auto& candidates = candidates_[static_cast<size_t>(bucket)];
    const auto agreeing =
        std::find_if(candidates.begin(), candidates.end(),
                     [&](const LtAlgorithm& candidate) { return Agrees(candidate, bucket); });
    if (agreeing == candidates.end() && !Agrees(reference, bucket)) return std::nullopt;
    sum += agreeing == candidates.end() ? kCandidates : agreeing - candidates.begin();
  }
  return sum;
}

LtAlgorithm ProductTuner::ChooseReference() {
  std::optional<LtAlgorithm> best;
  int64_t best_rank = std::numeric_limits<int64_t>::max();
  const std::vector<LtAlgorithm> references = References();
  for (size_t i = 0; i < references.size() && (i < kReferences || !best); ++i) {
    const std::optional<int64_t> rank = RankSum(references[i]);
    if (!rank || *rank >= best_rank) continue;
    best = references[i];
    best_rank = *rank;
  }
  if (best) return *best;
  const ProductShape& shape = product_->shape();
  throw Error(ErrorKind::kInfrastructure,
              fmt::format("cuBLASLt has no algorithm for [{}][{}] that gives a row the same bits "
                          "whatever the number of rows",
                          shape.outputs, shape.inputs),
              "use the setting fast");
}

// The fastest candidate that agrees; otherwise the reference itself; otherwise, for many rows,
// parts.
BucketChoice ProductTuner::ChooseForBucket(int bucket, const LtAlgorithm& reference) {
  const int64_t rows = std::min(RowsOfBucket(bucket), rows_);
  std::vector<Candidate> measured;
  for (const LtAlgorithm& algorithm : candidates_[static_cast<size_t>(bucket)]) {
    measured.push_back({algorithm, Measure(algorithm, rows)});
  }
  std::stable_sort(measured.begin(), measured.end(),
                   [](const Candidate& a, const Candidate& b) { return a.seconds < b.seconds; });
  measured.push_back({reference, Measure(reference, rows)});
  for (const Candidate& candidate : measured) {
    if (!Agrees(candidate.algorithm, bucket)) continue;
    return {candidate.algorithm, 0, candidate.seconds,
            std::min(measured.front().seconds, candidate.seconds)};
  }
  if (rows > kRowsJudged) return {reference, kRowsJudged, 0, 0};
  const ProductShape& shape = product_->shape();
  throw Error(
      ErrorKind::kInfrastructure,
      fmt::format("cuBLASLt: no algorithm gives [{}][{}] with {} rows the same bits as with "
                  "{}, not even the same one ({})",
                  shape.outputs, shape.inputs, rows, rows_, reference.Describe(lt_)),
      "use the setting fast");
}

}  // namespace evald::native::cuda
