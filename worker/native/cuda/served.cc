#include "worker/native/cuda/served.h"

#include <fmt/format.h>

#include "evald/error.h"
#include "worker/native/families/family.h"

namespace evald::native::cuda {

void RefuseUnserved(const ModelConfig& config) {
  const char* lacking = config.attention_cap != 0       ? "capped attention scores"
                        : config.logits_cap != 0        ? "capped logits"
                        : config.local_rope.has_value() ? "two ropes"
                        : config.norm_offset != 0       ? "norms with weights from 0"
                        : config.embedding_scale != 1   ? "scaled embeddings"
                                                        : nullptr;
  if (lacking == nullptr) return;
  throw Error(
      ErrorKind::kInput,
      fmt::format("config.json: architecture {}: the native engine has no GPU kernels for {}",
                  config.family->architecture, lacking),
      "compute on processors, with workers.devices: [cpu:0], or use engine: openai");
}

}  // namespace evald::native::cuda
