#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "evald/json.h"
#include "worker/native/cuda/device_weights.h"
#include "worker/native/cuda/pull.h"
#include "worker/native/weights.h"

namespace evald::native::cuda {

/// Holds the weights of one checkpoint on a device, one after the other, and gets them there. The
/// next checkpoint of the same shape takes the same memory. One thread at a time; progress() and
/// Cancel() any.
///
/// Following: while a checkpoint is being staged, Follow pulls what has landed
/// (checkpoint/landed.h) on a thread of its own. The Load of what came of it then has little left
/// to do. A staging that fails, or a Load of something else, makes an end of it; what was pulled
/// then counts for nothing.
///
/// A Load, where `device` is what was built on the weights before:
///
///     ModelWeights weights(directory, config);
///     if (!loader.Keeps(weights)) device.reset();  // with all its memory
///     loader.Load(directory, weights);
class CheckpointLoader {
 public:
  /// `type`: of matrices on the device, TypeOfMost by default.
  explicit CheckpointLoader(PullOptions options, std::optional<WeightType> type = {});
  ~CheckpointLoader();  ///< cancels what is under way
  CheckpointLoader(const CheckpointLoader&) = delete;
  CheckpointLoader& operator=(const CheckpointLoader&) = delete;

  /// Begins to pull what lands in `staging`, a folder with a record of what has landed. The weights
  /// that are held answer no more from here on: nothing may be queued that uses them. A checkpoint
  /// of another shape is not followed where there is one already, since its memory is taken.
  /// Returns at once and never throws: what goes wrong is logged, and Load then does all.
  void Follow(const std::filesystem::path& staging);

  /// Whether Load would put the weights where others are: what points at them stays valid. Else
  /// whatever uses weights() must be gone before Load, which gives their memory back first. Waits
  /// for what is followed, where that is this checkpoint, and makes an end of it where it is
  /// another.
  bool Keeps(const ModelWeights& weights);

  /// Makes `weights`, of the published checkpoint in `directory`, the ones that are held. They must
  /// stay where they are until the next Load. Throws as DeviceWeights and Puller::Run do; nothing
  /// is held then, and the next Load may succeed.
  const DeviceWeights& Load(const std::filesystem::path& directory, const ModelWeights& weights);

  /// Must not be called before a Load has succeeded. Its address stays the same.
  const DeviceWeights& weights() const { return *held_; }
  /// Of the pull that is under way, or the last one.
  const PullProgress& progress() const { return progress_; }
  /// Ends the pull that is under way.
  void Cancel() { progress_.cancel = true; }
  /// What the last Load did: ToJson(PullReport), with "load_seconds", the time that Load itself
  /// took, and "followed", the bytes that were pulled while the checkpoint was staged.
  Json Report() const;

 private:
  class Following;

  WeightType TypeFor(const ModelWeights& weights) const;
  void FollowThread();
  void EndFollow();
  void Settle(const std::filesystem::path& directory);
  void Place(const ModelWeights& weights);

  std::optional<WeightType> type_;
  PullProgress progress_;
  Puller puller_;
  std::optional<DeviceWeights> held_;  ///< the follow's thread has it while there is one
  std::unique_ptr<Following> follow_;
  PullReport report_;
  uint64_t followed_bytes_ = 0;
  double load_seconds_ = 0;
};

}  // namespace evald::native::cuda
