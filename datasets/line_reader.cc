#include "datasets/line_reader.h"

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr size_t kPieceBytes = 256 * 1024;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr const char* kWhiteSpace = " \t\r\n\f\v";

}  // namespace

// Unpacks gzip piece by piece. A file may hold several members in sequence.
struct LineReader::Unpacker {
  Unpacker() : packed(kPieceBytes, '\0') {
    if (inflateInit2(&stream, 15 + 32) != Z_OK)
      throw Error(ErrorKind::kInfrastructure, "zlib does not start");
  }
  ~Unpacker() { inflateEnd(&stream); }

  std::string packed;
  z_stream stream{};
  bool in_member = false;
};

LineReader::LineReader(const UniqueFd& fd, std::string name, bool packed, Limits limits,
                       const std::atomic<bool>* cancel)
    : fd_(fd),
      name_(std::move(name)),
      limits_(limits),
      cancel_(cancel),
      unpacker_(packed ? std::make_unique<Unpacker>() : nullptr) {}

LineReader::~LineReader() = default;

void LineReader::Refuse(uint64_t bytes_max, const std::string& where, const char* of,
                        const char* key) const {
  throw Error(ErrorKind::kInput,
              fmt::format("{}: {} has more than {}", where, of, HumanBytes(bytes_max)),
              fmt::format("'{}' sets what is allowed", key));
}

void LineReader::RefusePacked() const {
  throw Error(ErrorKind::kInput, name_ + ": the gzip data is broken or cut short");
}

size_t LineReader::ReadPiece(char* into) {
  ssize_t got = 0;
  do {
    got = ::pread(fd_.get(), into, kPieceBytes, static_cast<off_t>(offset_));
  } while (got < 0 && errno == EINTR);
  if (got < 0)
    throw Error(ErrorKind::kInput, fmt::format("{}: read: {}", name_, std::strerror(errno)));
  file_hash_.Update(into, static_cast<size_t>(got));
  offset_ += static_cast<uint64_t>(got);
  return static_cast<size_t>(got);
}

size_t LineReader::UnpackPiece(char* into) {
  z_stream& stream = unpacker_->stream;
  stream.next_out = reinterpret_cast<Bytef*>(into);
  stream.avail_out = static_cast<uInt>(kPieceBytes);
  while (stream.avail_out == kPieceBytes) {
    if (stream.avail_in == 0) {
      stream.next_in = reinterpret_cast<Bytef*>(unpacker_->packed.data());
      stream.avail_in = static_cast<uInt>(ReadPiece(unpacker_->packed.data()));
      if (stream.avail_in == 0 && (unpacker_->in_member || offset_ == 0)) RefusePacked();
      if (stream.avail_in == 0) break;
    }
    unpacker_->in_member = true;
    const int status = inflate(&stream, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END) RefusePacked();
    if (status != Z_STREAM_END) continue;
    unpacker_->in_member = false;
    inflateReset(&stream);
  }
  return kPieceBytes - stream.avail_out;
}

bool LineReader::Fill() {
  if (cancel_ != nullptr && cancel_->load()) {
    throw Error(ErrorKind::kInfrastructure, "reading the documents was cancelled");
  }
  text_.erase(0, begin_);
  begin_ = 0;
  const size_t had = text_.size();
  text_.resize(had + kPieceBytes);
  const size_t added = unpacker_ ? UnpackPiece(text_.data() + had) : ReadPiece(text_.data() + had);
  text_.resize(had + added);
  ended_ = added == 0;
  return !ended_;
}

void LineReader::Start() {
  if (started_) return;
  started_ = true;
  while (text_.size() < kByteOrderMark.size() && Fill()) {
  }
  began_with_mark_ = text_.starts_with(kByteOrderMark);
  if (began_with_mark_) begin_ = kByteOrderMark.size();
}

bool LineReader::NextLine(std::string_view* line) {
  Start();
  size_t searched = 0;  // bytes of the text not returned yet
  size_t end = text_.find('\n', begin_);
  while (end == std::string::npos && text_.size() - begin_ <= limits_.line_bytes && !ended_) {
    searched = text_.size() - begin_;
    Fill();
    end = text_.find('\n', begin_ + searched);
  }
  if (end == std::string::npos) end = text_.size();
  if (begin_ == text_.size()) return false;
  ++line_;
  if (end - begin_ > limits_.line_bytes) {
    Refuse(limits_.line_bytes, fmt::format("{}:{}", name_, line_), "the line", "limits.line");
  }
  *line = std::string_view(text_).substr(begin_, end - begin_);
  begin_ = std::min(end + 1, text_.size());
  return true;
}

char LineReader::FirstCharacter() {
  Start();
  size_t looked = 0;  // bytes of the text not returned yet
  while (true) {
    const size_t at = text_.find_first_not_of(kWhiteSpace, begin_ + looked);
    if (at != std::string::npos) return text_[at];
    looked = text_.size() - begin_;
    if (looked > limits_.line_bytes)
      Refuse(limits_.line_bytes, name_, "the white space in front", "limits.line");
    if (ended_ || !Fill()) return '\0';
  }
}

std::optional<std::string_view> LineReader::WholeIfSmall(uint64_t bytes_max) {
  Start();
  while (text_.size() - begin_ <= bytes_max && !ended_) Fill();
  if (text_.size() - begin_ > bytes_max) return std::nullopt;
  return std::string_view(text_).substr(begin_);
}

std::string_view LineReader::Rest() {
  Start();
  while (text_.size() - begin_ <= limits_.whole_bytes && !ended_) Fill();
  if (text_.size() - begin_ > limits_.whole_bytes) {
    Refuse(limits_.whole_bytes, name_, "a file that is read whole", "limits.file");
  }
  const std::string_view rest = std::string_view(text_).substr(begin_);
  begin_ = text_.size();
  return rest;
}

std::string LineReader::FileHash() {
  std::string piece(kPieceBytes, '\0');
  while (ReadPiece(piece.data()) > 0) {
  }
  return file_hash_.Hex();
}

}  // namespace evald
