// The reason why a run waits, for people.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "orchestrator/fleet_machine/fleet_machine.h"

namespace evald {
namespace {

// A run tells its reason after so long without a worker
constexpr int64_t kWaitingMicros = 2'000'000;
// A worker that asks for nothing for so long is not one that serves
constexpr int64_t kQuietMicros = 30'000'000;
// A run tells that it waits for its turn after so long without a device
constexpr int64_t kTurnMicros = 30'000'000;
constexpr size_t kNamesMax = 8;  // devices or users that are named

}  // namespace

// Why the device of this worker, which would suit the run, computes nothing. All devices of an
// absent host have the same reason.
std::string FleetMachine::WhyNot(const WorkerSlot& slot, const Run& run, int64_t now) const {
  const Host& host = hosts_.at(slot.host);
  const char* why = host.left                                ? ", which has left"
                    : host.ending && now >= host.ends_us     ? ", whose time limit is over"
                    : !host.here                             ? ", which is away"
                    : host.leaving                           ? ", which is leaving"
                    : slot.state() == WorkerState::kSetAside ? ", where it is set aside"
                    : host.ending                            ? ", whose time limit is near"
                    : OutOfTime(slot, run, now)
                        ? ", whose time limit leaves too little time for a trial"
                    : slot.quiet() ? ", whose worker asks for no work"
                                   : ", whose worker could not be kept running";
  return slot.host + why;
}

// Whether the run needs no worker, or a worker is there that can do what it needs, idle or busy.
bool FleetMachine::IsServed(const Run& run, int64_t now) {
  if (!run.view.needs_workers) return true;
  return std::any_of(workers_.begin(), workers_.end(), [&](WorkerSlot& slot) {
    if (slot.device.empty()) return false;
    if (slot.quiet() && slot.quiet_us == 0) slot.quiet_us = now;
    if (slot.quiet() && now - slot.quiet_us >= kQuietMicros) return false;
    const bool works = !slot.held.empty() && hosts_.at(slot.host).here;
    const bool there = slot.kept_running() && slot.state() != WorkerState::kWaiting &&
                       Usable(slot) && !OutOfTime(slot, run, now);
    return (works || there) && Suits(slot, run);
  });
}

// The devices that could do what the run needs, and why they do not.
std::string FleetMachine::WaitsFor(const Run& run, int64_t now) const {
  std::vector<std::string> missing;
  std::map<std::string, std::vector<std::string>> devices;  // by reason
  std::map<std::string, const WorkerSlot*> sorted;
  for (const WorkerSlot& slot : workers_) {
    if (!slot.device.empty() && Suits(slot, run)) sorted[slot.id] = &slot;
  }
  for (const auto& [id, slot] : sorted) {
    if (Usable(*slot) && slot->state() == WorkerState::kWaiting) {
      missing.push_back(fmt::format("{} on host {}", slot->waits, slot->host));
    } else {
      devices[WhyNot(*slot, run, now)].push_back(slot->device);
    }
  }
  for (const auto& [why, names] : devices) {
    const std::string which =
        names.size() > kNamesMax ? fmt::format("{} devices", names.size()) : Join(names, ", ");
    missing.push_back(fmt::format("{} of host {}", which, why));
  }
  if (missing.size() > kNamesMax) {
    missing[kNamesMax] = fmt::format("and {} more", missing.size() - kNamesMax);
    missing.resize(kNamesMax + 1);
  }
  if (!awaited_.empty()) missing.push_back(awaited_);
  const std::string kind =
      run.view.engine ? fmt::format(" of the kind that it began on ({})", run.view.engine->device)
                      : "";
  return fmt::format("a device{}: {}", kind,
                     missing.empty() ? "no host has one" : Join(missing, "; "));
}

// The users whose runs have the devices that would suit the run.
std::string FleetMachine::WaitsForTurn(const Run& run) const {
  std::set<std::string> users;
  for (const WorkerSlot& slot : workers_) {
    const auto holder = runs_.find(slot.run);
    if (!slot.held.empty() && holder != runs_.end() && Suits(slot, run))
      users.insert(holder->second.view.user);
  }
  const bool named = !users.empty() && users.size() <= kNamesMax && users.count("") == 0;
  return "its turn: the devices compute for other runs" +
         (named ? " of " + Join({users.begin(), users.end()}, ", ") : "");
}

// A run waits in silence for a moment, since a host may come back or a worker restart.
void FleetMachine::TellWaiting(int64_t now) {
  for (auto& [number, run] : runs_) {
    const bool waits = !IsServed(run, now);
    if (!waits) {
      run.waits_since_us = 0;
    } else if (run.waits_since_us == 0) {
      run.waits_since_us = now;
    }
    const bool lasts = waits && now - run.waits_since_us >= kWaitingMicros;
    const bool for_turn = !run.view.ending && run.view.needs_workers && run.wants_since_us != 0 &&
                          now - run.wants_since_us >= kTurnMicros;
    std::string what = lasts ? WaitsFor(run, now) : !waits && for_turn ? WaitsForTurn(run) : "";
    if (what == run.waiting) continue;
    run.waiting = what;
    Push(order::TellWaiting{number, std::move(what), lasts});
  }
}

}  // namespace evald
