#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "base/read_roots.h"
#include "checkpoint/lease.h"
#include "checkpoint/safetensors.h"
#include "worker/native/kernels.h"

namespace evald::native {

/// A matrix [rows][columns] in a mapped file.
struct Matrix {
  const char* data = nullptr;
  WeightType type = WeightType::kF32;
  int64_t rows = 0;
  int64_t columns = 0;

  uint64_t bytes() const {
    return static_cast<uint64_t>(rows * columns) * (type == WeightType::kF32 ? 4 : 2);
  }
};

/// What of a checkpoint is read.
enum class Contents {
  kThere,   ///< all of it
  kComing,  ///< the headers: it is being staged, and the rest comes meanwhile (checkpoint/landed.h)
  kHeaders,  ///< the headers, and nothing is mapped: it is only checked, where its owner keeps it
};

/// The treatment of a tensor that nobody took: an error, a line in the log, or nothing.
enum class PassedOver { kNo, kWithAWord, kSilently };

/// The tensors of a checkpoint, mapped shared and read-only, so that all workers of a host use the
/// same pages. Each tensor is taken once; a tensor that is never taken is an error. Holds the
/// folder's lease for its lifetime.
class TensorFiles {
 public:
  /// Throws Error(kInput) for a broken or missing shard.
  explicit TensorFiles(const ReadFolder& folder, Contents contents = Contents::kThere);

  bool Has(const std::string& name) const { return tensors_.count(name) > 0; }
  /// Both throw Error(kInput) for a tensor that is missing, of another shape, or of a dtype other
  /// than bf16, fp16 or fp32, naming file, tensor, found and expected.
  Matrix TakeMatrix(const std::string& name, int64_t rows, int64_t columns);
  /// Widened to fp32; zeros unless the contents are there.
  std::vector<float> TakeVector(const std::string& name, int64_t size);
  /// Throws Error(kInput) naming a tensor that was not taken, unless `passed_over` says otherwise.
  /// The log names those with kWithAWord. `description` names the model in the error.
  void CheckNothingLeft(const std::function<PassedOver(const std::string& tensor)>& passed_over,
                        const std::string& description) const;

  const std::string& directory() const { return directory_; }
  uint64_t mapped_bytes() const;
  /// Whether two tensors that were taken have the same bytes at their beginnings, as far as a
  /// glance goes. With kHeaders only.
  bool BeginAlike(const std::string& one, const std::string& other) const;

  /// The stored values of a vector of TakeVector, by its data().
  const Matrix& SourceOf(const float* values) const { return vectors_.at(values); }
  /// The place of a byte in the files.
  struct Place {
    size_t shard = 0;     ///< in order of their names
    uint64_t offset = 0;  ///< in the shard
    bool operator<(const Place& other) const {
      return shard != other.shard ? shard < other.shard : offset < other.offset;
    }
  };
  /// The place of an address in a mapped file.
  Place PlaceOf(const char* data) const;
  /// The open file of a place, for pread; its bytes are those that are mapped. Open for this
  /// object's lifetime.
  int FileOf(const Place& place) const { return shards_.at(place.shard).open.get(); }
  /// The shard's name, relative to the checkpoint's folder.
  std::string NameOf(const Place& place) const { return names_.at(place.shard); }

 private:
  struct Shard {
    std::string name;  ///< the whole path, for errors
    UniqueFd open;
    std::optional<MappedFile> file;  ///< absent with kHeaders
    SafetensorsHeader header;
  };
  struct Located {
    const TensorInfo* info = nullptr;
    size_t shard = 0;
  };

  Located Take(const std::string& name, const std::vector<int64_t>& shape);
  const char* DataOf(const Located& found) const;

  std::string directory_;
  Contents contents_;
  StagedLease lease_;
  std::vector<std::string> names_;
  std::vector<Shard> shards_;
  std::unordered_map<const float*, Matrix> vectors_;
  std::map<std::string, Located> tensors_;  ///< tensors not taken yet
  std::map<std::string, Located> taken_;    ///< with kHeaders
};

}  // namespace evald::native
