#include "orchestrator/schedule/prior.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

namespace evald {
namespace {

constexpr double kGuessedShareOfLimit = 0.3;
constexpr double kGuessedOperationsPerSecond = 1e12;
constexpr double kGuessedBytes = 1e9;  // a model whose weights are not ours
constexpr double kBytesPerParameter = 2;
constexpr double kGuessedSlowScore = 0.3;  // seconds for running one program
constexpr double kGuessedQuickScore = 1e-4;

using Costs = std::vector<const TaskCost*>;

Costs Select(const std::vector<TaskCost>& known,
             const std::function<bool(const TaskCost&)>& wanted) {
  Costs selected;
  for (const TaskCost& cost : known) {
    if (cost.documents > 0 && wanted(cost)) selected.push_back(&cost);
  }
  std::sort(selected.begin(), selected.end(),
            [](const TaskCost* a, const TaskCost* b) { return a->ended > b->ended; });
  return selected;
}

// A mean of `of` over the runs' documents, in which the newest run counts most.
double Recent(const Costs& costs, const std::function<double(const TaskCost&)>& of) {
  double sum = 0, weights = 0, weight = 1;
  for (const TaskCost* cost : costs) {
    sum += weight * of(*cost);
    weights += weight;
    weight /= 2;
  }
  return weights > 0 ? sum / weights : 0;
}

double PerDocument(const TaskCost& cost, double sum) {
  return sum / static_cast<double>(cost.documents);
}
double DeviceSeconds(const TaskCost& cost) { return PerDocument(cost, cost.device_s); }

// How far runs were from their mean, as a factor. It is never below 1.05.
double SpreadFactor(const Costs& costs, double mean) {
  double worst = 1.05;
  for (const TaskCost* cost : costs) {
    const double value = DeviceSeconds(*cost);
    if (value > 0 && mean > 0) worst = std::max(worst, std::max(value / mean, mean / value));
  }
  return worst;
}

double Bytes(const CostPlace& place) {
  return place.model_bytes > 0 ? place.model_bytes : kGuessedBytes;
}

// Seconds of a device per token.
struct Rates {
  double in = 0;
  double out = 0;
};

// Fits device_s = in * tokens_in + out * tokens_out to runs of other tasks, each scaled to this
// model's size, by least squares of relative errors. Neither rate is below zero.
std::optional<Rates> FitRates(const Costs& costs, const CostPlace& place) {
  double ii = 0, io = 0, oo = 0, i1 = 0, o1 = 0;
  for (const TaskCost* cost : costs) {
    const double seconds = cost->device_s * Bytes(place) / Bytes(cost->place);
    if (seconds <= 0) continue;
    const double in = cost->tokens_in / seconds, out = cost->tokens_out / seconds;
    ii += in * in, io += in * out, oo += out * out, i1 += in, o1 += out;
  }
  const double determinant = ii * oo - io * io;
  if (determinant > 1e-9 * ii * oo) {
    const Rates both{(i1 * oo - o1 * io) / determinant, (o1 * ii - i1 * io) / determinant};
    if (both.in >= 0 && both.out >= 0) return both;
  }
  if (oo > 0 && (ii == 0 || o1 * o1 / oo >= i1 * i1 / ii)) return Rates{0, o1 / oo};
  if (ii > 0) return Rates{i1 / ii, 0};
  return std::nullopt;
}

// Tokens that a document generates: what this task generated elsewhere, else `share` of its limit.
double TokensOut(const TaskFacts& facts, const std::vector<TaskCost>& known, double share) {
  const Costs same =
      Select(known, [&](const TaskCost& cost) { return cost.task_key == facts.key; });
  if (!same.empty())
    return Recent(same, [](const TaskCost& cost) { return PerDocument(cost, cost.tokens_out); });
  return facts.generates ? share * facts.tokens_out_most : 0;
}

void EstimateScoring(const TaskFacts& facts, const std::vector<TaskCost>& known, Prior* prior) {
  const auto per_document = [](const TaskCost& cost) {
    return cost.score_s / static_cast<double>(cost.scored);
  };
  const Costs same =
      Select(known, [&](const TaskCost& c) { return c.scored > 0 && c.task_key == facts.key; });
  if (!same.empty()) {
    prior->estimate.score_s = Recent(same, per_document);
    return;
  }
  prior->estimate.score_s = facts.slow_scoring ? kGuessedSlowScore : kGuessedQuickScore;
}

std::string Runs(const Costs& costs, const char* where) {
  return fmt::format("{} run{} {}", costs.size(), costs.size() == 1 ? "" : "s", where);
}

// Runs of this very task for which `wanted` holds; failing those, runs of a task of its name with
// other data.
struct Found {
  Costs costs;
  bool same_data = true;
};
Found SelectTask(const TaskFacts& facts, const std::vector<TaskCost>& known,
                 const std::function<bool(const TaskCost&)>& wanted) {
  Found found{
      Select(known, [&](const TaskCost& c) { return c.task_key == facts.key && wanted(c); }), true};
  if (!found.costs.empty()) return found;
  return {Select(known, [&](const TaskCost& c) { return c.task == facts.name && wanted(c); }),
          false};
}

bool FromRunsHere(const TaskFacts& facts, const CostPlace& place,
                  const std::vector<TaskCost>& known, Prior* prior) {
  const auto [here, same_data] =
      SelectTask(facts, known, [&](const TaskCost& c) { return c.place == place; });
  if (here.empty()) return false;
  prior->estimate.device_s = Recent(here, DeviceSeconds);
  for (const TaskCost* cost : here)
    prior->estimate.request_s = std::max(prior->estimate.request_s, cost->longest_s);
  prior->factor = std::max(same_data ? 1.0 : 1.5, SpreadFactor(here, prior->estimate.device_s));
  prior->weight = same_data ? 32 : 16;
  prior->basis = Runs(here, same_data ? "here" : "here, with other data");
  return true;
}

bool FromOtherModels(const TaskFacts& facts, const CostPlace& place,
                     const std::vector<TaskCost>& known, Prior* prior) {
  const auto [others, same_data] =
      SelectTask(facts, known, [&](const TaskCost& c) { return c.place.device == place.device; });
  if (others.empty()) return false;
  const auto ratio = [&](const TaskCost& cost) { return Bytes(place) / Bytes(cost.place); };
  prior->estimate.device_s =
      Recent(others, [&](const TaskCost& c) { return DeviceSeconds(c) * ratio(c); });
  for (const TaskCost* cost : others) {
    prior->estimate.request_s = std::max(prior->estimate.request_s, cost->longest_s * ratio(*cost));
  }
  prior->factor = same_data ? 2 : 2.5;
  prior->weight = 8;
  prior->basis = Runs(others, "with another model");
  return true;
}

// The whole device is the program's while it runs.
bool FromDeclaration(const TaskFacts& facts, Prior* prior) {
  if (facts.declared_s <= 0) return false;
  prior->estimate.device_s = facts.declared_s;
  prior->estimate.request_s = facts.declared_s;
  prior->factor = 10;
  prior->weight = 0.5;
  prior->basis = "its time limit";
  return true;
}

double GuessedRate(const CostPlace& place) {
  return 2 * Bytes(place) / kBytesPerParameter / kGuessedOperationsPerSecond;
}

// Fitted rates may say that tokens in cost nothing, if all tasks had equally many. The guess is
// better then.
double PrefixSeconds(const TaskFacts& facts, const CostPlace& place, const Costs& neighbours) {
  if (facts.prefix_tokens <= 0) return 0;
  const auto fitted = FitRates(neighbours, place);
  return facts.prefix_tokens * (fitted && fitted->in > 0 ? fitted->in : GuessedRate(place));
}

void FromTokens(const TaskFacts& facts, const CostPlace& place, int places,
                const std::vector<TaskCost>& known, const Costs& neighbours, Prior* prior) {
  const auto fitted = FitRates(neighbours, place);
  const double guess = GuessedRate(place);
  const Rates rates = fitted.value_or(Rates{guess, guess});
  const double tokens_out = TokensOut(facts, known, kGuessedShareOfLimit);
  TaskEstimate& estimate = prior->estimate;
  estimate.device_s = rates.in * facts.tokens_in + rates.out * tokens_out;
  if (estimate.device_s <= 0) estimate.device_s = guess;
  // All requests on the device at once share its time, so one request takes `places` times its own.
  estimate.request_s =
      (rates.in * facts.tokens_in + rates.out * std::max(tokens_out, facts.tokens_out_most)) *
      places;
  prior->factor = fitted ? 3 : 30;
  prior->weight = fitted ? 2 : 0.5;
  prior->basis = fitted
                     ? fmt::format("tokens, at the rates of {}", Runs(neighbours, "of other tasks"))
                     : "a guess";
}

}  // namespace

Prior EstimateTask(const TaskFacts& facts, const CostPlace& place, int places,
                   const std::vector<TaskCost>& known) {
  Prior prior;
  prior.estimate.name = facts.name;
  prior.estimate.documents = facts.documents;
  prior.estimate.size = facts.generates ? 20 : 1;
  EstimateScoring(facts, known, &prior);
  const Costs neighbours =
      Select(known, [&](const TaskCost& c) { return c.place.device == place.device; });
  prior.estimate.prefix_s = PrefixSeconds(facts, place, neighbours);
  if (!FromRunsHere(facts, place, known, &prior) && !FromOtherModels(facts, place, known, &prior) &&
      !FromDeclaration(facts, &prior)) {
    FromTokens(facts, place, places, known, neighbours, &prior);
  }
  prior.estimate.doubt = prior.factor;
  return prior;
}

}  // namespace evald
