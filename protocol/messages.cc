#include "protocol/messages.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "evald/error.h"
#include "protocol/checks.h"
#include "protocol/members.h"

namespace evald::protocol {

template <typename V>
void Members(V& v, Slice& m) {
  v("task", m.task);
  v("prepared", m.prepared);
  v("tokenizer_key", m.tokenizer_key);
  v("first", m.first);
  v("end", m.end);
  v("file", m.file);
  v("salvage", m.salvage);
}

template <typename V>
void Members(V& v, Hello& m) {
  v("version", m.version);
  v("role", m.role);
  v("id", m.id);
  v("pid", m.pid);
  v("engine", m.engine);
  v.Optional("waits", m.waits);
}

template <typename V>
void Members(V& v, Loaded& m) {
  v("fingerprint", m.fingerprint);
  v("engine", m.engine);
  v("report", m.report);
}

template <typename V>
void Members(V& v, Want& m) {
  v("count", m.count);
}

template <typename V>
void Members(V& v, Progress& m) {
  v("trial", m.trial);
  v("attempt", m.attempt);
  v("requests_done", m.requests_done);
  v("tokens_in", m.tokens_in);
  v("tokens_out", m.tokens_out);
  v("engine_silent_ms", m.engine_silent_ms);
  v("oldest_task", m.oldest_task);
  v("oldest_seconds", m.oldest_seconds);
  v.Optional("pulled", m.pulled);
  v.Optional("to_pull", m.to_pull);
  v.Optional("salvaged", m.salvaged);
}

template <typename V>
void Members(V& v, SliceDone& m) {
  v("trial", m.trial);
  v("attempt", m.attempt);
  v("task", m.task);
  v("first", m.first);
  v("end", m.end);
  v("file", m.file);
  v("hash", m.hash);
  v("bytes", m.bytes);
  v("requests", m.requests);
  v("truncated", m.truncated);
  v("tokens_in", m.tokens_in);
  v("tokens_out", m.tokens_out);
  v("device_seconds", m.device_seconds);
  v("longest_seconds", m.longest_seconds);
  v("salvaged", m.salvaged);
}

template <typename V>
void Members(V& v, TrialDone& m) {
  v("trial", m.trial);
  v("attempt", m.attempt);
  v("device_seconds", m.device_seconds);
}

template <typename V>
void Members(V& v, TrialFailed& m) {
  v("trial", m.trial);
  v("attempt", m.attempt);
  v("retry", m.retry);
  v("message", m.message);
  v.Optional("device", m.device);
  v.Optional("task", m.task);
  v.Optional("lasting", m.lasting);
}

template <typename V>
void Members(V& v, Unscored& m) {
  v("first", m.first);
  v("end", m.end);
  v("cause", m.cause);
}

template <typename V>
void Members(V& v, JobDone& m) {
  v("job", m.job);
  v("file", m.file);
  v("hash", m.hash);
  v("bytes", m.bytes);
  v("cpu_seconds", m.cpu_seconds);
  v("slot_seconds", m.slot_seconds);
  v("attempt", m.attempt);
  v.Optional("end", m.end);
  v.Optional("unscored", m.unscored);
  v.Optional("stopped", m.stopped);
}

template <typename V>
void Members(V& v, JobFailed& m) {
  v("job", m.job);
  v("retry", m.retry);
  v("message", m.message);
  v("attempt", m.attempt);
}

template <typename V>
void Members(V& v, Span& m) {
  v("name", m.name);
  v("begin", m.begin);
  v("end", m.end);
  v("args", m.args);
}

template <typename V>
void Members(V& v, Load& m) {
  v("directory", m.directory);
  v("fingerprint", m.fingerprint);
}

template <typename V>
void Members(V& v, Lease& m) {
  v("trial", m.trial);
  v("attempt", m.attempt);
  v("slices", m.slices);
  v("fingerprint", m.fingerprint);
  v("run", m.run);
}

template <typename V>
void Members(V& v, Job& m) {
  v("job", m.job);
  v("task", m.task);
  v("prepared", m.prepared);
  v("first", m.first);
  v("end", m.end);
  v("generations", m.generations);
  v("hash", m.hash);
  v("file", m.file);
  v("run", m.run);
  v("attempt", m.attempt);
  v.Optional("judge", m.judge);
}

template <typename V>
void Members(V& v, Revoke& m) {
  v("trial", m.trial);
  v("attempt", m.attempt);
}

template <typename V>
void Members(V& v, Revoked& m) {
  v("trial", m.trial);
  v("attempt", m.attempt);
}

template <typename V>
void Members(V& v, Shorten& m) {
  v("trial", m.trial);
  v("attempt", m.attempt);
  v("task", m.task);
  v("first", m.first);
  v("end", m.end);
}

template <typename V>
void Members(V& v, Shortened& m) {
  v("trial", m.trial);
  v("attempt", m.attempt);
  v("task", m.task);
  v("first", m.first);
  v("end", m.end);
}

template <typename V>
void Members(V& v, Follow& m) {
  v("directory", m.directory);
}

template <typename V>
void Members(V&, Drain&) {}

template <typename V>
void Members(V&, Stop&) {}

namespace {

// The alternatives of Message, in its order.
constexpr const char* kMessageTypes[] = {
    "hello",    "loaded",     "want",    "progress", "slice_done", "trial_done", "trial_failed",
    "job_done", "job_failed", "span",    "load",     "lease",      "job",        "revoke",
    "drain",    "stop",       "revoked", "shorten",  "shortened",  "follow"};

}  // namespace

Json ToJson(const Message& message) { return VariantToJson(message, kMessageTypes); }

Message MessageFromJson(const Json& json) {
  return VariantFromJson<Message>(Field<std::string>(json, "type", "message"), json, kMessageTypes);
}

// A cause quotes other people's files and may be of any length. It is cut as its reader would cut
// it.
std::string Encode(const Message& message) {
  Json json = ToJson(message);
  if (const auto cause = json.find("message"); cause != json.end())
    CutText(&cause->get_ref<std::string&>());
  return ToLine(json) + '\n';
}

Message Decode(std::string_view line) {
  return MessageFromJson(ParseJson(line, "message", kLineValuesMax));
}

bool LineSplitter::Next(std::string* line) {
  const size_t end = buffer_.find('\n', std::max(begin_, scanned_));
  if (end == std::string::npos) {
    buffer_.erase(0, begin_);
    begin_ = 0;
    scanned_ = buffer_.size();
    if (buffer_.size() > kLineBytesMax) ThrowTooLong(buffer_.size());
    return false;
  }
  if (end - begin_ > kLineBytesMax) ThrowTooLong(end - begin_);
  line->assign(buffer_, begin_, end - begin_);
  begin_ = end + 1;
  return true;
}

void LineSplitter::ThrowTooLong(size_t bytes) {
  buffer_.clear();
  begin_ = scanned_ = 0;
  throw Error(ErrorKind::kInput, fmt::format("a message of {} bytes or more, expected at most {}",
                                             bytes, kLineBytesMax));
}

}  // namespace evald::protocol
