#pragma once

namespace evald::tok {

/// Whether `code` is a mark or has a decomposition in today's Unicode but not in version 9. The
/// normal forms of the tokenizers library follow version 9 (its crate
/// unicode-normalization-alignments). They leave such a code point unchanged, and reorder and
/// compose nothing across it.
bool UnknownToNormalForms(char32_t code);

}  // namespace evald::tok
