#include "orchestrator/fleet/agent_files.h"

namespace evald {
namespace fs = std::filesystem;

void AgentFiles::Begin(const std::string& instance, const std::string& owner) {
  const std::lock_guard lock(mutex_);
  agents_[instance] = {};
  agents_[instance].owner = owner;
  sources_.Begin(instance, owner);
}

bool AgentFiles::IsOf(const std::string& instance, const std::string& owner) const {
  const std::lock_guard lock(mutex_);
  const auto agent = agents_.find(instance);
  return agent != agents_.end() && agent->second.owner == owner;
}

void AgentFiles::End(const std::string& instance) {
  const std::lock_guard lock(mutex_);
  agents_.erase(instance);
  sources_.End(instance);
}

void AgentFiles::Fill(Grants* grants, const std::string& process,
                      const protocol::Message& message) {
  const auto prepare = [grants](const std::string& folder) {
    grants->prepared[fs::path(folder).filename().string()] = folder;
  };
  if (const auto* load = std::get_if<protocol::Load>(&message)) {
    grants->loads[process] = *load;
  } else if (const auto* lease = std::get_if<protocol::Lease>(&message)) {
    for (const protocol::Slice& slice : lease->slices) {
      prepare(slice.prepared);
      grants->slices[{lease->trial, lease->attempt}].insert(slice.file);
    }
  } else if (const auto* job = std::get_if<protocol::Job>(&message)) {
    prepare(job->prepared);
    grants->generations[job->hash] = job->generations;
    grants->scores[job->job] = job->file;
  } else if (const auto* revoke = std::get_if<protocol::Revoke>(&message)) {
    grants->slices.erase({revoke->trial, revoke->attempt});
  }
}

void AgentFiles::Sent(const std::string& instance, const std::string& process,
                      const protocol::Message& message) {
  const std::lock_guard lock(mutex_);
  if (const auto* job = std::get_if<protocol::Job>(&message)) TakeFromOthers(instance, job->job);
  const auto agent = agents_.find(instance);
  if (agent != agents_.end()) Fill(&agent->second, process, message);
}

void AgentFiles::TakeFromOthers(const std::string& instance, int64_t job) {
  for (auto& [other, grants] : agents_) {
    if (other != instance) grants.scores.erase(job);
  }
}

void AgentFiles::Received(const std::string& instance, const protocol::Message& message) {
  const std::lock_guard lock(mutex_);
  const auto agent = agents_.find(instance);
  if (agent == agents_.end()) return;
  Grants& grants = agent->second;
  if (const auto* slice = std::get_if<protocol::SliceDone>(&message)) {
    // What is reported may be committed, and changes no more
    const auto trial = grants.slices.find({slice->trial, slice->attempt});
    if (trial != grants.slices.end()) trial->second.erase(slice->file);
  } else if (const auto* done = std::get_if<protocol::TrialDone>(&message)) {
    grants.slices.erase({done->trial, done->attempt});
  } else if (const auto* failed = std::get_if<protocol::TrialFailed>(&message)) {
    grants.slices.erase({failed->trial, failed->attempt});
  } else if (const auto* job = std::get_if<protocol::JobDone>(&message)) {
    grants.scores.erase(job->job);
  } else if (const auto* bad = std::get_if<protocol::JobFailed>(&message)) {
    grants.scores.erase(bad->job);
  }
}

std::optional<fs::path> AgentFiles::Prepared(const std::string& instance,
                                             const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto agent = agents_.find(instance);
  if (agent == agents_.end()) return std::nullopt;
  const auto found = agent->second.prepared.find(key);
  if (found == agent->second.prepared.end()) return std::nullopt;
  return found->second;
}

std::optional<fs::path> AgentFiles::Checkpoint(const std::string& instance,
                                               const std::string& fingerprint) const {
  const std::lock_guard lock(mutex_);
  const auto agent = agents_.find(instance);
  if (agent == agents_.end()) return std::nullopt;
  for (const auto& [process, load] : agent->second.loads) {
    if (load.fingerprint == fingerprint && !load.directory.empty()) return load.directory;
  }
  return std::nullopt;
}

std::optional<fs::path> AgentFiles::Generations(const std::string& instance,
                                                const std::string& hash) const {
  const std::lock_guard lock(mutex_);
  const auto agent = agents_.find(instance);
  if (agent == agents_.end()) return std::nullopt;
  const auto found = agent->second.generations.find(hash);
  if (found == agent->second.generations.end()) return std::nullopt;
  return found->second;
}

std::optional<UploadGrant> AgentFiles::Upload(const std::string& instance,
                                              const std::string& file) const {
  const std::lock_guard lock(mutex_);
  return Granted(instance, file);
}

bool AgentFiles::Name(const std::string& instance, const std::string& file,
                      const std::function<void()>& give) const {
  std::unique_lock lock(mutex_);
  if (!Granted(instance, file)) return false;
  const auto naming = naming_.insert(file);
  const auto ended = [&] {
    naming_.erase(naming);
    named_.notify_all();
  };
  lock.unlock();
  try {
    give();
  } catch (...) {
    lock.lock();
    ended();
    throw;
  }
  lock.lock();
  ended();
  return true;
}

void AgentFiles::AwaitNamed(const fs::path& file) const {
  std::unique_lock lock(mutex_);
  named_.wait(lock, [&] { return naming_.count(file.string()) == 0; });
}

std::optional<UploadGrant> AgentFiles::Granted(const std::string& instance,
                                               const std::string& file) const {
  const auto agent = agents_.find(instance);
  if (agent == agents_.end()) return std::nullopt;
  for (const auto& [trial, files] : agent->second.slices) {
    if (files.count(file) > 0) return UploadGrant{file, kGenerationsBytesMax};
  }
  for (const auto& [job, scores] : agent->second.scores) {
    if (scores == file) return UploadGrant{file, kScoresBytesMax};
  }
  return std::nullopt;
}

}  // namespace evald
