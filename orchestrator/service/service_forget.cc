// Removing runs of which nothing was computed, so that submitting and cancelling does not fill the
// disk.
#include "base/log.h"
#include "orchestrator/service/service.h"

namespace evald {
namespace {

// Runs that are removed after one look.
constexpr int kAtOnce = 200;
// The part of the quota that may be exceeded, so that not each end of a run looks through all runs
// of its user.
constexpr int kExceeded = 10;

}  // namespace

// Called when a run of the user has ended without a result.
void Service::ForgetUnused(const std::string& user) {
  const int most = options_.unused_per_user_max;
  if (user.empty() || ++unused_since_[user] <= most / kExceeded) return;
  unused_since_.erase(user);
  auto rows = std::make_shared<std::vector<RunRow>>();
  database_->Post(
      [user, most, rows](RunStore& store) {
        *rows = service_store::UnusedRuns(store.database(), user, most, kAtOnce);
      },
      [this, rows] {
        for (const RunRow& row : *rows) Forget(row);
      });
}

// The folder goes first: a run whose row is gone is taken up again from its folder. If this process
// is killed between the two, the row is still there, and the removal is repeated.
void Service::Forget(const RunRow& row) {
  const bool in_use = queue_.Find(row.run) != nullptr || resuming_.count(row.run) > 0;
  if (stopping_ || in_use || !forgetting_.insert(row.run).second) return;
  auto removed = std::make_shared<bool>(false);
  files_->Post([row, removed] { *removed = RunDirectory::Remove(row.output, row.run); },
               [this, id = row.run, removed](const std::optional<Error>& error) {
                 if (error) log::Warn("run {} is not removed: {}", id, error->what());
                 if (!*removed) {
                   forgetting_.erase(id);
                   return;
                 }
                 database_->Post(
                     [id](RunStore& store) { service_store::RemoveRun(store.database(), id); },
                     [this, id] { forgetting_.erase(id); });
               });
}

}  // namespace evald
