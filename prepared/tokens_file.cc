#include "prepared/tokens_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "base/fail_point.h"
#include "base/hash.h"
#include "evald/error.h"
#include "prepared/index.h"

namespace evald::prepared {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kTokensMagic = "evald-t2";
constexpr uint64_t kHashBytes = 32;  // hexadecimal digits
constexpr uint64_t kFooterBytes = 16 + kHashBytes + 8;
constexpr uint64_t kRecordBytes = 24;
constexpr uint64_t kTokenBytes = 4;

// Bytes that `tokens` tokens take, with the padding after them.
uint64_t PaddedBytes(uint64_t tokens) { return (tokens * kTokenBytes + 7) / 8 * 8; }

fs::path UniqueName(const fs::path& file) {
  static std::atomic<unsigned> counter{0};
  char host[64] = "";
  ::gethostname(host, sizeof host - 1);
  return fmt::format("{}.{}-{}-{}", file.string(), host, ::getpid(), counter++);
}

[[noreturn]] void RefuseTokens(const fs::path& file, const std::string& why) {
  throw Error(ErrorKind::kInput, fmt::format("{}: {}", file.string(), why),
              "remove this file; it is made again when needed");
}

}  // namespace

TokensWriter::TokensWriter(fs::path file) : final_(std::move(file)), pending_(UniqueName(final_)) {}

TokensWriter::~TokensWriter() {
  if (!committed_) pending_.Discard();
}

uint64_t TokensWriter::Append(const std::vector<int32_t>& tokens) {
  const uint64_t begin = tokens_;
  std::string bytes;
  bytes.reserve(tokens.size() * kTokenBytes);
  for (const int32_t token : tokens) AppendU32(&bytes, static_cast<uint32_t>(token));
  pending_.Append(bytes);
  tokens_ += tokens.size();
  return begin;
}

void TokensWriter::Add(const Request& request) {
  Record record{};
  record.context_count = static_cast<uint32_t>(request.context_tokens.size());
  record.continuation_count = static_cast<uint32_t>(request.continuation_tokens.size());
  if (!records_.empty() && last_document_ == request.doc_id &&
      last_context_ == request.context_tokens) {
    record.context_begin = records_.back().context_begin;
  } else {
    record.context_begin = Append(request.context_tokens);
    last_context_ = request.context_tokens;
    last_document_ = request.doc_id;
  }
  record.continuation_begin = Append(request.continuation_tokens);
  records_.push_back(record);
}

void TokensWriter::Commit() {
  std::string tail(PaddedBytes(tokens_) - tokens_ * kTokenBytes, '\0');
  for (const Record& record : records_) {
    AppendU64(&tail, record.context_begin);
    AppendU64(&tail, record.continuation_begin);
    AppendU32(&tail, record.context_count);
    AppendU32(&tail, record.continuation_count);
  }
  AppendU64(&tail, records_.size());
  AppendU64(&tail, tokens_);
  pending_.Append(tail);
  pending_.Append(pending_.HashHex());
  pending_.Append(kTokensMagic);
  pending_.Commit();
  committed_ = true;
  FailPoint("tokens.written");
  if (::rename(pending_.path().c_str(), final_.c_str()) != 0) {
    const int error_number = errno;
    ::unlink(pending_.path().c_str());
    ThrowErrno(final_, "rename", error_number);
  }
  FailPoint("tokens.renamed");
  FsyncDirectory(final_.parent_path());
}

TokensFile::TokensFile(fs::path file, uint64_t requests) : path_(std::move(file)), mapped_(path_) {
  const uint64_t size = mapped_.size();
  if (size < kFooterBytes || mapped_.view().substr(size - kTokensMagic.size()) != kTokensMagic) {
    RefuseTokens(path_, "not a whole tokens file (its last bytes should be 'evald-t2')");
  }
  const char* footer = mapped_.data() + size - kFooterBytes;
  const uint64_t found = LoadU64(footer);
  tokens_ = LoadU64(footer + 8);
  if (found != requests) {
    RefuseTokens(path_,
                 fmt::format("found the tokens of {} requests, the task has {}", found, requests));
  }
  if (tokens_ > size || requests > size ||
      PaddedBytes(tokens_) + requests * kRecordBytes + kFooterBytes != size) {
    RefuseTokens(path_,
                 fmt::format("found {} bytes, which does not fit {} requests of {} tokens together",
                             size, requests, tokens_));
  }
  const uint64_t hashed = size - kTokensMagic.size() - kHashBytes;
  const std::string hash = HashHex(mapped_.view().substr(0, hashed));
  if (mapped_.view().substr(hashed, kHashBytes) != hash) {
    RefuseTokens(path_, fmt::format("has changed since it was written: found hash {}, expected {}",
                                    hash, mapped_.view().substr(hashed, kHashBytes)));
  }
  records_offset_ = PaddedBytes(tokens_);
  const auto inside = [&](uint64_t begin, uint64_t count) {
    return begin <= tokens_ && count <= tokens_ - begin;
  };
  for (uint64_t i = 0; i < requests; ++i) {
    const char* record = RecordAt(i);
    if (!inside(LoadU64(record), LoadU32(record + 16)) ||
        !inside(LoadU64(record + 8), LoadU32(record + 20))) {
      RefuseTokens(path_,
                   fmt::format("request {} lies outside the {} tokens of the file", i, tokens_));
    }
  }
}

const char* TokensFile::RecordAt(uint64_t ordinal) const {
  return mapped_.data() + records_offset_ + ordinal * kRecordBytes;
}

std::vector<int32_t> TokensFile::Tokens(uint64_t begin, uint32_t count) const {
  std::vector<int32_t> tokens(count);
  for (uint32_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<int32_t>(LoadU32(mapped_.data() + (begin + i) * kTokenBytes));
  }
  return tokens;
}

void TokensFile::Get(uint64_t ordinal, Request* request) const {
  const char* record = RecordAt(ordinal);
  request->context_tokens = Tokens(LoadU64(record), LoadU32(record + 16));
  request->continuation_tokens = Tokens(LoadU64(record + 8), LoadU32(record + 20));
}

uint64_t TokensFile::Count(uint64_t ordinal) const {
  const char* record = RecordAt(ordinal);
  return uint64_t{LoadU32(record + 16)} + LoadU32(record + 20);
}

}  // namespace evald::prepared
