#include "metrics/sandbox_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

void Check(bool holds, const char* key, const char* expected, const std::string& where) {
  if (!holds) {
    throw Error(ErrorKind::kUsage, fmt::format("{}: key '{}': expected {}", where, key, expected));
  }
}

/// A number of bytes, or a size such as "256MiB".
uint64_t Bytes(const Json& json, const char* key, uint64_t fallback, const std::string& where) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string()) {
    return FieldOr<uint64_t>(json, key, fallback, where);
  }
  try {
    return ParseBytes(found->get<std::string>());
  } catch (Error& e) {
    throw e.AddContext(fmt::format("{}: key '{}'", where, key));
  }
}

}  // namespace

Json ToJson(const SandboxOptions& options) {
  return {{"unsafe", options.unsafe},
          {"python", options.python},
          {"cpu_seconds", options.cpu_seconds},
          {"wall_seconds", options.wall_seconds},
          {"memory_bytes", options.memory_bytes},
          {"tmpfs_bytes", options.tmpfs_bytes},
          {"output_bytes", options.output_bytes},
          {"processes", options.processes},
          {"allow_processes", options.allow_processes},
          {"allow_ctypes", options.allow_ctypes}};
}

SandboxOptions SandboxOptionsFromJson(const Json& json, const std::string& where) {
  if (!json.is_object()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: found {}, expected an object", where, json.type_name()));
  }
  SandboxOptions options;
  std::vector<std::string> known;
  const Json defaults = ToJson(options);
  for (const auto& [key, value] : defaults.items()) known.push_back(key);
  for (const auto& [key, value] : json.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{}: unknown key '{}'{}", where, key, Suggestion(key, known)));
    }
  }
  try {
    options.unsafe = FieldOr<bool>(json, "unsafe", options.unsafe, where);
    options.python = FieldOr<std::string>(json, "python", options.python, where);
    options.cpu_seconds = FieldOr<double>(json, "cpu_seconds", options.cpu_seconds, where);
    options.wall_seconds = FieldOr<double>(json, "wall_seconds", options.wall_seconds, where);
    options.memory_bytes = Bytes(json, "memory_bytes", options.memory_bytes, where);
    options.tmpfs_bytes = Bytes(json, "tmpfs_bytes", options.tmpfs_bytes, where);
    options.output_bytes = Bytes(json, "output_bytes", options.output_bytes, where);
    options.processes = FieldOr<int>(json, "processes", options.processes, where);
    options.allow_processes =
        FieldOr<bool>(json, "allow_processes", options.allow_processes, where);
    options.allow_ctypes = FieldOr<bool>(json, "allow_ctypes", options.allow_ctypes, where);
  } catch (const Error& e) {
    throw Error(ErrorKind::kUsage, e.message(), e.remedy());
  }
  Check(!options.python.empty() && options.python[0] == '/', "python", "an absolute path", where);
  Check(options.cpu_seconds > 0 && options.cpu_seconds <= 3600, "cpu_seconds",
        "more than 0, at most 3600", where);
  Check(options.wall_seconds > 0 && options.wall_seconds <= 86400, "wall_seconds",
        "more than 0, at most 86400", where);
  Check(options.memory_bytes >= 16ull << 20, "memory_bytes", "at least 16 MiB", where);
  Check(options.tmpfs_bytes >= 4096, "tmpfs_bytes", "at least 4096", where);
  Check(options.processes >= 1 && options.processes <= 4096, "processes", "1 to 4096", where);
  return options;
}

}  // namespace evald
