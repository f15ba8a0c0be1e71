#include "bench/text_corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <system_error>

#include "base/jsonl.h"

namespace evald::bench {
namespace {

namespace fs = std::filesystem;

constexpr size_t kWordsPerScript = 30'000;

struct Script {
  const char* name;
  std::vector<const char*> beginnings;  ///< of syllables
  std::vector<const char*> middles;
  std::vector<const char*> ends;
  const char* space;
  const char* stop;
};

const std::vector<Script>& Scripts() {
  static const std::vector<Script> scripts = {
      {"latin",
       {"b", "c", "d", "f", "g", "l", "m", "n", "p", "r", "s", "t", "th", "st", "pr", "w", ""},
       {"a", "e", "i", "o", "u", "ea", "ou", "ai"},
       {"", "n", "r", "s", "t", "l", "ng", "ck"},
       " ",
       "."},
      {"accents",
       {"b", "ç", "d", "f", "g", "l", "m", "ñ", "p", "r", "s", "t", "sch", "ž", ""},
       {"a", "é", "i", "ö", "ü", "è", "å", "ã"},
       {"", "n", "r", "s", "ß", "t", "ł"},
       " ",
       "."},
      {"cyrillic",
       {"б", "в", "г", "д", "ж", "к", "л", "м", "н", "п", "р", "с", "т", "ч", "ш", ""},
       {"а", "е", "и", "о", "у", "ы", "ю", "я"},
       {"", "", "н", "й", "т", "в", "ть"},
       " ",
       "."},
      {"greek",
       {"β", "γ", "δ", "θ", "κ", "λ", "μ", "ν", "π", "ρ", "σ", "τ", "φ", ""},
       {"α", "ε", "η", "ι", "ο", "ω", "ου", "αι"},
       {"", "", "ν", "ς"},
       " ",
       "."},
      {"arabic",
       {"ب", "ت", "ج", "ح", "د", "ر", "س", "ش", "ع", "ف", "ق", "ك", "ل", "م", "ن", "ه"},
       {"ا", "و", "ي", "", ""},
       {"", "", "ة", "ن"},
       " ",
       "."},
      {"hebrew",
       {"ב", "ג", "ד", "ה", "ח", "ט", "כ", "ל", "מ", "נ", "ס", "פ", "ר", "ש", "ת"},
       {"ו", "י", "", "א"},
       {"", "", "ם", "ן"},
       " ",
       "."},
      {"devanagari",
       {"क", "ग", "च", "ज", "त", "द", "न", "प", "ब", "म", "य", "र", "ल", "व", "स", "ह"},
       {"ा", "ि", "ी", "ु", "े", "ो", ""},
       {"", "", "ं", "्र"},
       " ",
       "।"},
      {"hangul",
       {"가", "나", "다", "라", "마", "바", "사", "아", "자", "하", "고", "노", "도", "로", "이",
        "기"},
       {"", "는", "을", "이"},
       {"", "", "다", "요"},
       " ",
       "."},
      {"han",
       {"中", "国", "人", "大", "学", "生", "时", "间", "工", "作", "电", "话", "天", "气", "今",
        "明"},
       {"的", "是", "", "", "在", "有"},
       {"", "", "了", "们", "文"},
       "",
       "。"},
      {"thai",
       {"ก", "ข", "ค", "ง", "จ", "ช", "ด", "ต", "ท", "น", "บ", "ป", "ม", "ร", "ล", "ส"},
       {"า", "ิ", "ี", "ู", "ะ", ""},
       {"", "น", "ง", "ม", "ก"},
       "",
       " "},
  };
  return scripts;
}

class Writer {
 public:
  explicit Writer(uint64_t seed) : random_(seed) {
    // The words belong to the language. They do not depend on the seed of the text.
    std::mt19937_64 language(1);
    for (const Script& script : Scripts()) {
      std::vector<std::string> words;
      for (size_t i = 0; i < kWordsPerScript; ++i) words.push_back(MakeWord(script, &language));
      words_.push_back(std::move(words));
    }
  }

  std::string Line() {
    switch (random_() % 8) {
      case 0:
        return Code();
      case 1:
        return Numbers();
      case 2:
        return Signs();
      default:
        return Prose();
    }
  }

 private:
  static std::string MakeWord(const Script& script, std::mt19937_64* random) {
    std::string word;
    for (size_t n = 1 + (*random)() % 4; n > 0; --n) {
      word += script.beginnings[(*random)() % script.beginnings.size()];
      word += script.middles[(*random)() % script.middles.size()];
      word += script.ends[(*random)() % script.ends.size()];
    }
    return word;
  }
  // A word by Zipf's law: the n-th has the frequency 1/n.
  const std::string& Word(size_t script) {
    const double uniform = std::uniform_real_distribution<double>(0, 1)(random_);
    const double rank = std::pow(static_cast<double>(kWordsPerScript), uniform);
    return words_[script][std::min(static_cast<size_t>(rank) - 1, kWordsPerScript - 1)];
  }
  std::string Sentence(size_t script) {
    std::string text;
    for (size_t n = 4 + random_() % 14; n > 0; --n) {
      text += Word(script);
      if (n > 1) text += random_() % 12 == 0 ? ", " : Scripts()[script].space;
    }
    return text + Scripts()[script].stop;
  }
  // Prose. Half of it is in Latin letters.
  std::string Prose() {
    const size_t script = random_() % 2 == 0 ? 0 : random_() % Scripts().size();
    std::string text;
    for (size_t n = 1 + random_() % 4; n > 0; --n) {
      text += Sentence(script) + (random_() % 6 == 0 ? "\n\n" : " ");
    }
    return text;
  }
  std::string Code() {
    std::string text = fmt::format("def {}_{}(self, {}: int = {}) -> list[str]:\n", Word(0),
                                   Word(0), Word(0), random_() % 100);
    for (size_t n = 2 + random_() % 6; n > 0; --n) {
      const std::string indent(4 * (1 + random_() % 3), ' ');
      text += random_() % 3 == 0
                  ? fmt::format("{}for {} in range({}):  # {} {}\n", indent, Word(0),
                                random_() % 1000, Word(0), Word(0))
                  : fmt::format("{}self.{} = {}.{}({}[i], \"{}\") + {}\n", indent, Word(0), Word(0),
                                Word(0), Word(0), Word(0), random_() % 5000);
    }
    return text + "\treturn [x for x in out if x is not None]\n\n";
  }
  std::string Numbers() {
    std::string text;
    for (size_t n = 3 + random_() % 10; n > 0; --n) {
      text += fmt::format("{}\t{:.3f}   {}-{:02}-{:02}\n", random_() % 1'000'000,
                          static_cast<double>(random_() % 100'000) / 97.0, 1950 + random_() % 90,
                          1 + random_() % 12, 1 + random_() % 28);
    }
    return text;
  }
  std::string Signs() {
    static const std::vector<const char*> signs = {"🙂",
                                                   "👩‍👩‍👧",
                                                   "❤️",
                                                   "—",
                                                   "…",
                                                   "«",
                                                   "»",
                                                   "==",
                                                   "!!!",
                                                   "://",
                                                   "<br/>",
                                                   "    ",
                                                   "\n\n\n",
                                                   "\t\t",
                                                   "$\\frac{a}{b}$",
                                                   "it's",
                                                   "We'll",
                                                   "½",
                                                   "①"};
    std::string text;
    for (size_t n = 3 + random_() % 12; n > 0; --n)
      text += std::string(signs[random_() % signs.size()]) + " " + Word(0);
    return text;
  }

  std::mt19937_64 random_;
  std::vector<std::vector<std::string>> words_;
};

// Every second text of the real tasks, in an order that is the same everywhere.
std::vector<std::string> RealTexts(const fs::path& data_dir, size_t half) {
  std::vector<fs::path> files = {data_dir / "gsm8k/train.jsonl", data_dir / "mbpp/mbpp.jsonl"};
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(data_dir / "mmlu/test", ignored))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> texts;
  size_t seen = 0;
  for (const fs::path& file : files) {
    if (!fs::exists(file, ignored) || file.extension() != ".jsonl") continue;
    ForEachJsonLine(file, [&](size_t, const Json& line) {
      for (const auto& [key, value] : line.items()) {
        if (value.is_string() && seen++ % 2 == half) texts.push_back(value.get<std::string>());
      }
    });
  }
  return texts;
}

}  // namespace

std::vector<std::string> MixedCorpus(uint64_t seed, uint64_t bytes, const fs::path& data_dir) {
  const std::vector<std::string> real = RealTexts(data_dir, seed % 2);
  Writer writer(seed);
  std::mt19937_64 random(seed);
  std::vector<std::string> lines;
  for (uint64_t written = 0; written < bytes; written += lines.back().size()) {
    lines.push_back(real.empty() || random() % 2 == 0 ? writer.Line()
                                                      : real[random() % real.size()]);
  }
  return lines;
}

}  // namespace evald::bench
