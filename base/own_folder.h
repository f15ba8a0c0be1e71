#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace evald {

/// What is kept in `folder` (a database, prepared tasks, staged checkpoints, sockets) is trusted
/// later, so nobody else may have put it there. Makes the folder, and what is missing above it,
/// with mode 0700. Throws Error(kUsage), which names the folder and ends with `remedy`, unless the
/// folder
/// - is a folder and no symbolic link,
/// - belongs to this process's effective user,
/// - may not be written by group or others, and
/// - cannot be exchanged by another user: no folder above it may be written by all without the
/// sticky bit, and
///   what lies in one that may be written by all (/tmp, say) belongs to this user or root.
/// A group that may write to a folder above is trusted: many systems give each user a group of
/// their own.
void MakeOwnFolder(const std::filesystem::path& folder, std::string_view remedy);

/// The same, and takes away others' leave to look into a folder that is there (mode 0700).
void MakePrivateFolder(const std::filesystem::path& folder, std::string_view remedy);

/// The home folder of this user: $HOME, else what the password database says (getpwuid_r(3)); ""
/// when neither gives an absolute path.
std::filesystem::path HomeFolder();

/// `text` with a leading "~/" replaced by the home folder. Throws Error(kUsage) where there is
/// none.
std::filesystem::path ExpandHome(const std::string& text);

}  // namespace evald
