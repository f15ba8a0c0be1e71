#include "worker/native/cuda/emulated/faults.h"

#include <fmt/format.h>

#include <charconv>
#include <map>

#include "evald/error.h"

namespace evald::native::cuda::emulated {
namespace {

const std::map<std::string, DeviceFault>& Kinds() {
  static const std::map<std::string, DeviceFault> kinds = {{"oom", DeviceFault::kOutOfMemory},
                                                           {"other", DeviceFault::kOther},
                                                           {"lost", DeviceFault::kLost},
                                                           {"ecc", DeviceFault::kMemory},
                                                           {"kernel", DeviceFault::kKernel}};
  return kinds;
}

template <typename T>
bool ParseNumber(const std::string& text, T* number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && stop == end && *number >= 0;
}

OrderedFault ParseFault(const std::string& text) {
  const size_t first = text.find(':'), second = text.find(':', first + 1);
  OrderedFault fault;
  if (first != std::string::npos && second != std::string::npos) {
    const auto kind = Kinds().find(text.substr(first + 1, second - first - 1));
    if (kind != Kinds().end() && ParseNumber(text.substr(0, first), &fault.gpu) &&
        ParseNumber(text.substr(second + 1), &fault.after)) {
      fault.fault = kind->second;
      return fault;
    }
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("emulated fault: found '{}', expected gpu:kind:calls", text),
              "kinds are oom, other, lost, ecc and kernel");
}

}  // namespace

std::vector<OrderedFault> ParseFaults(const std::string& text) {
  std::vector<OrderedFault> faults;
  for (size_t begin = 0; begin < text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    faults.push_back(ParseFault(text.substr(begin, comma - begin)));
    begin = comma + 1;
  }
  return faults;
}

}  // namespace evald::native::cuda::emulated
