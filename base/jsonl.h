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

/// Parses one JSON text. Throws Error(kInput) "<where>: ..." that says at which byte and why; a
/// text nested deeper than 200 levels is refused, and so is one of more than `values_max` values
/// and keys: a tree takes some 100 bytes for a value that two bytes of text may hold.
Json ParseJson(std::string_view text, const std::string& where, size_t values_max = SIZE_MAX);

/// Calls `visit(line_number, value)` for each non-blank line of the file, numbered from 1. Throws
/// Error(kInput) that names file and line for a line that is not JSON.
void ForEachJsonLine(const std::filesystem::path& path,
                     const std::function<void(size_t line, Json&& value)>& visit);

/// The member `key` of `object` as a T. Throws Error(kInput) "<where>: ..." when it is absent or of
/// another type, naming the key, the type found and the type expected.
template <typename T>
T Field(const Json& object, const std::string& key, const std::string& where);

/// As Field, but `fallback` when the key is absent or null.
template <typename T>
T FieldOr(const Json& object, const std::string& key, T fallback, const std::string& where);

/// Throws the Error of Field for a wrong type. Not called directly.
[[noreturn]] void ThrowField(const Json& object, const std::string& key, const char* expected,
                             const std::string& where);

}  // namespace evald

#include "base/jsonl_inl.h"
