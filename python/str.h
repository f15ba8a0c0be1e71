#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

// Methods of Python's str, for valid UTF-8.
namespace evald::python {

/// strip(), lstrip() and rstrip(): without white space at the ends.
std::string_view Strip(std::string_view text);
std::string_view StripLeft(std::string_view text);
std::string_view StripRight(std::string_view text);

/// strip(chars), of the ends that are asked for.
std::string_view StripCharacters(std::string_view text, std::string_view characters, bool left,
                                 bool right);

/// Gets the parts of a text one by one, so that the caller can bound their number. The part is
/// valid during the call.
using PartVisitor = std::function<void(std::string_view part)>;

/// split(maxsplit=limit) and rsplit: at white space; a negative `limit` is none. rsplit's parts
/// come from right to left.
void Split(std::string_view text, int64_t limit, bool from_right, const PartVisitor& visit);
/// split(separator, limit) and rsplit; `separator` is not empty.
void Split(std::string_view text, std::string_view separator, int64_t limit, bool from_right,
           const PartVisitor& visit);
/// splitlines(keep_ends).
void SplitLines(std::string_view text, bool keep_ends, const PartVisitor& visit);

/// replace(from, to); `from` is not empty.
std::string Replace(std::string_view text, std::string_view from, std::string_view to);

/// isdigit().
bool IsDigits(std::string_view text);

/// Whether the first or last code point is white space; false for "".
bool StartsWithSpace(std::string_view text);
bool EndsWithSpace(std::string_view text);

}  // namespace evald::python
