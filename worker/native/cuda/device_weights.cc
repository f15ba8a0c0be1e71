#include "worker/native/cuda/device_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "evald/error.h"
#include "worker/native/cuda/convert.h"

namespace evald::native::cuda {
namespace {

constexpr uint64_t kAlign = 256;
constexpr uint64_t kNone = UINT64_MAX;

// Calls visit(tensor) for every tensor that a model computes with, always in the same order: Matrix
// (the embedding), Linear and NormWeights (absent ones too).
template <typename Visit>
void ForEach(const ModelWeights& weights, Visit&& visit) {
  visit(weights.embedding());
  for (const LayerWeights& layer : weights.layers()) {
    for (const NormWeights* norm :
         {&layer.attention_norm, &layer.attention_after_norm, &layer.mlp_norm,
          &layer.mlp_after_norm, &layer.query_norm, &layer.key_norm}) {
      visit(*norm);
    }
    visit(layer.qkv);
    visit(layer.output);
    visit(layer.mlp.in);
    visit(layer.mlp.down);
    visit(layer.router);
    for (const FeedForward& expert : layer.experts) {
      visit(expert.in);
      visit(expert.down);
    }
  }
  visit(weights.norm());
  visit(weights.head());
}

// Gives each tensor its place in an arena that begins at 0. The place depends on `shape` alone.
class Plan {
 public:
  struct LinearPlace {
    const Linear* linear;
    uint64_t weights, bias;
  };
  struct NormPlace {
    const NormWeights* norm;
    uint64_t weight, bias;
  };
  struct Move {
    TensorFiles::Place place;  // of `transfer.from`
    uint64_t offset;           // in the arena
    DeviceWeights::Transfer transfer;
  };

  Plan(const ModelWeights& weights, WeightType type) : files_(weights.files()), type_(type) {
    shape.push_back(static_cast<int64_t>(type));
    ForEach(weights, [this](const auto& tensor) { Add(tensor); });
    std::stable_sort(moves.begin(), moves.end(),
                     [](const Move& a, const Move& b) { return a.place < b.place; });
  }

  std::vector<int64_t> shape;
  std::vector<LinearPlace> linears;
  std::vector<NormPlace> norms;
  const Matrix* embedding = nullptr;
  uint64_t embedding_at = 0;
  std::vector<Move> moves;
  uint64_t bytes = 0;
  bool has_gaps = false;  // some parts of a bias are zeros

 private:
  uint64_t Take(uint64_t size) {
    const uint64_t at = bytes;
    bytes = (bytes + size + kAlign - 1) / kAlign * kAlign;
    return at;
  }

  void Copy(const Matrix& source, WeightType wanted, uint64_t offset) {
    const auto elements = static_cast<uint64_t>(source.rows * source.columns);
    const TensorFiles::Place place = files_.PlaceOf(source.data);
    moves.push_back({place,
                     offset,
                     {source.data, nullptr, elements, source.type, wanted, files_.FileOf(place),
                      place.offset}});
  }

  uint64_t AddVector(const std::vector<float>& values) {
    shape.push_back(static_cast<int64_t>(values.size()));
    if (values.empty()) return kNone;
    const uint64_t at = Take(values.size() * sizeof(float));
    Copy(files_.SourceOf(values.data()), WeightType::kF32, at);
    return at;
  }

  void Add(const Matrix& matrix) {
    embedding = &matrix;
    embedding_at = Take(static_cast<uint64_t>(matrix.rows * matrix.columns) * ElementBytes(type_));
    shape.insert(shape.end(), {matrix.rows, matrix.columns});
    Copy(matrix, type_, embedding_at);
  }

  void Add(const NormWeights& norm) {
    const uint64_t weight = AddVector(norm.weight);
    norms.push_back({&norm, weight, AddVector(norm.bias)});
  }

  void Add(const Linear& linear) {
    shape.push_back(static_cast<int64_t>(linear.parts.size()));
    if (linear.parts.empty()) return;
    LinearPlace place{&linear, 0, kNone};
    const bool tied = linear.parts.front().matrix.data == embedding->data;
    shape.push_back(tied ? 1 : 0);
    place.weights = tied ? embedding_at : AddMatrices(linear);
    place.bias = AddBias(linear);
    linears.push_back(place);
  }

  uint64_t AddMatrices(const Linear& linear) {
    const auto row = static_cast<uint64_t>(linear.inputs()) * ElementBytes(type_);
    const uint64_t at = Take(static_cast<uint64_t>(linear.outputs()) * row);
    uint64_t offset = at;
    for (const Linear::Part& part : linear.parts) {
      shape.insert(shape.end(), {part.matrix.rows, part.matrix.columns});
      Copy(part.matrix, type_, offset);
      offset += static_cast<uint64_t>(part.matrix.rows) * row;
    }
    return at;
  }

  uint64_t AddBias(const Linear& linear) {
    size_t with = 0;
    for (const Linear::Part& part : linear.parts) {
      shape.push_back(static_cast<int64_t>(part.bias.size()));
      with += part.bias.empty() ? 0 : 1;
    }
    if (with == 0) return kNone;
    has_gaps = has_gaps || with < linear.parts.size();
    const uint64_t at = Take(static_cast<uint64_t>(linear.outputs()) * sizeof(float));
    uint64_t offset = at;
    for (const Linear::Part& part : linear.parts) {
      if (!part.bias.empty()) {
        Copy(files_.SourceOf(part.bias.data()), WeightType::kF32, offset);
      }
      offset += static_cast<uint64_t>(part.matrix.rows) * sizeof(float);
    }
    return at;
  }

  const TensorFiles& files_;
  WeightType type_;
};

const float* FloatsAt(char* arena, uint64_t offset) {
  return offset == kNone ? nullptr : reinterpret_cast<const float*>(arena + offset);
}

[[noreturn]] void ThrowUnknown(const char* what) {
  throw Error(ErrorKind::kInternal,
              fmt::format("{} that is not of the checkpoint on the device", what));
}

}  // namespace

WeightType TypeOfMost(const ModelWeights& weights) {
  std::array<uint64_t, 3> bytes{};
  const auto count = [&](const Matrix& matrix) {
    bytes.at(static_cast<size_t>(matrix.type)) += matrix.bytes();
  };
  ForEach(weights, [&]([[maybe_unused]] const auto& tensor) {
    using T = std::decay_t<decltype(tensor)>;
    if constexpr (std::is_same_v<T, Matrix>) {
      count(tensor);
    } else if constexpr (std::is_same_v<T, Linear>) {
      for (const Linear::Part& part : tensor.parts) count(part.matrix);
    }
  });
  return static_cast<WeightType>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
}

DeviceWeights::DeviceWeights(const ModelWeights& weights, WeightType type) : type_(type) {
  const Plan plan(weights, type);
  arena_ = Memory(MemoryKind::kDevice, plan.bytes);
  shape_ = plan.shape;
  if (plan.has_gaps) {
    Stream stream;
    FillBytes(arena_.data(), 0, plan.bytes, stream);
    stream.Synchronize();
  }
  Rebind(weights);
}

bool DeviceWeights::SameShape(const ModelWeights& weights, WeightType type) const {
  return Plan(weights, type).shape == shape_;
}

void DeviceWeights::Rebind(const ModelWeights& weights) {
  const Plan plan(weights, type_);
  if (plan.shape != shape_) {
    throw Error(ErrorKind::kInternal, "weights of another shape for the same memory");
  }
  char* arena = arena_.data();
  transfers_.clear();
  linears_.clear();
  norms_.clear();
  matrices_.clear();
  for (const Plan::Move& move : plan.moves) {
    transfers_.push_back(move.transfer);
    transfers_.back().to = arena + move.offset;
  }
  for (const Plan::LinearPlace& place : plan.linears) {
    linears_[place.linear] = {arena + place.weights, FloatsAt(arena, place.bias),
                              place.linear->outputs(), place.linear->inputs()};
  }
  for (const Plan::NormPlace& place : plan.norms) {
    norms_[place.norm] = {FloatsAt(arena, place.weight), FloatsAt(arena, place.bias)};
  }
  matrices_[plan.embedding] = arena + plan.embedding_at;
}

const DeviceLinear& DeviceWeights::Of(const Linear& linear) const {
  const auto found = linears_.find(&linear);
  if (found == linears_.end()) ThrowUnknown("a matrix");
  return found->second;
}

const DeviceNorm& DeviceWeights::Of(const NormWeights& norm) const {
  const auto found = norms_.find(&norm);
  if (found == norms_.end()) ThrowUnknown("a norm");
  return found->second;
}

const void* DeviceWeights::OfMatrix(const Matrix& matrix) const {
  const auto found = matrices_.find(&matrix);
  if (found == matrices_.end()) ThrowUnknown("an embedding");
  return found->second;
}

}  // namespace evald::native::cuda
