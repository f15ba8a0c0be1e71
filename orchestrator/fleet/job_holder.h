#pragma once

#include <string>
#include <string_view>

namespace evald {

inline constexpr std::string_view kJobHolder = "job:";

/// The name of the token with which the agent of a launched job comes.
inline std::string JobHolder(const std::string& host) { return std::string(kJobHolder) + host; }
/// Whether a token of this name is of a launched job.
inline bool IsJobHolder(std::string_view owner) { return owner.starts_with(kJobHolder); }

}  // namespace evald
