#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "evald/json.h"
#include "orchestrator/state/sound_database.h"

namespace evald {

/// A committed file of a run: generations or scores of documents [first, end) of one task.
struct CommittedFile {
  std::string task;
  int64_t trial = 0;
  int attempt = 0;
  int64_t first = 0;
  int64_t end = 0;
  std::string path;  ///< relative to the run's folder
  std::string hash;  ///< XXH3-128
  uint64_t bytes = 0;
  int64_t requests = 0;
  int64_t truncated = 0;  ///< requests whose prompt lost tokens
  int64_t tokens_in = 0;
  int64_t tokens_out = 0;
};

enum class FileKind { kGenerations, kScores };

/// What the database knows of a run when it is opened again.
struct RunRecord {
  std::vector<CommittedFile> generations;  ///< by order of commitment
  std::vector<CommittedFile> scores;
  /// Per task, document -> index of the file that counts for it.
  std::map<std::string, std::map<int64_t, size_t>> generated;
  std::map<std::string, std::map<int64_t, size_t>> scored;
  std::map<int64_t, int> attempts;  ///< leases ever given, by trial
};

/// The durable state of runs: which document's generations and scores count. The first row of a
/// document wins; a later file for it changes nothing. One thread at a time (DatabaseThread).
class RunStore {
 public:
  /// Opens `<state_dir>/state.db`, creating or migrating it. Refuses a newer schema. A damaged one
  /// is set aside: see damaged().
  explicit RunStore(const std::filesystem::path& state_dir);

  /// Registers a run, or finds it registered, and gives its number. `output` is its folder.
  int64_t OpenRun(const std::string& run, const std::filesystem::path& output);
  void SetState(const std::string& run, const std::string& state);
  RunRecord Load(const std::string& run);

  /// Records that a trial is leased, so that attempt numbers grow over restarts.
  void RecordLease(const std::string& run, int64_t trial, int attempt, const std::string& worker);

  /// Makes a file count for those of its documents that have none yet. Returns them. Durable only
  /// when the surrounding Transaction has returned.
  std::vector<int64_t> Commit(const std::string& run, FileKind kind, const CommittedFile& file,
                              const std::vector<int64_t>& documents);

  /// Takes back what no row of a file stands for, or what contradicts one: a database whose pages
  /// are well formed may still hold a wrong number. Returns how many rows went.
  int64_t DropUnfounded(const std::string& run);

  /// Takes back what a file counted for: it is lost or damaged.
  void Forget(const std::string& run, FileKind kind, const std::string& path);

  Database& database() { return sound_.database; }
  /// Where a damaged database was put when this one was opened; empty when there was none.
  const std::filesystem::path& damaged() const { return sound_.set_aside; }

 private:
  SoundDatabase sound_;
  Database& database_ = sound_.database;
};

}  // namespace evald
