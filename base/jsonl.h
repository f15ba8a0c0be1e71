#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "evald/json.h"

namespace evald {

/// One line of JSON, without a newline. Invalid UTF-8 in strings is replaced by U+FFFD.
std::string ToLine(const Json& value);

/// Parses one JSON text. Throws Error(kInput) "<where>: ..." that says at which byte and why.
/// Refuses a text nested deeper than 200 levels, and a text of more than `values_max` values and
/// keys. The second limit bounds memory: a value of two bytes of text takes about 100 bytes when
/// parsed.
Json ParseJson(std::string_view text, const std::string& where, size_t values_max = SIZE_MAX);

/// The most that one line of a JSON Lines file may hold.
struct JsonLineLimits {
  uint64_t bytes = UINT64_MAX;
  size_t values = SIZE_MAX;  ///< values and keys
};

/// Throws Error(kInput) "<where>: ..." for a line of too many bytes.
void RequireShortLine(std::string_view line, const JsonLineLimits& limits,
                      const std::string& where);

/// Calls `visit(line_number, value)` for each non-blank line of the file, numbered from 1. Throws
/// Error(kInput), which names the file and the line, if a line is not JSON or exceeds a limit.
void ForEachJsonLine(const std::filesystem::path& path,
                     const std::function<void(size_t line, Json&& value)>& visit,
                     const JsonLineLimits& limits = {});

/// The member `key` of `object` as a T. Throws Error(kInput) "<where>: ..." if it is absent or of
/// another type, naming the key, the type found and the type expected.
template <typename T>
T Field(const Json& object, const std::string& key, const std::string& where);

/// Like Field, but returns `fallback` if the key is absent or null.
template <typename T>
T FieldOr(const Json& object, const std::string& key, T fallback, const std::string& where);

/// Throws Field's Error for a wrong type. Not called directly.
[[noreturn]] void ThrowField(const Json& object, const std::string& key, const char* expected,
                             const std::string& where);

}  // namespace evald

#include "base/jsonl_inl.h"
