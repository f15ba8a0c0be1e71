#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace evald {

/// The offset of the first `needle` in `text` at or behind `from`, or npos, as
/// std::string_view::find gives. It takes time about linear in both sizes, whatever the bytes are.
/// (find takes their product, as for "aa…ab" in "aa…a".) Use it where both come from outside.
size_t FindText(std::string_view text, std::string_view needle, size_t from = 0);

/// The offset of the last `needle` in `text`, or npos, as rfind gives, in linear time, too. A long
/// needle takes a copy of both.
size_t FindLastText(std::string_view text, std::string_view needle);

/// Finds `needle`, which is not empty, in `text` from right to left, without overlaps. All searches
/// together take linear time, and a copy of both for a long needle. `text` and `needle` must
/// outlive this.
class SearchFromRight {
 public:
  SearchFromRight(std::string_view text, std::string_view needle);
  /// The last offset before the one that was found before; npos if there is none.
  size_t Next();

 private:
  std::string_view text_;  ///< what was not searched yet
  std::string_view needle_;
  std::string backward_;  ///< the text and the needle, reversed; empty for a short needle
  std::string backward_needle_;
};

}  // namespace evald
