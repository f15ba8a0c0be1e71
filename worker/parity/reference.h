#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/engine/engine.h"
#include "worker/parity/parts.h"

namespace evald::parity {

/// The type in which an engine computes.
enum class NumberType { kF32, kBf16, kFp16 };

/// "bfloat16", "float16" or "float32" (torch's names), also as safetensors names them (BF16, F16,
/// F32). Nothing for another name.
std::optional<NumberType> NumberTypeOf(const std::string& name);

/// The type of most bytes of a staged checkpoint's matrices. bf16 for one that is none of the
/// three. Throws Error(kInput) if the folder is no checkpoint.
NumberType TypeOfWeights(const std::filesystem::path& directory);

/// The score of one window by evald's own engine on the processor.
struct Expected {
  double exact = 0;    ///< in fp32
  double rounded = 0;  ///< with every step rounded to the type of the other engine
};

/// The work of a reference.
struct ReferenceTask {
  std::filesystem::path directory;  ///< the staged checkpoint
  NumberType type = NumberType::kBf16;
  int threads = 1;
  std::chrono::milliseconds budget{10'000};
  size_t parts_max = SIZE_MAX;  ///< only the first parts are wanted
};

/// The expected scores of the first parts. A part that would take longer than what is left of the
/// budget is left out, and those after it; the first part is always there.
struct Reference {
  std::vector<Part> parts;
  std::vector<std::vector<Expected>> expected;  ///< of the windows of parts[i]; may be fewer parts
  std::vector<std::string> left_out;            ///< names of parts, for the want of time
  double seconds = 0;
};

/// evald's own engine with a checkpoint, in place, without the checkpoint's generation settings.
/// Throws as ComputeReference.
std::unique_ptr<Engine> ReferenceEngine(const ReferenceTask& task, const char* kernels = "auto");

/// Loads the checkpoint into evald's own engine twice, in place, and scores the parts. Takes memory
/// for keys and values. Ends early, with what is there, once `*stop` is true. Throws Error(kInput)
/// for a checkpoint that evald's engine does not serve.
Reference ComputeReference(const ReferenceTask& task, const std::atomic<bool>* stop);

}  // namespace evald::parity
