#include "orchestrator/schedule/device_speeds.h"

#include <algorithm>

namespace evald {
namespace {

constexpr size_t kFasterShare = 4;  // one of so many devices is faster than an ordinary one

}  // namespace

double DeviceSpeeds::OrdinaryOf(const Task& task) {
  std::vector<double> each;
  for (const auto& [device, sum] : task.of_device) each.push_back(sum.each_s());
  const auto at = each.begin() + static_cast<ptrdiff_t>((each.size() - 1) / kFasterShare);
  std::nth_element(each.begin(), at, each.end());
  return *at;
}

void DeviceSpeeds::Measured(int device, size_t task, int64_t documents, double device_s) {
  const auto at = static_cast<size_t>(device);
  if (at >= measured_s_.size()) {
    measured_s_.resize(at + 1, 0);
    devices_.resize(at + 1);
  }
  if (documents <= 0 || device_s <= 0 || measured_s_[at] >= kMeasuredSeconds) return;
  measured_s_[at] += device_s;
  Task& of = tasks_[task];
  for (Sum* sum : {&of.of_device[device], &devices_[at][task]}) {
    sum->documents += static_cast<double>(documents);
    sum->device_s += device_s;
  }
  of.ordinary_s = OrdinaryOf(of);
}

double DeviceSpeeds::measured_s(int device) const {
  const auto at = static_cast<size_t>(device);
  return at < measured_s_.size() ? measured_s_[at] : 0;
}

size_t DeviceSpeeds::devices_of(size_t task) const {
  const auto of = tasks_.find(task);
  return of == tasks_.end() ? 0 : of->second.of_device.size();
}

double DeviceSpeeds::slowness(int device) const {
  if (measured_s(device) <= 0) return 1;
  double ordinary_s = 0;
  for (const auto& [task, sum] : devices_[static_cast<size_t>(device)])
    ordinary_s += sum.documents * tasks_.at(task).ordinary_s;
  return measured_s(device) / ordinary_s;
}

}  // namespace evald
