#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "evald/error.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

/// Checkpoint folders for tests, whole ones and broken ones.
namespace evald::testing {

inline void Put(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

/// The bytes of a safetensors file: length, header, data.
inline std::string Safetensors(std::string_view header, std::string_view data) {
  std::string bytes(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  return bytes.append(header).append(data);
}

/// A file with one U8 tensor of that name and content.
inline std::string OneTensor(const std::string& name, std::string_view data) {
  const std::string size = std::to_string(data.size());
  return Safetensors("{\"" + name + R"(":{"dtype":"U8","shape":[)" + size +
                         R"(],"data_offsets":[0,)" + size + "]}}",
                     data);
}

/// config.json, tokenizer.json and one safetensors file with tensor "w".
inline void PutWhole(const std::filesystem::path& folder, std::string_view data = "weights") {
  Put(folder / "config.json", R"({"model_type":"llama"})");
  Put(folder / "tokenizer.json", "{}");
  Put(folder / "model.safetensors", OneTensor("w", data));
}

/// The same with two shards and an index: "a" in the first, "b" in the second.
inline void PutSharded(const std::filesystem::path& folder) {
  Put(folder / "config.json", R"({"model_type":"llama"})");
  Put(folder / "tokenizer.json", "{}");
  Put(folder / "model-00001-of-00002.safetensors", OneTensor("a", "first"));
  Put(folder / "model-00002-of-00002.safetensors", OneTensor("b", "second one"));
  Put(folder / "model.safetensors.index.json",
      R"({"metadata":{"total_size":15},"weight_map":{)"
      R"("a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}})");
}

}  // namespace evald::testing
