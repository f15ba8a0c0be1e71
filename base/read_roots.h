#pragma once

#include <sys/stat.h>

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"

namespace evald {

namespace read_roots {
struct Roots;
struct Place;
}  // namespace read_roots

/// The folders below which other people's files may be read. A default object allows every place.
///
/// If folders are given, a path is followed part by part from the folder with which the path
/// begins. Each part is opened relative to the one before, and links are read one by one. So
/// nothing outside is ever opened, looked at or walked through: not by a name, "..", a link, or a
/// part that is exchanged meanwhile. A link may be absolute and may lead from one folder to
/// another, if its target begins with one of them, as given to the constructor or by its real path.
/// Hard links look like files (the kernel's fs.protected_hardlinks forbids them), and mounts inside
/// count as inside.
///
/// Only regular files and folders are opened: opening a pipe or a device can block or act. With or
/// without folders, nothing is opened in a file system in which the kernel shows processes or
/// itself (/proc, /sys and the like, wherever they are mounted): another process's environment
/// holds keys.
///
/// With folders, a path has at most PATH_MAX bytes, 256 parts and 40 links, including the targets
/// of links. A walk holds two descriptors at most, an open ReadFolder one.
///
/// Errors are Error(kInput). With folders, the text is the same for a path that is absent, that
/// lies outside, or that is of another kind, so it tells nothing about the outside. Copies share
/// their state; any thread may use them.
class ReadRoots {
 public:
  ReadRoots() = default;
  /// `folders` are absolute. A folder that does not exist (yet) holds nothing.
  explicit ReadRoots(const std::vector<std::filesystem::path>& folders);

  /// The text of errors about a path, with folders.
  static constexpr const char* kNotThere =
      "is not there, or lies outside the folders that this service reads";

  bool anywhere() const { return roots_ == nullptr; }
  /// The folders as given; none if anywhere().
  std::vector<std::filesystem::path> folders() const;

  bool HasFile(const std::filesystem::path& path) const;
  bool HasFolder(const std::filesystem::path& path) const;
  /// A regular file, opened for reading.
  UniqueFd OpenFile(const std::filesystem::path& path) const;
  /// The whole of a regular file. Also throws for a file of more than `bytes_max`.
  std::string Read(const std::filesystem::path& path, uint64_t bytes_max = UINT64_MAX) const;

  /// Throws the Error for a path that cannot be read. `failure` is an errno, which is told only if
  /// anywhere().
  [[noreturn]] void Refuse(const std::filesystem::path& path, int failure) const;

 private:
  friend class ReadFolder;
  std::shared_ptr<const read_roots::Roots> roots_;
};

/// A folder of other people's files, opened once. Later reads are in the opened folder, whatever
/// its name stands for by then. Names are relative to it and may have several parts. Links in it
/// are followed as in ReadRoots. Copies share the descriptor; any thread may use them.
class ReadFolder {
 public:
  ReadFolder() = default;
  /// Opens `path`. Does not throw: exists() says whether there is such a folder.
  explicit ReadFolder(std::filesystem::path path, const ReadRoots& roots);
  /// A folder of this user, anywhere.
  template <typename Path>
    requires std::convertible_to<Path, std::filesystem::path>
  ReadFolder(const Path& path) : ReadFolder(std::filesystem::path(path), ReadRoots()) {}

  bool exists() const { return place_ != nullptr; }
  /// The errno of the failed open; 0 if it exists.
  int failure() const { return failure_; }
  /// Its name, for messages. The name may stand for another folder by now.
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const ReadRoots& roots() const { return roots_; }

  /// Whether there is such a file or folder. With roots, these two throw if a link on the way leads
  /// nowhere or outside: the file is meant to be there.
  bool HasFile(const std::string& name) const;
  bool HasFolder(const std::string& name) const;
  /// The metadata of the file or folder `name`, with links followed. False if there is none, also
  /// if a link leads nowhere.
  bool Stat(const std::string& name, struct stat* info) const;
  UniqueFd OpenFile(const std::string& name) const;
  std::string Read(const std::string& name, uint64_t bytes_max = UINT64_MAX) const;
  /// The names of all entries of the folder `name` ("." for this one), sorted. Throws if it cannot
  /// be listed or has more than `count_max`.
  std::vector<std::string> Names(const std::string& name, size_t count_max) const;
  /// Opens the folder `name` of this one.
  ReadFolder Folder(const std::string& name) const;
  /// Whether the entry `name`, a single part, is a link.
  bool IsLink(const std::string& name) const;

 private:
  bool LooksAt(const std::string& name, struct stat* info) const;
  static std::shared_ptr<const read_roots::Place> OpenAnywhere(int folder, const std::string& name,
                                                               int* failure);

  std::filesystem::path path_;
  ReadRoots roots_;
  std::shared_ptr<const read_roots::Place> place_;
  int failure_ = 0;
};

}  // namespace evald
