// Mistral: Llama with a sliding window in every layer (transformers, models/mistral).
#include "worker/native/families/family.h"

namespace evald::native {
namespace {

void Read(const ConfigReader& reader, ModelConfig* config) {
  constexpr int64_t kWindow = 4096;  // where the key is absent; null is no window
  ReadCommon(reader, {.max_positions = 4096 * 32, .kv_heads = 8}, config);
  const bool absent = !reader.json().contains("sliding_window");
  const int64_t window = reader.SizeOr("sliding_window", int64_t{1} << 26, absent ? kWindow : 0);
  config->windows.assign(config->windows.size(), window);
}

}  // namespace

const Family kMistral = {"MistralForCausalLM", "mistral", {}, Read};

}  // namespace evald::native
