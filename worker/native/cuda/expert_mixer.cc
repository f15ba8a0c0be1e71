#include "worker/native/cuda/expert_mixer.h"

#include "evald/error.h"
#include "worker/native/cuda/convert.h"

namespace evald::native::cuda {

ExpertMixer::ExpertMixer(const ModelConfig& config, const DeviceWeights* weights,
                         Products* products)
    : config_(config), weights_(weights), products_(products) {}

void ExpertMixer::Take(int64_t rows) {
  if (config_.experts.count == 0) return;
  const auto take = [](Memory* memory, int64_t count, uint64_t row) {
    *memory = Memory();
    *memory = Memory(MemoryKind::kDevice, static_cast<uint64_t>(count) * row);
  };
  const uint64_t element = ElementBytes(weights_->type());
  const int64_t padded = rows + kRowsSlack;
  const int64_t slots = padded * config_.experts.per_token;
  const auto inner = static_cast<uint64_t>(config_.experts.intermediate_size);
  take(&logits_, padded, static_cast<uint64_t>(config_.experts.count) * sizeof(float));
  take(&expert_, slots, sizeof(int32_t));
  take(&weight_, slots, sizeof(float));
  take(&begin_, config_.experts.count + 1, sizeof(int32_t));
  take(&row_, slots, sizeof(int32_t));
  take(&slot_, slots, sizeof(int32_t));
  take(&inner_, slots, inner * element * (config_.gated ? 2 : 1));
  take(&activated_, slots, inner * element);
  take(&weighted_, slots, static_cast<uint64_t>(config_.hidden_size) * sizeof(float));
}

uint64_t ExpertMixer::bytes() const {
  return logits_.bytes() + expert_.bytes() + weight_.bytes() + begin_.bytes() + row_.bytes() +
         slot_.bytes() + inner_.bytes() + activated_.bytes() + weighted_.bytes();
}

void ExpertMixer::Mix(const LayerWeights& layer, const void* normed, int64_t rows, float* out,
                      const Stream& stream) {
  Choose(layer, normed, rows, stream);
  Compute(layer, normed, rows, stream);
  CombineArgs args;
  args.in = weighted_.as<float>();
  args.slot = slot_.as<int32_t>();
  args.weight = weight_.as<float>();
  args.rows = rows;
  args.per_token = config_.experts.per_token;
  args.width = config_.hidden_size;
  args.out = out;
  Combine(args, stream);
}

void ExpertMixer::Choose(const LayerWeights& layer, const void* normed, int64_t rows,
                         const Stream& stream) {
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
  products_->Multiply(product, stream);
  RouteArgs route;
  route.type = WeightType::kF32;
  route.logits = logits_.data();
  route.rows = rows;
  route.experts = config_.experts.count;
  route.per_token = config_.experts.per_token;
  route.normalize = config_.experts.normalize;
  route.expert = expert_.as<int32_t>();
  route.weight = weight_.as<float>();
  Route(route, stream);
  GroupArgs group;
  group.expert = expert_.as<int32_t>();
  group.rows = rows;
  group.experts = config_.experts.count;
  group.per_token = config_.experts.per_token;
  group.begin = begin_.as<int32_t>();
  group.row = row_.as<int32_t>();
  group.slot = slot_.as<int32_t>();
  GroupByExpert(group, stream);
}

ExpertProductArgs ExpertMixer::ProductOf(const LayerWeights& layer, Linear FeedForward::* linear,
                                         int64_t rows) const {
  const auto count = static_cast<int64_t>(layer.experts.size());
  const auto at = [&](int64_t expert) -> const DeviceLinear& {
    return weights_->Of(layer.experts[static_cast<size_t>(expert)].*linear);
  };
  const auto* first = static_cast<const char*>(at(0).weights);
  const int64_t stride = count > 1 ? static_cast<const char*>(at(1).weights) - first : 0;
  const DeviceLinear& last = at(count - 1);
  if (first + (count - 1) * stride != last.weights || last.bias != nullptr) {
    throw Error(ErrorKind::kInternal, "experts that have biases, or lie at unequal distances");
  }
  ExpertProductArgs args;
  args.type = weights_->type();
  args.weights = first;
  args.weights_stride = static_cast<uint64_t>(stride);
  args.begin = begin_.as<int32_t>();
  args.experts = count;
  args.slots = rows * config_.experts.per_token;
  args.outputs = last.outputs;
  args.inputs = last.inputs;
  return args;
}

void ExpertMixer::Compute(const LayerWeights& layer, const void* normed, int64_t rows,
                          const Stream& stream) {
  ExpertProductArgs in = ProductOf(layer, &FeedForward::in, rows);
  in.x = normed;
  in.row = row_.as<int32_t>();
  in.y_type = in.type;
  in.y = inner_.data();
  MultiplyExperts(in, stream);
  ActivateArgs args;
  args.type = in.type;
  args.activation = config_.activation;
  args.gated = config_.gated;
  args.in = inner_.data();
  args.bias = nullptr;
  args.rows = in.slots;
  args.width = config_.experts.intermediate_size;
  args.out = activated_.data();
  Activate(args, stream);
  ExpertProductArgs down = ProductOf(layer, &FeedForward::down, rows);
  down.x = activated_.data();
  down.row = nullptr;
  down.y_type = WeightType::kF32;
  down.y = weighted_.data();
  MultiplyExperts(down, stream);
}

}  // namespace evald::native::cuda
