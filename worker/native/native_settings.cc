#include "worker/native/native_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "evald/error.h"
#include "worker/engine/settings.h"
#include "worker/native/cpu.h"
#include "worker/native/page_positions.h"

namespace evald::native {
namespace {

void CheckKernels(const std::string& kernels) {
  try {
    SelectKernels(kernels);
  } catch (const Error& e) {
    const size_t colon = e.message().find(": ");  // after the name of the key
    throw SettingError("engine 'native'", "kernels", e.message().substr(colon + 2), e.remedy());
  }
}

}  // namespace

NativeSettings ReadNativeSettings(const Json& json) {
  const Settings settings("native", json);
  NativeSettings read;
  read.max_length = settings.Get("max_length", read.max_length);
  read.kv_cache = settings.Bytes("kv_cache");
  if (settings.Has("concurrency")) read.concurrency = settings.Require<int>("concurrency");
  if (settings.Has("chunk")) read.chunk = settings.Require<int>("chunk");
  read.kernels = settings.Get<std::string>("kernels", read.kernels);
  read.generation_config = ReadGenerationConfigUse(settings);
  read.fast = settings.Get<bool>("fast", read.fast);
  read.graphs = settings.Get<bool>("graphs", read.graphs);
  read.ahead = settings.Get<bool>("ahead", read.ahead);
  read.copy_threads = settings.Get("copy_threads", read.copy_threads);
  read.parity_seconds = settings.Get("parity_seconds", read.parity_seconds);
  CheckKernels(read.kernels);
  return read;
}

uint64_t CacheBudget(const NativeSettings& settings, uint64_t by_default, uint64_t most,
                     uint64_t page_bytes) {
  if (settings.kv_cache == 0) return std::max(by_default, page_bytes);
  if (settings.kv_cache < page_bytes) {
    throw Error(ErrorKind::kUsage,
                fmt::format("engine 'native': kv_cache: found {}, expected at least {} (one page "
                            "of {} tokens)",
                            HumanBytes(settings.kv_cache), HumanBytes(page_bytes), kPagePositions));
  }
  if (most > 0 && settings.kv_cache > most) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("engine 'native': kv_cache: found {}, expected at most {}, the memory of "
                    "this device",
                    HumanBytes(settings.kv_cache), HumanBytes(most)),
        "leave kv_cache out, or lower it");
  }
  return settings.kv_cache;
}

}  // namespace evald::native
