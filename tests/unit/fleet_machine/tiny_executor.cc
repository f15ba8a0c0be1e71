// The executor of TinyFleet: the effect of each order, and the conditions under which the order may
// be given.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/fleet_machine/tiny_fleet.h"

namespace evald {

struct TinyFleet::Carry {
  TinyFleet* fleet;
  std::string text;

  TinyProcess* To(const std::string& id) {
    const auto found = fleet->processes.find(id);
    if (found != fleet->processes.end()) return found->second.get();
    ADD_FAILURE() << "an order for " << id << ", which does not run";
    return nullptr;
  }
  TinyRun* Of(int64_t run) {
    const auto found = fleet->runs.find(run);
    return found == fleet->runs.end() ? nullptr : &found->second;
  }

  void Start(const std::string& id, const std::string& profile, bool metric_process) {
    if (fleet->unstartable == id)
      return fleet->machine.Ended(id, {"no such program", false}, fleet->now);
    auto& process = fleet->processes[id];
    EXPECT_EQ(process, nullptr) << id << " runs already";
    process = std::make_unique<TinyProcess>();
    process->id = id;
    process->profile = profile;
    process->metric_process = metric_process;
    process->on_gpu = !metric_process && fleet->machine.FindWorker(id)->on_gpu;
    for (const MetricProcessSlot& slot : fleet->machine.metric_processes()) {
      if (slot.id == id) process->host = slot.host;
    }
    if (!metric_process) process->host = fleet->machine.FindWorker(id)->host;
    EXPECT_EQ(fleet->away.count(process->host), 0u) << id << " is started on a host that is away";
    if (fleet->on_start) {
      fleet->on_start(process.get());
    } else if (fleet->prompt) {
      fleet->Hello(process.get());
    }
  }

  void operator()(const order::StartWorker& order) {
    text = fmt::format("start {} {}", order.worker, order.profile);
    Start(order.worker, order.profile, false);
  }
  void operator()(const order::StartMetricProcess& order) {
    text = "start " + order.metric_process;
    Start(order.metric_process, "", true);
  }
  void operator()(const order::Stop& order) {
    text = "stop " + order.id;
    TinyProcess* process = To(order.id);
    if (process == nullptr) return;
    process->inbox.push_back([fleet = fleet, process] {
      EXPECT_TRUE(process->leases.empty()) << process->id << " is stopped at work";
      if (!fleet->ignores_stop) fleet->Die(process, "exit status 0");
    });
  }
  void operator()(const order::Kill& order) {
    text = fmt::format("kill {}: {}", order.id, order.why);
    const auto found = fleet->processes.find(order.id);
    if (found == fleet->processes.end()) return;
    found->second->inbox.push_back(
        [fleet = fleet, process = found->second.get()] { fleet->Die(process); });
  }
  void operator()(const order::Load& order) {
    text = fmt::format("load {} {}", order.worker, order.run);
    TinyProcess* process = To(order.worker);
    TinyRun* run = Of(order.run);
    if (process == nullptr || run == nullptr) return ADD_FAILURE() << "a load of nothing", void();
    EXPECT_TRUE(run->staged);
    EXPECT_EQ(run->view.profile, process->profile);
    process->inbox.push_back([fleet = fleet, process, load = run->view.load] {
      EXPECT_TRUE(process->engine) << process->id << " has no engine to load with";
      process->target = load;
      process->loaded = false;
      process->asked = 0;
      if (fleet->on_load) {
        fleet->on_load(process);
      } else if (fleet->prompt) {
        fleet->Loaded(process);
      }
    });
  }
  void operator()(const order::Follow& order) {
    text = fmt::format("follow {} {}", order.worker, order.run);
    TinyProcess* process = To(order.worker);
    if (process == nullptr) return;
    process->inbox.push_back([process] {
      EXPECT_TRUE(process->engine && process->follows && process->leases.empty());
      process->target.reset();
      process->loaded = false;
      process->asked = 0;
    });
  }
  void operator()(const order::Revoke& order) {
    text = fmt::format("revoke {} {}.{}.{}", order.worker, order.held.run, order.held.trial,
                       order.held.attempt);
    TinyProcess* process = To(order.worker);
    if (process != nullptr)
      process->inbox.push_back([process, held = order.held] { process->leases.erase(held); });
  }
  void operator()(const order::TakeBack& order) {
    text = fmt::format("take back {} {}.{}.{}", order.worker, order.held.run, order.held.trial,
                       order.held.attempt);
    TinyRun* run = Of(order.held.run);
    if (run == nullptr || run->view.ending) return;
    // Its counterpart may have ended it a moment ago
    if (run->machine.TrialGivenBack(NumberOf(order.worker), order.held.trial, order.held.attempt))
      fleet->machine.Answered(answer::Revoked{order.worker, order.held}, fleet->now);
    fleet->Revocations(run);
    fleet->Changed(order.held.run);
  }
  void operator()(const order::HandBack& order) {
    text = fmt::format("hand back {} {}.{}.{}", order.worker, order.held.run, order.held.trial,
                       order.held.attempt);
    TinyRun* run = Of(order.held.run);
    if (run == nullptr || run->view.ending) return;
    for (const ShortenOrder& of : run->machine.HandBack(NumberOf(order.worker), order.held.trial,
                                                        order.held.attempt, fleet->now))
      Shorten(order.held.run, of);
  }
  void operator()(const order::TakeStalled& order) {
    text = fmt::format("stalled {} {}", order.worker, order.run);
    TinyRun* run = Of(order.run);
    if (run == nullptr || run->view.ending) return;
    for (const Grant& grant : run->machine.TakeStalled(NumberOf(order.worker), fleet->now)) {
      fleet->machine.Answered(answer::Revoked{order.worker, {order.run, grant.item, grant.attempt}},
                              fleet->now);
      run->view.doubted.insert(fleet->processes.at(order.worker)->host);
    }
    fleet->Changed(order.run);
  }
  void operator()(const order::TakeJobsBack& order) {
    text = fmt::format("jobs back {} {}{}", order.metric_process, order.run,
                       order.distrust ? " distrust" : "");
    TinyRun* run = Of(order.run);
    if (run == nullptr || run->view.ending) return;
    const Holder holder = NumberOf(order.metric_process);
    for (const Grant& grant : run->machine.jobs().HeldBy(holder))
      EXPECT_TRUE(run->machine.JobGivenBack(holder, grant.item, grant.attempt));
    if (order.distrust) run->view.doubted.insert(fleet->processes.at(order.metric_process)->host);
    fleet->Changed(order.run);
  }
  void Give(const std::string& worker, TinyRun* run, const TrialLease& lease) {
    const HeldTrial held{run->view.number, lease.trial, lease.attempt};
    fleet->CheckLease(run, lease);
    if (TinyProcess* process = To(worker)) {
      process->inbox.push_back([fleet = fleet, process, lease, held, load = run->view.load] {
        if (process->dead) return;
        EXPECT_TRUE(process->loaded && process->target == load)
            << process->id << " holds another checkpoint";
        EXPECT_TRUE(process->asked > 0 || process->offered) << process->id << " did not ask";
        if (process->asked > 0) --process->asked;
        EXPECT_TRUE(process->leases.emplace(held, TinyProcess::Lease{lease, 0, fleet->now}).second);
      });
    }
    fleet->machine.Answered(answer::Leased{worker, held}, fleet->now);
    fleet->Changed(held.run);
  }
  void operator()(const order::LeaseTrial& order) {
    text = fmt::format("lease {} {}", order.worker, order.run);
    TinyRun* run = Of(order.run);
    const bool has = run != nullptr && !run->view.ending && run->view.planned;
    const auto lease =
        has ? run->machine.LeaseTrial(NumberOf(order.worker), fleet->now, order.until_us)
            : std::nullopt;
    if (lease) return Give(order.worker, run, *lease);
    fleet->machine.Answered(answer::NothingToLease{order.worker, order.run}, fleet->now);
  }
  void operator()(const order::Steal& order) {
    text = fmt::format("steal {} {}", order.worker, order.run);
    TinyRun* run = Of(order.run);
    const bool has = run != nullptr && !run->view.ending && run->view.planned;
    const auto shorten =
        has ? run->machine.Steal(NumberOf(order.worker), fleet->now, order.until_us)
            : std::vector<ShortenOrder>();
    for (const ShortenOrder& of : shorten) Shorten(order.run, of);
    if (!shorten.empty()) {
      ++fleet->stolen;
      return fleet->machine.Answered(answer::Stolen{order.worker, order.run}, fleet->now);
    }
    const auto backup =
        has ? run->machine.LeaseBackup(NumberOf(order.worker), fleet->now, order.until_us)
            : std::nullopt;
    if (backup) {
      ++fleet->backups;
      return Give(order.worker, run, *backup);
    }
    fleet->machine.Answered(answer::NothingToLease{order.worker, order.run}, fleet->now);
  }
  // The victim gives back what it has not begun.
  void Shorten(int64_t number, const ShortenOrder& of) {
    TinyProcess* victim = To(NameOf(of.worker));
    if (victim == nullptr) return;
    victim->inbox.push_back([fleet = fleet, victim, number, of] {
      const auto lease = victim->leases.find({number, of.trial, of.attempt});
      if (victim->dead || lease == victim->leases.end()) return;
      auto& slices = lease->second.trial.slices;
      for (size_t s = lease->second.next; s < slices.size(); ++s) {
        if (slices[s].task != of.task || slices[s].documents.first != of.first) continue;
        const int64_t begun = s == lease->second.next ? lease->second.begun : 1;
        slices[s].documents.end =
            std::min(slices[s].documents.end, std::max(of.end, of.first + begun));
        fleet->Send(victim, [fleet, number, of, end = slices[s].documents.end] {
          const auto run = fleet->runs.find(number);
          if (run == fleet->runs.end() || run->second.view.ending) return;
          if (run->second.machine.Shortened(of.worker, of.trial, of.attempt, of.task, of.first,
                                            end)) {
            for (LeasedSlice& slice : run->second.live[of.trial].slices) {
              if (slice.task == of.task && slice.documents.first == of.first)
                slice.documents.end = end;
            }
          }
          fleet->Changed(number);
        });
      }
    });
  }
  void operator()(const order::LeaseJob& order) {
    text =
        fmt::format("job {} {}{}", order.metric_process, order.run, order.own_only ? " own" : "");
    TinyRun* run = Of(order.run);
    TinyProcess* process = To(order.metric_process);
    std::function<bool(const std::string&)> fits;
    if (order.own_only && process != nullptr && run != nullptr) {
      fits = [&](const std::string& file) {
        return fleet->machine.FindWorker(run->makers[file])->host == process->host;
      };
    }
    const bool has = run != nullptr && !run->view.ending && run->view.planned;
    const auto job = has ? run->machine.LeaseJob(NumberOf(order.metric_process), fleet->now, fits,
                                                 order.until_us)
                         : std::nullopt;
    if (!job || process == nullptr) {
      return fleet->machine.Answered(answer::NothingToLease{order.metric_process, order.run},
                                     fleet->now);
    }
    process->inbox.push_back([process, run = order.run, job = *job] {
      if (process->dead) return;
      EXPECT_GT(process->asked, 0) << process->id << " did not ask";
      --process->asked;
      process->jobs.emplace_back(run, job);
    });
    fleet->machine.Answered(answer::JobLeased{order.metric_process, order.run}, fleet->now);
    fleet->Changed(order.run);
  }
  void operator()(const order::TellLoaded& order) {
    text = fmt::format("told {} {}", order.run, order.worker);
    TinyRun* run = Of(order.run);
    TinyProcess* process = To(order.worker);
    if (run == nullptr || process == nullptr || run->view.ending || run->view.engine) return;
    EXPECT_EQ(order.engine, process->engine_facts());
    run->view.engine = order.engine;
    if (run->plans_at_once) {
      PlanSetup setup;
      setup.devices = std::max(1, run->devices);
      setup.costs = {0.01, 0.01};
      run->machine.Plan(setup);
      run->view.planned = true;
    }
    fleet->Changed(order.run);
  }
  void operator()(const order::TellRefused& order) {
    text = fmt::format("refused {} {}: {}", order.run, order.worker, order.why);
    const auto process = fleet->processes.find(order.worker);
    // "" if the process is gone
    const std::string host = process == fleet->processes.end() ? "" : process->second->host;
    if (fleet->untrusted.count(host) == 0) return fleet->Fail(order.run, order.why);
    if (TinyRun* run = Of(order.run)) run->view.doubted.insert(host);
    fleet->Changed(order.run);
  }
  void operator()(const order::TellWorkerLost& order) {
    text = fmt::format("lost {}: {}{}", order.worker, order.why,
                       order.suspect == Suspect::kHolder ? " (at fault)" : "");
    if (order.why.ends_with("away for too long")) ++fleet->abandoned;
    for (auto& [number, run] : fleet->runs)
      run.machine.WorkerLost(NumberOf(order.worker), order.why, order.suspect);
    for (auto& [number, run] : fleet->runs) fleet->Changed(number);
  }
  void operator()(const order::TellMetricProcessLost& order) {
    text = fmt::format("lost {}: {}", order.metric_process, order.why);
    for (auto& [number, run] : fleet->runs)
      run.machine.MetricProcessLost(NumberOf(order.metric_process), order.why, order.suspect);
    for (auto& [number, run] : fleet->runs) fleet->Changed(number);
  }
  void operator()(const order::TellSetAside& order) {
    text = fmt::format("aside {} {}: {}", order.host, order.device, order.why);
  }
  void operator()(const order::TellDevices& order) {
    text = fmt::format("devices {}", order.count);
    for (auto& [number, run] : fleet->runs) {
      run.devices = std::max(1, order.count);
      run.machine.SetDevices(run.devices);
    }
  }
  void operator()(const order::TellNoWorkers& order) {
    text = fmt::format("no workers {}: {}", order.run, order.why);
    TinyRun* run = Of(order.run);
    if (run != nullptr && !(run->view.planned && run->machine.trials_idle()))
      fleet->Fail(order.run, order.why);
  }
  void operator()(const order::TellNoMetricProcesses& order) {
    text = fmt::format("no metric_processes {}: {}", order.run, order.why);
    TinyRun* run = Of(order.run);
    if (run != nullptr && run->view.planned && !run->machine.jobs().idle())
      fleet->Fail(order.run, order.why);
  }
  void operator()(const order::TellNobodyElse& order) {
    text = fmt::format("nobody else for {}", order.run);
    fleet->Fail(order.run, "nobody else is there");
  }
  void operator()(const order::TellVain& order) {
    text = fmt::format("vain {}: {}", order.run, order.why);
    fleet->Fail(order.run, order.why);
  }
  void operator()(const order::TellWaiting& order) {
    text = fmt::format("waiting {}: {}", order.run, order.what);
    if (TinyRun* run = Of(order.run)) run->waiting = order.what;
  }
  void operator()(const order::DropStaged& order) {
    text = "drop " + order.fingerprint;
    for (const auto& [number, run] : fleet->runs)
      EXPECT_NE(run.view.fingerprint, order.fingerprint);
    EXPECT_TRUE(fleet->dropped.insert(order.fingerprint).second);
  }
  void operator()(const order::ShowChange&) {}
  void operator()(const order::StopHosts&) { text = "stop hosts"; }
  void operator()(const order::Ignored& order) {
    text = fmt::format("ignored {}: {} when {}", order.id, order.event, order.state);
  }
};

void TinyFleet::Settle() {
  if (settling_) return;
  settling_ = true;
  for (std::vector<Order> orders = machine.TakeOrders(); !orders.empty();
       orders = machine.TakeOrders()) {
    for (const Order& order : orders) {
      const size_t place = log_.size();
      log_.emplace_back();
      Carry carry{this, ""};
      std::visit(carry, order);
      log_[place] = carry.text;
    }
  }
  settling_ = false;
  ++events;
}

}  // namespace evald
