#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace evald::tok {

/// A stretch of a text on its way to the model: bytes [begin, end).
struct Piece {
  size_t begin = 0;
  size_t end = 0;
  bool at_start = false;  ///< begins at the beginning of the input
};

/// A text and its pieces from left to right. The buffers are used again for the next text. One
/// thread.
struct Pieces {
  std::string text;
  std::vector<Piece> list;

  /// One piece: the whole text.
  void Reset(std::string_view whole, bool at_start) {
    text.assign(whole);
    list.assign(1, {0, text.size(), at_start});
  }
  std::string_view View(const Piece& piece) const {
    return std::string_view(text).substr(piece.begin, piece.end - piece.begin);
  }

  /// Replaces each piece by the pieces that `split(piece, &list)` adds to a new list.
  template <typename Split>
  void Refine(Split split) {
    spare_list_.clear();
    for (const Piece& piece : list) split(piece, &spare_list_);
    list.swap(spare_list_);
  }

  /// Rewrites each piece: `spell(view of the piece, at_start, &text)` adds its new text.
  template <typename Spell>
  void Rewrite(Spell spell) {
    spare_text_.clear();
    for (Piece& piece : list) {
      const size_t begin = spare_text_.size();
      spell(View(piece), piece.at_start, &spare_text_);
      piece = {begin, spare_text_.size(), piece.at_start};
    }
    text.swap(spare_text_);
  }

 private:
  std::vector<Piece> spare_list_;
  std::string spare_text_;
};

}  // namespace evald::tok
