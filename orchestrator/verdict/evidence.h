#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace evald {

/// Evidence on a drop from the documents: how much worse the candidate is than the value that it is
/// compared with, in the metric's units; positive is worse. The sources of each method are in
/// docs/metrics.md. Immutable; one value for each gate.
class Evidence {
 public:
  virtual ~Evidence() = default;

  /// "exact McNemar and Tango's score interval", for people.
  virtual std::string method() const = 0;
  virtual double estimate() const = 0;
  /// One-sided p-value against "the drop is at most `margin`": small if the drop is larger.
  virtual double PAbove(double margin) const = 0;
  /// One-sided p-value against "the drop is at least `margin`": small if the drop is smaller.
  virtual double PBelow(double margin) const = 0;
  /// One-sided confidence bounds with the chance `error` in (0, 1) of lying beyond the true drop.
  virtual double Lower(double error) const = 0;
  virtual double Upper(double error) const = 0;
};

/// Documents on which both sides are right or wrong.
struct PairCounts {
  int64_t pairs = 0;   ///< documents compared, > 0
  int64_t lost = 0;    ///< right for the baseline alone
  int64_t gained = 0;  ///< right for the candidate alone
};

/// Tango's score interval; PAbove(0) is the exact one-sided McNemar test.
std::unique_ptr<Evidence> PairedProportions(const PairCounts& counts);

/// The shortfall of the proportion of `right` among `total` > 0 documents from `target` (with
/// `lower_is_better`: its excess), by Wilson's score interval.
std::unique_ptr<Evidence> ShortOfTarget(int64_t right, int64_t total, double target,
                                        bool lower_is_better);

/// Positions of documents, one list for each stratum.
using Resample = std::vector<std::vector<uint32_t>>;

struct BootstrapInput {
  std::vector<size_t> sizes;  ///< documents in each stratum, > 0; drawn within the stratum
  /// The drop on these documents; NaN if it is not defined on them.
  std::function<double(const Resample&)> drop;
  int replicates = 10000;  ///< fewer, but at least 2000, for more than 30,000 documents
  uint64_t seed = 20240229;
};

/// Bias-corrected and accelerated bootstrap over documents. Replicate r draws from a generator that
/// is a function of (seed, stratum, r, position), so equal documents give equal numbers everywhere.
/// Null if the drop is undefined on the documents or on more than 1 % of the replicates.
std::unique_ptr<Evidence> Bootstrap(const BootstrapInput& input);

/// The exact one-sided McNemar test: P(X >= lost) for X binomial with lost + gained draws and 1/2.
double McNemarOneSided(int64_t lost, int64_t gained);

/// Standard normal distribution: P(Z <= z), and the z of a probability in (0, 1).
double NormalCdf(double z);
double NormalQuantile(double probability);

}  // namespace evald
