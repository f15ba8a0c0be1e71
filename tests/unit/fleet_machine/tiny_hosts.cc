// The made-up hosts of TinyFleet: the steps of their processes, and the ways of messages.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/fleet_machine/tiny_fleet.h"

namespace evald {

// ---- hosts

void TinyFleet::AddHost(const std::string& name, std::vector<std::string> devices,
                        int metric_processes) {
  const bool local = name == "local";
  specs_[name] = {name,
                  local ? "" : name + ".",
                  local,
                  std::move(devices),
                  metric_processes,
                  untrusted.count(name) == 0};
  machine.HostAdded(specs_.at(name), now);
  Settle();
  AgentAnew(name, false);
}

void TinyFleet::AgentAnew(const std::string& name, bool with_processes) {
  std::vector<AdoptedProcess> there;
  for (auto process = processes.begin(); process != processes.end();) {
    TinyProcess& of = *process->second;
    if (of.host != name) {
      ++process;
    } else if (!with_processes || of.dead) {
      process = processes.erase(process);
    } else {
      of.inbox.clear();
      of.outbox.clear();
      of.leases.clear();
      of.jobs.clear();
      AdoptedProcess adopted{of.id,      of.engine, of.profile,   of.on_gpu,
                             of.follows, of.target, std::nullopt, of.asked};
      if (of.loaded) adopted.loaded = of.engine_facts();
      there.push_back(adopted);
      if (!of.engine && prompt) Hello(&of);
      if (of.target && !of.loaded && prompt) Loaded(&of);
      ++process;
    }
  }
  away.erase(name);
  machine.HostAdded(specs_.at(name), now);
  Settle();
  machine.HostReady(name, there, {}, now);
  Settle();
}

void TinyFleet::HostIs(const std::string& name, HostNews news) {
  if (news == HostNews::kAway) away.insert(name);
  if (news == HostNews::kBack) away.erase(name);
  if (news == HostNews::kLeft) {
    std::erase_if(processes, [&](const auto& process) { return process.second->host == name; });
    away.insert(name);
  }
  machine.HostIs(name, news, now);
  Settle();
}

void TinyFleet::HostEnds(const std::string& name, double in_s) {
  machine.HostEnds(name, in_s < 0 ? 0 : now + static_cast<int64_t>(in_s * 1e6), now);
  Settle();
}

// ---- steps of processes

void TinyFleet::Hello(TinyProcess* process) {
  process->engine = true;
  Send(process, [this, id = process->id] { machine.Heard(id, news::Hello{true}, now); });
  if (process->metric_process && prompt) Want(process);
}

void TinyFleet::Loaded(TinyProcess* process) {
  if (process->dead || !process->target) return;
  process->loaded = true;
  Send(process,
       [this, id = process->id, load = *process->target, engine = process->engine_facts()] {
         machine.Heard(id, news::Loaded{load, engine}, now);
       });
  if (prompt) Want(process);
}

void TinyFleet::Want(TinyProcess* process) {
  ++process->asked;
  Send(process, [this, id = process->id] { machine.Heard(id, news::Want{1}, now); });
}

void TinyFleet::Beat(TinyProcess* process) {
  for (auto& [number, run] : runs) {
    if (away.count(process->host) > 0) continue;
    (process->metric_process ? run.machine.MetricProcessHeard(NumberOf(process->id), now)
                             : run.machine.WorkerHeard(NumberOf(process->id), now));
  }
  if (process->metric_process) return;
  if (process->leases.empty()) {
    process->offered = true;
    return Send(process, [this, id = process->id] { machine.Heard(id, news::Idle{}, now); });
  }
  for (const auto& [held, lease] : process->leases) {
    int64_t done = 0;
    for (size_t s = 0; s < lease.next; ++s) done += lease.trial.slices[s].documents.size();
    Send(process, [this, id = process->id, held = held, done, since = lease.since] {
      OnTrialBeat(id, held, done, since);
    });
  }
}

void TinyFleet::EndSlice(TinyProcess* process) {
  if (process->leases.empty()) return;
  auto& [held, lease] = *process->leases.begin();
  if (lease.next < lease.trial.slices.size()) {
    Send(process, [this, id = process->id, held = held, slice = lease.trial.slices[lease.next]] {
      const auto run = runs.find(held.run);
      if (run != runs.end()) Commit(&run->second, id, held, slice);
      Changed(held.run);
      machine.Heard(id, news::Progressed{}, now);
    });
    ++lease.next;
    lease.since = now;
    lease.begun = 1;
  }
  if (lease.next < lease.trial.slices.size()) return;
  Send(process, [this, id = process->id, held = held] { OnTrialEnd(id, held, false, true); });
  process->leases.erase(process->leases.begin());
}

void TinyFleet::FailTrial(TinyProcess* process, bool retry) {
  if (process->leases.empty()) return;
  const HeldTrial held = process->leases.begin()->first;
  Send(process, [this, id = process->id, held, retry] { OnTrialEnd(id, held, true, retry); });
  process->leases.erase(process->leases.begin());
}

void TinyFleet::EndJob(TinyProcess* process, bool fails) {
  if (process->jobs.empty()) return;
  const auto [run, job] = process->jobs.front();
  process->jobs.pop_front();
  Send(process,
       [this, id = process->id, run = run, job = job, fails] { OnJobEnd(id, run, job, fails); });
}

void TinyFleet::SayFailed(TinyProcess* process, const std::string& message, bool retry,
                          bool device) {
  Send(process, [this, id = process->id, message, retry, device] {
    machine.Heard(id, news::Failed{message, retry, device}, now);
  });
}

void TinyFleet::Die(TinyProcess* process, const std::string& how, bool usage) {
  if (process->dead) return;
  process->dead = true;
  process->leases.clear();
  process->jobs.clear();
  Send(process, [this, id = process->id, how, usage] {
    processes.erase(id);  // this message ends the process
    machine.Ended(id, {how, true, usage}, now);
  });
}

// ---- messages

bool TinyFleet::DeliverTo(TinyProcess* process) {
  if (process->inbox.empty() || away.count(process->host) > 0) return false;
  const auto message = std::move(process->inbox.front());
  process->inbox.pop_front();
  if (!process->dead) message();
  ++events;
  return true;
}

bool TinyFleet::DeliverFrom(TinyProcess* process) {
  if (process->outbox.empty() || away.count(process->host) > 0) return false;
  const auto message = std::move(process->outbox.front());
  process->outbox.pop_front();
  message();
  Settle();
  return true;
}

void TinyFleet::Deliver() {
  for (bool any = true; any;) {
    any = false;
    std::vector<std::string> ids;
    for (const auto& [id, process] : processes) ids.push_back(id);
    for (const std::string& id : ids) {
      const auto to = processes.find(id);
      if (to != processes.end()) any = DeliverTo(to->second.get()) || any;
      const auto from = processes.find(id);
      if (from != processes.end()) any = DeliverFrom(from->second.get()) || any;
    }
  }
}

void TinyFleet::Tick() {
  for (auto& [number, run] : runs) {
    if (run.view.ending) continue;
    Revocations(&run);
    const char* why = "it has been silent for too long";
    for (const Holder worker : run.machine.SilentWorkers(now))
      machine.Hung(NameOf(worker), why, now);
    for (const Holder metric_process : run.machine.SilentMetricProcesses(now))
      machine.Hung(NameOf(metric_process), why, now);
    Settle();
    Changed(number);
  }
  machine.Tick(now);
  Settle();
}

void TinyFleet::Pass(double seconds) {
  const int64_t end = now + static_cast<int64_t>(seconds * 1e6);
  while (now < end) {
    now = std::min(end, now + 200'000);
    Tick();
    for (const auto& [id, process] : processes) {
      if (!process->dead && process->engine && away.count(process->host) == 0) {
        for (auto& [number, run] : runs) {
          (process->metric_process ? run.machine.MetricProcessHeard(NumberOf(id), now)
                                   : run.machine.WorkerHeard(NumberOf(id), now));
        }
      }
    }
    Deliver();
  }
}

// ---- stories

TinyProcess& TinyFleet::At(const std::string& id) { return *processes.at(id); }

void TinyFleet::Dies(const std::string& id, const std::string& how, bool usage) {
  Die(&At(id), how, usage);
  Deliver();
}

void TinyFleet::Says(const std::string& id, const ProcessNews& news) {
  machine.Heard(id, news, now);
  Settle();
  Deliver();
}

void TinyFleet::Works(const std::string& id) {
  TinyProcess& process = At(id);
  while (!process.leases.empty()) EndSlice(&process);
  while (!process.jobs.empty()) EndJob(&process);
  if (process.asked == 0 && (process.loaded || process.metric_process)) Want(&process);
  Deliver();
}

void TinyFleet::WorkAll(int rounds) {
  Deliver();
  for (; rounds > 0; --rounds) {
    if (std::all_of(runs.begin(), runs.end(), [](const auto& run) { return run.second.over(); }))
      return;
    std::vector<std::string> ids;
    for (const auto& [id, process] : processes) ids.push_back(id);
    for (const std::string& id : ids) {
      const auto process = processes.find(id);
      if (process != processes.end() && !process->second->dead &&
          away.count(process->second->host) == 0)
        Works(id);
    }
    Pass(0.2);
  }
}

}  // namespace evald
