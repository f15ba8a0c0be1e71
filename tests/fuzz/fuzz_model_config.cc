#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/jsonl.h"
#include "evald/error.h"
#include "worker/native/config.h"
#include "worker/native/rope.h"

// config.json of a checkpoint. An accepted config must be a shape that the engine can size its
// memory by.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace evald::native;
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const ModelConfig config = ParseModelConfig(evald::ParseJson(text, "fuzz"), "fuzz");
    const auto layers = static_cast<size_t>(config.layers);
    if (config.windows.size() != layers || config.sparse.size() != layers) std::abort();
    if (config.heads % config.kv_heads != 0 || config.rotary_dim > config.head_dim) std::abort();
    if (config.rotary_dim < 2 || config.rotary_dim % 2 != 0) std::abort();
    if (config.experts.per_token > config.experts.count) std::abort();
    const auto frequencies = InverseFrequencies(config.rope);
    if (frequencies.size() != static_cast<size_t>(config.rotary_dim) / 2) std::abort();
  } catch (const evald::Error&) {
  }
  return 0;
}
