#include "base/random_id.h"

#include <fmt/format.h>

#include <random>

namespace evald {

std::string RandomId(int words) {
  std::random_device device;
  std::string id;
  for (int i = 0; i < words; ++i) id += fmt::format("{:08x}", device());
  return id;
}

}  // namespace evald
