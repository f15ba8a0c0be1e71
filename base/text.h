#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace evald {

/// The candidate with the smallest edit distance to `name`; "" if none is near: at a distance of at
/// most 2, or of at most a third of the name's length.
std::string NearestName(std::string_view name, const std::vector<std::string>& candidates);

/// "; did you mean 'x'?" for the nearest candidate, or "".
std::string Suggestion(std::string_view name, const std::vector<std::string>& candidates);

/// Bytes for people: "512 B", "1.5 GiB".
std::string HumanBytes(uint64_t bytes);

/// Seconds for people: "0.4 s", "12 s", "3 min 20 s", "2 h 05 min".
std::string HumanSeconds(double seconds);

/// Parses "64MiB", "1.5 GB", "200" (bytes). Decimal (kB, MB, GB, TB) and binary (KiB, MiB, GiB,
/// TiB) units. Throws Error(kUsage).
uint64_t ParseBytes(std::string_view text);

/// Parses "90", "45 s", "5min", "2h", "1.5 d" into seconds. Throws Error(kUsage).
double ParseSeconds(std::string_view text);

std::vector<std::string> Split(std::string_view text, char separator);
std::string Join(const std::vector<std::string>& parts, std::string_view separator);
std::string_view Trim(std::string_view text);
/// `text` as one word of a POSIX shell.
std::string ShellQuoted(std::string_view text);

/// Whether all bytes of `text` are ASCII, Python's str.isascii().
bool IsAscii(std::string_view text);

/// Whether `text` is valid UTF-8 (no surrogates, no overlong forms, at most U+10FFFF).
bool IsUtf8(std::string_view text);

/// `text` with every maximal invalid part replaced by U+FFFD, as Python's
/// `bytes.decode("utf-8", errors="replace")` does.
std::string ReplaceInvalidUtf8(std::string_view text);

/// `text` if it has at most `bytes_max` bytes; otherwise its beginning of at most so many bytes,
/// ended between two characters, and "…" (three bytes more). For foreign text in messages.
std::string Shortened(std::string_view text, size_t bytes_max);

/// `text` in a form that is safe on a terminal, whatever its source: valid UTF-8, without control
/// characters other than line feed and tab, without line separators (U+2028, U+2029) and without
/// characters that change the direction of writing (U+061C, U+200E, U+200F, U+202A to U+202E,
/// U+2066 to U+2069: Bidi_Control of Unicode). Other characters are spelled out: `\xf3`, `\x1b`,
/// `\u009b`.
std::string Printable(std::string_view text);

/// The same on one line: a line feed becomes `\n`, a tab `\t`. For text within a line: a table's
/// cell, a name in a message, a log entry.
std::string PrintableLine(std::string_view text);

/// Number of Unicode code points in valid UTF-8, Python's len(str).
size_t CodePoints(std::string_view text);

}  // namespace evald
