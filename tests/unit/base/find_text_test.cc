#include "base/find_text.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/memory_limits.h"

namespace evald {
namespace {

std::vector<size_t> FromRight(std::string_view text, std::string_view needle) {
  SearchFromRight search(text, needle);
  std::vector<size_t> found;
  for (size_t at = search.Next(); at != std::string_view::npos; at = search.Next()) {
    found.push_back(at);
  }
  return found;
}

std::vector<size_t> NaiveFromRight(std::string_view text, std::string_view needle) {
  std::vector<size_t> found;
  for (size_t at = text.rfind(needle); at != std::string_view::npos; at = text.rfind(needle)) {
    found.push_back(at);
    text = text.substr(0, at);
  }
  return found;
}

TEST(FindText, IsAsStringViews) {
  std::mt19937 draw(1);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (size_t i = draw() % 300; i > 0; --i) text += static_cast<char>('a' + draw() % 2);
    const size_t begin = draw() % (text.size() + 1);
    std::string needle = text.substr(begin, draw() % 80);
    if (round % 3 == 0) needle += 'b';
    const size_t from = draw() % 310;
    EXPECT_EQ(FindText(text, needle, from), std::string_view(text).find(needle, from));
    EXPECT_EQ(FindLastText(text, needle), std::string_view(text).rfind(needle));
    if (needle.empty()) continue;
    EXPECT_EQ(FromRight(text, needle), NaiveFromRight(text, needle));
  }
}

TEST(FindText, TakesLinearTime) {
  const std::string text(4'000'000, 'a');
  const int64_t begin = MonotonicMicros();
  EXPECT_EQ(FindText(text, std::string(2'000'000, 'a') + "b"), std::string::npos);
  EXPECT_EQ(FindLastText(text, "b" + std::string(2'000'000, 'a')), std::string::npos);
  EXPECT_EQ(FindText(text, std::string(200, 'a') + "b"), std::string::npos);
  EXPECT_EQ(FromRight(text, std::string(40, 'a')).size(), 100'000u);
  if (LimitsOwnMemory()) {  // sanitizers take more
    EXPECT_LT(MonotonicMicros() - begin, 20'000'000) << "their product would take many minutes";
  }
}

}  // namespace
}  // namespace evald
