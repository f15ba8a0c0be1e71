#include "worker/native/rope_config.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace evald::native {
namespace {

constexpr int64_t kDimMax = 1 << 20;
constexpr const char* kServed = "default, linear, llama3, yarn or dynamic";

// transformers takes a top-level key first, then the rope's own, then the context length.
double OriginalPositions(const ConfigReader& rope, const ConfigReader& top, double otherwise) {
  const std::string key = "original_max_position_embeddings";
  if (top.Has(key)) return top.Positive(key);
  return rope.PositiveOr(key, otherwise);
}

void ReadLlama3(const ConfigReader& rope, RopeConfig* config) {
  config->factor = rope.Positive("factor");
  config->low_freq_factor = rope.Positive("low_freq_factor");
  config->high_freq_factor = rope.Positive("high_freq_factor");
  if (config->high_freq_factor <= config->low_freq_factor) {
    rope.Refuse("high_freq_factor",
                fmt::format("more than low_freq_factor ({})", config->low_freq_factor));
  }
}

// Whether the key holds something else than null or 0, which Python takes for nothing.
bool IsThere(const ConfigReader& reader, const std::string& key) {
  return reader.Has(key) && reader.json()[key] != 0;
}

double YarnScale(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

void ReadYarn(const ConfigReader& rope, double max_positions, RopeConfig* config) {
  if (!rope.json().contains("factor")) rope.Refuse("factor", "a positive number");
  config->factor = rope.PositiveOr("factor", max_positions / config->original_positions);
  config->beta_fast = rope.PositiveOr("beta_fast", 32);
  config->beta_slow = rope.PositiveOr("beta_slow", 1);
  config->truncate = rope.FlagOr("truncate", true);
  if (rope.Has("attention_factor")) {
    config->attention_factor = rope.Positive("attention_factor");
  } else if (IsThere(rope, "mscale") && IsThere(rope, "mscale_all_dim")) {
    config->attention_factor = YarnScale(config->factor, rope.Positive("mscale")) /
                               YarnScale(config->factor, rope.Positive("mscale_all_dim"));
  } else {
    config->attention_factor = YarnScale(config->factor, 1);
  }
}

// The object that holds the rope's parameters: rope_scaling unless it is empty, as in transformers.
ConfigReader RopeObject(const ConfigReader& reader) {
  const ConfigReader scaling = reader.Object("rope_scaling");
  return scaling.json().empty() ? reader.Object("rope_parameters") : scaling;
}

// Dimensions of the share, at least 1: int(head_dim * share), as transformers has it.
// Families without a key of their own rotate whole heads: they look at the share only beside a
// scaling, and end in an error there if it is not the whole.
int64_t ShareOfHead(const ConfigReader& rope, const ConfigReader& top, const RopeDefaults& defaults,
                    bool scaled, int64_t head_dim) {
  if (defaults.partial_key == nullptr && !scaled) return head_dim;
  const std::string inside = "partial_rotary_factor";
  const ConfigReader& holder = rope.Has(inside) ? rope : top;
  const bool renamed = defaults.partial_key != nullptr && !rope.Has(inside);
  const std::string key = renamed ? defaults.partial_key : inside;
  const double partial = holder.PositiveOr(key, defaults.partial);
  if (defaults.partial_key == nullptr && partial != 1) holder.Refuse(key, "1.0");
  const auto dim = static_cast<int64_t>(static_cast<double>(head_dim) * partial);
  if (partial > 1 || dim < 1) {
    holder.Refuse(key, fmt::format("a share of head_dim ({}) of at least one dimension", head_dim));
  }
  return dim;
}

}  // namespace

void ReadRope(const ConfigReader& reader, const RopeDefaults& defaults, ModelConfig* config) {
  const ConfigReader rope = RopeObject(reader);
  for (const auto& [key, value] : rope.json().items()) {
    if (value.is_object()) rope.Refuse(key, "one set of parameters for all layers");
  }
  RopeConfig& result = config->rope;
  result.theta = rope.Has("rope_theta") ? rope.Positive("rope_theta")
                                        : reader.PositiveOr(defaults.theta_key, defaults.theta);
  const std::string key = rope.Has("rope_type") ? "rope_type" : "type";
  const std::string type = rope.TextOr(key, "default");
  const int64_t head_dim = defaults.head_dim_key == nullptr
                               ? config->head_dim
                               : reader.SizeOr(defaults.head_dim_key, kDimMax, config->head_dim);
  result.dim = ShareOfHead(rope, reader, defaults, type != "default", head_dim);
  if (result.dim > config->head_dim) {
    reader.Refuse(defaults.head_dim_key,
                  fmt::format("a size whose rotated share fits a head of {}", config->head_dim));
  }
  config->rotary_dim = result.dim + result.dim % 2;
  const auto positions = static_cast<double>(config->max_positions);
  result.original_positions = OriginalPositions(rope, reader, positions);
  if (type == "linear") {
    result.type = RopeType::kLinear;
    result.factor = rope.Positive("factor");
  } else if (type == "llama3") {
    result.type = RopeType::kLlama3;
    ReadLlama3(rope, &result);
  } else if (type == "yarn") {
    if (result.dim % 2 != 0) {  // there it ends in an error
      rope.Refuse(
          key, fmt::format("another rope type beside an odd share of head_dim ({})", result.dim));
    }
    result.type = RopeType::kYarn;
    ReadYarn(rope, positions, &result);
  } else if (type == "dynamic") {
    result.type = RopeType::kDynamic;
    result.factor = rope.Positive("factor");
  } else if (type != "default") {
    rope.Refuse(key, kServed,
                "this rope scaling is not served by the native engine; use engine: openai");
  }
}

}  // namespace evald::native
