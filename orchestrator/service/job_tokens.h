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
  /// Whether an agent that came with a token of `holder` may call itself `name`. Tokens of people
  /// may not use the name of a job's host.
  bool MayBeCalled(const std::string& holder, const std::string& name) const;

  /// A new token for the host, which has no other one from then on. Its agent must bring `gpus`.
  std::string Make(const std::string& host, int gpus = 0);
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
  };
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace evald
