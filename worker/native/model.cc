#include "worker/native/model.h"

#include "evald/error.h"

namespace evald::native {

Model::Model(const ModelConfig& config, const ModelWeights& weights, Device* device)
    : config_(config), weights_(weights), device_(device) {}

void Model::Forward(const std::vector<Segment>& segments, const std::vector<Wish>& wishes) {
  TryTwice([&] {
    if (Compute(segments)) device_->Ask(weights_.head(), wishes);
  });
}

std::vector<float> Model::Logits(const std::vector<Segment>& segments) {
  std::vector<float> logits;
  TryTwice([&] {
    if (Compute(segments)) logits = device_->Logits(weights_.head());
  });
  return logits;
}

void Model::TryTwice(const std::function<void()>& batch) {
  try {
    batch();
  } catch (const Error&) {
    if (!device_->Recover()) throw;
    batch();
  }
}

// Everything except the product with the head. False if no row is wanted.
bool Model::Compute(const std::vector<Segment>& segments) {
  device_->Begin(segments);
  device_->Embed(weights_.embedding());
  for (int64_t layer = 0; layer < config_.layers; ++layer) {
    if (!ComputeLayer(layer)) return false;
  }
  device_->Normalize(weights_.norm(), Rows::kHidden, Rows::kNormed);
  return true;
}

// False if no row is left: after the last keys and values, only the rows with wanted logits matter.
bool Model::ComputeLayer(int64_t index) {
  const LayerWeights& layer = weights_.layers()[static_cast<size_t>(index)];
  device_->Multiply(layer.qkv, Normed(layer.attention_norm), Rows::kQkv);
  if (layer.query_norm.present()) device_->NormalizeHeads(layer.query_norm, layer.key_norm);
  device_->Rotate(index);
  device_->StoreKeysAndValues(index);
  if (index + 1 == config_.layers && device_->KeepWanted() == 0) return false;
  Attention(index);

  if (config_.parallel) {
    // From the residual stream before the attention's output is added
    const Rows from = Normed(layer.mlp_norm);
    device_->AddOut();
    FeedForwardPart(layer, from);
  } else {
    device_->AddOut();
    FeedForwardPart(layer, Normed(layer.mlp_norm));
  }
  device_->AddOut();
  return true;
}

void Model::Attention(int64_t index) {
  const LayerWeights& layer = weights_.layers()[static_cast<size_t>(index)];
  device_->Attend(index, config_.windows[static_cast<size_t>(index)]);
  device_->Multiply(layer.output, Rows::kAttended, Rows::kOut);
  if (layer.attention_after_norm.present()) {
    device_->Normalize(layer.attention_after_norm, Rows::kOut, Rows::kOut);
  }
}

void Model::FeedForwardPart(const LayerWeights& layer, Rows from) {
  if (layer.experts.empty()) {
    device_->Multiply(layer.mlp.in, from, Rows::kInner);
    device_->Activate();
    device_->Multiply(layer.mlp.down, Rows::kActivated, Rows::kOut);
  } else {
    device_->MixExperts(layer);
  }
  if (layer.mlp_after_norm.present()) {
    device_->Normalize(layer.mlp_after_norm, Rows::kOut, Rows::kOut);
  }
}

// The norm's output; without a norm, the residual stream itself.
Rows Model::Normed(const NormWeights& norm) {
  if (!norm.present()) return Rows::kHidden;
  device_->Normalize(norm, Rows::kHidden, Rows::kNormed);
  return Rows::kNormed;
}

}  // namespace evald::native
