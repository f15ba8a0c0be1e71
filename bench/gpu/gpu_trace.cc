// libevald-gpu-trace.so: records the work of a GPU for a process. The process needs no change.
//
//     CUDA_INJECTION64_PATH=libevald-gpu-trace.so EVALD_GPU_TRACE=FOLDER PROGRAM
//
// The driver loads the library when CUDA is initialized and calls InitializeInjection. CUPTI then
// hands over buffers with finished kernels (those in graphs too), copies and fills. The library
// appends them to FOLDER/<process id>.activity (activity.h), at least once a second, so that little
// is lost if the process is killed. Names of kernels go to FOLDER/<process id>.names, one a line.
#include <cupti.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/gpu/activity.h"

namespace evald::bench {
namespace {

// The layouts of records in this toolkit's CUPTI.
#if CUPTI_API_VERSION >= 130000
using KernelRecord = CUpti_ActivityKernel10;
using CopyRecord = CUpti_ActivityMemcpy6;
#else
using KernelRecord = CUpti_ActivityKernel9;
using CopyRecord = CUpti_ActivityMemcpy5;
#endif
using FillRecord = CUpti_ActivityMemset4;

constexpr size_t kBufferBytes = size_t{8} << 20;
constexpr size_t kBufferAlignment = 8;
constexpr uint32_t kFlushMillis = 1000;

class Recorder {
 public:
  bool Open(const std::string& folder) {
    const std::string path = folder + "/" + std::to_string(::getpid());
    activities_ =
        ::open((path + ".activity").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    names_ = ::open((path + ".names").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return activities_ >= 0 && names_ >= 0;
  }

  void Take(uint8_t* buffer, size_t bytes) {
    const std::lock_guard lock(mutex_);
    records_.clear();
    CUpti_Activity* record = nullptr;
    while (cuptiActivityGetNextRecord(buffer, bytes, &record) == CUPTI_SUCCESS) Add(*record);
    Write(activities_, reinterpret_cast<const char*>(records_.data()),
          records_.size() * sizeof(Activity));
  }

 private:
  void Add(const CUpti_Activity& record) {
    switch (record.kind) {
      case CUPTI_ACTIVITY_KIND_KERNEL:
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const auto& kernel = reinterpret_cast<const KernelRecord&>(record);
        records_.push_back({kernel.start, kernel.end, 0, Activity::kKernel, NameId(kernel.name)});
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto& copy = reinterpret_cast<const CopyRecord&>(record);
        const bool in = copy.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
        records_.push_back({copy.start, copy.end, copy.bytes,
                            in ? Activity::kCopyToDevice : Activity::kOtherCopy, 0});
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto& fill = reinterpret_cast<const FillRecord&>(record);
        records_.push_back({fill.start, fill.end, fill.bytes, Activity::kFill, 0});
        break;
      }
      default:
        break;
    }
  }

  uint32_t NameId(const char* name) {
    const std::string text = name == nullptr ? "?" : name;
    const auto [found, fresh] = ids_.try_emplace(text, static_cast<uint32_t>(ids_.size()));
    if (fresh) Write(names_, (text + "\n").data(), text.size() + 1);
    return found->second;
  }

  static void Write(int file, const char* bytes, size_t count) {
    while (count > 0) {
      const ssize_t written = ::write(file, bytes, count);
      if (written <= 0) {
        std::perror("evald-gpu-trace: cannot write");
        return;
      }
      bytes += written;
      count -= static_cast<size_t>(written);
    }
  }

  std::mutex mutex_;
  int activities_ = -1;
  int names_ = -1;
  std::vector<Activity> records_;
  std::unordered_map<std::string, uint32_t> ids_;
};

// Never destroyed: CUPTI's thread may call it until the process ends.
Recorder& TheRecorder() {
  static Recorder* const recorder = new Recorder;
  return *recorder;
}

void CUPTIAPI GiveBuffer(uint8_t** buffer, size_t* bytes, size_t* records_max) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(kBufferAlignment, kBufferBytes));
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;
  *records_max = 0;  // as many as fit
}

void CUPTIAPI TakeBuffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  if (valid_bytes > 0) TheRecorder().Take(buffer, valid_bytes);
  std::free(buffer);
}

bool Check(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return true;
  const char* text = "unknown";
  cuptiGetResultString(result, &text);
  std::fprintf(stderr, "evald-gpu-trace: %s: %s\n", what, text);
  return false;
}

bool Start() {
  const char* const folder = std::getenv("EVALD_GPU_TRACE");
  if (folder == nullptr || !TheRecorder().Open(folder)) {
    std::fprintf(stderr, "evald-gpu-trace: EVALD_GPU_TRACE names no folder that can be written\n");
    return false;
  }
  if (!Check(cuptiActivityRegisterCallbacks(GiveBuffer, TakeBuffer), "callbacks")) return false;
  for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                        CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET}) {
    if (!Check(cuptiActivityEnable(kind), "activity")) return false;
  }
  Check(cuptiActivityFlushPeriod(kFlushMillis), "flush period");
  std::atexit([] { cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED); });
  return true;
}

}  // namespace
}  // namespace evald::bench

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  evald::bench::Start();
  return 1;  // the program goes on, traced or not
}
