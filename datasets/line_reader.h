#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/sha256.h"

namespace evald {

/// Reads the text of a data file, plain or packed by gzip, piece by piece: at no time more of it is
/// in memory than a line, or the whole where the whole is asked for. A byte order mark in front is
/// left out. One thread at a time. All methods throw Error(kInput) that names the file for what
/// cannot be read, packed data that is broken, and what has more bytes than is allowed (with the
/// line); Error(kInfrastructure) when `cancel` was set.
class LineReader {
 public:
  struct Limits {
    uint64_t line_bytes = 0;   ///< of a line, without its end
    uint64_t whole_bytes = 0;  ///< of what Rest gives
  };

  /// Reads `fd` from its beginning, whatever was read of it before; both outlive this.
  LineReader(const UniqueFd& fd, std::string name, bool packed, Limits limits,
             const std::atomic<bool>* cancel);
  ~LineReader();

  /// The next line without its '\n'; false at the end. What it gives holds until the next call.
  bool NextLine(std::string_view* line);
  /// The number of that line, from 1.
  size_t line() const { return line_; }
  /// The first character that is not white space, '\0' where there is none, and nothing is read by
  /// that.
  char FirstCharacter();
  /// All that follows if it has at most `bytes_max` bytes, and nothing is read by that; holds until
  /// the next call.
  std::optional<std::string_view> WholeIfSmall(uint64_t bytes_max);
  /// All that follows.
  std::string_view Rest();
  /// The SHA-256 of all of the file's bytes, packed ones as they are. Bytes that the text was not
  /// made of are read for that. To be called last.
  std::string FileHash();

 private:
  struct Unpacker;

  [[noreturn]] void RefusePacked() const;
  void Start();
  // Appends a piece to the text, whose given part makes room; false at the end.
  bool Fill();
  // The bytes that they put there: at most a piece's, none at the end.
  size_t ReadPiece(char* into);
  size_t UnpackPiece(char* into);
  [[noreturn]] void Refuse(uint64_t bytes_max, const std::string& where, const char* of,
                           const char* key) const;

  const UniqueFd& fd_;
  std::string name_;
  Limits limits_;
  const std::atomic<bool>* cancel_;
  std::unique_ptr<Unpacker> unpacker_;  // none for plain text
  uint64_t offset_ = 0;                 // in the file
  Sha256Hasher file_hash_;              // of what lies before offset_
  std::string text_;                    // what was read and not given yet begins at begin_
  size_t begin_ = 0;
  size_t line_ = 0;
  bool started_ = false;
  bool ended_ = false;
};

}  // namespace evald
