// tokenizer-dump FOLDER reads lines from standard input. For a JSON string it writes {"ids",
// "special", "decoded", "skipped"}, for a list of ids {"decoded", "skipped"}. With --normalize FORM
// instead of a folder, it writes each string in a Unicode normal form.
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <string>

#include "base/jsonl.h"
#include "evald/error.h"
#include "tokenizer/normalizers.h"
#include "tokenizer/tokenizer.h"

namespace evald {
namespace {

Json Answer(const Tokenizer& tokenizer, const Json& line) {
  Json out;
  std::vector<int32_t> ids;
  if (line.is_string()) {
    out["ids"] = tokenizer.Encode(line.get<std::string>(), false);
    ids = tokenizer.Encode(line.get<std::string>(), true);
    out["special"] = ids;
  } else {
    ids = line.get<std::vector<int32_t>>();
  }
  out["decoded"] = tokenizer.Decode(ids, false);
  out["skipped"] = tokenizer.Decode(ids, true);
  return out;
}

void Run(const std::string& folder, const std::string& normal_form) {
  const std::unique_ptr<Tokenizer> tokenizer = folder.empty() ? nullptr : Tokenizer::Load(folder);
  const std::unique_ptr<tok::Normalizer> normalizer =
      normal_form.empty() ? nullptr : tok::MakeNormalizer({{"type", normal_form}}, "--normalize");
  std::string text;
  while (std::getline(std::cin, text)) {
    const Json line = ParseJson(text, "standard input");
    const Json out =
        normalizer ? Json(normalizer->Apply(line.get<std::string>())) : Answer(*tokenizer, line);
    std::cout << ToLine(out) << '\n';
  }
}

}  // namespace
}  // namespace evald

int main(int argc, char** argv) {
  try {
    if (argc == 2) {
      evald::Run(argv[1], "");
      return 0;
    }
    if (argc == 3 && std::string(argv[1]) == "--normalize") {
      evald::Run("", argv[2]);
      return 0;
    }
    std::fputs("usage: tokenizer-dump FOLDER | --normalize FORM\n", stderr);
  } catch (const std::exception& e) {
    fmt::print(stderr, "tokenizer-dump: {}\n", e.what());
  }
  return 2;
}
