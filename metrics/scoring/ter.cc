// ter: sacrebleu's corpus_ter with its defaults, which follow Tercom (Snover et al. 2006): the
// least number of edits that a search finds, where moving a sequence of words is one edit, over the
// length of the reference. Lower case; words are what white space separates.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include "evald/error.h"
#include "metrics/scoring/corpus_metric.h"
#include "python/unicode.h"

namespace evald {
namespace {

// Limits of the search.
constexpr size_t kMovedWordsMax = 10;
constexpr int64_t kDistanceMax =
    50;                    // between a sequence's place in the answer and in the reference
constexpr int kBeam = 25;  // cells on each side of the diagonal
constexpr int kCandidatesMax = 1000;  // moves that are tried
// Not sacrebleu's: texts so long that the search may take more than some seconds are refused. The
// cells of one table, of which the search fills one for each move:
constexpr size_t kCellsMax = 1'000'000;

using Words = std::u32string;

enum class Edit : char { kNone, kKeep, kReplace, kDelete, kInsert };

// An alignment of an answer and a reference.
struct Alignment {
  std::vector<int64_t> answer_at;  // by word of the reference; -1: before the answer's first word
  // [i]: wrong words among the first i
  std::vector<int> answer_wrong{0}, reference_wrong{0};
};

// The distances between prefixes of an answer and of the reference. Each answer is of the same
// length. Rows of words that are as in the last answer are not computed again. A row holds the
// cells near the diagonal; all others are infinitely far.
class EditTable {
 public:
  EditTable(const Words& reference, size_t answer_size)
      : reference_(reference), rows_(answer_size + 1) {
    const auto columns = static_cast<int64_t>(reference.size()) + 1;
    rows_[0].cells.resize(reference.size() + 1);
    for (size_t j = 0; j <= reference.size(); ++j) {
      rows_[0].cells[j] = {static_cast<int>(j), Edit::kInsert};
    }
    if (answer_size == 0) return;
    const double ratio = static_cast<double>(reference.size()) / static_cast<double>(answer_size);
    int64_t beam = kBeam;
    if (kBeam < ratio / 2) beam = static_cast<int64_t>(std::ceil(ratio / 2 + kBeam));
    for (size_t i = 1; i <= answer_size; ++i) {
      const auto diagonal = static_cast<int64_t>(std::floor(static_cast<double>(i) * ratio));
      rows_[i].first = std::max<int64_t>(0, diagonal - beam);
      const int64_t end = i == answer_size ? columns : std::min(columns, diagonal + beam);
      rows_[i].cells.resize(static_cast<size_t>(std::max<int64_t>(0, end - rows_[i].first)));
    }
  }

  int Distance(const Words& answer) {
    size_t same = 0;
    while (same < last_.size() && last_[same] == answer[same]) ++same;
    for (size_t i = same + 1; i <= answer.size(); ++i) Fill(i, answer);
    last_ = answer;
    return rows_.back().cells.back().cost;
  }

  // Of the last answer. Insertions and deletions are those that make the answer from the reference.
  Alignment Align() const {
    std::vector<Edit> edits;
    for (size_t i = last_.size(), j = reference_.size(); i > 0 || j > 0;) {
      const Edit edit = rows_[i].At(static_cast<int64_t>(j)).edit;
      if (edit == Edit::kNone) throw Error(ErrorKind::kInput, "ter: no alignment in the beam");
      edits.push_back(edit);
      if (edit != Edit::kInsert) --i;
      if (edit != Edit::kDelete) --j;
    }
    Alignment alignment;
    const auto add = [](std::vector<int>* wrong, Edit edit) {
      wrong->push_back(wrong->back() + (edit == Edit::kKeep ? 0 : 1));
    };
    int64_t at = -1;
    for (auto edit = edits.rbegin(); edit != edits.rend(); ++edit) {
      if (*edit != Edit::kInsert) {
        ++at;
        add(&alignment.answer_wrong, *edit);
      }
      if (*edit != Edit::kDelete) {
        alignment.answer_at.push_back(at);
        add(&alignment.reference_wrong, *edit);
      }
    }
    return alignment;
  }

 private:
  static constexpr int kFar = 1'000'000'000;
  struct Cell {
    int cost = kFar;
    Edit edit = Edit::kNone;
  };
  struct Row {
    int64_t first = 0;  // the column of the first cell
    std::vector<Cell> cells;

    Cell At(int64_t column) const {
      const int64_t at = column - first;
      return at >= 0 && at < static_cast<int64_t>(cells.size()) ? cells[static_cast<size_t>(at)]
                                                                : Cell();
    }
  };

  void Fill(size_t i, const Words& answer) {
    Row& row = rows_[i];
    const Row& above = rows_[i - 1];
    Cell left;
    for (size_t at = 0; at < row.cells.size(); ++at) {
      const int64_t j = row.first + static_cast<int64_t>(at);
      Cell& cell = row.cells[at];
      cell = Cell();
      if (j == 0) {
        cell = {above.At(0).cost + 1, Edit::kDelete};
      } else {
        const bool same = answer[i - 1] == reference_[static_cast<size_t>(j) - 1];
        Improve(&cell, above.At(j - 1).cost + (same ? 0 : 1), same ? Edit::kKeep : Edit::kReplace);
        Improve(&cell, above.At(j).cost + 1, Edit::kDelete);
        Improve(&cell, left.cost + 1, Edit::kInsert);
      }
      left = cell;
    }
  }

  static void Improve(Cell* cell, int cost, Edit edit) {
    if (cost < cell->cost) *cell = {cost, edit};
  }

  const Words& reference_;
  std::vector<Row> rows_;  // [answer's words + 1]
  Words last_;
};

// The answer with words [start, start + count) moved before what was word `target`.
Words Moved(const Words& words, size_t start, size_t count, size_t target) {
  Words moved = words.substr(start, count);
  Words rest = words.substr(0, start) + words.substr(start + count);
  // A target after the sequence counts the sequence's words too.
  size_t at = target;
  if (target > start + count) at = target - count;
  rest.insert(std::min(at, rest.size()), moved);
  return rest;
}

// Looks for the move that lowers the distance most.
class Mover {
 public:
  Mover(const Words& reference, size_t answer_size)
      : reference_(reference), table_(reference, answer_size) {}

  // The least number of edits that is found, moves included.
  int Edits(Words answer) {
    int moves = 0;
    while (true) {
      const std::optional<Candidate> best = Best(answer);
      if (tried_ >= kCandidatesMax || !best || best->gain <= 0) break;
      answer = Moved(answer, best->start, best->count, best->target);
      ++moves;
    }
    return moves + table_.Distance(answer);
  }

 private:
  struct Candidate {
    int gain;
    size_t count, start, target;

    // Of equal gains the longest sequence, then the first one, then the first target.
    bool operator>(const Candidate& other) const {
      return std::tie(gain, count, other.start, other.target) >
             std::tie(other.gain, other.count, start, target);
    }
  };

  std::optional<Candidate> Best(const Words& answer) {
    best_.reset();
    before_ = table_.Distance(answer);
    alignment_ = table_.Align();
    const auto answer_size = static_cast<int64_t>(answer.size());
    const auto reference_size = static_cast<int64_t>(reference_.size());
    for (int64_t start = 0; start < answer_size; ++start) {
      const int64_t last = std::min(reference_size - 1, start + kDistanceMax);
      for (int64_t from = std::max<int64_t>(0, start - kDistanceMax); from <= last; ++from) {
        if (!TrySequences(answer, static_cast<size_t>(start), static_cast<size_t>(from))) {
          return best_;
        }
      }
    }
    return best_;
  }

  // Tries to move words that are equal from answer[start] and reference[from] on. False once enough
  // has been tried.
  bool TrySequences(const Words& answer, size_t start, size_t from) {
    for (size_t count = 1; count <= kMovedWordsMax && start + count <= answer.size() &&
                           from + count <= reference_.size() &&
                           answer[start + count - 1] == reference_[from + count - 1];
         ++count) {
      if (!MayHelp(start, from, count)) continue;
      TryTargets(answer, start, from, count);
      if (tried_ >= kCandidatesMax) return false;
    }
    return true;
  }

  // A sequence that is right where it is stays. So does one whose place is within itself.
  bool MayHelp(size_t start, size_t from, size_t count) const {
    const auto wrong = [count](const std::vector<int>& sums, size_t at) {
      return sums[at + count] > sums[at];
    };
    const int64_t at = alignment_.answer_at[from];
    const bool within =
        at >= static_cast<int64_t>(start) && at < static_cast<int64_t>(start + count);
    return wrong(alignment_.answer_wrong, start) && wrong(alignment_.reference_wrong, from) &&
           !within;
  }

  void TryTargets(const Words& answer, size_t start, size_t from, size_t count) {
    std::optional<size_t> last;
    for (size_t i = 0; i <= count; ++i) {  // after the word before the sequence's i-th
      const size_t place = from + i;
      if (place > reference_.size()) break;
      const size_t target =
          place == 0 ? 0 : static_cast<size_t>(alignment_.answer_at[place - 1] + 1);
      if (last == target) continue;
      last = target;
      const int gain = before_ - table_.Distance(Moved(answer, start, count, target));
      ++tried_;
      const Candidate candidate{gain, count, start, target};
      if (!best_ || candidate > *best_) best_ = candidate;
    }
  }

  const Words& reference_;
  EditTable table_;
  int tried_ = 0;
  int before_ = 0;
  Alignment alignment_;
  std::optional<Candidate> best_;
};

void RequireShort(size_t answer, size_t reference) {
  if (2 * kBeam * answer + reference <= kCellsMax) return;
  throw Error(ErrorKind::kInput,
              fmt::format("ter: an answer of {} words and a reference of {} words are too long: "
                          "found {} times the answer's words plus the reference's {}, expected at "
                          "most {}",
                          answer, reference, 2 * kBeam, 2 * kBeam * answer + reference, kCellsMax));
}

// The least edits to any reference, and the references' mean length.
std::vector<double> TerStatistics(const std::string& answer,
                                  const std::vector<std::string>& references) {
  RequireReference(answer, references);
  WordNumbers numbers;
  const Words words = numbers.Of(WordsOf(python::Lower(answer)));
  double edits = std::numeric_limits<double>::infinity(), length = 0;
  for (const std::string& reference : references) {
    const Words known = numbers.Of(WordsOf(python::Lower(reference)));
    RequireShort(words.size(), known.size());
    length += static_cast<double>(known.size());
    const int found =
        known.empty() ? static_cast<int>(words.size()) : Mover(known, words.size()).Edits(words);
    edits = std::min(edits, static_cast<double>(found));
  }
  return {edits, length / static_cast<double>(references.size())};
}

double TerScore(const std::vector<double>& sums) {
  if (sums[1] > 0) return 100 * (sums[0] / sums[1]);
  return sums[0] > 0 ? 100 : 0;
}

}  // namespace

extern constinit const Metric kTerMetric = {
    .name = "ter", .aggregation = "ter", .higher_is_better = false, .text = kTargetAndAnswer};

extern constinit const Aggregation kTerAggregation =
    CorpusAggregation<TerStatistics, TerScore>("ter");

}  // namespace evald
