#pragma once

#include <string_view>

namespace evald::tok {

/// Whether valid UTF-8 text consists of characters alone that NFC leaves as they are whatever
/// stands beside them: starters that do not change and compose with nothing before them. Such a
/// text is in NFC (UAX 15, "Detecting Normalization Forms"). False says nothing. Any thread may
/// call it.
bool IsSurelyNfc(std::string_view text);

}  // namespace evald::tok
