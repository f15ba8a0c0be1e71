#include "orchestrator/schedule/policies/dataset_order.h"

namespace evald {
namespace {

class DecoupledFifo : public Policy {
 public:
  const char* name() const override { return "decoupled-fifo"; }
  const char* summary() const override {
    return "staged, scored elsewhere, warm; one trial per dataset in the order of the list";
  }
  Decouplings decouplings() const override { return {true, true, false, true, true}; }
  std::vector<Cut> Next(const OpenWork& work, int) override { return NextDataset(work); }
};

}  // namespace

std::unique_ptr<Policy> MakeFifoPolicy() { return std::make_unique<DecoupledFifo>(); }

}  // namespace evald
