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

/// The folders below which other people's files may be read. A default one allows every place.
///
/// With folders, a path is followed part by part from the folder that it begins with, each part
/// opened relative to the one before and links read one by one, so that nothing outside is ever
/// opened, looked at or walked through: neither by a name, "..", a link, nor by whoever exchanges a
/// part meanwhile. A link may be absolute and may lead from one folder to another, as long as each
/// begins with one of them, as it is written here or by its real path. Hard links cannot be told
/// from files (fs.protected_hardlinks of the kernel is what forbids them), and mounts inside count
/// as inside.
///
/// Only regular files and folders are opened: opening a pipe or a device can wait or act. None is,
/// with or without folders, of a file system in which the kernel shows processes or itself (/proc,
/// /sys and their like, wherever they are mounted): another process's environment holds keys.
///
/// With folders, a path has at most PATH_MAX bytes, 256 parts and 40 links, what links lead to
/// included. A walk holds two descriptors at most, an open ReadFolder one.
///
/// Errors are Error(kInput). With folders there is one text for a path that is absent, that lies
/// outside and that is of another kind, so that it tells nothing of what lies outside. Copies share
/// what they hold; any thread may use them.
class ReadRoots {
 public:
  ReadRoots() = default;
  /// `folders` are absolute. One that is not there (yet) holds nothing.
  explicit ReadRoots(const std::vector<std::filesystem::path>& folders);

  /// What errors say of a path, with folders.
  static constexpr const char* kNotThere =
      "is not there, or lies outside the folders that this service reads";

  bool anywhere() const { return roots_ == nullptr; }
  /// As they were given; none where anywhere() holds.
  std::vector<std::filesystem::path> folders() const;

  bool HasFile(const std::filesystem::path& path) const;
  bool HasFolder(const std::filesystem::path& path) const;
  /// A regular file, opened for reading.
  UniqueFd OpenFile(const std::filesystem::path& path) const;
  /// The whole of a regular file. Throws for one of more than `bytes_max` too.
  std::string Read(const std::filesystem::path& path, uint64_t bytes_max = UINT64_MAX) const;

  /// Throws the Error of a path that cannot be read; `failure` is an errno, said only where
  /// anywhere() holds.
  [[noreturn]] void Refuse(const std::filesystem::path& path, int failure) const;

 private:
  friend class ReadFolder;
  std::shared_ptr<const read_roots::Roots> roots_;
};

/// A folder of other people's files, opened once: what is read by it later lies in the folder that
/// was opened, whatever its name stands for by then. Names are relative to it and may have several
/// parts; links in it are followed as ReadRoots says. Copies share the descriptor; any thread may
/// use them.
class ReadFolder {
 public:
  ReadFolder() = default;
  /// Opens `path`; throws nothing: exists() says whether there is such a folder.
  explicit ReadFolder(std::filesystem::path path, const ReadRoots& roots);
  /// A folder of one's own, wherever it lies.
  template <typename Path>
    requires std::convertible_to<Path, std::filesystem::path>
  ReadFolder(const Path& path) : ReadFolder(std::filesystem::path(path), ReadRoots()) {}

  bool exists() const { return place_ != nullptr; }
  /// The errno of the opening; 0 where it exists.
  int failure() const { return failure_; }
  /// Its name, for messages: it may stand for another folder by now.
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const ReadRoots& roots() const { return roots_; }

  bool HasFile(const std::string& name) const;
  bool HasFolder(const std::string& name) const;
  /// What is known of the file or folder `name`, links followed; false where there is none.
  bool Stat(const std::string& name, struct stat* info) const;
  UniqueFd OpenFile(const std::string& name) const;
  std::string Read(const std::string& name, uint64_t bytes_max = UINT64_MAX) const;
  /// The names of all entries of the folder `name` ("." for this one), sorted. Throws where it
  /// cannot be listed or has more than `count_max`.
  std::vector<std::string> Names(const std::string& name, size_t count_max) const;
  /// The folder `name` of this one, opened.
  ReadFolder Folder(const std::string& name) const;
  /// Whether the entry `name`, one part, is a link.
  bool IsLink(const std::string& name) const;

 private:
  static std::shared_ptr<const read_roots::Place> OpenAnywhere(int folder, const std::string& name,
                                                               int* failure);

  std::filesystem::path path_;
  ReadRoots roots_;
  std::shared_ptr<const read_roots::Place> place_;
  int failure_ = 0;
};

}  // namespace evald
