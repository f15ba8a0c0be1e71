#include "orchestrator/schedule/policies/dataset_order.h"

namespace evald {
namespace {

class Coupled : public Policy {
 public:
  const char* name() const override { return "coupled"; }
  const char* summary() const override {
    return "one trial per dataset, loading for itself and scoring while it holds its device";
  }
  Decouplings decouplings() const override { return {false, false, false, false, false}; }
  std::vector<Cut> Next(const OpenWork& work, int) override { return NextDataset(work); }
};

}  // namespace

std::unique_ptr<Policy> MakeCoupledPolicy() { return std::make_unique<Coupled>(); }

}  // namespace evald
