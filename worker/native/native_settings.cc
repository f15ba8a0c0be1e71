#include "worker/native/native_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "evald/error.h"
#include "worker/native/cpu.h"
#include "worker/native/page_positions.h"
#include "worker/settings.h"

namespace evald::native {
namespace {

uint64_t ReadBytes(const Settings& settings, const std::string& key) {
  if (!settings.Has(key)) return 0;
  const Json value = settings.Require<Json>(key);
  uint64_t bytes = 0;
  try {
    bytes =
        value.is_string() ? ParseBytes(value.get<std::string>()) : settings.Require<uint64_t>(key);
  } catch (const SettingError&) {
    throw;
  } catch (const Error&) {
    settings.Refuse(key, "a size such as 2GiB");
  }
  if (bytes == 0) settings.Refuse(key, "a size of more than 0");
  return bytes;
}

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
  if (settings.Has("max_length")) read.max_length = settings.AtLeast("max_length", 1, 1);
  read.kv_cache = ReadBytes(settings, "kv_cache");
  if (settings.Has("concurrency")) read.concurrency = settings.AtLeast("concurrency", 1, 1);
  if (settings.Has("chunk")) read.chunk = settings.AtLeast("chunk", 1, 1);
  read.kernels = settings.Get<std::string>("kernels", read.kernels);
  read.generation_config = ReadGenerationConfigUse(settings);
  read.fast = settings.Get<bool>("fast", read.fast);
  read.graphs = settings.Get<bool>("graphs", read.graphs);
  read.ahead = settings.Get<bool>("ahead", read.ahead);
  if (settings.Has("copy_threads")) read.copy_threads = settings.AtLeast("copy_threads", 1, 1);
  CheckKernels(read.kernels);
  return read;
}

uint64_t CacheBudget(const NativeSettings& settings, uint64_t by_default, uint64_t page_bytes) {
  if (settings.kv_cache == 0) return std::max(by_default, page_bytes);
  if (settings.kv_cache < page_bytes) {
    throw Error(ErrorKind::kUsage,
                fmt::format("engine 'native': kv_cache: found {}, expected at least {} (one page "
                            "of {} tokens)",
                            HumanBytes(settings.kv_cache), HumanBytes(page_bytes), kPagePositions));
  }
  return settings.kv_cache;
}

}  // namespace evald::native
