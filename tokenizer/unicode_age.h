#pragma once

namespace evald::tok {

/// Whether `code` is a mark or has a decomposition in today's Unicode but not in version 9, which
/// the normal forms of the tokenizers library follow (its crate unicode-normalization-alignments).
/// There such a code point is left as it is and nothing is reordered or composed across it.
bool UnknownToNormalForms(char32_t code);

}  // namespace evald::tok
