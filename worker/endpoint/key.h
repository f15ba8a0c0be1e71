#pragma once

#include <filesystem>
#include <string>

namespace evald::endpoint {

/// A new random key, 64 hexadecimal digits.
std::string MakeKey();

/// The key in `file`. If there is no such file, makes a key and writes it there, for this user only
/// (mode 0600). Throws Error(kUsage), which names the file: others may read it, it holds no key of
/// at least 16 visible ASCII characters, or it cannot be read or written.
std::string ReadOrMakeKey(const std::filesystem::path& file);

}  // namespace evald::endpoint
