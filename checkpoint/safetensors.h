#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace evald {

/// Element types of safetensors files that evald knows the size of. An engine refuses by name the
/// ones that it cannot compute with.
enum class Dtype {
  kF64,
  kF32,
  kF16,
  kBF16,
  kI64,
  kI32,
  kI16,
  kI8,
  kU8,
  kBool,
  kU64,
  kU32,
  kU16,
  kF8E4M3,
  kF8E5M2,
  kF8E8M0,
};

/// Throws Error(kInput) for a dtype that is not known, naming it and the known ones.
Dtype DtypeFromString(std::string_view name);
std::string_view ToString(Dtype dtype);
size_t DtypeBytes(Dtype dtype);

/// Where one tensor lies.
struct TensorInfo {
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;
  uint64_t begin = 0;  ///< byte offset from the start of the file
  uint64_t bytes = 0;
};

/// The header of one safetensors file. Format: 8 bytes little-endian header length, that many bytes
/// of JSON, then data (https://github.com/huggingface/safetensors, "Format").
struct SafetensorsHeader {
  std::map<std::string, TensorInfo> tensors;
  std::map<std::string, std::string> metadata;  ///< "__metadata__"
  uint64_t file_bytes = 0;                      ///< the length that a whole file has, by its header
};

/// Reads and checks a header: its length against the file's (at most 100 MB), that offsets do not
/// overlap, leave no hole, lie in the file and agree with dtype and shape. Throws Error(kInput)
/// that names the file, the tensor, what was found and what was expected.
SafetensorsHeader ReadSafetensorsHeader(const std::filesystem::path& path);
/// The same of an open file; `path` names it in errors.
SafetensorsHeader ReadSafetensorsHeader(const UniqueFd& fd, const std::filesystem::path& path);

/// The same from the first bytes of a file; `name` is used in errors, `file_bytes` is the actual
/// length of the file. For fuzzing, and for files that are not there yet.
SafetensorsHeader ParseSafetensorsHeader(std::string_view first_bytes, uint64_t file_bytes,
                                         const std::string& name);

}  // namespace evald
