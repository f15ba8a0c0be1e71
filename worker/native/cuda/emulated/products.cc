// Products on the CPU, as strict as the contract allows: only prepared shapes are taken, and rows
// that may be garbage are garbage.
#include "worker/native/cuda/products.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "worker/native/cuda/emulated/device.h"
#include "worker/native/cuda/emulated/numbers.h"

namespace evald::native::cuda {
namespace {

constexpr int64_t kLanes = 16;    // sums beside each other, in every row
constexpr int64_t kFewRows = 16;  // up to this many rows `fast` sums in another order

template <typename T>
void Widen(const void* from, int64_t count, float* to) {
  const auto* values = static_cast<const T*>(from);
  for (int64_t i = 0; i < count; ++i) to[i] = ToFloat(values[i]);
}

void Widen(WeightType type, const void* from, int64_t first, int64_t count, float* to) {
  const auto* bytes = static_cast<const char*>(from);
  switch (type) {
    case WeightType::kF32:
      return Widen<float>(bytes + 4 * first, count, to);
    case WeightType::kF16:
      return Widen<F16>(bytes + 2 * first, count, to);
    case WeightType::kBF16:
      return Widen<BF16>(bytes + 2 * first, count, to);
  }
}

void Store(WeightType type, void* to, int64_t index, float value) {
  switch (type) {
    case WeightType::kF32:
      static_cast<float*>(to)[index] = value;
      return;
    case WeightType::kF16:
      static_cast<F16*>(to)[index] = From<F16>(value);
      return;
    case WeightType::kBF16:
      static_cast<BF16*>(to)[index] = From<BF16>(value);
      return;
  }
}

// `count` is a multiple of kLanes.
float Dot(const float* a, const float* b, int64_t count) {
  float sums[kLanes] = {};
  for (int64_t i = 0; i < count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (int64_t step = kLanes / 2; step > 0; step /= 2) {
    for (int64_t lane = 0; lane < step; ++lane) sums[lane] += sums[lane + step];
  }
  return sums[0];
}

// With `parts` the inner dimension is cut into so many, as in a library that spreads it over
// blocks.
void Compute(const Product& product, int64_t rows_written, int64_t parts) {
  const int64_t padded = (product.inputs + kLanes - 1) / kLanes * kLanes;
  std::vector<float> x(static_cast<size_t>(product.rows * padded), 0.0f);
  std::vector<float> w(static_cast<size_t>(padded), 0.0f);
  for (int64_t row = 0; row < product.rows; ++row) {
    Widen(product.type, product.x, row * product.inputs, product.inputs, x.data() + row * padded);
  }
  const int64_t part = (padded / parts + kLanes - 1) / kLanes * kLanes;
  for (int64_t o = 0; o < product.outputs; ++o) {
    Widen(product.type, product.weights, o * product.inputs, product.inputs, w.data());
    for (int64_t row = 0; row < product.rows; ++row) {
      float sum = 0;
      for (int64_t i = 0; i < padded; i += part) {
        sum += Dot(x.data() + row * padded + i, w.data() + i, std::min(part, padded - i));
      }
      Store(product.y_type, product.y, row * product.outputs + o, sum);
    }
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (int64_t i = product.rows * product.outputs; i < rows_written * product.outputs; ++i) {
    Store(product.y_type, product.y, i, nan);
  }
}

class EmulatedProducts : public Products {
 public:
  explicit EmulatedProducts(bool fast) : fast_(fast) {}

  void Prepare(const std::vector<ProductShape>& shapes, const Stream&) override {
    for (const ProductShape& shape : shapes) {
      ProductShape* known = Find(shape.type, shape.y_type, shape.outputs, shape.inputs);
      if (known == nullptr) {
        shapes_.push_back(shape);
      } else {
        known->rows_max = std::max(known->rows_max, shape.rows_max);
      }
    }
  }

  void Multiply(const Product& product, const Stream& stream) override {
    const ProductShape* shape = Find(product.type, product.y_type, product.outputs, product.inputs);
    if (shape == nullptr || product.rows > RowsFor(shape->rows_max)) {
      throw Error(ErrorKind::kInternal,
                  fmt::format("a product of {} rows with [{}][{}] was not prepared", product.rows,
                              product.outputs, product.inputs));
    }
    if (product.rows == 0) return;
    const int64_t parts = fast_ && product.rows <= kFewRows ? 2 : 1;
    emulated::Enqueue(stream,
                      [=, written = RowsFor(product.rows)] { Compute(product, written, parts); });
  }

  int64_t RowsFor(int64_t rows) const override { return RowBucket(rows); }

  Json Report() const override { return {{"library", "emulated"}, {"shapes", shapes_.size()}}; }

 private:
  ProductShape* Find(WeightType type, WeightType y_type, int64_t outputs, int64_t inputs) {
    const auto found = std::find_if(shapes_.begin(), shapes_.end(), [&](const ProductShape& shape) {
      return shape.type == type && shape.y_type == y_type && shape.outputs == outputs &&
             shape.inputs == inputs;
    });
    return found == shapes_.end() ? nullptr : &*found;
  }

  bool fast_;
  std::vector<ProductShape> shapes_;
};

}  // namespace

std::unique_ptr<Products> MakeProducts(bool fast) {
  return std::make_unique<EmulatedProducts>(fast);
}

}  // namespace evald::native::cuda
