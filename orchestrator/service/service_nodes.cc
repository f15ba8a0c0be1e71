// The nodes that launchers bring.
#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "orchestrator/service/service.h"
#include "orchestrator/state/node_job_store.h"

namespace evald {
namespace {

NodePool::Earlier EarlierOf(Database& database, const std::string& launcher) {
  NodePool::Earlier earlier;
  earlier.excluded = node_job_store::Excluded(database, launcher);
  for (const NodeJobRow& row : node_job_store::List(database, launcher)) {
    try {
      earlier.jobs.push_back({DecodeNodeJob(row.record), row.token_hash});
    } catch (const Error& e) {  // its agent's token is not known any more, so it ends by itself
      log::Error("launcher '{}', job {}: {}", launcher, row.number, e.what());
    }
  }
  return earlier;
}

}  // namespace

void Service::AddLaunchers(std::vector<LauncherMaker> makers) {
  {
    const std::lock_guard lock(reader_mutex_);
    MakePools(std::move(makers));
  }
  PublishNow();
}

void Service::MakePools(std::vector<LauncherMaker> makers) {
  const std::string identity = node_job_store::Identity(*reader_);
  for (LauncherMaker& maker : makers) {
    const std::string name = maker.options.name;
    maker.options.limits.prefix = fmt::format("evald-{}-{}-", identity, name);
    maker.options.launcher = maker.make(maker.options.limits.prefix);
    NodePool::Records records;
    records.save = [this, name](const NodeJob& job, const std::string& hash,
                                std::function<void()> done) {
      NodeJobRow row{name, job.number, hash, EncodeNodeJob(job)};
      database_->Post(
          [row = std::move(row)](RunStore& store) { node_job_store::Save(store.database(), row); },
          std::move(done));
    };
    records.forget = [this, name](int64_t number) {
      database_->Post([name, number](RunStore& store) {
        node_job_store::Remove(store.database(), name, number);
      });
    };
    records.exclude = [this, name](const node_job_store::ExcludedNodes& nodes) {
      database_->Post([name, nodes](RunStore& store) {
        node_job_store::SaveExcluded(store.database(), name, nodes);
      });
    };
    pools_.push_back(std::make_unique<NodePool>(
        std::move(maker.options), NodePool::Support{&loop_, fleet_.get(), hub_.get(), &job_tokens_},
        std::move(records), EarlierOf(*reader_, name)));
  }
}

NodeDemand Service::DemandNow() {
  NodeDemand demand = fleet_->Demand();
  if (draining_) return {.devices = demand.devices};
  for (auto& [number, run] : queue_.runs()) {
    if (run.workload.empty()) run.workload = WorkloadOf(run.config);
    const std::optional<double> open_s = run.ending() ? std::nullopt : fleet_->OpenSeconds(number);
    if (open_s) workloads_.Saw(run.workload, number, *open_s);
  }
  for (const auto& [number, run] : queue_.runs()) {
    const bool prepared =
        run.evaluation && !run.ending() && run.state == "preparing" && !fleet_->OpenSeconds(number);
    if (!run.waiting() && !prepared) continue;
    if (run.waiting()) ++demand.unknown_runs;  // the fleet has counted those that are prepared
    const std::optional<double> expected_s = workloads_.Expected(run.workload);
    if (!expected_s) continue;
    demand.open_s += *expected_s;
    --demand.unknown_runs;
  }
  return demand;
}

// The devices that one launcher's jobs are to bring need not be asked of the next.
void Service::TickPools() {
  if (pools_.empty()) return;
  NodeDemand demand = DemandNow();
  std::vector<std::string> awaited;
  for (const auto& pool : pools_) {
    pool->Tick(demand);
    demand.devices += pool->DevicesToCome();
    for (std::string& what : pool->Awaited()) awaited.push_back(std::move(what));
  }
  const bool more = std::any_of(pools_.begin(), pools_.end(),
                                [](const auto& pool) { return pool->MoreMayCome(); });
  fleet_->Awaits(evald::Join(awaited, "; "), more);
}

Json Service::LauncherResources() const {
  Json launchers = Json::array();
  for (const auto& pool : pools_) launchers.push_back(pool->View());
  return launchers;
}

void Service::ReleaseNode(const std::string& launcher, const std::string& node, Done<Json> done) {
  loop_.Post([this, launcher, node, done = std::move(done)] {
    for (const auto& pool : pools_) {
      if (pool->name() != launcher) continue;
      if (!pool->Release(node)) {
        return done(Error(ErrorKind::kUsage,
                          fmt::format("launcher '{}' does not exclude node '{}'", launcher, node)));
      }
      Publish();
      return done(pool->View());
    }
    done(Error(ErrorKind::kUsage, fmt::format("no launcher is called '{}'", launcher)));
  });
}

}  // namespace evald
