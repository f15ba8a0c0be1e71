#include "worker/native/families/windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/text.h"

namespace evald::native {
namespace {

constexpr int64_t kWindowMax = int64_t{1} << 26;
constexpr int64_t kWindowDefault = 4096;    // if sliding_window is absent
constexpr int64_t kFullLayersDefault = 28;  // if max_window_layers is absent
constexpr int64_t kLayerNumberMax = 4096;

using Window = std::optional<int64_t>;  // absent: all positions
using Windows = std::vector<Window>;    // by layer

bool IsGemma(WindowRule rule) { return rule == WindowRule::kGemma2 || rule == WindowRule::kGemma3; }

// The value of sliding_window in the family's configuration class.
Window ClassWindow(const ConfigReader& reader, WindowRule rule) {
  const bool switched = rule == WindowRule::kQwen || rule == WindowRule::kQwenMoe;
  if (switched && !reader.FlagOr("use_sliding_window", false)) return std::nullopt;
  if (!reader.json().contains("sliding_window")) return kWindowDefault;
  if (IsGemma(rule)) return reader.Size("sliding_window", kWindowMax);  // its masks need one
  if (!reader.Has("sliding_window")) return std::nullopt;
  return reader.Size("sliding_window", kWindowMax);
}

// A key that the class does not know. Python counts true and false as 1 and 0.
Window UnknownKey(const ConfigReader& reader, const char* key) {
  if (!reader.Has(key)) return std::nullopt;
  const Json& value = reader.json()[key];
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (!value.is_number_integer()) reader.Refuse(key, "an integer or null");
  if (value.is_number_unsigned() && value.get<uint64_t>() > kWindowMax) return kWindowMax;
  return value.get<int64_t>();
}

// The windows that the names in layer_types stand for.
Windows ReadLayerTypes(const ConfigReader& reader, size_t layers, Window sliding, Window chunk) {
  std::map<std::string, Window> known = {{"full_attention", std::nullopt},
                                         {"attention", std::nullopt}};  // its older name
  if (sliding) known["sliding_attention"] = sliding;
  if (chunk) known["chunked_attention"] = chunk;
  const Json& types = reader.json()["layer_types"];
  if (!types.is_array() || types.size() != layers) {
    reader.Refuse("layer_types", fmt::format("a list of {} names", layers));
  }
  Windows windows;
  for (const Json& type : types) {
    const auto found = type.is_string() ? known.find(type.get<std::string>()) : known.end();
    if (found == known.end()) {
      std::vector<std::string> names;
      for (const auto& [name, window] : known) names.push_back(name);
      reader.Refuse("layer_types",
                    Join(names, " or ") + (sliding ? "" : ", since there is no sliding window"));
    }
    windows.push_back(found->second);
  }
  return windows;
}

// Gives the window to the layers from max_window_layers on.
Windows LastLayers(const ConfigReader& reader, size_t layers, Window window) {
  const char* key = "max_window_layers";
  const bool all = reader.Has(key) && reader.json()[key] == 0;
  const int64_t full = all ? 0 : reader.SizeOr(key, kLayerNumberMax, kFullLayersDefault);
  Windows windows(layers);
  for (size_t i = 0; i < layers; ++i) {
    if (static_cast<int64_t>(i) >= full) windows[i] = window;
  }
  return windows;
}

// Gives the window to all layers but the last of each `period`.
Windows AllButLastOf(int64_t period, size_t layers, Window window) {
  Windows windows(layers);
  for (size_t i = 0; i < layers; ++i) {
    if ((static_cast<int64_t>(i) + 1) % period != 0) windows[i] = window;
  }
  return windows;
}

// sliding_window_pattern of Gemma 3.
int64_t Pattern(const ConfigReader& reader) {
  const char* key = "sliding_window_pattern";
  return reader.json().contains(key) ? reader.Size(key, kLayerNumberMax) : 6;
}

// The windows of the layers' attention.
Windows AttentionWindows(const ConfigReader& reader, WindowRule rule, Window sliding,
                         size_t layers) {
  const bool by_name = rule == WindowRule::kQwen || rule == WindowRule::kMistral || IsGemma(rule);
  if (by_name && reader.Has("layer_types")) {
    return ReadLayerTypes(reader, layers, sliding, std::nullopt);
  }
  switch (rule) {
    case WindowRule::kNone:
      break;
    case WindowRule::kMistral:
    case WindowRule::kQwenMoe:
      return Windows(layers, sliding);
    case WindowRule::kQwen:
      return LastLayers(reader, layers, sliding);
    case WindowRule::kGemma2:
      return AllButLastOf(2, layers, sliding);
    case WindowRule::kGemma3:
      return AllButLastOf(Pattern(reader), layers, sliding);
  }
  return Windows(layers);
}

// The windows of the layers in generate()'s cache.
Windows CacheWindows(const ConfigReader& reader, WindowRule rule, Window sliding,
                     const Windows& attention) {
  // A Mistral with layer_types, even null, is loaded as a Ministral (AutoConfig). Its class fills
  // layer_types in, as do those of Qwen 2 and 3 and of Gemma.
  const bool filled_in = rule == WindowRule::kQwen || IsGemma(rule) ||
                         (rule == WindowRule::kMistral && reader.json().contains("layer_types"));
  if (filled_in) return attention;
  const Window chunk = UnknownKey(reader, "attention_chunk_size");
  if (reader.Has("layer_types")) return ReadLayerTypes(reader, attention.size(), sliding, chunk);
  return Windows(attention.size(), sliding ? sliding : chunk);
}

// The positions up to which a generated token sees in the cache all that the layer's attention
// would see; 0: any number. DynamicSlidingWindowLayer keeps keys[-window + 1:]: the last window - 1
// keys, but all of them for a window of 1, for which generate() then leaves the mask out.
int64_t SeenAlike(Window attention, Window cache) {
  if (!cache) return 0;
  if (*cache == 1) return attention.value_or(0);
  if (attention && *cache >= *attention) return 0;
  return std::max<int64_t>(1, *cache);
}

}  // namespace

void ReadWindows(const ConfigReader& reader, WindowRule rule, ModelConfig* config) {
  const auto layers = static_cast<size_t>(config->layers);
  const Window sliding =
      rule == WindowRule::kNone ? UnknownKey(reader, "sliding_window") : ClassWindow(reader, rule);
  const Windows attention = AttentionWindows(reader, rule, sliding, layers);
  const Windows cache = CacheWindows(reader, rule, sliding, attention);
  config->windows.clear();
  config->generation_positions = 0;
  for (size_t i = 0; i < layers; ++i) {
    config->windows.push_back(attention[i].value_or(0));
    const int64_t alike = SeenAlike(attention[i], cache[i]);
    int64_t& least = config->generation_positions;
    if (alike > 0) least = least == 0 ? alike : std::min(least, alike);
  }
}

}  // namespace evald::native
