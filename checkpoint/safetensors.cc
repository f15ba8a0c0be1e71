#include "checkpoint/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "evald/error.h"
#include "evald/json.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kHeaderBytesMax = 100'000'000;  // the limit of the reference implementation
constexpr size_t kRankMax = 32;
constexpr size_t kMetadataMax = 65'536;  // entries; real files have few
constexpr const char* kCopyAgain = "copy or save the checkpoint again";

struct DtypeRow {
  Dtype dtype;
  std::string_view name;
  size_t bytes;
};
constexpr std::array<DtypeRow, 16> kDtypes = {{
    {Dtype::kF64, "F64", 8},
    {Dtype::kF32, "F32", 4},
    {Dtype::kF16, "F16", 2},
    {Dtype::kBF16, "BF16", 2},
    {Dtype::kI64, "I64", 8},
    {Dtype::kI32, "I32", 4},
    {Dtype::kI16, "I16", 2},
    {Dtype::kI8, "I8", 1},
    {Dtype::kU8, "U8", 1},
    {Dtype::kBool, "BOOL", 1},
    {Dtype::kU64, "U64", 8},
    {Dtype::kU32, "U32", 4},
    {Dtype::kU16, "U16", 2},
    {Dtype::kF8E4M3, "F8_E4M3", 1},
    {Dtype::kF8E5M2, "F8_E5M2", 1},
    {Dtype::kF8E8M0, "F8_E8M0", 1},
}};

const DtypeRow& RowOf(Dtype dtype) {
  return *std::find_if(kDtypes.begin(), kDtypes.end(),
                       [&](const DtypeRow& row) { return row.dtype == dtype; });
}

[[noreturn]] void RefuseFile(const std::string& name, const std::string& what) {
  throw Error(ErrorKind::kInput, name + ": " + what, kCopyAgain);
}

// Shortens a name: names come from the file, and an error quotes them.
std::string Quoted(const std::string& text) {
  constexpr size_t kShown = 120;
  return "'" + Shortened(text, kShown) + "'";
}

// Reads the header's JSON without building a tree, since a header may hold a million tensors.
// Accepts only the members that the format names.
class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  HeaderReader(SafetensorsHeader* header, std::string name)
      : header_(header), name_(std::move(name)) {}

  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("a boolean"); }
  bool number_integer(number_integer_t value) override {
    return Unexpected(fmt::format("the number {}", value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    return Unexpected("the number " + text.substr(0, 40));
  }
  bool binary(binary_t&) override { return Unexpected("binary"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::kShapeList) {
      if (tensor_.shape.size() >= kRankMax || value > static_cast<uint64_t>(INT64_MAX)) {
        return Unexpected(fmt::format("a shape of rank above {} or of size {}", kRankMax, value));
      }
      tensor_.shape.push_back(static_cast<int64_t>(value));
      return true;
    }
    if (place_ != Place::kOffsetsList || offsets_.size() >= 2) {
      return Unexpected(fmt::format("the number {}", value));
    }
    offsets_.push_back(value);
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) {
      header_->metadata.insert_or_assign(member_, std::move(value));
      if (header_->metadata.size() > kMetadataMax) {
        RefuseFile(name_, fmt::format("its __metadata__ has more than {} entries", kMetadataMax));
      }
      return true;
    }
    if (place_ != Place::kTensor || member_ != "dtype") return Unexpected("a string");
    try {
      tensor_.dtype = DtypeFromString(value);
    } catch (Error& error) {
      error.AddContext(fmt::format("{}: tensor {}", name_, Quoted(tensor_name_)));
      throw;
    }
    return true;
  }

  bool start_object(size_t) override {
    if (place_ == Place::kStart) {
      place_ = Place::kTop;
      return true;
    }
    if (place_ != Place::kTop) return Unexpected("an object");
    place_ = tensor_name_ == "__metadata__" ? Place::kMetadata : Place::kTensor;
    tensor_ = {};
    offsets_.clear();
    members_.clear();
    return true;
  }

  bool key(string_t& text) override {
    if (place_ == Place::kTop) {
      tensor_name_ = std::move(text);
      CheckNameLength();
      return true;
    }
    member_ = std::move(text);
    if (place_ != Place::kTensor) return true;
    if (member_ != "dtype" && member_ != "shape" && member_ != "data_offsets") {
      RefuseFile(name_,
                 fmt::format("tensor {} has a member {}, expected dtype, shape and data_offsets",
                             Quoted(tensor_name_), Quoted(member_)));
    }
    if (!members_.insert(member_).second) {
      RefuseFile(name_,
                 fmt::format("tensor {} has two members '{}'", Quoted(tensor_name_), member_));
    }
    return true;
  }

  bool start_array(size_t) override {
    if (place_ == Place::kTensor && member_ == "shape") {
      place_ = Place::kShapeList;
    } else if (place_ == Place::kTensor && member_ == "data_offsets") {
      place_ = Place::kOffsetsList;
    } else {
      return Unexpected("a list");
    }
    return true;
  }

  bool end_array() override {
    place_ = Place::kTensor;
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor) FinishTensor();
    place_ = place_ == Place::kTop ? Place::kStart : Place::kTop;
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    RefuseFile(name_, fmt::format("its header is not JSON at byte {}", position));
  }

 private:
  enum class Place { kStart, kTop, kMetadata, kTensor, kShapeList, kOffsetsList };

  bool Unexpected(const std::string& found) {
    if (place_ == Place::kStart)
      RefuseFile(name_, "its header is " + found + ", expected an object");
    RefuseFile(
        name_,
        fmt::format("its header has {} at {}{}, expected what the safetensors format says", found,
                    Quoted(tensor_name_), place_ == Place::kTop ? "" : " " + Quoted(member_)));
  }

  void CheckNameLength() {
    if (tensor_name_.size() <= kTensorNameBytesMax) return;
    RefuseFile(name_, fmt::format("tensor {} has a name of {} bytes, expected at most {}",
                                  Quoted(tensor_name_), tensor_name_.size(), kTensorNameBytesMax));
  }

  void FinishTensor() {
    if (members_.size() != 3 || offsets_.size() != 2) {
      RefuseFile(name_, fmt::format("tensor {} lacks dtype, shape or two data_offsets",
                                    Quoted(tensor_name_)));
    }
    if (offsets_[1] < offsets_[0]) {
      RefuseFile(name_, fmt::format("tensor {} ends at byte {} before it begins at {}",
                                    Quoted(tensor_name_), offsets_[1], offsets_[0]));
    }
    tensor_.begin = offsets_[0];
    tensor_.bytes = offsets_[1] - offsets_[0];
    uint64_t expected = DtypeBytes(tensor_.dtype);
    for (int64_t size : tensor_.shape) {
      if (__builtin_mul_overflow(expected, static_cast<uint64_t>(size), &expected)) {
        RefuseFile(name_, fmt::format("tensor {} has a shape of more than 2^64 bytes",
                                      Quoted(tensor_name_)));
      }
    }
    if (expected != tensor_.bytes) {
      RefuseFile(name_, fmt::format("tensor {} has {} bytes, expected {} for {} [{}]",
                                    Quoted(tensor_name_), tensor_.bytes, expected,
                                    ToString(tensor_.dtype), fmt::join(tensor_.shape, ", ")));
    }
    if (!header_->tensors.emplace(tensor_name_, std::move(tensor_)).second) {
      RefuseFile(name_, fmt::format("its header names tensor {} twice", Quoted(tensor_name_)));
    }
  }

  SafetensorsHeader* header_;
  std::string name_;
  Place place_ = Place::kStart;
  std::string tensor_name_;
  std::string member_;
  TensorInfo tensor_;
  std::vector<uint64_t> offsets_;
  std::set<std::string> members_;
};

// Returns the number of bytes of data. Offsets are still relative to the beginning of the data.
uint64_t CheckOffsets(const SafetensorsHeader& header, const std::string& name) {
  using Named = std::pair<const std::string, TensorInfo>;
  std::vector<const Named*> order;
  order.reserve(header.tensors.size());
  for (const Named& entry : header.tensors) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const Named* a, const Named* b) {
    return std::make_pair(a->second.begin, a->second.bytes) <
           std::make_pair(b->second.begin, b->second.bytes);
  });
  uint64_t end = 0;
  const Named* before = nullptr;
  for (const Named* entry : order) {
    const TensorInfo& tensor = entry->second;
    if (tensor.begin > end) {
      RefuseFile(name,
                 fmt::format("a hole of {} bytes before tensor {}, which begins at byte {} of the "
                             "data",
                             tensor.begin - end, Quoted(entry->first), tensor.begin));
    }
    if (tensor.begin < end) {
      RefuseFile(
          name, fmt::format("tensors {} and {} overlap: one ends at byte {} of the data, the other "
                            "begins at {}",
                            Quoted(before->first), Quoted(entry->first), end, tensor.begin));
    }
    end = tensor.begin + tensor.bytes;
    before = entry;
  }
  return end;
}

uint64_t HeaderLength(std::string_view first_bytes, uint64_t file_bytes, const std::string& name) {
  if (file_bytes < kLengthBytes || first_bytes.size() < kLengthBytes) {
    RefuseFile(name, fmt::format("has {} bytes, too few for a safetensors file", file_bytes));
  }
  if (first_bytes.starts_with("version https://git-lfs")) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: is a pointer of Git LFS, and not the file with the weights", name),
                "fetch the files themselves: git lfs pull");
  }
  uint64_t length = 0;
  std::memcpy(&length, first_bytes.data(), kLengthBytes);
  if (length > kHeaderBytesMax) {
    RefuseFile(name, fmt::format("says that its header has {} bytes, expected at most {}", length,
                                 kHeaderBytesMax));
  }
  if (length > file_bytes - kLengthBytes) {
    RefuseFile(name, fmt::format("is truncated: it has {} bytes, and its header alone ends at {}",
                                 file_bytes, length + kLengthBytes));
  }
  return length;
}

std::string ReadFirst(int fd, uint64_t bytes, const fs::path& path) {
  std::string content(bytes, '\0');
  uint64_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(fd, content.data() + done, bytes - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) ThrowErrno(path, "read", errno);
    if (got == 0) RefuseFile(path.string(), "became shorter while it was read");
    done += static_cast<uint64_t>(got);
  }
  return content;
}

}  // namespace

Dtype DtypeFromString(std::string_view name) {
  for (const DtypeRow& row : kDtypes) {
    if (row.name == name) return row.dtype;
  }
  std::vector<std::string_view> known;
  for (const DtypeRow& row : kDtypes) known.push_back(row.name);
  throw Error(ErrorKind::kInput, fmt::format("found dtype {}, expected one of {}",
                                             Quoted(std::string(name)), fmt::join(known, ", ")));
}

std::string_view ToString(Dtype dtype) { return RowOf(dtype).name; }

size_t DtypeBytes(Dtype dtype) { return RowOf(dtype).bytes; }

SafetensorsHeader ParseSafetensorsHeader(std::string_view first_bytes, uint64_t file_bytes,
                                         const std::string& name) {
  const uint64_t length = HeaderLength(first_bytes, file_bytes, name);
  if (first_bytes.size() - kLengthBytes < length) {
    RefuseFile(name, fmt::format("is truncated: {} bytes of a header of {} are there",
                                 first_bytes.size() - kLengthBytes, length));
  }
  SafetensorsHeader header;
  HeaderReader reader(&header, name);
  Json::sax_parse(first_bytes.substr(kLengthBytes, length), &reader);
  header.file_bytes = CheckOffsets(header, name);
  if (__builtin_add_overflow(header.file_bytes, kLengthBytes + length, &header.file_bytes)) {
    RefuseFile(name, "says that it is longer than 2^64 bytes");
  }
  if (file_bytes < header.file_bytes) {
    RefuseFile(name, fmt::format("is truncated: it has {} bytes, expected {} by its header",
                                 file_bytes, header.file_bytes));
  }
  if (file_bytes > header.file_bytes) {
    RefuseFile(name, fmt::format("has {} bytes, expected {} by its header", file_bytes,
                                 header.file_bytes));
  }
  for (auto& [tensor_name, tensor] : header.tensors) tensor.begin += kLengthBytes + length;
  return header;
}

SafetensorsHeader ReadSafetensorsHeader(const fs::path& path) {
  return ReadSafetensorsHeader(UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)),
                               path);
}

SafetensorsHeader ReadSafetensorsHeader(const UniqueFd& fd, const fs::path& path) {
  struct stat info{};
  if (!fd || ::fstat(fd.get(), &info) != 0) {
    throw Error(ErrorKind::kInput, fmt::format("{}: {}", path.string(), std::strerror(errno)),
                "check the path and its permissions");
  }
  if (!S_ISREG(info.st_mode)) RefuseFile(path.string(), "is not a regular file");
  const auto file_bytes = static_cast<uint64_t>(info.st_size);
  const std::string first = ReadFirst(fd.get(), std::min(file_bytes, kLengthBytes), path);
  const uint64_t length = HeaderLength(first, file_bytes, path.string());
  return ParseSafetensorsHeader(ReadFirst(fd.get(), kLengthBytes + length, path), file_bytes,
                                path.string());
}

}  // namespace evald
