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

/// The database's knowledge of a run that is opened again.
struct RunRecord {
  std::vector<CommittedFile> generations;  ///< by order of commitment
  std::vector<CommittedFile> scores;
  /// By task: document -> index of the file that counts for it.
  std::map<std::string, std::map<int64_t, size_t>> generated;
  std::map<std::string, std::map<int64_t, size_t>> scored;
  std::map<int64_t, int> attempts;  ///< leases ever given, by trial
};

/// The durable state of runs: whose generations and scores count for each document. The first row
/// of a document wins; a later file changes nothing for it. One thread at a time (DatabaseThread).
class RunStore {
 public:
  /// Opens `<state_dir>/state.db`. Creates or migrates it if needed. Refuses a newer schema. A
  /// damaged database is set aside: see damaged().
  explicit RunStore(const std::filesystem::path& state_dir);

  /// Registers a run, or finds it registered. Returns its number. `output` is its folder.
  int64_t OpenRun(const std::string& run, const std::filesystem::path& output);
  void SetState(const std::string& run, const std::string& state);
  RunRecord Load(const std::string& run);

  /// Records that a trial is leased, so that attempt numbers keep growing after a restart.
  void RecordLease(const std::string& run, int64_t trial, int attempt, const std::string& worker);

  /// Makes a file count for those of its documents for which no file counts yet. Returns these
  /// documents. Durable only after the surrounding Transaction has returned.
  std::vector<int64_t> Commit(const std::string& run, FileKind kind, const CommittedFile& file,
                              const std::vector<int64_t>& documents);

  /// Drops rows of documents that no file's row supports or that one contradicts. A database whose
  /// pages are well formed may still hold a wrong number. Returns the number of dropped rows.
  int64_t DropUnfounded(const std::string& run);

  /// The file is lost or damaged: it no longer counts for any document.
  void Forget(const std::string& run, FileKind kind, const std::string& path);

  Database& database() { return sound_.database; }
  /// The new name of a damaged database that was set aside when this one was opened; empty if there
  /// was none.
  const std::filesystem::path& damaged() const { return sound_.set_aside; }

 private:
  SoundDatabase sound_;
  Database& database_ = sound_.database;
};

}  // namespace evald
