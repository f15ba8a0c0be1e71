#include "worker/native/cuda/emulated/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace evald::native::cuda::emulated {
namespace {

constexpr uint64_t kBytesDefault = uint64_t{1} << 30;
constexpr size_t kTailBytes = 256;  // behind an allocation; must stay unchanged
constexpr int kPoison = 0xFF;       // NaN in every type of number
constexpr std::align_val_t kAlignment{256};

const char* NameOf(DeviceFault fault) {
  switch (fault) {
    case DeviceFault::kOutOfMemory:
      return "out of memory";
    case DeviceFault::kLost:
      return "the device was lost";
    case DeviceFault::kMemory:
      return "an uncorrectable ECC error";
    case DeviceFault::kKernel:
      return "a kernel failed";
    case DeviceFault::kOther:
      return "a call failed";
  }
  return "";
}

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// "count[:bytes]"
std::vector<std::unique_ptr<Gpu>> MakeGpus() {
  const std::string text = Environment("EVALD_EMULATED_GPUS");
  int count = 1;
  uint64_t bytes = kBytesDefault;
  const char* end = text.data() + text.size();
  if (!text.empty()) {
    auto [stop, error] = std::from_chars(text.data(), end, count);
    if (error == std::errc() && stop != end && *stop == ':') {
      const auto second = std::from_chars(stop + 1, end, bytes);
      stop = second.ptr;
      error = second.ec;
    }
    if (error != std::errc() || stop != end || count < 0) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("EVALD_EMULATED_GPUS: found '{}', expected count[:bytes]", text));
    }
  }
  std::vector<std::unique_ptr<Gpu>> gpus;
  for (int i = 0; i < count; ++i) gpus.push_back(std::make_unique<Gpu>(i, bytes));
  for (const auto& gpu : gpus) gpu->Order(ParseFaults(Environment("EVALD_EMULATED_FAULT")));
  return gpus;
}

thread_local int current_gpu = 0;

}  // namespace

std::string Gpu::uuid() const { return fmt::format("GPU-emulated-{}", index_); }

uint64_t Gpu::free() const {
  std::lock_guard lock(mutex_);
  return bytes_ - taken_;
}

void Gpu::Throw(DeviceFault fault) const {
  throw DeviceError(fault, fmt::format("GPU {}: {} (emulated)", uuid(), NameOf(fault)));
}

void Gpu::Call() {
  const int64_t before = calls_++;
  std::lock_guard lock(mutex_);
  if (!broken_) {
    const auto due = std::find_if(ordered_.begin(), ordered_.end(), [&](const OrderedFault& fault) {
      return fault.fault != DeviceFault::kOutOfMemory && before >= fault.after;
    });
    if (due == ordered_.end()) return;
    const DeviceFault fault = due->fault;
    ordered_.erase(due);
    if (fault == DeviceFault::kOther) Throw(fault);
    broken_ = fault;
  }
  Throw(*broken_);
}

void Gpu::Take(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  const auto due = std::find_if(ordered_.begin(), ordered_.end(), [&](const OrderedFault& fault) {
    return fault.fault == DeviceFault::kOutOfMemory && calls_ > fault.after;
  });
  if (due != ordered_.end()) {
    ordered_.erase(due);
    Throw(DeviceFault::kOutOfMemory);
  }
  if (bytes > bytes_ - taken_) {
    throw DeviceError(DeviceFault::kOutOfMemory,
                      fmt::format("GPU {}: {} bytes asked for, {} of {} are free (emulated)",
                                  uuid(), bytes, bytes_ - taken_, bytes_));
  }
  taken_ += bytes;
}

void Gpu::GiveBack(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  taken_ -= bytes;
}

void Gpu::Fail(std::exception_ptr error) {
  std::lock_guard lock(mutex_);
  if (error_ == nullptr) error_ = std::move(error);
}

void Gpu::Rethrow() {
  std::exception_ptr error;
  {
    std::lock_guard lock(mutex_);
    error = std::exchange(error_, nullptr);
  }
  if (error != nullptr) std::rethrow_exception(error);
}

void Gpu::Forget() {
  std::lock_guard lock(mutex_);
  error_ = nullptr;
}

bool Gpu::broken() const {
  std::lock_guard lock(mutex_);
  return broken_.has_value();
}

void Gpu::Order(std::vector<OrderedFault> faults) {
  std::lock_guard lock(mutex_);
  std::erase_if(faults, [&](const OrderedFault& fault) { return fault.gpu != index_; });
  ordered_ = std::move(faults);
  broken_.reset();
  error_ = nullptr;
  calls_ = 0;
}

const std::vector<std::unique_ptr<Gpu>>& Gpus() {
  static const auto* gpus = new std::vector<std::unique_ptr<Gpu>>(MakeGpus());  // outlives all use
  return *gpus;
}

Gpu& CurrentGpu() {
  if (static_cast<size_t>(current_gpu) >= Gpus().size()) {
    throw DeviceError(DeviceFault::kOther, "no GPU is visible (emulated)");
  }
  return *Gpus()[static_cast<size_t>(current_gpu)];
}

void SetCurrentGpu(int index) { current_gpu = index; }

void OrderFaults(const std::string& text) {
  const std::vector<OrderedFault> faults = ParseFaults(text);
  for (const auto& gpu : Gpus()) gpu->Order(faults);
}

int64_t CallsOf(int gpu) { return Gpus().at(static_cast<size_t>(gpu))->calls(); }

char* Allocations::New(MemoryKind kind, size_t bytes, Gpu* gpu) {
  if (kind == MemoryKind::kDevice) gpu->Take(bytes);
  auto* data = static_cast<char*>(::operator new(bytes + kTailBytes, kAlignment));
  std::memset(data, kPoison, bytes + kTailBytes);
  std::lock_guard lock(mutex_);
  all_[data] = {bytes, kind, gpu};
  return data;
}

void Allocations::Delete(char* data) {
  Allocation allocation;
  {
    std::lock_guard lock(mutex_);
    allocation = all_.at(data);
    all_.erase(data);
  }
  const char* guard = data + allocation.bytes;
  if (!std::all_of(guard, guard + kTailBytes,
                   [](char c) { return c == static_cast<char>(kPoison); })) {
    std::fprintf(stderr, "emulated GPU: something wrote behind memory of %zu bytes\n",
                 allocation.bytes);
    std::abort();
  }
  if (allocation.kind == MemoryKind::kDevice) allocation.gpu->GiveBack(allocation.bytes);
  ::operator delete(data, kAlignment);
}

bool Allocations::Within(MemoryKind kind, const void* data, size_t bytes) const {
  const auto* first = static_cast<const char*>(data);
  std::lock_guard lock(mutex_);
  auto found = all_.upper_bound(first);
  if (found == all_.begin()) return false;
  --found;
  return found->second.kind == kind && first + bytes <= found->first + found->second.bytes;
}

void Allocations::CheckDevice(const void* data, size_t bytes, const char* doing) const {
  if (Within(MemoryKind::kDevice, data, bytes)) return;
  throw DeviceError(DeviceFault::kOther,
                    fmt::format("{}: {} bytes that are not all of one device allocation (emulated)",
                                doing, bytes));
}

Allocations& AllAllocations() {
  static auto* all = new Allocations();  // outlives all use
  return *all;
}

}  // namespace evald::native::cuda::emulated
