#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "orchestrator/schedule/lease_table.h"

namespace evald {

/// The names under which tests speak of the processes that hold leases.
struct HolderNames {
  std::unordered_map<std::string, Holder> numbers;
  std::vector<std::string> names;
  static HolderNames& All() {
    static HolderNames all;
    return all;
  }
};

inline Holder NumberOf(const std::string& name) {
  HolderNames& all = HolderNames::All();
  const auto [found, fresh] = all.numbers.try_emplace(name, static_cast<Holder>(all.names.size()));
  if (fresh) all.names.push_back(name);
  return found->second;
}

inline const std::string& NameOf(Holder number) {
  return HolderNames::All().names.at(static_cast<size_t>(number));
}

inline Holder operator""_p(const char* name, size_t length) {
  return NumberOf(std::string(name, length));
}

}  // namespace evald
