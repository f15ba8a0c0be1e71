#pragma once

#include <string_view>

namespace evald::tok {

/// True if NFC certainly leaves the text (valid UTF-8) unchanged. Such a text consists only of
/// starters that do not change and never compose with the character before them (UAX 15, "Detecting
/// Normalization Forms"). If false, the text may or may not be in NFC. Any thread may call it.
bool IsSurelyNfc(std::string_view text);

}  // namespace evald::tok
