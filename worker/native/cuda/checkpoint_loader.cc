#include "worker/native/cuda/checkpoint_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "checkpoint/landed.h"
#include "evald/error.h"

namespace evald::native::cuda {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::milliseconds kPatience{50};
// The length of the number that a safetensors file begins with
constexpr uint64_t kLengthBytes = 8;

double SecondsSince(int64_t begin) { return 1e-6 * static_cast<double>(MonotonicMicros() - begin); }

}  // namespace

// A followed staging. Its thread uses everything; the loader uses only IsPublishedAs until the
// thread has been joined.
class CheckpointLoader::Following : public Arrival {
 public:
  Following(fs::path folder, const std::atomic<bool>& cancel)
      : folder_(std::move(folder)), cancel_(cancel), record_(folder_) {}

  const fs::path& folder() const { return folder_; }
  const ModelWeights& weights() const { return *weights_; }
  bool IsPublishedAs(const fs::path& directory) const {
    return record_.Published() == directory.filename().string();
  }

  // Reads the config and the shape of the weights as soon as their files, or their headers if they
  // hold tensors, have landed.
  void ReadShape() {
    for (const CheckpointFile& file : record_.files()) {
      WaitFor(file.name, file.name.ends_with(".safetensors") ? HeaderEnd(file) : file.bytes);
    }
    config_ = ReadModelConfig(record_.folder());
    weights_.emplace(record_.folder(), config_, Contents::kComing);
  }

  bool Wait(const char* from, uint64_t bytes, std::chrono::milliseconds timeout) override {
    const TensorFiles::Place place = weights_->files().PlaceOf(from);
    return record_.Wait(weights_->files().NameOf(place), place.offset, place.offset + bytes,
                        timeout);
  }

  std::thread thread;
  bool pulled = false;  ///< all weights are on the device
  PullReport report;

 private:
  void WaitFor(const std::string& file, uint64_t end) const {
    while (!record_.Wait(file, 0, end, kPatience)) {
      if (cancel_) throw Error(ErrorKind::kInfrastructure, "it is not wanted any more");
    }
  }

  // The end of a safetensors file's header, by its first bytes. If these make no sense, the end of
  // the first bytes: the reader of the header then reports the fault.
  uint64_t HeaderEnd(const CheckpointFile& file) const {
    const uint64_t first = std::min(kLengthBytes, file.bytes);
    WaitFor(file.name, first);
    uint64_t length = 0;
    std::ifstream(record_.folder() / file.name, std::ios::binary)
        .read(reinterpret_cast<char*>(&length), static_cast<std::streamsize>(first));
    return length > file.bytes - first ? first : first + length;
  }

  fs::path folder_;
  const std::atomic<bool>& cancel_;
  LandedReader record_;
  ModelConfig config_;
  std::optional<ModelWeights> weights_;
};

CheckpointLoader::CheckpointLoader(PullOptions options, std::optional<WeightType> type)
    : type_(type), puller_(std::move(options)) {}

CheckpointLoader::~CheckpointLoader() { EndFollow(); }

WeightType CheckpointLoader::TypeFor(const ModelWeights& weights) const {
  return type_.value_or(TypeOfMost(weights));
}

void CheckpointLoader::Follow(const fs::path& staging) {
  EndFollow();
  progress_.bytes = progress_.total = 0;
  try {
    follow_ = std::make_unique<Following>(staging, progress_.cancel);
    follow_->thread = std::thread([this] { FollowThread(); });
  } catch (const std::exception& error) {
    log::Info("the staging in {} is not followed: {}", staging.string(), error.what());
    follow_.reset();  // the thread may have ended already
  }
}

void CheckpointLoader::FollowThread() {
  Following& follow = *follow_;
  try {
    if (!puller_.options().uuid.empty()) UseGpu(puller_.options().uuid);
    follow.ReadShape();
    if (held_ && !held_->SameShape(follow.weights(), TypeFor(follow.weights()))) {
      return log::Info("the staging in {} is not followed: the device's weights have another shape",
                       follow.folder().string());
    }
    Place(follow.weights());
    follow.report = puller_.Run(held_->transfers(), &follow, &progress_);
    follow.pulled = true;
  } catch (const std::exception& error) {
    const auto* fault = dynamic_cast<const DeviceError*>(&error);
    if (fault != nullptr && !fault->sticky()) ClearError();
    if (progress_.cancel) return;
    log::Warn("the staging in {} is not followed to its end: {}", follow.folder().string(),
              error.what());
  }
}

// Ends the follow and discards what it pulled.
void CheckpointLoader::EndFollow() {
  if (follow_ != nullptr && follow_->thread.joinable()) {
    progress_.cancel = true;
    follow_->thread.join();
  }
  progress_.cancel = false;
  follow_.reset();
}

// Afterwards there is either no follow, or one that has pulled all of `directory`.
void CheckpointLoader::Settle(const fs::path& directory) {
  if (follow_ == nullptr) return;
  if (!follow_->IsPublishedAs(directory)) return EndFollow();
  if (follow_->thread.joinable()) follow_->thread.join();
  if (!follow_->pulled) EndFollow();
}

void CheckpointLoader::Place(const ModelWeights& weights) {
  const WeightType type = TypeFor(weights);
  if (held_ && held_->SameShape(weights, type)) return held_->Rebind(weights);
  held_.reset();
  held_.emplace(weights, type);
}

bool CheckpointLoader::Keeps(const ModelWeights& weights) {
  Settle(weights.files().directory());
  return held_ && held_->SameShape(weights, TypeFor(weights));
}

const DeviceWeights& CheckpointLoader::Load(const fs::path& directory,
                                            const ModelWeights& weights) {
  const int64_t begin = MonotonicMicros();
  const bool keeps = Keeps(weights);
  const bool followed = keeps && follow_ != nullptr;
  if (!followed) progress_.cancel = false;
  Place(weights);
  report_ = followed ? follow_->report : puller_.Run(held_->transfers(), nullptr, &progress_);
  followed_bytes_ = followed ? report_.bytes : 0;
  follow_.reset();
  load_seconds_ = SecondsSince(begin);
  log::Info("{}: {} on the device in {:.2f} s, {:.1f} GB/s{}", directory.string(),
            HumanBytes(report_.bytes), report_.seconds, report_.gb_per_s(),
            followed ? ", while it was staged" : "");
  return *held_;
}

Json CheckpointLoader::Report() const {
  Json report = ToJson(report_);
  report["followed"] = followed_bytes_;
  report["load_seconds"] = load_seconds_;
  return report;
}

}  // namespace evald::native::cuda
