#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "checkpoint/lease.h"
#include "checkpoint/safetensors.h"
#include "worker/native/kernels.h"

namespace evald::native {

/// A matrix [rows][columns] that lies in a mapped file.
struct Matrix {
  const char* data = nullptr;
  WeightType type = WeightType::kF32;
  int64_t rows = 0;
  int64_t columns = 0;

  uint64_t bytes() const {
    return static_cast<uint64_t>(rows * columns) * (type == WeightType::kF32 ? 4 : 2);
  }
};

/// Whether all of a checkpoint may be read, or only its headers: it is being staged, and the rest
/// comes while it is looked at (checkpoint/landed.h).
enum class Contents { kThere, kComing };

/// The tensors of a checkpoint, mapped shared and read-only, so that all workers of a host use the
/// same pages. Each tensor is taken once; what nobody takes is an error. Holds the folder's lease
/// as long as it lives.
class TensorFiles {
 public:
  /// Throws Error(kInput) for a broken or missing shard.
  explicit TensorFiles(const std::filesystem::path& directory,
                       Contents contents = Contents::kThere);

  bool Has(const std::string& name) const { return tensors_.count(name) > 0; }
  /// Throw Error(kInput) for a tensor that is missing, of another shape or of a dtype that is not
  /// bf16, fp16 or fp32, naming file, tensor, found and expected.
  Matrix TakeMatrix(const std::string& name, int64_t rows, int64_t columns);
  /// Widened to fp32; zeros where the contents are still coming.
  std::vector<float> TakeVector(const std::string& name, int64_t size);
  /// Throws Error(kInput) naming a tensor that was not taken, unless its name ends like one of
  /// `passed_over`. `description` says what has no place for it.
  void CheckNothingLeft(const std::vector<const char*>& passed_over,
                        const std::string& description) const;

  const std::string& directory() const { return directory_; }
  uint64_t mapped_bytes() const;

  /// Where the values of a vector of TakeVector lie as they are stored, by its data().
  const Matrix& SourceOf(const float* values) const { return vectors_.at(values); }
  /// Where a byte of the files lies.
  struct Place {
    size_t shard = 0;     ///< in order of their names
    uint64_t offset = 0;  ///< in it
    bool operator<(const Place& other) const {
      return shard != other.shard ? shard < other.shard : offset < other.offset;
    }
  };
  /// Of an address in a mapped file.
  Place PlaceOf(const char* data) const;
  /// Relative to the checkpoint's folder.
  std::string NameOf(const Place& place) const { return names_.at(place.shard); }

 private:
  struct Shard {
    std::string name;  ///< the whole path, for errors
    MappedFile file;
    SafetensorsHeader header;
  };
  struct Located {
    const TensorInfo* info = nullptr;
    size_t shard = 0;
  };

  Located Take(const std::string& name, const std::vector<int64_t>& shape);

  std::string directory_;
  Contents contents_;
  StagedLease lease_;
  std::vector<std::string> names_;
  std::vector<Shard> shards_;
  std::unordered_map<const float*, Matrix> vectors_;
  std::map<std::string, Located> tensors_;  ///< those that are left
};

}  // namespace evald::native
