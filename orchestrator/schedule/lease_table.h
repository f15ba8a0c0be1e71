#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/schedule/numbered.h"

namespace evald {

struct LeaseLimits {
  int attempts_max = 3;  ///< failures of one item before it is given up
  /// A lease ends when its holder was silent for this long
  int64_t silence_max_us = 60'000'000;
  /// Losing an item this many times in a row with the same holder at fault counts as one failure. A
  /// device is set aside after as many failures. A device that is not set aside is probably sound,
  /// and the item is what fails.
  int same_holder_max = 3;
  /// An item that is lost with its host has not failed, up to so many times for each failure that
  /// it may have before the last. Beyond these, the item may be what brings hosts down.
  int host_losses_max = 5;
};

/// What may have failed when a process was lost with what it held.
enum class Suspect {
  kItem,    ///< the item that it worked on
  kHolder,  ///< the process itself, for example its device
  kHost     ///< its host, or the agent there: all processes of the host were lost
};

/// A lease that was granted: work on `item`, fenced by `attempt` (from 1).
struct Grant {
  int64_t item = 0;
  int attempt = 0;
};

/// Why an item will not be completed.
struct GivenUp {
  int64_t item = 0;
  int attempts = 0;
  std::string cause;  ///< of the last attempt
};

/// The number of a process that holds leases. The owner of a table numbers processes from 0 on,
/// without gaps worth mentioning: memory grows with the largest number.
using Holder = int;
inline constexpr Holder kNobody = -1;

/// The leases on items, and their holders. One table leases trials to workers, another leases
/// metric jobs to metric processes. A plain value without clock or I/O; times are microseconds of
/// any one clock.
///
/// Invariants: an item has at most one live lease. Attempts of an item only grow. An item that was
/// completed or given up is never leased again. A report changes nothing unless its reporter holds
/// the lease with that attempt.
class LeaseTable {
 public:
  explicit LeaseTable(LeaseLimits limits) : limits_(limits) {}

  /// Queues an item behind those of equal rank; lower ranks go first.
  void Add(int64_t item, int64_t rank);

  /// Adds an item that is leased at once, ahead of all queued ones.
  Grant AddLeased(int64_t item, int64_t rank, Holder holder, int64_t now);

  /// Leases the first queued item to `holder`, or the first that `fits`. Nothing if there is none.
  std::optional<Grant> Lease(Holder holder, int64_t now,
                             const std::function<bool(int64_t item)>& fits = {});

  /// `holder` gave a sign of life.
  void Heard(Holder holder, int64_t now);

  /// Whether this attempt holds the lease, whoever the holder is.
  bool Holds(int64_t item, int attempt) const;
  /// Whether `holder` holds the lease with this attempt. Only then does its report count: item
  /// numbers and attempts alone can be guessed.
  bool Holds(Holder holder, int64_t item, int attempt) const;

  /// The item is done. False, and no change, if `holder` does not hold the lease with this attempt.
  bool Complete(Holder holder, int64_t item, int attempt);

  /// The attempt failed. The item goes to the front of its rank, or is given up when `retry` is
  /// false or it has failed too often. False (and no change) without the lease.
  bool Fail(Holder holder, int64_t item, int attempt, const std::string& cause, bool retry);

  /// `holder` gives the item back, to the front of its rank, without a failure. False (and no
  /// change) without the lease.
  bool GiveBack(Holder holder, int64_t item, int attempt);

  /// The item need not be done any more. It is forgotten, queued or leased, without a failure.
  /// Returns its holder (kNobody if it was queued) and attempt, or nothing if it was neither queued
  /// nor leased.
  std::optional<std::pair<Holder, int>> Revoke(int64_t item);

  /// `holder` is gone: ends all its leases and returns them. The item that it held longest, and
  /// most likely worked on, has failed, if the item may be what failed; the others go back to the
  /// queue. Suspect::kHolder: the first same_holder_max losses in a row with it count as one
  /// failure. Suspect::kHost: see host_losses_max.
  std::vector<Grant> Lose(Holder holder, const std::string& cause,
                          Suspect suspect = Suspect::kItem);

  /// Holders that have been silent for too long, with at least one lease each.
  std::vector<Holder> Silent(int64_t now) const;

  /// Leases of `holder`.
  std::vector<Grant> HeldBy(Holder holder) const;
  /// The same without attempts, in ascending order. Valid until the next change.
  std::span<const int64_t> ItemsOf(Holder holder) const;

  /// The holder of the item, and its attempt.
  std::optional<std::pair<Holder, int>> HolderOf(int64_t item) const;
  /// When `holder` was given the item. Nothing if it does not hold the item.
  std::optional<int64_t> LeasedAt(Holder holder, int64_t item) const;

  bool leased(int64_t item) const;
  /// Whether the item is queued or leased.
  bool has(int64_t item) const { return items_.has(item); }
  size_t queued() const { return queue_.size(); }
  size_t leased() const { return leased_; }
  size_t completed() const { return completed_; }
  const std::vector<GivenUp>& given_up() const { return given_up_; }
  /// Nothing is queued or leased.
  bool idle() const { return queued() == 0 && leased() == 0; }

 private:
  struct Item {
    int64_t rank = 0;
    int64_t place = 0;  ///< among the queued items of its rank
    int attempts = 0;
    int failures = 0;
    Holder failed_with = kNobody;  ///< the last holder that was at fault
    int lost_with_it = 0;          ///< losses in a row with that holder
    int lost_with_hosts = 0;
    Holder holder = kNobody;  ///< nobody: it is queued
    int64_t grant = 0;        ///< the lease's number among all leases ever granted
    int64_t since_us = 0;     ///< when it was given
  };
  struct Process {
    std::vector<int64_t> items;  ///< those that it holds, in ascending order
    std::optional<int64_t> heard_us;
  };
  struct Queued {
    int64_t rank = 0, place = 0, item = 0;
    auto operator<=>(const Queued&) const = default;
  };
  Grant Give(int64_t id, Item* item, Holder holder, int64_t now);
  void Queue(int64_t id, Item* item, int64_t place);
  void EndAttempt(int64_t item, const std::string& cause, bool retry);
  void EndLease(int64_t id, Item* item);
  void GoBack(int64_t item);
  bool Excused(int64_t item, Holder holder, Suspect suspect);
  Process& At(Holder holder);
  const Item* HeldItem(Holder holder, int64_t item) const;

  LeaseLimits limits_;
  Numbered<Item> items_;  // queued and leased ones
  std::set<Queued> queue_;
  std::vector<Process> processes_;  // by number
  std::vector<GivenUp> given_up_;
  size_t leased_ = 0, completed_ = 0;
  int64_t grants_ = 0;
  int64_t last_place_ = 0, first_place_ = 0;  // that were given
};

}  // namespace evald
