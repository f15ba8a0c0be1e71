#include "orchestrator/agent/process_book.h"

namespace evald {

void ProcessBook::Started(const ProcessSpec& spec) {
  Entry entry;
  entry.about.id = spec.id;
  entry.about.program = spec.program;
  entry.about.arguments = spec.arguments;
  entry.about.tag = spec.tag;
  processes_[spec.id] = std::move(entry);
}

void ProcessBook::Ended(const std::string& id) { processes_.erase(id); }

void ProcessBook::Sent(const std::string& id, const protocol::Message& message) {
  const auto found = processes_.find(id);
  if (found == processes_.end()) return;
  Entry& entry = found->second;
  if (const auto* lease = std::get_if<protocol::Lease>(&message)) {
    entry.trials.insert({lease->trial, lease->attempt});
    if (entry.about.wants > 0) --entry.about.wants;
  } else if (const auto* job = std::get_if<protocol::Job>(&message)) {
    entry.jobs.insert(job->job);
    if (entry.about.wants > 0) --entry.about.wants;
  } else if (const auto* load = std::get_if<protocol::Load>(&message)) {
    entry.about.loading = true;
    entry.about.fingerprint = load->fingerprint;
    entry.about.loaded = nullptr;
    entry.about.wants = 0;  // wants before a Load are void
  } else if (std::holds_alternative<protocol::Follow>(message)) {
    entry.about.loading = false;  // a Load before it will not be answered
    entry.about.loaded = nullptr;
    entry.about.wants = 0;
  }
}

void ProcessBook::Undelivered(const std::string& id, const protocol::Message& message) {
  const auto found = processes_.find(id);
  if (found == processes_.end()) return;
  Entry& entry = found->second;
  if (const auto* lease = std::get_if<protocol::Lease>(&message)) {
    entry.trials.erase({lease->trial, lease->attempt});
    entry.void_trials.erase({lease->trial, lease->attempt});
    ++entry.about.wants;
  } else if (const auto* job = std::get_if<protocol::Job>(&message)) {
    entry.jobs.erase(job->job);
    entry.void_jobs.erase(job->job);
    ++entry.about.wants;
  } else if (std::holds_alternative<protocol::Load>(message)) {
    entry.about.loading = false;
    entry.about.loaded = nullptr;
  }
}

bool ProcessBook::Received(const std::string& id, const protocol::Message& message) {
  const auto found = processes_.find(id);
  if (found == processes_.end()) return false;
  Entry& entry = found->second;
  protocol::HeldProcess& about = entry.about;
  if (const auto* hello = std::get_if<protocol::Hello>(&message)) {
    if (!hello->waits.empty()) return true;  // the process cannot be given work yet
    about.pid = hello->pid;
    about.engine = hello->engine;
  } else if (const auto* loaded = std::get_if<protocol::Loaded>(&message)) {
    if (about.loading && about.fingerprint == loaded->fingerprint) {
      about.loaded = {{"engine", loaded->engine}, {"report", loaded->report}};
    }
  } else if (const auto* want = std::get_if<protocol::Want>(&message)) {
    about.wants += want->count;
  } else if (const auto* slice = std::get_if<protocol::SliceDone>(&message)) {
    return ReceivedOfTrial(&entry, {slice->trial, slice->attempt}, false);
  } else if (const auto* done = std::get_if<protocol::TrialDone>(&message)) {
    return ReceivedOfTrial(&entry, {done->trial, done->attempt}, true);
  } else if (const auto* failed = std::get_if<protocol::TrialFailed>(&message)) {
    if (failed->trial >= 0) return ReceivedOfTrial(&entry, {failed->trial, failed->attempt}, true);
    about.loading = false;
    about.loaded = nullptr;
  } else if (const auto* shortened = std::get_if<protocol::Shortened>(&message)) {
    return ReceivedOfTrial(&entry, {shortened->trial, shortened->attempt}, false);
  } else if (const auto* revoked = std::get_if<protocol::Revoked>(&message)) {
    entry.void_trials.erase({revoked->trial, revoked->attempt});
    entry.trials.erase({revoked->trial, revoked->attempt});
    return false;
  } else if (const auto* job = std::get_if<protocol::JobDone>(&message)) {
    return ReceivedOfJob(&entry, job->job);
  } else if (const auto* bad = std::get_if<protocol::JobFailed>(&message)) {
    return ReceivedOfJob(&entry, bad->job);
  }
  return true;
}

// A void trial stays until its Revoked: only then are its files at rest.
bool ProcessBook::ReceivedOfTrial(Entry* entry, const Trial& trial, bool ends) {
  if (entry->void_trials.count(trial) > 0) return false;
  if (ends) entry->trials.erase(trial);
  return true;
}

bool ProcessBook::ReceivedOfJob(Entry* entry, int64_t job) {
  entry->jobs.erase(job);
  return entry->void_jobs.erase(job) == 0;
}

std::vector<std::pair<std::string, protocol::Revoke>> ProcessBook::BeginAnew() {
  std::vector<std::pair<std::string, protocol::Revoke>> revokes;
  for (auto& [id, entry] : processes_) {
    for (const Trial& trial : entry.trials) revokes.push_back({id, {trial.first, trial.second}});
    entry.void_trials.merge(entry.trials);
    entry.trials.clear();
    entry.void_jobs.merge(entry.jobs);
    entry.jobs.clear();
  }
  return revokes;
}

std::vector<std::string> ProcessBook::NotAtRest() const {
  std::vector<std::string> ids;
  for (const auto& [id, entry] : processes_) {
    if (!entry.void_trials.empty()) ids.push_back(id);
  }
  return ids;
}

std::vector<protocol::HeldProcess> ProcessBook::Processes() const {
  std::vector<protocol::HeldProcess> processes;
  for (const auto& [id, entry] : processes_) processes.push_back(entry.about);
  return processes;
}

bool ProcessBook::idle() const {
  for (const auto& [id, entry] : processes_) {
    if (!entry.trials.empty() || !entry.jobs.empty()) return false;
  }
  return true;
}

std::vector<std::string> ProcessBook::ids() const {
  std::vector<std::string> ids;
  for (const auto& [id, entry] : processes_) ids.push_back(id);
  return ids;
}

}  // namespace evald
