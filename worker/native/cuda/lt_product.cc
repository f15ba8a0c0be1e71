#include "worker/native/cuda/lt_product.h"

#include <fmt/format.h>

namespace evald::native::cuda {
namespace {

lt::DataType TypeOf(WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return lt::kR32F;
    case WeightType::kF16:
      return lt::kR16F;
    case WeightType::kBF16:
      return lt::kR16BF;
  }
  return lt::kR32F;
}

// The alignment of rows of `elements` elements: the largest power of two up to 16 that divides
// their bytes.
uint32_t AlignmentOf(WeightType type, int64_t elements) {
  const auto bytes = static_cast<uint32_t>(elements * (type == WeightType::kF32 ? 4 : 2));
  const uint32_t power = bytes & (~bytes + 1);
  return power < 16 ? power : 16;
}

template <typename T>
T Configured(const CublasLt& lt, const LtAlgorithm& algorithm, lt::AlgorithmAttribute attribute) {
  T value = 0;
  size_t written = 0;
  lt.MatmulAlgoConfigGetAttribute(&algorithm.algorithm, attribute, &value, sizeof value, &written);
  return value;
}

}  // namespace

std::string LtAlgorithm::Describe(const CublasLt& lt) const {
  return fmt::format(
      "id {} tile {} stages {} split {} swizzle {} custom {} inner {} cluster {}",
      Configured<int32_t>(lt, *this, lt::kId), Configured<uint32_t>(lt, *this, lt::kTileId),
      Configured<uint32_t>(lt, *this, lt::kStagesId), Configured<int32_t>(lt, *this, lt::kSplitK),
      Configured<uint32_t>(lt, *this, lt::kSwizzling),
      Configured<uint32_t>(lt, *this, lt::kCustomOption),
      Configured<uint16_t>(lt, *this, lt::kInnerShapeId),
      Configured<uint16_t>(lt, *this, lt::kClusterShapeId));
}

// Stream-K has no attribute, but partial sums need a place: such algorithms need a workspace.
bool LtAlgorithm::Splits(const CublasLt& lt) const {
  const auto split = Configured<int32_t>(lt, *this, lt::kSplitK);
  const auto reduction = Configured<uint32_t>(lt, *this, lt::kReductionScheme);
  return (split != 0 && split != 1) || reduction != lt::kNoReduction || workspace_bytes > 0;
}

LtProduct::LtProduct(const CublasLt& lt, lt::Handle handle, const ProductShape& shape)
    : lt_(lt), handle_(handle), shape_(shape) {
  const auto inputs = static_cast<uint64_t>(shape.inputs);
  const auto outputs = static_cast<uint64_t>(shape.outputs);
  const lt::Operation transposed = lt::kTransposed;
  // kCompute32F: fp32 is not multiplied as TF32.
  lt.Check(lt.MatmulDescCreate(&operation_, lt::kCompute32F, lt::kR32F), "describing a product");
  lt.Check(lt.MatmulDescSetAttribute(operation_, lt::kTransA, &transposed, sizeof transposed),
           "describing a product");
  lt.Check(lt.MatrixLayoutCreate(&weights_, TypeOf(shape.type), inputs, outputs, shape.inputs),
           "describing weights");
  lt.Check(lt.MatrixLayoutCreate(&x_, TypeOf(shape.type), inputs, 1, shape.inputs),
           "describing activations");
  lt.Check(lt.MatrixLayoutCreate(&y_, TypeOf(shape.y_type), outputs, 1, shape.outputs),
           "describing a result");
}

LtProduct::~LtProduct() {
  if (operation_ != nullptr) lt_.MatmulDescDestroy(operation_);
  for (lt::MatrixLayout layout : {weights_, x_, y_}) {
    if (layout != nullptr) lt_.MatrixLayoutDestroy(layout);
  }
}

void LtProduct::SetRows(int64_t rows) {
  const auto columns = static_cast<uint64_t>(rows);
  for (lt::MatrixLayout layout : {x_, y_}) {
    lt_.Check(lt_.MatrixLayoutSetAttribute(layout, lt::kColumns, &columns, sizeof columns),
              "setting rows");
  }
}

std::vector<LtAlgorithm> LtProduct::Recommend(int64_t rows, int count, bool splits,
                                              uint64_t workspace_bytes) {
  SetRows(rows);
  lt::Preference preference = nullptr;
  lt_.Check(lt_.MatmulPreferenceCreate(&preference), "asking for algorithms");
  const auto set = [&](lt::PreferenceAttribute attribute, const auto& value) {
    lt_.Check(lt_.MatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
              "asking for algorithms");
  };
  const uint32_t x_alignment = AlignmentOf(shape_.type, shape_.inputs);
  const uint32_t y_alignment = AlignmentOf(shape_.y_type, shape_.outputs);
  std::vector<lt::HeuristicResult> results(static_cast<size_t>(count));
  int found = 0;
  lt::Status status = lt::kSuccess;
  try {
    set(lt::kMaxWorkspaceBytes, splits ? workspace_bytes : uint64_t{0});
    if (!splits) {
      set(lt::kReductionSchemeMask, lt::kNoReduction);
    }
    set(lt::kMinAlignmentA, x_alignment);  // aligned as the rows of weights
    set(lt::kMinAlignmentB, x_alignment);
    set(lt::kMinAlignmentC, y_alignment);
    set(lt::kMinAlignmentD, y_alignment);
    status = lt_.MatmulAlgoGetHeuristic(handle_, operation_, weights_, x_, y_, y_, preference,
                                        count, results.data(), &found);
  } catch (...) {
    lt_.MatmulPreferenceDestroy(preference);
    throw;
  }
  lt_.MatmulPreferenceDestroy(preference);
  std::vector<LtAlgorithm> algorithms;
  if (status == lt::kNotSupported) return algorithms;
  lt_.Check(status, "asking for algorithms");
  for (int i = 0; i < found; ++i) {
    const auto& result = results[static_cast<size_t>(i)];
    if (result.status != lt::kSuccess) continue;
    const LtAlgorithm algorithm{result.algorithm, result.workspace_bytes};
    if (splits || !algorithm.Splits(lt_)) algorithms.push_back(algorithm);
  }
  return algorithms;
}

lt::Status LtProduct::Run(const LtAlgorithm& algorithm, const Product& product,
                          const Memory& workspace, const Stream& stream) {
  const float one = 1, zero = 0;
  SetRows(product.rows);
  return lt_.Matmul(handle_, operation_, &one, product.weights, weights_, product.x, x_, &zero,
                    product.y, y_, product.y, y_, &algorithm.algorithm, workspace.data(),
                    workspace.bytes(), stream.handle());
}

}  // namespace evald::native::cuda
