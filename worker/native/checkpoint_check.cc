#include "worker/native/checkpoint_check.h"

#include "worker/native/config.h"
#include "worker/native/weights.h"

namespace evald {

int64_t CheckNativeCheckpoint(const ReadFolder& folder, int64_t max_length) {
  const native::ModelConfig config = native::ReadModelConfig(folder);
  const int64_t context = native::ContextOf(config, max_length, folder.path().string());
  const native::ModelWeights weights(folder, config, native::Contents::kHeaders);
  return context;
}

}  // namespace evald
