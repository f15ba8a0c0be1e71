#pragma once

namespace evald::native {

/// The function of the feed-forward part: x * sigmoid(x), x * Phi(x), or the latter with Phi
/// approximated by tanh.
enum class Activation { kSilu, kGelu, kGeluTanh };

}  // namespace evald::native
