// The parts that both runtimes share.
#include "worker/native/cuda/runtime.h"

#include <utility>

namespace evald::native::cuda {

DeviceError::DeviceError(DeviceFault fault, std::string message)
    : Error(ErrorKind::kInfrastructure, std::move(message)), fault_(fault) {}

Memory::Memory(Memory&& other) noexcept { *this = std::move(other); }

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(kind_, other.kind_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Graph::Graph(Graph&& other) noexcept { *this = std::move(other); }

Graph& Graph::operator=(Graph&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}

}  // namespace evald::native::cuda
