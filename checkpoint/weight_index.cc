#include "checkpoint/weight_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <tuple>

#include "base/file.h"
#include "base/read_roots.h"
#include "base/text.h"
#include "checkpoint/safetensors.h"
#include "evald/error.h"
#include "evald/json.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kIndexBytesMax = 64 << 20;  // models of 10^12 parameters have about 10 MB
constexpr size_t kShardNameBytesMax = PATH_MAX;
constexpr int kDepthMax = 200;
constexpr const char* kSaveAgain = "save the checkpoint again, or copy it again from where it came";

// Collects the strings of the member "weight_map" of the outermost object. A tree of a hundred
// thousand members would take far more memory than the pairs that are needed.
class IndexReader : public nlohmann::json_sax<Json> {
 public:
  std::vector<IndexEntry> entries;
  bool found = false;
  std::string problem;

  bool null() override { return Scalar("null"); }
  bool boolean(bool) override { return Scalar("a boolean"); }
  bool number_integer(number_integer_t) override { return Scalar("a number"); }
  bool number_unsigned(number_unsigned_t) override { return Scalar("a number"); }
  bool number_float(number_float_t, const string_t&) override { return Scalar("a number"); }
  bool binary(binary_t&) override { return Scalar("binary"); }
  bool string(string_t& value) override {
    if (!in_map_ || depth_ != 2) return Scalar("a string");
    if (value.size() > kShardNameBytesMax) {
      return Fail(fmt::format("maps tensor '{}' to a file name of {} bytes, expected at most {}",
                              key_, value.size(), kShardNameBytesMax));
    }
    entries.push_back({std::move(key_), std::move(value)});
    return true;
  }
  bool start_object(size_t) override {
    const bool is_map = depth_ == 1 && !in_array_ && key_ == "weight_map";
    if (in_map_) return Scalar("an object");
    if (is_map && found) return Fail("has two members \"weight_map\"");
    in_map_ = is_map;
    found = found || is_map;
    return Deeper();
  }
  bool key(string_t& name) override {
    if (in_map_ && name.size() > kTensorNameBytesMax) {
      return Fail(fmt::format("names a tensor '{}' of {} bytes, expected at most {}",
                              Shortened(name, 120), name.size(), kTensorNameBytesMax));
    }
    if (depth_ == 1 || in_map_) key_ = std::move(name);
    return true;
  }
  bool end_object() override {
    --depth_;
    in_map_ = false;
    return true;
  }
  bool start_array(size_t) override {
    if (depth_ == 0) in_array_ = true;
    if (!Scalar("a list")) return false;
    return Deeper();
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return Fail(fmt::format("is not JSON at byte {}", position));
  }

 private:
  bool Deeper() {
    return ++depth_ <= kDepthMax || Fail(fmt::format("is nested deeper than {} levels", kDepthMax));
  }
  bool Scalar(const char* what) {
    if (in_map_)
      return Fail(fmt::format("maps tensor '{}' to {}, expected a file name", key_, what));
    if (depth_ == 1 && !in_array_ && key_ == "weight_map") {
      return Fail(fmt::format("has {} as weight_map, expected an object", what));
    }
    return true;
  }
  bool Fail(std::string what) {
    if (problem.empty()) problem = std::move(what);
    return false;
  }

  int depth_ = 0;
  bool in_map_ = false;
  bool in_array_ = false;
  std::string key_;
};

void CheckNames(const std::vector<IndexEntry>& entries, const std::string& where) {
  for (const IndexEntry& entry : entries) {
    if (!StaysInside(entry.shard)) {
      throw Error(
          ErrorKind::kInput,
          fmt::format("{}: maps tensor '{}' to '{}', expected a file inside the checkpoint's "
                      "folder",
                      where, entry.tensor, entry.shard),
          kSaveAgain);
    }
    if (!entry.shard.ends_with(".safetensors")) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: maps tensor '{}' to '{}', expected a .safetensors file", where,
                              entry.tensor, entry.shard),
                  kSaveAgain);
    }
  }
}

}  // namespace

bool StaysInside(const std::string& name) {
  if (name.empty() || name.find('\0') != std::string::npos) return false;
  const std::vector<std::string> parts = Split(name, '/');
  return std::none_of(parts.begin(), parts.end(), [](const std::string& part) {
    return part.empty() || part == "." || part == "..";
  });
}

std::vector<IndexEntry> ReadWeightIndex(const fs::path& path) {
  return ReadWeightIndex(ReadRoots().OpenFile(path), path);
}

std::vector<IndexEntry> ReadWeightIndex(const UniqueFd& fd, const fs::path& path) {
  const std::string text = ReadFile(fd, path, kIndexBytesMax);
  IndexReader reader;
  const bool whole = Json::sax_parse(text, &reader);
  if (whole && !reader.found) reader.problem = "has no object \"weight_map\"";
  if (!whole && reader.problem.empty()) reader.problem = "is not JSON";
  if (!reader.problem.empty()) {
    throw Error(ErrorKind::kInput, fmt::format("{}: {}", path.string(), reader.problem),
                kSaveAgain);
  }
  CheckNames(reader.entries, path.string());
  std::vector<IndexEntry>& entries = reader.entries;
  std::sort(entries.begin(), entries.end(),
            [](const IndexEntry& a, const IndexEntry& b) { return a.tensor < b.tensor; });
  const auto twice = std::adjacent_find(
      entries.begin(), entries.end(),
      [](const IndexEntry& a, const IndexEntry& b) { return a.tensor == b.tensor; });
  if (twice != entries.end()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: maps tensor '{}' twice", path.string(), twice->tensor),
                kSaveAgain);
  }
  std::sort(entries.begin(), entries.end(), [](const IndexEntry& a, const IndexEntry& b) {
    return std::tie(a.shard, a.tensor) < std::tie(b.shard, b.tensor);
  });
  return std::move(entries);
}

}  // namespace evald
