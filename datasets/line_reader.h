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

/// Reads the text of a data file, plain or packed by gzip, piece by piece. Only one line is in
/// memory at a time, or the whole text if it is requested. A byte order mark at the beginning is
/// left out. One thread at a time. All methods throw Error(kInput) that names the file if it cannot
/// be read, if packed data is broken, and if a limit is exceeded (with the line). They throw
/// Error(kInfrastructure) if `cancel` is set.
class LineReader {
 public:
  struct Limits {
    uint64_t line_bytes = 0;   ///< of a line, without its end
    uint64_t whole_bytes = 0;  ///< of Rest()
  };

  /// Reads `fd` from its beginning, whatever its file offset is. `fd` and `cancel` must outlive
  /// this.
  LineReader(const UniqueFd& fd, std::string name, bool packed, Limits limits,
             const std::atomic<bool>* cancel);
  ~LineReader();

  /// The next line without its '\n', valid until the next call. False at the end.
  bool NextLine(std::string_view* line);
  /// Whether the text began with a byte order mark. Known once anything is read.
  bool began_with_mark() const { return began_with_mark_; }
  /// The number of that line, from 1.
  size_t line() const { return line_; }
  /// The first character that is not white space, without consuming anything; '\0' if there is
  /// none.
  char FirstCharacter();
  /// The rest of the text if it has at most `bytes_max` bytes, without consuming anything; valid
  /// until the next call.
  std::optional<std::string_view> WholeIfSmall(uint64_t bytes_max);
  /// The rest of the text.
  std::string_view Rest();
  /// The SHA-256 of all of the file's bytes, packed ones as they are. Reads the bytes that were not
  /// needed for the text. Call it last.
  std::string FileHash();

 private:
  struct Unpacker;

  [[noreturn]] void RefusePacked() const;
  void Start();
  // Appends a piece to the text and drops the part already returned. False at the end.
  bool Fill();
  // Both return the number of bytes that they wrote: at most a piece; 0 at the end.
  size_t ReadPiece(char* into);
  size_t UnpackPiece(char* into);
  [[noreturn]] void Refuse(uint64_t bytes_max, const std::string& where, const char* of,
                           const char* key) const;

  const UniqueFd& fd_;
  std::string name_;
  Limits limits_;
  const std::atomic<bool>* cancel_;
  std::unique_ptr<Unpacker> unpacker_;  // null for plain text
  uint64_t offset_ = 0;                 // in the file
  Sha256Hasher file_hash_;              // of the bytes before offset_
  std::string text_;                    // text read and not returned yet begins at begin_
  size_t begin_ = 0;
  size_t line_ = 0;
  bool started_ = false;
  bool began_with_mark_ = false;
  bool ended_ = false;
};

}  // namespace evald
