#include "base/problems.h"

#include <fmt/format.h>

#include <algorithm>

namespace evald {
namespace {

constexpr size_t kShownMax = 40;  // on the one line

std::string AllOnOneLine(const std::vector<Error>& each) {
  std::string line = fmt::format("{} problems", each.size());
  for (size_t i = 0; i < std::min(each.size(), kShownMax); ++i)
    line += fmt::format("{} ({}) {}", i == 0 ? ":" : ",", i + 1, each[i].what());
  if (each.size() > kShownMax) line += fmt::format(", and {} more", each.size() - kShownMax);
  return line;
}

}  // namespace

Problems::Problems(std::vector<Error> each)
    : Error(each.front().kind(), AllOnOneLine(each)), each_(std::move(each)) {}

std::vector<Error> EachOf(const Error& error) {
  const auto* several = dynamic_cast<const Problems*>(&error);
  return several == nullptr ? std::vector<Error>{error} : several->each();
}

void ProblemList::Add(const Error& error) {
  if (ExitStatusFor(error.kind()) != ExitStatus::kUsage) throw Error(error);
  for (const Error& one : EachOf(error)) {
    const bool known = std::any_of(errors_.begin(), errors_.end(), [&](const Error& other) {
      return other.message() == one.message();
    });
    if (!known) errors_.push_back(one);
  }
}

void ProblemList::ThrowIfAny() const {
  if (errors_.size() == 1) throw Error(errors_.front());
  if (!errors_.empty()) throw Problems(errors_);
}

}  // namespace evald
