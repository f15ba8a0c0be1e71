#pragma once
// Common parts of the layers that tests preload: the next definitions of the functions that a layer
// replaces, and raw system calls for the layers' own files, which no layer sees.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace layer {

/// The definition of a function that would be used without this layer.
template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

inline std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The path of an open descriptor; "" if it is no file.
inline std::string PathOf(int fd) {
  char link[64], path[4096];
  ::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const long bytes = ::syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path);
  if (bytes <= 0 || path[0] != '/') return "";
  return std::string(path, static_cast<size_t>(bytes));
}

/// `path` relative to the folder `at`, as an absolute path.
inline std::string Absolute(int at, const char* path) {
  if (path[0] == '/') return path;
  char folder[4096];
  if (at == AT_FDCWD)
    return ::getcwd(folder, sizeof folder) == nullptr ? path : std::string(folder) + "/" + path;
  return PathOf(at) + "/" + path;
}

inline bool Below(const std::string& path, const std::string& root) {
  return !root.empty() && path.size() > root.size() && path.compare(0, root.size(), root) == 0 &&
         path[root.size()] == '/';
}

}  // namespace layer
