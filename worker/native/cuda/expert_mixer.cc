#include "worker/native/cuda/expert_mixer.h"

#include <fmt/format.h>

#include "evald/error.h"
#include "worker/native/cuda/kernels.h"
#include "worker/native/cuda/row_buffers.h"

namespace evald::native::cuda {

ExpertMixer::ExpertMixer(const ModelConfig& config, const DeviceWeights* weights,
                         Products* products)
    : config_(config), weights_(weights), products_(products) {}

std::vector<ProductShape> ExpertMixer::Shapes(int64_t rows) const {
  if (config_.experts.count == 0) return {};
  const WeightType type = weights_->type();
  const int64_t hidden = config_.hidden_size, inner = config_.experts.intermediate_size;
  return {{type, WeightType::kF32, config_.experts.count, hidden, rows},
          {type, type, config_.gated ? 2 * inner : inner, hidden, rows},
          {type, WeightType::kF32, hidden, inner, rows}};
}

void ExpertMixer::Take(int64_t rows) {
  if (config_.experts.count == 0) return;
  const auto take = [](Memory* memory, MemoryKind kind, int64_t count, uint64_t row) {
    *memory = Memory();
    *memory = Memory(kind, static_cast<uint64_t>(count) * row);
  };
  const auto device = MemoryKind::kDevice;
  const uint64_t element = ElementBytes(weights_->type());
  const int64_t chosen = rows * config_.experts.per_token;
  const auto hidden = static_cast<uint64_t>(config_.hidden_size);
  const auto inner = static_cast<uint64_t>(config_.experts.intermediate_size);
  take(&logits_, device, rows + kRowsSlack, static_cast<uint64_t>(config_.experts.count) * 4);
  take(&expert_, device, chosen, 4);
  take(&weight_, device, chosen, 4);
  take(&index_, device, chosen, 4);
  take(&gathered_, device, chosen + kRowsSlack, hidden * element);
  take(&inner_, device, chosen + kRowsSlack, inner * element * (config_.gated ? 2 : 1));
  take(&activated_, device, chosen + kRowsSlack, inner * element);
  take(&weighted_, device, chosen + kRowsSlack, hidden * 4);
  take(&host_, MemoryKind::kPinned, chosen, 4 * 4);
}

uint64_t ExpertMixer::bytes() const {
  return logits_.bytes() + expert_.bytes() + weight_.bytes() + index_.bytes() + gathered_.bytes() +
         inner_.bytes() + activated_.bytes() + weighted_.bytes();
}

void ExpertMixer::Mix(const LayerWeights& layer, const void* normed, int64_t rows, float* out,
                      Stream* stream) {
  const int64_t chosen = rows * config_.experts.per_token;
  Choose(layer, normed, rows, stream);
  const std::vector<Share> shares = Sort(layer, rows, stream);
  GatherRows(normed, index_.as<int32_t>(), chosen,
             config_.hidden_size * static_cast<int64_t>(ElementBytes(weights_->type())),
             gathered_.data(), *stream);
  FillBytes(out, 0, static_cast<size_t>(rows * config_.hidden_size) * sizeof(float), *stream);
  Compute(shares, chosen, stream);
  AddUp(shares, out, stream);
}

// expert_ and weight_ [rows][per_token], on the host as well.
void ExpertMixer::Choose(const LayerWeights& layer, const void* normed, int64_t rows,
                         Stream* stream) {
  const DeviceLinear& router = weights_->Of(layer.router);
  Product product;
  product.type = weights_->type();
  product.weights = router.weights;
  product.x = normed;
  product.y = logits_.data();
  product.y_type = WeightType::kF32;
  product.rows = rows;
  product.outputs = router.outputs;
  product.inputs = router.inputs;
  products_->Multiply(product, *stream);
  RouteArgs args;
  args.type = WeightType::kF32;
  args.logits = logits_.data();
  args.rows = rows;
  args.experts = config_.experts.count;
  args.per_token = config_.experts.per_token;
  args.normalize = config_.experts.normalize;
  args.expert = expert_.as<int32_t>();
  args.weight = weight_.as<float>();
  Route(args, *stream);
  const auto bytes = static_cast<size_t>(rows * config_.experts.per_token) * 4;
  CopyToHost(host_.data(), expert_.data(), bytes, *stream);
  CopyToHost(host_.data() + bytes, weight_.data(), bytes, *stream);
  stream->Synchronize();
}

// From [rows][per_token] to rows by expert, each expert's ascending. index_ and weight_ become
// those.
std::vector<ExpertMixer::Share> ExpertMixer::Sort(const LayerWeights& layer, int64_t rows,
                                                  Stream* stream) {
  const auto experts = static_cast<size_t>(config_.experts.count);
  const auto per_token = static_cast<size_t>(config_.experts.per_token);
  const size_t chosen = static_cast<size_t>(rows) * per_token;
  const int32_t* expert = host_.as<int32_t>();
  const float* weight = host_.as<float>() + chosen;
  int32_t* index = host_.as<int32_t>() + 2 * chosen;
  float* sorted = host_.as<float>() + 3 * chosen;
  std::vector<size_t> first(experts + 1, 0);
  for (size_t i = 0; i < chosen; ++i) {
    if (expert[i] < 0 || static_cast<size_t>(expert[i]) >= experts) {
      throw Error(ErrorKind::kInternal,
                  fmt::format("the router chose expert {} of {}", expert[i], experts));
    }
    ++first[static_cast<size_t>(expert[i]) + 1];
  }
  for (size_t e = 0; e < experts; ++e) first[e + 1] += first[e];
  std::vector<Share> shares;
  for (size_t e = 0; e < experts; ++e) {
    if (first[e + 1] == first[e]) continue;
    shares.push_back({&layer.experts[e], static_cast<int64_t>(first[e]),
                      static_cast<int64_t>(first[e + 1] - first[e])});
  }
  for (size_t i = 0; i < chosen; ++i) {
    const size_t to = first[static_cast<size_t>(expert[i])]++;
    index[to] = static_cast<int32_t>(i / per_token);
    sorted[to] = weight[i];
  }
  CopyToDevice(index_.data(), index, chosen * 4, *stream);
  CopyToDevice(weight_.data(), sorted, chosen * 4, *stream);
  return shares;
}

Product ExpertMixer::ProductOf(const Linear& linear, const Memory& x, const Memory& y,
                               WeightType y_type, const Share& share) const {
  const DeviceLinear& weights = weights_->Of(linear);
  const int64_t x_bytes = weights.inputs * static_cast<int64_t>(ElementBytes(weights_->type()));
  const int64_t y_bytes = weights.outputs * static_cast<int64_t>(ElementBytes(y_type));
  Product product;
  product.type = weights_->type();
  product.weights = weights.weights;
  product.x = x.data() + share.first * x_bytes;
  product.y = y.data() + share.first * y_bytes;
  product.y_type = y_type;
  product.rows = share.count;
  product.outputs = weights.outputs;
  product.inputs = weights.inputs;
  return product;
}

// In ascending order: what a product writes behind its rows is the next one's, not yet computed.
void ExpertMixer::Compute(const std::vector<Share>& shares, int64_t rows, Stream* stream) {
  const WeightType type = weights_->type();
  for (const Share& share : shares) {
    const Product in = ProductOf(share.expert->in, gathered_, inner_, type, share);
    products_->Multiply(in, *stream);
  }
  for (const Share& share : shares) {
    const float* bias = weights_->Of(share.expert->in).bias;
    if (bias == nullptr) continue;
    const Product in = ProductOf(share.expert->in, gathered_, inner_, type, share);
    AddBias(type, in.y, bias, share.count, in.outputs, *stream);
  }
  ActivateArgs args;
  args.type = type;
  args.activation = config_.activation;
  args.gated = config_.gated;
  args.in = inner_.data();
  args.bias = nullptr;
  args.rows = rows;
  args.width = config_.experts.intermediate_size;
  args.out = activated_.data();
  Activate(args, *stream);
  for (const Share& share : shares) {
    products_->Multiply(
        ProductOf(share.expert->down, activated_, weighted_, WeightType::kF32, share), *stream);
  }
}

void ExpertMixer::AddUp(const std::vector<Share>& shares, float* out, Stream* stream) {
  const int64_t hidden = config_.hidden_size;
  for (const Share& share : shares) {
    float* in = weighted_.as<float>() + share.first * hidden;
    const float* bias = weights_->Of(share.expert->down).bias;
    if (bias != nullptr) AddBias(WeightType::kF32, in, bias, share.count, hidden, *stream);
    AddWeighted(WeightType::kF32, in, index_.as<int32_t>() + share.first,
                weight_.as<float>() + share.first, share.count, hidden, out, *stream);
  }
}

}  // namespace evald::native::cuda
