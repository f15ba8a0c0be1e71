#include "protocol/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/engine_info.h"
#include "evald/error.h"

namespace evald::protocol {
namespace {

constexpr int kConcurrencyMax = 1'000'000;
constexpr int64_t kPidMax = int64_t{1} << 32;

[[noreturn]] void Throw(const std::string& where, const char* key, const std::string& problem) {
  throw Error(ErrorKind::kInput, fmt::format("{}: key '{}': {}", where, key, problem),
              "both ends must be of the same version of evald");
}

template <typename T>
void Within(const std::string& where, const char* key, T value, T least, T most) {
  if (!(least <= value && value <= most)) {
    Throw(where, key, fmt::format("{} is out of range, expected {} to {}", value, least, most));
  }
}

void Seconds(const std::string& where, const char* key, double value) {
  Within(where, key, value, 0.0, kSecondsMax);
}
void Count(const std::string& where, const char* key, int64_t value) {
  Within(where, key, value, int64_t{0}, kCountMax);
}

void Bytes(const std::string& where, const char* key, size_t bytes, size_t most) {
  if (bytes > most) Throw(where, key, fmt::format("{} bytes, expected at most {}", bytes, most));
}

void Attempt(const std::string& where, int64_t trial, int attempt) {
  Within(where, "trial", trial, int64_t{-1}, INT64_MAX);
  Within(where, "attempt", attempt, 0, INT32_MAX);
}

void Documents(const std::string& where, int64_t first, int64_t end) {
  Count(where, "first", first);
  Count(where, "end", end);
  if (first >= end)
    Throw(where, "end", fmt::format("{} is not behind first, which is {}", end, first));
}

// Removes null members, so that readers with a fallback for an absent member find no null.
void DropNulls(Json* object, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto found = object->find(key);
    if (found != object->end() && found->is_null()) object->erase(found);
  }
}

// Reduces an engine to the members of an EngineInfo.
void Engine(const std::string& where, const char* key, Json* engine) {
  const std::string within = fmt::format("{}: key '{}'", where, key);
  if (!engine->is_object())
    Throw(where, key, fmt::format("found {}, expected an object", engine->type_name()));
  Bytes(where, key, ToLine(*engine).size(), kEngineBytesMax);
  const EngineInfo info = EngineInfoFromJson(*engine, within);
  Within(within, "max_length", info.max_length, 0, INT32_MAX);
  Within(within, "concurrency", info.concurrency, 0, kConcurrencyMax);
  *engine = ToJson(info);
}

// Checks how a metric process isolates code; this is only shown.
void Isolation(const std::string& where, const char* key, const Json& isolation) {
  if (!isolation.is_object() && !isolation.is_null()) {
    Throw(where, key, fmt::format("found {}, expected an object", isolation.type_name()));
  }
  Bytes(where, key, ToLine(isolation).size(), kEngineBytesMax);
}

// Checks the members of Engine::LoadReport that the orchestrator reads.
void Report(const std::string& where, const char* key, Json* members) {
  if (!members->is_object())
    Throw(where, key, fmt::format("found {}, expected an object", members->type_name()));
  Bytes(where, key, ToLine(*members).size(), kEngineBytesMax);
  DropNulls(members, {"bytes", "gb_per_s", "scoring"});
  const Json& report = *members;
  const std::string within = fmt::format("{}: key '{}'", where, key);
  Count(within, "bytes", FieldOr<int64_t>(report, "bytes", 0, within));
  Within(within, "gb_per_s", FieldOr<double>(report, "gb_per_s", 0, within), 0.0, kSecondsMax);
  const auto found = members->find("scoring");
  if (found == members->end()) return;
  Json& scoring = *found;
  if (!scoring.is_object())
    Throw(within, "scoring", fmt::format("found {}, expected an object", scoring.type_name()));
  DropNulls(&scoring, {"offered", "reason"});
  FieldOr<bool>(scoring, "offered", true, within + ": key 'scoring'");
  FieldOr<std::string>(scoring, "reason", "", within + ": key 'scoring'");
}

// Whether the process is a metric process: these are called "m0", workers "w0".
bool IsScorer(const std::string& process) { return process.starts_with('m'); }

// Checks a HeldProcess: the orchestrator's own record of the process, which its agent keeps and
// sends back.
void Held(HeldProcess& held, const std::string& where) {
  Bytes(where, "id", held.id.size(), kNameBytesMax);
  Bytes(where, "program", held.program.size(), kNameBytesMax);
  Bytes(where, "fingerprint", held.fingerprint.size(), kPathBytesMax);
  size_t bytes = held.tag.size();
  for (const std::string& argument : held.arguments) bytes += argument.size() + sizeof argument;
  Bytes(where, "arguments", bytes, kHeldBytesMax);
  Within(where, "pid", held.pid, int64_t{0}, kPidMax);
  Within(where, "wants", held.wants, 0, kWantsMax);
  if (IsScorer(held.id)) {
    Isolation(where, "engine", held.engine);
  } else if (!held.engine.is_null()) {
    Engine(where, "engine", &held.engine);
  }
  if (held.loaded.is_null()) return;
  const std::string within = where + ": key 'loaded'";
  Json engine = Field<Json>(held.loaded, "engine", within),
       report = Field<Json>(held.loaded, "report", within);
  Engine(within, "engine", &engine);
  Report(within, "report", &report);
  held.loaded = {{"engine", std::move(engine)}, {"report", std::move(report)}};
}

}  // namespace

void CutText(std::string* text) {
  if (text->size() <= kTextBytesMax) return;
  constexpr size_t kSpace = 16;  // for the ellipsis, and for the replacement of a cut character
  text->resize(kTextBytesMax - kSpace);
  *text = ReplaceInvalidUtf8(*text) + "…";
}

void Check(Hello& hello, const std::string& where) {
  Bytes(where, "role", hello.role.size(), kNameBytesMax);
  Bytes(where, "id", hello.id.size(), kNameBytesMax);
  Within(where, "pid", hello.pid, int64_t{0}, kPidMax);
  CutText(&hello.waits);
  if (hello.role == "metric") {
    Isolation(where, "engine", hello.engine);
  } else if (!hello.engine
                  .is_null()) {  // null: the worker could make no engine, or waits for its device
    Engine(where, "engine", &hello.engine);
  }
}

void Check(Loaded& loaded, const std::string& where) {
  Bytes(where, "fingerprint", loaded.fingerprint.size(), kPathBytesMax);
  Engine(where, "engine", &loaded.engine);
  Report(where, "report", &loaded.report);
}

void Check(Want& want, const std::string& where) {
  Within(where, "count", want.count, 0, kWantsMax);
}

void Check(Progress& progress, const std::string& where) {
  Attempt(where, progress.trial, progress.attempt);
  Count(where, "requests_done", progress.requests_done);
  Count(where, "salvaged", progress.salvaged);
  Count(where, "tokens_in", progress.tokens_in);
  Count(where, "tokens_out", progress.tokens_out);
  Count(where, "engine_silent_ms", progress.engine_silent_ms);
  Bytes(where, "oldest_task", progress.oldest_task.size(), kNameBytesMax);
  Seconds(where, "oldest_seconds", progress.oldest_seconds);
  Count(where, "pulled", progress.pulled);
  Count(where, "to_pull", progress.to_pull);
}

void Check(SliceDone& done, const std::string& where) {
  Attempt(where, done.trial, done.attempt);
  Documents(where, done.first, done.end);
  Bytes(where, "task", done.task.size(), kNameBytesMax);
  Bytes(where, "file", done.file.size(), kPathBytesMax);
  Bytes(where, "hash", done.hash.size(), kNameBytesMax);
  Within(where, "bytes", done.bytes, uint64_t{0}, static_cast<uint64_t>(kCountMax));
  Count(where, "requests", done.requests);
  Count(where, "truncated", done.truncated);
  Count(where, "tokens_in", done.tokens_in);
  Count(where, "tokens_out", done.tokens_out);
  Seconds(where, "device_seconds", done.device_seconds);
  Seconds(where, "longest_seconds", done.longest_seconds);
  Count(where, "salvaged", done.salvaged);
}

void Check(TrialDone& done, const std::string& where) {
  Attempt(where, done.trial, done.attempt);
  Seconds(where, "device_seconds", done.device_seconds);
}

void Check(TrialFailed& failed, const std::string& where) {
  Attempt(where, failed.trial, failed.attempt);
  Bytes(where, "task", failed.task.size(), kNameBytesMax);
  CutText(&failed.message);
}

void Check(JobDone& done, const std::string& where) {
  Within(where, "job", done.job, int64_t{0}, INT64_MAX);
  Within(where, "attempt", done.attempt, 0, INT32_MAX);
  Bytes(where, "file", done.file.size(), kPathBytesMax);
  Bytes(where, "hash", done.hash.size(), kNameBytesMax);
  Within(where, "bytes", done.bytes, uint64_t{0}, static_cast<uint64_t>(kCountMax));
  Seconds(where, "cpu_seconds", done.cpu_seconds);
  Seconds(where, "slot_seconds", done.slot_seconds);
  Within(where, "end", done.end, int64_t{0}, kCountMax);
  if (done.unscored.size() > kUnscoredMax) {
    Throw(where, "unscored",
          fmt::format("{} entries, expected at most {}", done.unscored.size(), kUnscoredMax));
  }
  for (Unscored& unscored : done.unscored) {
    Documents(where, unscored.first, unscored.end);
    CutText(&unscored.cause);
  }
  CutText(&done.stopped);
}

void Check(JobFailed& failed, const std::string& where) {
  Within(where, "job", failed.job, int64_t{0}, INT64_MAX);
  Within(where, "attempt", failed.attempt, 0, INT32_MAX);
  CutText(&failed.message);
}

void Check(Job& job, const std::string& where) {
  if (job.judge.is_object() || job.judge.is_null()) return;
  Throw(where, "judge", fmt::format("found {}, expected an object", job.judge.type_name()));
}

void Check(Shortened& shortened, const std::string& where) {
  Attempt(where, shortened.trial, shortened.attempt);
  Documents(where, shortened.first, shortened.end);
  Bytes(where, "task", shortened.task.size(), kNameBytesMax);
}

void Check(Span& span, const std::string& where) {
  Bytes(where, "name", span.name.size(), kNameBytesMax);
  Within(where, "begin", span.begin, -kMicrosMax, kMicrosMax);
  Within(where, "end", span.end, -kMicrosMax, kMicrosMax);
  if (span.args.is_null()) return;
  if (!span.args.is_object())
    Throw(where, "args", fmt::format("found {}, expected an object", span.args.type_name()));
  Bytes(where, "args", ToLine(span.args).size(), kSpanBytesMax);
  DropNulls(&span.args, {"job", "trials"});
  const std::string within = where + ": key 'args'";
  FieldOr<int64_t>(span.args, "job", 0, within);
  FieldOr<std::vector<int64_t>>(span.args, "trials", {}, within);
}

void Check(AgentHello& hello, const std::string& where) {
  Bytes(where, "evald", hello.evald.size(), kNameBytesMax);
  Bytes(where, "name", hello.name.size(), kNameBytesMax);
  Bytes(where, "instance", hello.instance.size(), kNameBytesMax);
  Bytes(where, "session", hello.session.size(), kNameBytesMax);
  Bytes(where, "config", hello.config.size(), kHeldBytesMax);
  Within(where, "pid", hello.pid, int64_t{0}, kPidMax);
  Within(where, "threads", hello.threads, 0, 1 << 20);
  Within(where, "metric_processes", hello.metric_processes, 0, kMetricProcessesMax);
  Within(where, "ends_in_s", hello.ends_in_s, -1.0, kSecondsMax);
  if (hello.devices.size() > kDevicesMax) {
    Throw(where, "devices",
          fmt::format("{} devices, expected at most {}", hello.devices.size(), kDevicesMax));
  }
  for (const std::string& device : hello.devices)
    Bytes(where, "devices", device.size(), kNameBytesMax);
  Within(where, "peer_port", hello.peer_port, 0, 65535);
  Bytes(where, "peer_host", hello.peer_host.size(), kNameBytesMax);
  Bytes(where, "peer_authority", hello.peer_authority.size(), kAuthorityBytesMax);
  Bytes(where, "peer_secret", hello.peer_secret.size(), kNameBytesMax);
}

void Check(AgentPing& ping, const std::string& where) {
  Count(where, "memory_total", ping.memory_total);
  Count(where, "memory_free", ping.memory_free);
}

void Check(AgentReady& ready, const std::string& where) {
  const size_t processes_max = kDevicesMax + static_cast<size_t>(kMetricProcessesMax);
  if (ready.processes.size() > processes_max) {
    Throw(where, "processes",
          fmt::format("{} processes, expected at most {}", ready.processes.size(), processes_max));
  }
  for (size_t i = 0; i < ready.processes.size(); ++i)
    Held(ready.processes[i], fmt::format("{}: processes[{}]", where, i));
  if (ready.staged.size() > kStagedMax) {
    Throw(where, "staged",
          fmt::format("{} checkpoints, expected at most {}", ready.staged.size(), kStagedMax));
  }
  for (const std::string& fingerprint : ready.staged)
    Bytes(where, "staged", fingerprint.size(), kNameBytesMax);
}

void Check(FromProcess& from, const std::string& where) {
  Bytes(where, "process", from.process.size(), kNameBytesMax);
  const auto* hello = std::get_if<Hello>(&from.message);
  if (hello != nullptr && (hello->role == "metric") != IsScorer(from.process)) {
    Throw(where, "process",
          fmt::format("process '{}' says that it is a {}", from.process, hello->role));
  }
}

void Check(ProcessEnded& ended, const std::string& where) {
  Bytes(where, "process", ended.process.size(), kNameBytesMax);
  CutText(&ended.error);
}

}  // namespace evald::protocol
