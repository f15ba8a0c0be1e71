#include "datasets/sampler.h"

#include <fmt/format.h>

#include <numeric>

#include "evald/error.h"
#include "python/value.h"

namespace evald {

FewshotSampler::FewshotSampler(const std::string& kind, const std::vector<Json>& pool, int64_t seed,
                               std::string where)
    : first_n_(kind == "first_n"), pool_(pool), random_(seed), where_(std::move(where)) {}

void FewshotSampler::Fail(size_t count, size_t available) const {
  throw Error(ErrorKind::kInput,
              fmt::format("{}: {} few-shot examples are to be chosen (one more where the "
                          "document itself may be among them), and {} documents are there",
                          where_, count, available));
}

std::vector<size_t> FewshotSampler::Draw(const std::vector<size_t>& from, size_t count) {
  if (count > from.size()) Fail(count, from.size());
  std::vector<size_t> drawn;
  for (size_t at : random_.SampleIndices(from.size(), count)) drawn.push_back(from[at]);
  return drawn;
}

std::vector<size_t> FewshotSampler::Without(const std::vector<size_t>& positions,
                                            const Json& doc) const {
  std::vector<size_t> kept;
  for (size_t at : positions) {
    if (!PythonEquals(pool_[at], doc)) kept.push_back(at);
  }
  return kept;
}

std::vector<size_t> FewshotSampler::FirstN(size_t count, const Json* exclude) const {
  std::vector<size_t> chosen;
  for (size_t at = 0; at < pool_.size() && chosen.size() < count; ++at) {
    if (exclude == nullptr || !PythonEquals(pool_[at], *exclude)) chosen.push_back(at);
  }
  if (chosen.size() < count) Fail(count, chosen.size());
  return chosen;
}

std::vector<size_t> FewshotSampler::Sample(size_t count, const Json* exclude) {
  if (count == 0) return {};
  if (first_n_) return FirstN(count, exclude);
  std::vector<size_t> all(pool_.size());
  std::iota(all.begin(), all.end(), size_t{0});
  if (exclude == nullptr || exclude->empty()) return Draw(all, count);
  // Draws one more, in case the document itself is among them.
  std::vector<size_t> drawn = Without(Draw(all, count + 1), *exclude);
  if (drawn.size() > count) drawn.resize(count);
  return drawn.size() == count ? drawn : Draw(Without(all, *exclude), count);
}

}  // namespace evald
