#pragma once

#include <filesystem>
#include <functional>

#include "base/file.h"
#include "orchestrator/state/database.h"

namespace evald {

/// The database of a state folder, checked when it is opened. A damaged database is set aside under
/// another name (`state.db.damaged-<n>`, its WAL beside it), and a fresh one is made. The fresh one
/// is filled again from the runs' folders. A warning names both. Every process that uses a state
/// folder holds a shared flock on its `state.lock`, so no database is set aside while another
/// process uses it.
struct SoundDatabase {
  UniqueFd lock;  ///< shared; keep it as long as the database is open
  Database database;
  std::filesystem::path set_aside;  ///< the damaged database; empty if there was none
};

/// Opens `<state_dir>/state.db` and brings it to the current schema with `migrate`, which may throw
/// DatabaseDamaged too. Throws Error(kInfrastructure) if the database is damaged while another
/// process uses it, or if it cannot be opened for another cause.
SoundDatabase OpenSoundDatabase(const std::filesystem::path& state_dir,
                                const std::function<void(Database&)>& migrate);

}  // namespace evald
