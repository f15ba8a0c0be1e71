#pragma once

#include <memory>
#include <string>
#include <vector>

#include "evald/json.h"
#include "python/random.h"

namespace evald {

/// Chooses few-shot documents like lm_eval/api/samplers.py (0.4.13). Its state advances with every
/// draw, so documents must be requested in their order. One thread at a time.
class FewshotSampler {
 public:
  /// `kind` is default or first_n. `pool` must outlive the sampler. `where` is used in errors.
  FewshotSampler(const std::string& kind, const std::vector<Json>& pool, int64_t seed,
                 std::string where);

  /// The positions in the pool of `count` documents; none of them equals `exclude`.
  std::vector<size_t> Sample(size_t count, const Json* exclude);

 private:
  [[noreturn]] void Fail(size_t count, size_t available) const;
  std::vector<size_t> Draw(const std::vector<size_t>& from, size_t count);
  std::vector<size_t> FirstN(size_t count, const Json* exclude) const;
  std::vector<size_t> Without(const std::vector<size_t>& positions, const Json& doc) const;

  bool first_n_;
  const std::vector<Json>& pool_;
  PythonRandom random_;
  std::string where_;
};

}  // namespace evald
