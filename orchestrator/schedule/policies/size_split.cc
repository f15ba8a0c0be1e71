#include <algorithm>
#include <cmath>
#include <utility>

#include "orchestrator/schedule/policies/dataset_order.h"
#include "orchestrator/schedule/policies/planned_trials.h"

namespace evald {
namespace {

/// OpenCompass's way (its SizePartitioner). A dataset's size is its number of rows, times twenty if
/// it generates. Datasets are cut into equal parts up to a size, small ones are put together up to
/// that size, and the largest starts first. Each part is a process that loads for itself; scoring
/// is another job. OpenCompass has one size for all runs, set by people; here the size is a quarter
/// of a device's share.
class SizeSplit : public Policy {
 public:
  const char* name() const override { return "size-split"; }
  const char* summary() const override {
    return "equal parts by number of rows, largest first, each loading for itself, scored "
           "elsewhere";
  }
  Decouplings decouplings() const override { return {false, true, false, false, false}; }

  std::vector<Cut> Next(const OpenWork& work, int) override {
    if (!planned_) Plan(work);
    std::vector<Cut> next = trials_.Next(work);
    return next.empty() ? NextDataset(work) : next;
  }

 private:
  struct Part {
    Cut cut;
    double size = 0;
    bool whole = true;  // all open documents of the task
  };

  void Plan(const OpenWork& work) {
    planned_ = true;
    double total = 0;
    for (size_t task = 0; task < work.tasks(); ++task) {
      total += work.estimate(task).size * static_cast<double>(work.open(task));
    }
    const double limit = total / std::max(1, work.devices()) / 4;
    std::vector<Part> parts;
    for (size_t task = 0; task < work.tasks(); ++task) Split(work, task, limit, &parts);
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Part& a, const Part& b) { return a.size > b.size; });
    std::vector<Cut> batch;
    double size = 0;
    for (const Part& part : parts) {
      if (!batch.empty() && size + part.size > limit) {
        trials_.Add(std::exchange(batch, {}));
        size = 0;
      }
      AddPart(&batch, part);
      size += part.size;
    }
    trials_.Add(std::move(batch));
  }

  // A trial holds each task once. (Parts of split tasks are large: few are in a trial.)
  static void AddPart(std::vector<Cut>* trial, const Part& part) {
    const auto same =
        part.whole ? trial->end() : std::find_if(trial->begin(), trial->end(), [&](const Cut& cut) {
          return cut.task == part.cut.task;
        });
    if (same != trial->end()) {
      same->documents += part.cut.documents;
    } else {
      trial->push_back(part.cut);
    }
  }

  static void Split(const OpenWork& work, size_t task, double limit, std::vector<Part>* parts) {
    const int64_t open = work.open(task);
    if (open == 0) return;
    const double each = work.estimate(task).size;
    const double whole = each * static_cast<double>(open);
    const double wanted = limit > 0 ? std::ceil(whole / limit) : 1;
    const auto count = static_cast<int64_t>(std::clamp(wanted, 1.0, static_cast<double>(open)));
    for (int64_t part = 0; part < count; ++part) {
      const int64_t documents = open * (part + 1) / count - open * part / count;
      parts->push_back({{task, documents}, each * static_cast<double>(documents), count == 1});
    }
  }

  PlannedTrials trials_;
  bool planned_ = false;
};

}  // namespace

std::unique_ptr<Policy> MakeSizeSplitPolicy() { return std::make_unique<SizeSplit>(); }

}  // namespace evald
