#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald::sandbox {

/// A Python program that stays in the sandbox and is asked over its control socket.
struct BoxOptions {
  bool unsafe = false;  ///< without isolation, only with limits
  std::string python = "/usr/bin/python3";
  std::string script;  ///< the program
  std::vector<std::string>
      arguments;  ///< its sys.argv[2:]; sys.argv[1] are its folders of packages
  uint64_t memory_bytes = uint64_t{4} << 30;
  uint64_t tmpfs_bytes = uint64_t{64} << 20;  ///< of /tmp, the one folder that it may write
};

/// The process of a contained Python program. It ends with this object.
class BoxProcess {
 public:
  virtual ~BoxProcess() = default;
  virtual int control() const = 0;  ///< a stream socket
  virtual int errors() const = 0;   ///< its standard output and standard error
  /// Ends the process, after `grace_ms` by force. Returns its wait status; -1 if it is unknown.
  virtual int Stop(int grace_ms) = 0;
  /// {"python": version, "packages": {name: version}} of what is installed for it, told by no code
  /// of the program
  virtual Json Installed() const = 0;
};

/// Starts a program from this process, which must live on in the calling thread: the program ends
/// with it. Throws Error(kInfrastructure) if the interpreter is unusable or the host cannot isolate
/// it.
std::unique_ptr<BoxProcess> StartBoxProcess(const BoxOptions& options);

/// Starts programs for a process that may soon start none itself. It is a process, forked from the
/// calling one, which must have one thread. One program is always started in advance, the first one
/// at once if `at_once`, else with the first call of Make. The process and all its programs end
/// with this object, and with the process that made it. One thread at a time.
class BoxMaker {
 public:
  explicit BoxMaker(const BoxOptions& options, bool at_once = true);
  ~BoxMaker();
  BoxMaker(const BoxMaker&) = delete;
  BoxMaker& operator=(const BoxMaker&) = delete;

  /// Throws like StartBoxProcess.
  std::unique_ptr<BoxProcess> Make();

 private:
  struct Child;
  std::shared_ptr<Child> child_;
};

}  // namespace evald::sandbox
