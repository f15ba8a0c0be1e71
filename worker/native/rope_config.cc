#include "worker/native/rope_config.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace evald::native {
namespace {

constexpr int64_t kDimMax = 1 << 20;
constexpr const char* kOriginalPositions = "original_max_position_embeddings";
constexpr const char* kServed = "default, linear, llama3, yarn or dynamic";

// transformers takes a top-level key first, then the rope's own, then the context length.
double OriginalPositions(const ConfigReader& rope, const ConfigReader& top, double otherwise) {
  if (top.Has(kOriginalPositions)) return top.Positive(kOriginalPositions);
  return rope.PositiveOr(kOriginalPositions, otherwise);
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

// Whether the key holds something other than null or 0, which Python takes as false.
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

// The object with the rope's parameters: rope_scaling unless it is empty, as in transformers.
ConfigReader RopeObject(const ConfigReader& reader) {
  const ConfigReader scaling = reader.Object("rope_scaling");
  return scaling.json().empty() ? reader.Object("rope_parameters") : scaling;
}

// The rotated dimensions of a head, at least 1: int(head_dim * share), as in transformers. Families
// without a key of their own rotate whole heads. There transformers reads the share only beside a
// scaling, and fails if it is not 1.
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

// One rope from its own object and the keys at the top.
RopeConfig ReadParameters(const ConfigReader& rope, const ConfigReader& top,
                          const RopeDefaults& defaults, double original_positions,
                          const ModelConfig& config) {
  RopeConfig result;
  result.theta = rope.Has("rope_theta") ? rope.Positive("rope_theta")
                                        : top.PositiveOr(defaults.theta_key, defaults.theta);
  const std::string key = rope.Has("rope_type") ? "rope_type" : "type";
  const std::string type = rope.TextOr(key, "default");
  const int64_t head_dim = defaults.head_dim_key == nullptr
                               ? config.head_dim
                               : top.SizeOr(defaults.head_dim_key, kDimMax, config.head_dim);
  result.dim = ShareOfHead(rope, top, defaults, type != "default", head_dim);
  if (result.dim > config.head_dim) {
    top.Refuse(defaults.head_dim_key,
               fmt::format("a size whose rotated share fits a head of {}", config.head_dim));
  }
  result.original_positions = original_positions;
  if (type == "linear") {
    result.type = RopeType::kLinear;
    result.factor = rope.Positive("factor");
  } else if (type == "llama3") {
    result.type = RopeType::kLlama3;
    ReadLlama3(rope, &result);
  } else if (type == "yarn") {
    if (result.dim % 2 != 0) {  // transformers fails there
      rope.Refuse(
          key, fmt::format("another rope type beside an odd share of head_dim ({})", result.dim));
    }
    result.type = RopeType::kYarn;
    ReadYarn(rope, static_cast<double>(config.max_positions), &result);
  } else if (type == "dynamic") {
    result.type = RopeType::kDynamic;
    result.factor = rope.Positive("factor");
  } else if (type != "default") {
    rope.Refuse(key, kServed,
                "this rope scaling is not served by the native engine; use engine: openai");
  }
  return result;
}

// The parameters of one layer type: those below its name and, if they are this one's, those of
// rope_scaling over them. In transformers, keys of rope_parameters beside the types have no effect.
Json LayerParameters(const ConfigReader& reader, const LayerRope& layer) {
  Json parameters = reader.Object("rope_parameters").Object(layer.type).json();
  if (layer.scaled) parameters.update(reader.Object("rope_scaling").json());
  return parameters;
}

}  // namespace

RopeConfig ReadLayerRope(const ConfigReader& reader, const LayerRope& layer,
                         const ModelConfig& config) {
  const Json parameters = LayerParameters(reader, layer);
  const ConfigReader rope(parameters, fmt::format("{}: rope of {}", reader.where(), layer.type));
  // The class fills rope_type in before it looks at the older key.
  if (rope.Has("type") && !rope.Has("rope_type")) rope.Refuse("type", "the key rope_type");
  const double positions =
      rope.PositiveOr(kOriginalPositions, static_cast<double>(config.max_positions));
  const RopeConfig result = ReadParameters(rope, reader, layer.defaults, positions, config);
  if (result.type == RopeType::kDynamic)
    rope.Refuse("rope_type", "default, linear, llama3 or yarn");
  return result;
}

void ReadRope(const ConfigReader& reader, const RopeDefaults& defaults, ModelConfig* config) {
  const ConfigReader rope = RopeObject(reader);
  for (const auto& [key, value] : rope.json().items()) {
    if (value.is_object()) rope.Refuse(key, "one set of parameters for all layers");
  }
  const double positions =
      OriginalPositions(rope, reader, static_cast<double>(config->max_positions));
  config->rope = ReadParameters(rope, reader, defaults, positions, *config);
  config->rotary_dim = config->rope.dim + config->rope.dim % 2;
}

}  // namespace evald::native
