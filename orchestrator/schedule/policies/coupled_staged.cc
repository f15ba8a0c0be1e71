#include "orchestrator/schedule/policies/dataset_order.h"

namespace evald {
namespace {

class CoupledStaged : public Policy {
 public:
  const char* name() const override { return "coupled+staged"; }
  const char* summary() const override {
    return "coupled, with the checkpoint read once by each host";
  }
  Decouplings decouplings() const override { return {true, false, false, false, false}; }
  std::vector<Cut> Next(const OpenWork& work, int) override { return NextDataset(work); }
};

}  // namespace

std::unique_ptr<Policy> MakeCoupledStagedPolicy() { return std::make_unique<CoupledStaged>(); }

}  // namespace evald
