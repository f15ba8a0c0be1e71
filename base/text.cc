#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

#include "evald/error.h"

namespace evald {
namespace {

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above + 1, row[j - 1] + 1, substituted});
      diagonal = above;
    }
  }
  return row[b.size()];
}

// Length of the valid UTF-8 sequence at `p`, or 0. On 0, `*bad` is the number of bytes to replace:
// the longest prefix that could begin a valid sequence, at least 1 (Unicode 15, table 3-7).
size_t Utf8Sequence(const unsigned char* p, size_t left, size_t* bad) {
  *bad = 1;
  const unsigned char lead = p[0];
  if (lead < 0x80) return 1;
  size_t length = 0;
  unsigned char low = 0x80, high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return 0;
  }
  for (size_t i = 1; i < length; ++i) {
    if (i >= left || p[i] < low || p[i] > high) {
      *bad = i;
      return 0;
    }
    low = 0x80;
    high = 0xBF;
  }
  return length;
}

// `text` with every maximal invalid part rewritten by `invalid`, and every character by `valid`.
template <typename Invalid, typename Valid>
std::string Rewritten(std::string_view text, const Invalid& invalid, const Valid& valid) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    size_t bad = 0;
    const size_t length = Utf8Sequence(p + i, text.size() - i, &bad);
    if (length > 0) {
      valid(text.substr(i, length), &out);
    } else {
      invalid(text.substr(i, bad), &out);
    }
    i += length > 0 ? length : bad;
  }
  return out;
}

void WriteOutBytes(std::string_view bytes, std::string* out) {
  for (const char c : bytes) *out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
}

// The code point of a character from U+0080 to U+FFFF; 0 for others.
unsigned CodePointOf(std::string_view sequence) {
  const auto bits = [&](size_t i, unsigned mask) {
    return static_cast<unsigned char>(sequence[i]) & mask;
  };
  if (sequence.size() == 2) return bits(0, 0x1F) << 6 | bits(1, 0x3F);
  if (sequence.size() == 3) return bits(0, 0x0F) << 12 | bits(1, 0x3F) << 6 | bits(2, 0x3F);
  return 0;
}

// Whether a terminal obeys the character (C1 controls), or shows text in another order or on
// another line after it.
bool ChangesTerminal(unsigned code) {
  return (code >= 0x80 && code < 0xA0) || code == 0x061C || code == 0x200E || code == 0x200F ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

// Appends one character of valid UTF-8, spelled out if a terminal would obey it.
void AppendShown(std::string_view sequence, std::string* out) {
  const auto first = static_cast<unsigned char>(sequence[0]);
  if (first < 0x20 || first == 0x7F) {
    WriteOutBytes(sequence, out);
  } else if (const unsigned code = CodePointOf(sequence); ChangesTerminal(code)) {
    *out += fmt::format("\\u{:04x}", code);
  } else {
    out->append(sequence);
  }
}

}  // namespace

std::string NearestName(std::string_view name, const std::vector<std::string>& candidates) {
  const size_t limit = std::max<size_t>(2, name.size() / 3);
  std::string best;
  size_t best_distance = limit + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = EditDistance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string Suggestion(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string nearest = NearestName(name, candidates);
  return nearest.empty() ? "" : "; did you mean '" + nearest + "'?";
}

std::string HumanBytes(uint64_t bytes) {
  static const char* const kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 5) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string HumanSeconds(double seconds) {
  if (seconds < 10) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

namespace {

using Units = std::vector<std::pair<std::string, double>>;

// "1.5 GB" in the unit whose factor is 1; nothing for another form, a negative number, or one
// (before its unit) above `most`.
std::optional<double> NumberWithUnit(std::string_view text, const Units& units, double most) {
  const std::string_view trimmed = Trim(text);
  double value = 0;
  const auto [end, error] = std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), value);
  const std::string unit(Trim(trimmed.substr(end - trimmed.data())));
  const auto found =
      std::find_if(units.begin(), units.end(), [&](const auto& u) { return u.first == unit; });
  if (error != std::errc() || found == units.end() || !(value >= 0) || value > most)
    return std::nullopt;
  return value * found->second;
}

}  // namespace

uint64_t ParseBytes(std::string_view text) {
  static const Units kUnits = {{"", 1},
                               {"B", 1},
                               {"kB", 1e3},
                               {"KB", 1e3},
                               {"MB", 1e6},
                               {"GB", 1e9},
                               {"TB", 1e12},
                               {"KiB", 1024.0},
                               {"MiB", 1048576},
                               {"GiB", 1073741824},
                               {"TiB", 1099511627776.0}};
  const std::optional<double> bytes = NumberWithUnit(text, kUnits, 1e18);
  if (bytes) return static_cast<uint64_t>(*bytes);
  throw Error(ErrorKind::kUsage,
              fmt::format("found '{}', expected a size such as 64MiB, 1.5GB or 200", text));
}

double ParseSeconds(std::string_view text) {
  static const Units kUnits = {{"", 1}, {"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400}};
  const std::optional<double> seconds = NumberWithUnit(text, kUnits, 1e9);
  if (seconds) return *seconds;
  throw Error(ErrorKind::kUsage,
              fmt::format("found '{}', expected a duration such as 30s, 5min, 2h or 1d", text));
}

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (true) {
    const size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::string Join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string ShellQuoted(std::string_view text) {
  constexpr std::string_view kPlain = "_-+=:,./@%";
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return (c < 128 && std::isalnum(c) != 0) ||
           kPlain.find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  return text;
}

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::string Shortened(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return std::string(text);
  size_t end = bytes_max;
  while (end > 0 && bytes_max - end < 3 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    --end;
  return std::string(text.substr(0, end)) + "…";
}

bool IsUtf8(std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  size_t bad = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t length = Utf8Sequence(p + i, text.size() - i, &bad);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::string ReplaceInvalidUtf8(std::string_view text) {
  return Rewritten(
      text, [](std::string_view, std::string* out) { *out += "\xEF\xBF\xBD"; },
      [](std::string_view sequence, std::string* out) { out->append(sequence); });
}

std::string Printable(std::string_view text) {
  return Rewritten(text, WriteOutBytes, [](std::string_view sequence, std::string* out) {
    if (sequence == "\n" || sequence == "\t") {
      out->append(sequence);
    } else {
      AppendShown(sequence, out);
    }
  });
}

std::string PrintableLine(std::string_view text) {
  return Rewritten(text, WriteOutBytes, [](std::string_view sequence, std::string* out) {
    if (sequence == "\n" || sequence == "\t") {
      *out += sequence == "\n" ? "\\n" : "\\t";
    } else {
      AppendShown(sequence, out);
    }
  });
}

size_t CodePoints(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace evald
