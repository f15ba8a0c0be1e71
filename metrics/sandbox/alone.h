#pragma once

#include "base/file.h"

namespace evald::sandbox {

/// Turns of this host's programs. Any number runs at a time, each holding a shared turn; a program
/// whose time ran out by the clock is run again in an exclusive one, while no other evald sandbox
/// on this host runs anything.
///
/// Two flocks, on folders that every host has and no program can reach, so that nothing is left
/// behind: a gate, which an exclusive turn keeps closed so that it is not starved, and the turn
/// itself. The kernel frees them with the process. One object per thread.
class HostTurn {
 public:
  /// Waits for as long as others hold theirs, which every program's limits bound; says every ten
  /// minutes in the log who they are. Waiting never fails a run.
  static HostTurn Shared() { return HostTurn(false); }
  static HostTurn Alone() { return HostTurn(true); }

 private:
  explicit HostTurn(bool alone);

  UniqueFd gate_;
  UniqueFd turn_;
};

}  // namespace evald::sandbox
