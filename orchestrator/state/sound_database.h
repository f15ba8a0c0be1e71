#pragma once

#include <filesystem>
#include <functional>

#include "base/file.h"
#include "orchestrator/state/database.h"

namespace evald {

/// The database of a state folder, checked when it is opened. One that is damaged is set aside
/// under another name (`state.db.damaged-<n>`, its WAL beside it) and a fresh one is made, to be
/// filled again from the runs' folders; a warning names both. All processes that use a state folder
/// hold a shared flock on its `state.lock`, so that nothing is set aside under another's feet.
struct SoundDatabase {
  UniqueFd lock;  ///< shared; to be kept as long as the database is open
  Database database;
  std::filesystem::path set_aside;  ///< where the damaged one lies; empty when there was none
};

/// Opens `<state_dir>/state.db` and brings it to the current schema with `migrate`, which may throw
/// DatabaseDamaged too. Throws Error(kInfrastructure) when it is damaged while another process uses
/// it, or cannot be opened for another cause.
SoundDatabase OpenSoundDatabase(const std::filesystem::path& state_dir,
                                const std::function<void(Database&)>& migrate);

}  // namespace evald
