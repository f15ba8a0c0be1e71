#include <fmt/format.h>

#include <algorithm>

#include "jinja/interpreter.h"

namespace evald::jinja {

BoundArgs::BoundArgs(Interpreter* in, const std::string& function, const Args& args,
                     std::vector<std::string> names, size_t required, size_t positional_only)
    : in_(in), function_(function), names_(std::move(names)), values_(names_.size(), nullptr) {
  if (args.positional.size() > names_.size()) {
    in_->Fail(fmt::format("{} takes at most {} arguments, {} were given", function_, names_.size(),
                          args.positional.size()));
  }
  for (size_t i = 0; i < args.positional.size(); ++i) values_[i] = &args.positional[i];
  for (const auto& [name, value] : args.named) {
    const auto found =
        std::find(names_.begin() + static_cast<ptrdiff_t>(std::min(positional_only, names_.size())),
                  names_.end(), name);
    if (found == names_.end()) in_->Fail(fmt::format("{} has no argument '{}'", function_, name));
    const Value*& slot = values_[static_cast<size_t>(found - names_.begin())];
    if (slot != nullptr) in_->Fail(fmt::format("{} got two values for '{}'", function_, name));
    slot = &value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (values_[i] == nullptr) {
      in_->Fail(fmt::format("{} needs the argument '{}'", function_, names_[i]));
    }
  }
}

std::string BoundArgs::Text(size_t i, const std::string& fallback) const {
  if (!Has(i)) return fallback;
  if (At(i).IsUndefined()) in_->Stop(At(i).undefined()->message);
  if (!At(i).IsString()) {
    in_->Fail(fmt::format("{}: '{}' is a {}, not a string", function_, names_[i], TypeName(At(i))));
  }
  return std::string(At(i).AsText());
}

int64_t BoundArgs::Int(size_t i, int64_t fallback) const {
  if (!Has(i)) return fallback;
  if (At(i).IsUndefined()) in_->Stop(At(i).undefined()->message);
  if (!At(i).IsInteger()) {
    in_->Fail(
        fmt::format("{}: '{}' is a {}, not an integer", function_, names_[i], TypeName(At(i))));
  }
  return At(i).AsInt();
}

bool BoundArgs::Flag(size_t i, bool fallback) const {
  return Has(i) ? in_->Truth(At(i)) : fallback;
}

}  // namespace evald::jinja
