#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "evald/error.h"

namespace evald {

/// The host of a process, and the token that vouches for it.
struct Witness {
  std::string host;
  std::string owner;    ///< name of the token that the host's agent came with
  bool trusted = true;  ///< the service's own host
};

/// How far one run believes the hosts that work for it. Anyone with a worker token can run an
/// agent. So the word of one agent alone ends no run while another host could do the work. A plain
/// value.
///
/// A refusal says that something can be done nowhere: a checkpoint cannot be loaded, a request can
/// never be answered. It is believed from the service's own host, and once agents of two different
/// tokens say the same. Before that, the host that refused is doubted: it gets nothing more of this
/// run. A refusal of the kind kInfrastructure says that this host cannot do it, for want of room or
/// of a program: others may, however many say so. A failure may be the host's own fault. A host's
/// first failures do not count against the work; after kFailuresMax the host is doubted. A host
/// that holds work and does none is doubted, too. Once two hosts of one token have done so, all
/// hosts of this token are doubted: anyone with a worker token can join under many names. If only
/// doubted hosts are left for the run, doubts are settled: their refusals are believed, now and
/// later.
class HostDoubts {
 public:
  static constexpr int kFailuresMax = 3;

  struct Refusal {
    std::string what;  ///< "load", "task gsm8k"
    ErrorKind kind = ErrorKind::kInput;
    std::string cause;
  };

  /// Whether the refusal is believed.
  bool Refused(const Witness& from, const Refusal& refusal);
  /// Whether a failure on the host counts against the work.
  bool Failed(const Witness& from);
  /// The host keeps others from the work, and does none. It is doubted, even if it was believed
  /// before.
  void Stalled(const Witness& of);
  /// Whether the host gets nothing more of the run.
  bool doubted(const Witness& of) const {
    return !of.trusted && (doubted_.count(of.host) > 0 || doubted_owners_.count(of.owner) > 0);
  }
  const std::set<std::string>& hosts() const { return doubted_; }
  /// Tokens whose hosts are all doubted.
  const std::set<std::string>& owners() const { return doubted_owners_; }
  bool any() const { return !doubted_.empty() || !doubted_owners_.empty(); }
  /// Only doubted hosts are left: they are believed from now on. Returns their refusals.
  std::vector<Refusal> Settle();

 private:
  struct Said {
    std::set<std::string> owners;
    Refusal refusal;
  };
  std::set<std::string> doubted_;
  std::set<std::string> doubted_owners_;
  std::map<std::string, std::set<std::string>> stalled_;  // hosts that did nothing, by owner
  std::set<std::string> believed_;
  std::map<std::string, int> failures_;  // by host
  std::map<std::string, Said> refused_;  // by Refusal::what
};

}  // namespace evald
