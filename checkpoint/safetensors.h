#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace evald {

/// Element types in safetensors files. evald knows the size of each. If an engine cannot compute
/// with a type, it refuses the checkpoint and names the type.
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

/// The longest name of a tensor, in bytes. Real names have about a hundred; errors quote them.
inline constexpr size_t kTensorNameBytesMax = 4096;

/// Throws Error(kInput) for an unknown dtype. The error names it and the known ones.
Dtype DtypeFromString(std::string_view name);
std::string_view ToString(Dtype dtype);
size_t DtypeBytes(Dtype dtype);

/// The place of one tensor.
struct TensorInfo {
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;
  uint64_t begin = 0;  ///< byte offset from the start of the file
  uint64_t bytes = 0;
};

/// The header of one safetensors file. The format is: 8 bytes, the little-endian length of the
/// header; that many bytes of JSON; then data (https://github.com/huggingface/safetensors,
/// "Format").
struct SafetensorsHeader {
  std::map<std::string, TensorInfo> tensors;
  std::map<std::string, std::string> metadata;  ///< the members of "__metadata__"
  uint64_t file_bytes = 0;  ///< length of the whole file according to its header
};

/// Reads and checks a header. Its length must fit into the file and be at most 100 MB. A tensor's
/// name must have at most kTensorNameBytesMax bytes. The tensors' ranges must not overlap, must
/// leave no hole, must lie in the file, and must agree with dtype and shape. Throws Error(kInput),
/// which names the file, the tensor, the value found and the value expected.
SafetensorsHeader ReadSafetensorsHeader(const std::filesystem::path& path);
/// The same for an open file. `path` names it in errors.
SafetensorsHeader ReadSafetensorsHeader(const UniqueFd& fd, const std::filesystem::path& path);

/// The same for the first bytes of a file. `name` is used in errors. `file_bytes` is the length
/// that the file has, or will have when it is complete. Used by fuzzing, and for files that are
/// still being copied.
SafetensorsHeader ParseSafetensorsHeader(std::string_view first_bytes, uint64_t file_bytes,
                                         const std::string& name);

}  // namespace evald
