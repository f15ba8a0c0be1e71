#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "checkpoint/safetensors.h"
#include "evald/error.h"

// The header of a safetensors file. An accepted header must describe the file without a gap.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const evald::SafetensorsHeader header = evald::ParseSafetensorsHeader(bytes, size, "fuzz");
    uint64_t sum = 0;
    for (const auto& [name, tensor] : header.tensors) {
      sum += tensor.bytes;
      if (tensor.begin > size || tensor.bytes > size - tensor.begin) std::abort();
    }
    if (header.file_bytes != size || sum > size) std::abort();
  } catch (const evald::Error&) {
  }
  return 0;
}
