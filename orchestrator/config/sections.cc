#include "orchestrator/config/sections.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/cores.h"
#include "base/own_folder.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/sandbox_options.h"
#include "orchestrator/devices/device_choice.h"
#include "orchestrator/staging/root.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kBacklogBytes = uint64_t{4} << 30;
constexpr int64_t kWorkersMax = 1024;
constexpr int64_t kGpusMax = 64;  // of a worker
// For the program itself and its threads
constexpr uint64_t kPreparationMemoryMin = uint64_t{64} << 20;

// Reads a size without an upper bound.
void ReadSize(YamlSection& section, const char* key, uint64_t least, uint64_t* value) {
  const auto given = section.Bytes(key);
  if (!given) return;
  if (*given < least)
    section.Refuse(
        key, fmt::format("found {}, expected at least {}", HumanBytes(*given), HumanBytes(least)));
  *value = *given;
}

// The same ranges as in SandboxOptionsFromJson.
SandboxOptions ReadSandbox(YamlSection& section) {
  SandboxOptions options;
  options.unsafe = section.Boolean("unsafe").value_or(options.unsafe);
  options.python = section.String("python").value_or(options.python);
  options.cpu_seconds = section.Number("cpu_seconds", 0.001, 3600).value_or(options.cpu_seconds);
  options.wall_seconds =
      section.Number("wall_seconds", 0.001, 86400).value_or(options.wall_seconds);
  ReadSize(section, "memory_bytes", uint64_t{16} << 20, &options.memory_bytes);
  ReadSize(section, "tmpfs_bytes", 4096, &options.tmpfs_bytes);
  ReadSize(section, "output_bytes", 0, &options.output_bytes);
  options.processes =
      static_cast<int>(section.Integer("processes", 1, 4096).value_or(options.processes));
  options.allow_processes = section.Boolean("allow_processes").value_or(options.allow_processes);
  options.allow_ctypes = section.Boolean("allow_ctypes").value_or(options.allow_ctypes);
  section.Finish();
  if (!options.python.starts_with('/')) {
    section.Refuse("python", fmt::format("found '{}', expected an absolute path", options.python));
  }
  return options;
}

}  // namespace

fs::path ResolveBelow(const fs::path& folder, const std::string& text) {
  if (text.starts_with("~/")) return ExpandHome(text);
  return (fs::absolute(folder) / text).lexically_normal();
}

fs::path ResolvePath(const fs::path& file, const std::string& text) {
  return ResolveBelow(fs::absolute(file).parent_path(), text);
}

void RequireTextPath(const std::string& file, const char* key, const fs::path& path) {
  const std::string& text = path.native();
  if (IsUtf8(text) && text.find('\0') == std::string::npos) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("{}: key '{}': the path '{}' is not UTF-8 without NUL",
                          PrintableLine(file), key, PrintableLine(text)),
              "name a folder whose whole path is UTF-8; a relative path begins with the "
              "configuration's folder");
}

void MakeFolderOf(const fs::path& file, const char* key, const fs::path& folder) {
  const std::string remedy = fmt::format("set {} to a folder of your own", key);
  try {
    MakePrivateFolder(folder, remedy);
  } catch (const Error& e) {
    throw Error(e.kind(), fmt::format("{}: key '{}': {}", file.string(), key, e.message()),
                e.remedy());
  }
}

WorkersConfig ReadWorkers(YamlSection& top, const std::string& key) {
  WorkersConfig workers;
  if (auto section = top.Section(key)) {
    const std::vector<std::string> devices = section->Strings("devices");
    workers.count = static_cast<int>(section->Integer("count", 1, kWorkersMax).value_or(0));
    if (section->Has("devices")) {  // an empty list names no device: it is not "auto"
      const std::string wrong = WrongWithDevices(devices);
      if (!wrong.empty()) section->Refuse("devices", wrong);
      if (workers.count > 0)
        section->Refuse(
            "count", "says how many work on the CPU; it cannot be given together with 'devices'");
      workers.devices = devices;
    } else if (workers.count > 0) {
      workers.devices = CpuDevices(workers.count);
    }
    workers.devices_per_worker =
        static_cast<int>(section->Integer("devices_per_worker", 1, kGpusMax).value_or(1));
    workers.threads = static_cast<int>(section->Integer("threads", 1, kWorkersMax).value_or(0));
    workers.max_attempts = static_cast<int>(section->Integer("max_attempts", 1, 100).value_or(3));
    workers.heartbeat_timeout_s = section->Number("heartbeat_timeout_s", 2, 86400).value_or(60);
    workers.stall_timeout_s = section->Number("stall_timeout_s", 1, 86400).value_or(1800);
    workers.threads_given = workers.threads > 0;
    section->Finish();
  }
  const bool named = workers.devices.front() != "auto" && workers.devices.front() != "cuda:all";
  if (named) workers.count = static_cast<int>(workers.devices.size());
  if (workers.count == 0) workers.count = std::max(1, UsableCores() / 2);
  if (workers.threads == 0) workers.threads = std::max(1, UsableCores() / workers.count);
  return workers;
}

MetricsConfig ReadMetrics(YamlSection& top) {
  MetricsConfig metrics;
  if (auto section = top.Section("metrics")) {
    metrics.processes = static_cast<int>(section->Integer("processes", 1, kWorkersMax).value_or(0));
    metrics.max_attempts = static_cast<int>(section->Integer("max_attempts", 1, 100).value_or(3));
    metrics.backlog_bytes = section->Bytes("backlog").value_or(0);
    if (auto sandbox = section->Section("sandbox")) {
      metrics.sandbox = ReadSandbox(*sandbox);
    }
    section->Finish();
  }
  metrics.processes_given = metrics.processes > 0;
  if (metrics.processes == 0) metrics.processes = UsableCores();
  if (metrics.backlog_bytes == 0) metrics.backlog_bytes = kBacklogBytes;
  return metrics;
}

LimitsConfig ReadLimits(YamlSection& top, const std::optional<LimitsConfig>& most) {
  LimitsConfig limits = most.value_or(LimitsConfig());
  auto section = top.Section("limits");
  if (!section) return limits;
  const auto bytes = [&](const char* key, uint64_t least, uint64_t* value) {
    const auto given = section->Bytes(key);
    if (!given) return;
    if (*given < least)
      section->Refuse(key, fmt::format("found {}, expected at least {}", HumanBytes(*given),
                                       HumanBytes(least)));
    if (most && *given > *value) {
      section->Refuse(key, fmt::format("found {}, this service allows at most {}",
                                       HumanBytes(*given), HumanBytes(*value)));
    }
    *value = *given;
  };
  bytes("line", 1024, &limits.line_bytes);
  bytes("file", 1024, &limits.file_bytes);
  bytes("memory", kPreparationMemoryMin, &limits.memory_bytes);
  bytes("disk", kPreparationMemoryMin, &limits.disk_bytes);
  const auto seconds = section->Number("seconds", 1, 1e6);
  if (seconds && most && *seconds > limits.seconds) {
    section->Refuse("seconds", fmt::format("found {:g}, this service allows at most {:g}", *seconds,
                                           limits.seconds));
  }
  limits.seconds = seconds.value_or(limits.seconds);
  section->Finish();
  return limits;
}

TaskCodeOptions ReadTaskCode(YamlSection& top, const std::optional<TaskCodeOptions>& service) {
  using Allowed = TaskCodeOptions::Allowed;
  TaskCodeOptions options;
  if (const auto said = top.String("task_code")) {
    const auto allowed = AllowedTaskCode(*said);
    if (!allowed) {
      top.Refuse("task_code", fmt::format("found '{}', expected refuse, allow or unsafe", *said));
    }
    options.allowed = *allowed;
  }
  const auto python = top.String("task_python");
  if (python) options.python = *python;
  if (!service) return options;
  // The service would run the program, also to read tables, as its own user.
  if (python) {
    top.Refuse("task_python",
               fmt::format("leave it out: this service runs Python code with {}", service->python));
  }
  if (options.allowed == Allowed::kNo) {
    options = *service;
    options.allowed = Allowed::kNo;
    return options;
  }
  if (service->allowed == Allowed::kNo) {
    top.Refuse("task_code",
               "this service does not run the Python code of task files; 'task_code: allow' in the "
               "service's configuration lets it");
  }
  if (options.allowed == Allowed::kUnsafe && service->allowed != Allowed::kUnsafe)
    top.Refuse("task_code",
               "this service runs the Python code of task files in a sandbox; say allow");
  return *service;
}

uint64_t ReadCacheLimit(YamlSection& top) {
  constexpr uint64_t kLeast = uint64_t{1} << 20;
  const uint64_t bytes = top.Bytes("cache_limit").value_or(kCacheBytesMax);
  if (bytes < kLeast) {
    top.Refuse("cache_limit", fmt::format("found {}, expected at least {}", HumanBytes(bytes),
                                          HumanBytes(kLeast)));
  }
  return bytes;
}

StagingConfig ReadStaging(YamlSection& top, const fs::path& file) {
  StagingConfig staging;
  if (auto section = top.Section("staging")) {
    if (const auto root = section->String("root")) staging.root = ResolvePath(file, *root);
    staging.keep_bytes = section->Bytes("keep").value_or(0);
    staging.verify = section->Boolean("verify").value_or(false);
    section->Finish();
  }
  if (staging.root.empty()) {
    staging.root = DefaultStagingRoot();
  }
  return staging;
}

}  // namespace evald
