#include "base/json_walk.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr size_t kLevelsMax = 200;
constexpr size_t kWindowBytes = 64 << 10;

bool IsJsonDigit(int c) { return c >= '0' && c <= '9'; }
bool IsJsonHexDigit(int c) {
  return IsJsonDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool IsPlain(char c) { return c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20; }
bool IsJsonBlank(int c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

std::string ReadAt(const UniqueFd& fd, uint64_t offset, size_t bytes) {
  std::string text(bytes, '\0');
  size_t got = 0;
  while (got < bytes) {
    const ssize_t count =
        ::pread(fd.get(), text.data() + got, bytes - got, static_cast<off_t>(offset + got));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    got += static_cast<size_t>(count);
  }
  text.resize(got);
  return text;
}

std::string_view TextInFile::From(uint64_t offset) {
  if (check_) check_();
  if (offset >= bytes_) return {};
  if (offset < window_at_ || offset - window_at_ >= window_.size()) {
    window_at_ = offset;
    window_ = ReadAt(fd_, offset, std::min<uint64_t>(kWindowBytes, bytes_ - offset));
    if (window_.empty())
      throw Error(ErrorKind::kInfrastructure, fmt::format("{}: is shorter than it was", name_));
  }
  return std::string_view(window_).substr(offset - window_at_);
}

void JsonWalk::Fail(const std::string& expected) {
  throw Error(ErrorKind::kInput,
              fmt::format("{}: not JSON at byte {}: expected {}", where_, at_, expected));
}

// The byte at at_, or -1 at the end.
int JsonWalk::Peek() {
  if (at_ >= end_) return -1;
  if (at_ < window_at_ || at_ - window_at_ >= window_.size()) {
    window_ = text_->From(at_);
    window_at_ = at_;
    if (window_.empty()) return -1;
  }
  return static_cast<unsigned char>(window_[at_ - window_at_]);
}

int JsonWalk::PeekVisible() {
  while (IsJsonBlank(Peek())) Advance();
  return Peek();
}

void JsonWalk::Expect(char c) {
  if (PeekVisible() != c) Fail(fmt::format("'{}'", c));
  Advance();
}

void JsonWalk::SkipEscape() {
  const int c = Peek();
  if (c < 0 || std::string_view("\"\\/bfnrtu").find(static_cast<char>(c)) == std::string::npos)
    Fail("an escape such as \\n");
  Advance();
  for (int i = 0; c == 'u' && i < 4; ++i) {
    if (!IsJsonHexDigit(Peek())) Fail("a hexadecimal digit");
    Advance();
  }
}

void JsonWalk::SkipString() {
  Advance();
  for (;;) {
    const int c = Peek();
    if (c == '"') return Advance();
    if (c < 0x20) Fail("the rest of a string");
    Advance();
    if (c == '\\') {
      SkipEscape();
      continue;
    }
    // The plain characters at hand, at once
    const std::string_view rest = window_.substr(at_ - window_at_).substr(0, end_ - at_);
    size_t plain = 0;
    while (plain < rest.size() && IsPlain(rest[plain])) ++plain;
    at_ += plain;
  }
}

void JsonWalk::SkipDigits() {
  if (!IsJsonDigit(Peek())) Fail("a digit");
  while (IsJsonDigit(Peek())) Advance();
}

void JsonWalk::SkipNumber() {
  if (Peek() == '-') Advance();
  if (Peek() == '0') {
    Advance();
  } else {
    SkipDigits();
  }
  if (Peek() == '.') {
    Advance();
    SkipDigits();
  }
  if (Peek() == 'e' || Peek() == 'E') {
    Advance();
    if (Peek() == '+' || Peek() == '-') Advance();
    SkipDigits();
  }
}

void JsonWalk::SkipScalar(int first) {
  if (first == '"') return SkipString();
  if (first == '-' || IsJsonDigit(first)) return SkipNumber();
  const std::string_view word = first == 't' ? "true" : first == 'f' ? "false" : "null";
  for (const char c : word) {
    if (Peek() != c) Fail("a value");
    Advance();
  }
}

// Passes over the value at at_. Counts levels itself: text decides how deep they are.
TextSpan JsonWalk::Skip() {
  std::string open;  // the brackets that are open
  PeekVisible();
  const uint64_t begin = at_;
  for (;;) {
    const int c = PeekVisible();
    if (c == '{' || c == '[') {
      if (open.size() >= kLevelsMax) Fail("no more than 200 levels");
      open += static_cast<char>(c);
      Advance();
      const char close = c == '{' ? '}' : ']';
      if (PeekVisible() == close) {
        Advance();
        open.pop_back();
      } else {
        if (c == '[') continue;
        if (Peek() != '"') Fail("a key");
        SkipString();
        Expect(':');
        continue;
      }
    } else {
      SkipScalar(c);
    }
    while (!open.empty() && PeekVisible() == (open.back() == '{' ? '}' : ']')) {
      Advance();
      open.pop_back();
    }
    if (open.empty()) return {begin, at_};
    Expect(',');
    if (open.back() == '[') continue;
    if (PeekVisible() != '"') Fail("a key");
    SkipString();
    Expect(':');
  }
}

TextSpan JsonWalk::Value(TextSpan part) {
  at_ = part.begin;
  end_ = part.end;
  const TextSpan value = Skip();
  if (PeekVisible() >= 0 || at_ != part.end) Fail("the end");
  return value;
}

char JsonWalk::FirstOf(TextSpan value) {
  at_ = value.begin;
  end_ = value.end;
  const int c = Peek();
  if (c < 0) Fail("a value");
  return static_cast<char>(c);
}

void JsonWalk::Members(TextSpan object,
                       const std::function<void(const std::string& key, TextSpan value)>& visit) {
  if (FirstOf(object) != '{') return;
  Advance();
  if (PeekVisible() == '}') return;
  for (;;) {
    if (PeekVisible() != '"') Fail("a key");
    const TextSpan key = Skip();
    Expect(':');
    const TextSpan value = Skip();
    visit(key.bytes() > kKeyBytesMax ? "" : Parse(key, kKeyBytesMax).get<std::string>(), value);
    at_ = value.end;
    end_ = object.end;
    if (PeekVisible() == '}') return;
    Expect(',');
  }
}

void JsonWalk::Items(TextSpan list, const std::function<void(TextSpan item)>& visit) {
  if (FirstOf(list) != '[') return;
  Advance();
  if (PeekVisible() == ']') return;
  for (;;) {
    const TextSpan item = Skip();
    visit(item);
    at_ = item.end;
    end_ = list.end;
    if (PeekVisible() == ']') return;
    Expect(',');
  }
}

std::string JsonWalk::Copy(TextSpan part) {
  std::string copy;
  end_ = part.end;
  for (at_ = part.begin; at_ < part.end;) {
    if (Peek() < 0) Fail("more text");
    const std::string_view rest = window_.substr(at_ - window_at_);
    const std::string_view piece = rest.substr(0, part.end - at_);
    copy += piece;
    at_ += piece.size();
  }
  return copy;
}

Json JsonWalk::Parse(TextSpan value, uint64_t bytes_max, size_t values_max) {
  if (value.bytes() > bytes_max) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: the value at byte {} has {}, expected at most {}", where_,
                            value.begin, HumanBytes(value.bytes()), HumanBytes(bytes_max)));
  }
  return ParseJson(Copy(value), where_, values_max);
}

}  // namespace evald
