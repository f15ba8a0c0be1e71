#include "orchestrator/service/job_tokens.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>

#include "base/device_name.h"
#include "base/log.h"
#include "base/random_id.h"
#include "orchestrator/fleet/job_holder.h"

namespace evald {
namespace {

constexpr int kTokenWords = 8;  // 256 bits

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Whether `name` is `host`, or this with a node's number.
bool IsOf(const std::string& name, const std::string& host) {
  if (name == host) return true;
  if (!name.starts_with(host + "-")) return false;
  const std::string_view number = std::string_view(name).substr(host.size() + 1);
  return !number.empty() && std::all_of(number.begin(), number.end(), IsDigit);
}

}  // namespace

void JobTokens::Reserve(const std::string& launcher) {
  const std::lock_guard lock(mutex_);
  launchers_.push_back(launcher);
}

bool JobTokens::MayBeCalled(const std::string& holder, const std::string& name) const {
  if (IsJobHolder(holder)) return IsOf(name, holder.substr(kJobHolder.size()));
  const std::lock_guard lock(mutex_);
  return std::none_of(launchers_.begin(), launchers_.end(), [&](const std::string& launcher) {
    return name.starts_with(launcher + "-") && name.size() > launcher.size() + 1 &&
           IsDigit(name[launcher.size() + 1]);
  });
}

// Of the entries; null if there is none. With the mutex held.
const JobTokens::Entry* JobTokens::Of(const std::string& holder) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return JobHolder(entry.host) == holder;
  });
  return found == entries_.end() ? nullptr : &*found;
}

std::optional<int> JobTokens::NodesOf(const std::string& holder) const {
  if (!IsJobHolder(holder)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const Entry* entry = Of(holder);
  return entry == nullptr ? 0 : entry->nodes;
}

std::string JobTokens::WrongWithDevices(const std::string& holder,
                                        const std::vector<std::string>& devices) const {
  size_t gpus = 0;
  for (const std::string& device : devices) gpus += IsGpu(device) ? PartsOf(device).size() : 0;
  const std::lock_guard lock(mutex_);
  const Entry* entry = Of(holder);
  if (entry == nullptr || gpus >= static_cast<size_t>(entry->gpus)) return "";
  return fmt::format("it has {} of {} GPUs", gpus, entry->gpus);
}

std::string JobTokens::Make(const std::string& host, int gpus, int nodes) {
  const std::string token = RandomId(kTokenWords);
  End(host);
  const std::lock_guard lock(mutex_);
  entries_.push_back({host, http::HashOfToken(token), gpus, nodes});
  return token;
}

void JobTokens::Restore(const std::string& host, const std::string& hash, int gpus) {
  const std::optional<http::TokenHash> parsed = http::ParseTokenHash(hash);
  if (!parsed) return log::Warn("host '{}': the hash of its token is damaged", host);
  End(host);
  const std::lock_guard lock(mutex_);
  entries_.push_back({host, *parsed, gpus});
}

void JobTokens::End(const std::string& host) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const Entry& entry) { return entry.host == host; });
}

std::string JobTokens::HashOf(const std::string& host) const {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) {
    if (entry.host == host) return http::HexOf(entry.hash);
  }
  return "";
}

std::optional<http::Principal> JobTokens::Find(const http::TokenHash& hash) const {
  const std::lock_guard lock(mutex_);
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    const bool equal = ::CRYPTO_memcmp(entry.hash.data(), hash.data(), hash.size()) == 0;
    found = equal ? &entry : found;
  }
  if (found == nullptr) return std::nullopt;
  return http::Principal{JobHolder(found->host), http::Role::kWorker};
}

}  // namespace evald
