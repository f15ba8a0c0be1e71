#include "worker/native/tensor_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "checkpoint/layout.h"
#include "evald/error.h"

namespace evald::native {
namespace {

WeightType TypeOf(Dtype dtype, const std::string& file, const std::string& tensor) {
  switch (dtype) {
    case Dtype::kF32:
      return WeightType::kF32;
    case Dtype::kF16:
      return WeightType::kF16;
    case Dtype::kBF16:
      return WeightType::kBF16;
    default:
      throw Error(ErrorKind::kInput, fmt::format("{}: tensor '{}': found dtype {}, expected BF16, "
                                                 "F16 or F32",
                                                 file, tensor, ToString(dtype)));
  }
}

}  // namespace

TensorFiles::TensorFiles(const ReadFolder& folder, Contents contents)
    : directory_(folder.path().string()), contents_(contents) {
  if (contents != Contents::kHeaders) lease_ = StagedLease(folder.path());
  const CheckpointLayout layout = ReadCheckpointLayout(folder);
  CheckShards(layout);
  names_ = layout.shards;
  shards_.reserve(layout.shards.size());
  for (const std::string& name : layout.shards) {
    const std::filesystem::path path = folder / name;
    UniqueFd open = folder.OpenFile(name);
    std::optional<MappedFile> mapped;
    if (contents != Contents::kHeaders) mapped.emplace(open, path);
    SafetensorsHeader header = ReadSafetensorsHeader(open, path);
    shards_.push_back({path.string(), std::move(open), std::move(mapped), std::move(header)});
    const Shard& shard = shards_.back();
    if (shard.file && shard.file->size() != shard.header.file_bytes) {
      throw Error(ErrorKind::kInput, fmt::format("{}: found {} bytes, expected {}", shard.name,
                                                 shard.file->size(), shard.header.file_bytes));
    }
    for (const auto& [tensor, info] : shard.header.tensors) {
      const auto [other, fresh] = tensors_.insert({tensor, {&info, shards_.size() - 1}});
      if (!fresh) {
        throw Error(ErrorKind::kInput, fmt::format("{}: tensor '{}' is in {} too", shard.name,
                                                   tensor, shards_[other->second.shard].name));
      }
    }
  }
}

TensorFiles::Located TensorFiles::Take(const std::string& name, const std::vector<int64_t>& shape) {
  const auto node = tensors_.extract(name);
  if (node.empty()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: tensor '{}' is missing; expected shape [{}] by config.json",
                            directory_, name, fmt::join(shape, ", ")));
  }
  const Located found = node.mapped();
  if (found.info->shape != shape) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: tensor '{}': found shape [{}], expected [{}] by config.json",
                            shards_[found.shard].name, name, fmt::join(found.info->shape, ", "),
                            fmt::join(shape, ", ")));
  }
  if (contents_ == Contents::kHeaders) taken_[name] = found;
  return found;
}

const char* TensorFiles::DataOf(const Located& found) const {
  const Shard& shard = shards_[found.shard];
  return shard.file ? shard.file->data() + found.info->begin : nullptr;
}

bool TensorFiles::BeginAlike(const std::string& one, const std::string& other) const {
  constexpr size_t kGlanceBytes = 64 << 10;
  const auto beginning = [&](const std::string& name) {
    const Located& found = taken_.at(name);
    std::string bytes(std::min<uint64_t>(kGlanceBytes, found.info->bytes), '\0');
    const ssize_t got = ::pread(shards_[found.shard].open.get(), bytes.data(), bytes.size(),
                                static_cast<off_t>(found.info->begin));
    bytes.resize(static_cast<size_t>(std::max<ssize_t>(0, got)));
    return bytes;
  };
  return taken_.at(one).info->dtype == taken_.at(other).info->dtype &&
         beginning(one) == beginning(other);
}

Matrix TensorFiles::TakeMatrix(const std::string& name, int64_t rows, int64_t columns) {
  const Located found = Take(name, {rows, columns});
  const Shard& shard = shards_[found.shard];
  return {DataOf(found), TypeOf(found.info->dtype, shard.name, name), rows, columns};
}

std::vector<float> TensorFiles::TakeVector(const std::string& name, int64_t size) {
  const Located found = Take(name, {size});
  const Shard& shard = shards_[found.shard];
  const Matrix source = {DataOf(found), TypeOf(found.info->dtype, shard.name, name), 1, size};
  std::vector<float> values(static_cast<size_t>(size));
  if (contents_ == Contents::kThere) {
    PortableKernels().widen(source.data, source.type, size, values.data());
  }
  vectors_[values.data()] = source;
  return values;
}

TensorFiles::Place TensorFiles::PlaceOf(const char* data) const {
  for (size_t i = 0; i < shards_.size(); ++i) {
    const std::optional<MappedFile>& file = shards_[i].file;
    if (file && data >= file->data() && data < file->data() + file->size()) {
      return {i, static_cast<uint64_t>(data - file->data())};
    }
  }
  throw Error(ErrorKind::kInternal, "an address that lies in none of the mapped files");
}

void TensorFiles::CheckNothingLeft(
    const std::function<PassedOver(const std::string& tensor)>& passed_over,
    const std::string& description) const {
  std::vector<std::string> without_use;
  for (const auto& [name, found] : tensors_) {
    const PassedOver passed = passed_over(name);
    if (passed == PassedOver::kWithAWord) without_use.push_back(name);
    if (passed != PassedOver::kNo) continue;
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: tensor '{}' (shape [{}]) has no place in {}", shards_[found.shard].name,
                    name, fmt::join(found.info->shape, ", "), description),
        "check num_hidden_layers, attention_bias, mlp_bias and bias in config.json");
  }
  if (without_use.empty()) return;
  log::Warn("{}: {} tensors have no place in {} and are not used: '{}'{}", directory_,
            without_use.size(), description, without_use.front(),
            without_use.size() > 1 ? ", …" : "");
}

uint64_t TensorFiles::mapped_bytes() const {
  uint64_t bytes = 0;
  for (const Shard& shard : shards_) bytes += shard.file ? shard.file->size() : 0;
  return bytes;
}

}  // namespace evald::native
