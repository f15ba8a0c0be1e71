#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "evald/json.h"
#include "worker/native/cuda/device_weights.h"
#include "worker/native/cuda/pull.h"
#include "worker/native/weights.h"

namespace evald::native::cuda {

/// Pulls checkpoints onto a device and holds the weights of one at a time. The next checkpoint of
/// the same shape takes the same memory. For one thread at a time; progress() and Cancel() may be
/// called from any.
///
/// Following: while a checkpoint is being staged, Follow pulls the parts that have landed
/// (checkpoint/landed.h) on a thread of its own. The Load of that checkpoint then has little left
/// to do. If the staging fails, or Load gets another checkpoint, the follow ends and the pulled
/// parts are discarded.
///
/// A Load, where `device` was built on the previous weights:
///
///     ModelWeights weights(directory, config);
///     if (!loader.Keeps(weights)) device.reset();  // with all its memory
///     loader.Load(directory, weights);
class CheckpointLoader {
 public:
  /// `type`: of the matrices on the device; TypeOfMost by default.
  explicit CheckpointLoader(PullOptions options, std::optional<WeightType> type = {});
  ~CheckpointLoader();  ///< cancels a pull that is under way
  CheckpointLoader(const CheckpointLoader&) = delete;
  CheckpointLoader& operator=(const CheckpointLoader&) = delete;

  /// Begins to pull the parts that land in `staging`, a folder with a record of what has landed.
  /// From here on the held weights are invalid: no queued operation may use them. If the device
  /// holds a checkpoint of another shape, `staging` is not followed, since the memory is taken.
  /// Returns at once and never throws: an error is logged, and Load then does all the work.
  void Follow(const std::filesystem::path& staging);

  /// Whether Load would put the weights in the place of the held ones, so that pointers to them
  /// stay valid. Otherwise every user of weights() must be gone before Load, which frees their
  /// memory first. If this checkpoint is being followed, waits for that; a follow of another
  /// checkpoint is ended.
  bool Keeps(const ModelWeights& weights);

  /// Loads `weights`, of the published checkpoint in `directory`; they must not move until the next
  /// Load. Throws as DeviceWeights and Puller::Run do; then no weights are usable, and the next
  /// Load may succeed.
  const DeviceWeights& Load(const std::filesystem::path& directory, const ModelWeights& weights);

  /// Only after a Load has succeeded. The address stays the same.
  const DeviceWeights& weights() const { return *held_; }
  /// The progress of the pull under way, or of the last one.
  const PullProgress& progress() const { return progress_; }
  /// Ends the pull under way.
  void Cancel() { progress_.cancel = true; }
  /// The report of the last Load: ToJson(PullReport), with "load_seconds", the time that Load took,
  /// and "followed", the bytes that were pulled while the checkpoint was staged.
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
  std::optional<DeviceWeights> held_;  ///< belongs to the following thread while there is one
  std::unique_ptr<Following> follow_;
  PullReport report_;
  uint64_t followed_bytes_ = 0;
  double load_seconds_ = 0;
};

}  // namespace evald::native::cuda
