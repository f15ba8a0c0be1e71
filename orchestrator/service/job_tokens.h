#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "http_server/token_auth.h"

namespace evald {

/// The tokens with which agents of launched jobs come. Each holds for one host, has the role
/// worker, and ends with the job. Its holder is called JobHolder (orchestrator/fleet/job_holder.h),
/// and is the agent of `host` and of the further nodes of its job. Any thread.
class JobTokens {
 public:
  /// Names that begin with "<launcher>-" and a digit are of this launcher's hosts from now on.
  void Reserve(const std::string& launcher);
  /// Whether an agent that came with a token of `holder` may call itself `name`: a job's token only
  /// as the job's host, or this name with "-" and a number; other tokens not as any launcher's
  /// host.
  bool MayBeCalled(const std::string& holder, const std::string& name) const;
  /// How many hosts may come with the holder's token; nullopt if it is no token of a job.
  std::optional<int> NodesOf(const std::string& holder) const;

  /// A new token for the hosts of a job, which has no other one from then on. Each agent must bring
  /// `gpus`.
  std::string Make(const std::string& host, int gpus = 0, int nodes = 1);
  /// Takes up a token of an earlier process of this service, by its hash in hexadecimal digits.
  void Restore(const std::string& host, const std::string& hash, int gpus = 0);
  /// Why an agent that came with a token of `holder` and has these devices is of no use; "" if it
  /// is.
  std::string WrongWithDevices(const std::string& holder,
                               const std::vector<std::string>& devices) const;
  void End(const std::string& host);
  /// Hexadecimal; "" for a host without a token.
  std::string HashOf(const std::string& host) const;

  /// For http::TokenAuth::AddChanging. Compares all hashes, each as a whole.
  std::optional<http::Principal> Find(const http::TokenHash& hash) const;

 private:
  struct Entry {
    std::string host;
    http::TokenHash hash;
    int gpus = 0;
    int nodes = 1;
  };
  const Entry* Of(const std::string& holder) const;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  std::vector<std::string> launchers_;
};

}  // namespace evald
