#include "orchestrator/agent/launched_root.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <system_error>

#include "base/file.h"
#include "base/own_folder.h"
#include "base/random_id.h"
#include "orchestrator/fleet/local_agent.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes kSettled{10};

// Whether an agent worked here, and no longer does. An agent takes its lock soon after it has made
// its folder, so a young folder is left alone.
bool IsLeftOver(const fs::path& folder) {
  std::error_code error;
  const auto changed = fs::last_write_time(folder, error);
  if (error || fs::file_time_type::clock::now() - changed < kSettled) return false;
  const UniqueFd lock(::open((folder / kAgentLock).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  return !lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

LaunchedRoot::LaunchedRoot(const std::string& name) {
  const fs::path parent = TmpFolder() / fmt::format("evald-{}-agents", ::getuid());
  MakePrivateFolder(parent, "set TMPDIR to a folder of your own");
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(parent, error)) {
    if (entry.is_directory(error) && !entry.is_symlink(error) && IsLeftOver(entry.path()))
      fs::remove_all(entry.path(), error);
  }
  path_ = parent / fmt::format("{}-{}", name, RandomId(2));
  MakePrivateFolder(path_, "set TMPDIR to a folder of your own");
}

LaunchedRoot::~LaunchedRoot() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace evald
