// Any text as the output of evald-worker-cuda --list-devices.
#include <cstdint>
#include <string>

#include "evald/error.h"
#include "orchestrator/devices/device_choice.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const evald::GpuListing listing = evald::ParseGpuListing(text, "input");
    evald::ChooseDevices({{"auto"}, 2, 1}, "vllm", [&] { return listing; });
  } catch (const evald::Error&) {
  }
  evald::WrongWithDevices({text});
  return 0;
}
