#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace evald {

/// Makes a folder whose content (a database, prepared tasks, staged checkpoints, sockets) will be
/// trusted, so no one else may have put it there. Makes the folder, and missing folders above it,
/// with mode 0700. Throws Error(kUsage), which names the folder and ends with `remedy`, unless the
/// folder
/// - is a folder and no symbolic link,
/// - belongs to this process's effective user,
/// - may not be written by group or others, and
/// - cannot be exchanged by another user: the folders above it must belong to this user or root,
///   and nobody else may write to them (by the mode or an access control list), unless they have
///   the sticky bit, such as /tmp.
/// This user's own group is trusted, as many systems give each user one, and so is everyone who
/// could exchange the home folder that the password database names.
void MakeOwnFolder(const std::filesystem::path& folder, std::string_view remedy);

/// The same, and also denies others to look into an existing folder (mode 0700).
void MakePrivateFolder(const std::filesystem::path& folder, std::string_view remedy);

/// Why the content of a folder may be another user's work: the folder belongs to another user, or
/// every user may write to it. "" if neither is so, and for a folder that is not there. Links are
/// followed.
std::string WhyNotOwn(const std::filesystem::path& folder);

/// From now on, new files and folders of this process and of its children may not be written by
/// group or others, whatever the umask was.
void DenyOthersWriting();

/// The home folder of this user: $HOME, else the one in the password database (getpwuid_r(3)); ""
/// if neither is an absolute path.
std::filesystem::path HomeFolder();

/// The folder for temporary files: $TMPDIR, or /tmp if that is unset or empty. Throws Error(kUsage)
/// if it is no folder.
std::filesystem::path TmpFolder();

/// The folder of evald in a folder of the XDG base directory specification: UserFolder(
/// "XDG_STATE_HOME", ".local/state") is $XDG_STATE_HOME/evald, else ~/.local/state/evald. "" if the
/// variable is no absolute path and this user has no home folder.
std::filesystem::path UserFolder(const char* variable, const char* below_home);

/// `text` with a leading "~/" replaced by the home folder. Throws Error(kUsage) if there is none.
std::filesystem::path ExpandHome(const std::string& text);

}  // namespace evald
