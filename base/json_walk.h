#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "evald/json.h"

namespace evald {

/// Text that can be read from any byte on, such as a large file.
class LongText {
 public:
  virtual ~LongText() = default;
  /// The bytes from `offset` on: as many as are at hand, and none only at the end. Valid until the
  /// next call.
  virtual std::string_view From(uint64_t offset) = 0;
};

/// A LongText of bytes in memory.
class TextInMemory : public LongText {
 public:
  explicit TextInMemory(std::string_view text) : text_(text) {}
  std::string_view From(uint64_t offset) override {
    return text_.substr(std::min<uint64_t>(offset, text_.size()));
  }

 private:
  std::string_view text_;
};

/// The first `bytes` of an open file, of which only 64 KiB are held.
class TextInFile : public LongText {
 public:
  /// `check`, if given, is called before each piece of the file; it may throw. `name` is for
  /// errors.
  TextInFile(const UniqueFd& fd, uint64_t bytes, std::string name,
             std::function<void()> check = nullptr)
      : fd_(fd), bytes_(bytes), name_(std::move(name)), check_(std::move(check)) {}
  /// Throws Error(kInfrastructure) if the file is shorter than it was, or cannot be read.
  std::string_view From(uint64_t offset) override;

 private:
  const UniqueFd& fd_;
  uint64_t bytes_;
  std::string name_;
  std::function<void()> check_;
  std::string window_;
  uint64_t window_at_ = 0;
};

/// Reads up to `bytes` at `offset`; fewer only at the file's end or after an error.
std::string ReadAt(const UniqueFd& fd, uint64_t offset, size_t bytes);

/// A part of a text: bytes [begin, end).
struct TextSpan {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t bytes() const { return end - begin; }
};

/// Walks through JSON and says where its values lie, without holding them: memory does not grow
/// with the text. Each method reads the part of the text that it gets, and checks its grammar. (It
/// does not check that strings are UTF-8.) Throws Error(kInput) "<where>: ... at byte N" for what
/// is no JSON, or nested deeper than 200 levels. One thread at a time.
class JsonWalk {
 public:
  static constexpr size_t kKeyBytesMax = 1024;

  /// `text` outlives this. `where` names the text in errors.
  JsonWalk(LongText* text, std::string where) : text_(text), where_(std::move(where)) {}

  /// The one value in `part`, without the white space around it.
  TextSpan Value(TextSpan part);
  char FirstOf(TextSpan value);  ///< '{', '[', '"', a digit, '-', 't', 'f' or 'n'

  /// Calls `visit` for each member of an object; not at all for any other value. Keys of over
  /// kKeyBytesMax bytes are "". `visit` may use this walk.
  void Members(TextSpan object,
               const std::function<void(const std::string& key, TextSpan value)>& visit);
  /// The same for the items of a list.
  void Items(TextSpan list, const std::function<void(TextSpan item)>& visit);

  /// The value itself, which must not take more than `bytes_max` bytes of text, and not hold more
  /// than `values_max` values and keys.
  Json Parse(TextSpan value, uint64_t bytes_max, size_t values_max = SIZE_MAX);

 private:
  int Peek();
  void Advance() { ++at_; }
  int PeekVisible();
  void Expect(char c);
  TextSpan Skip();
  void SkipString();
  void SkipEscape();
  void SkipNumber();
  void SkipDigits();
  void SkipScalar(int first);
  std::string Copy(TextSpan part);
  [[noreturn]] void Fail(const std::string& expected);

  LongText* text_;
  std::string where_;
  uint64_t at_ = 0;
  uint64_t end_ = 0;  ///< of the part that is being read
  std::string_view window_;
  uint64_t window_at_ = 0;
};

}  // namespace evald
