// Products by cuBLASLt.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "evald/error.h"
#include "worker/native/cuda/product_tuner.h"

namespace evald::native::cuda {
namespace {

constexpr uint64_t kWorkspaceBytes = uint64_t{32} << 20;  // cuBLAS's own choice on Hopper

const char* NameOf(WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return "fp32";
    case WeightType::kF16:
      return "fp16";
    case WeightType::kBF16:
      return "bf16";
  }
  return "";
}

class LtProducts : public Products {
 public:
  explicit LtProducts(bool fast)
      : lt_(LoadCublasLt()), fast_(fast), workspace_(MemoryKind::kDevice, kWorkspaceBytes) {
    lt_.Check(lt_.Create(&handle_), "beginning");
  }
  ~LtProducts() override { lt_.Destroy(handle_); }

  void Prepare(const std::vector<ProductShape>& shapes, const Stream& stream) override {
    // A stream of its own, not the caller's: measurements must not wait for operations queued
    // there.
    Stream own;
    Event queued;
    queued.Record(stream);
    own.Wait(queued);
    for (const ProductShape& shape : shapes) PrepareOne(shape, &own);
  }

  void Multiply(const Product& product, const Stream& stream) override {
    if (product.rows == 0) return;
    Known* known = Find(product.type, product.y_type, product.outputs, product.inputs);
    const auto bucket = static_cast<size_t>(BucketOf(product.rows));
    if (known == nullptr || bucket >= known->tuned.buckets.size()) {
      throw Error(ErrorKind::kInternal,
                  fmt::format("a product of {} rows with [{}][{}] was not prepared", product.rows,
                              product.outputs, product.inputs));
    }
    const BucketChoice& choice = known->tuned.buckets[bucket];
    if (choice.rows_at_once > 0 && product.rows > choice.rows_at_once) {
      for (int64_t first = 0; first < product.rows; first += choice.rows_at_once) {
        const int64_t rows = std::min(choice.rows_at_once, product.rows - first);
        Multiply(RowsOf(product, first, rows), stream);
      }
      return;
    }
    lt_.Check(known->product->Run(choice.algorithm, product, workspace_, stream), "a product");
  }

  int64_t RowsFor(int64_t rows) const override { return RowBucket(rows); }
  Json Report() const override;

 private:
  struct Known {
    std::unique_ptr<LtProduct> product;
    TunedProduct tuned;
  };

  Known* Find(WeightType type, WeightType y_type, int64_t outputs, int64_t inputs) {
    const auto found = std::find_if(known_.begin(), known_.end(), [&](const Known& known) {
      const ProductShape& shape = known.product->shape();
      return shape.type == type && shape.y_type == y_type && shape.outputs == outputs &&
             shape.inputs == inputs;
    });
    return found == known_.end() ? nullptr : &*found;
  }

  void PrepareOne(const ProductShape& shape, Stream* stream) {
    Known* known = Find(shape.type, shape.y_type, shape.outputs, shape.inputs);
    if (known != nullptr && known->product->shape().rows_max >= shape.rows_max) return;
    auto product = std::make_unique<LtProduct>(lt_, handle_, shape);
    TunedProduct tuned;
    if (fast_) {
      tuned = Recommended(product.get());
    } else {
      std::optional<LtAlgorithm> reference;
      if (known != nullptr) reference = known->tuned.reference;
      tuned = ProductTuner(lt_, workspace_, stream).Tune(product.get(), reference);
    }
    if (known != nullptr) {
      *known = {std::move(product), std::move(tuned)};
    } else {
      known_.push_back({std::move(product), std::move(tuned)});
    }
  }

  // The library's own choice for each bucket.
  TunedProduct Recommended(LtProduct* product) {
    TunedProduct tuned;
    for (int bucket = 0; bucket <= BucketOf(product->shape().rows_max); ++bucket) {
      const auto found =
          product->Recommend(RowsOfBucket(bucket), 1, /*splits=*/true, workspace_.bytes());
      if (found.empty()) {
        throw Error(ErrorKind::kInfrastructure,
                    fmt::format("cuBLASLt has no algorithm for [{}][{}]", product->shape().outputs,
                                product->shape().inputs));
      }
      tuned.buckets.push_back({found.front(), 0, 0, 0});
    }
    return tuned;
  }

  const CublasLt& lt_;
  bool fast_;
  Memory workspace_;
  lt::Handle handle_ = nullptr;
  std::vector<Known> known_;
};

Json LtProducts::Report() const {
  Json shapes = Json::array();
  for (const Known& known : known_) {
    const ProductShape& shape = known.product->shape();
    Json buckets = Json::array();
    for (size_t i = 0; i < known.tuned.buckets.size(); ++i) {
      const BucketChoice& choice = known.tuned.buckets[i];
      Json bucket = {{"rows", RowsOfBucket(static_cast<int>(i))},
                     {"algorithm", choice.algorithm.Describe(lt_)}};
      if (choice.rows_at_once > 0) bucket["rows_at_once"] = choice.rows_at_once;
      if (choice.seconds > 0) {
        bucket["microseconds"] = choice.seconds * 1e6;
        bucket["best_microseconds"] = choice.best_seconds * 1e6;
      }
      buckets.push_back(std::move(bucket));
    }
    shapes.push_back({{"outputs", shape.outputs},
                      {"inputs", shape.inputs},
                      {"rows_max", shape.rows_max},
                      {"type", NameOf(shape.type)},
                      {"y_type", NameOf(shape.y_type)},
                      {"buckets", std::move(buckets)}});
  }
  return {{"library", fmt::format("cuBLASLt {}", lt_.GetVersion())},
          {"fast", fast_},
          {"shapes", std::move(shapes)}};
}

}  // namespace

std::unique_ptr<Products> MakeProducts(bool fast) { return std::make_unique<LtProducts>(fast); }

}  // namespace evald::native::cuda
