// The texts of tokens, and the pieces of a stream.
#include "worker/endpoint/token_text.h"

#include <gtest/gtest.h>

#include <random>

#include "base/text.h"
#include "support.h"
#include "worker/native/stops.h"

namespace evald::endpoint::test {
namespace {

// Letters of one to four bytes, most of them in several tokens each.
constexpr const char* kText = "def add(a):\n  näïve 日本語 😀 \xF0\x9F\x91\xA9 end";

class TokenTextTest : public ::testing::Test {
 protected:
  TokenTextTest() : tokenizer_(Tokenizer::Load(Checkpoint())) {}
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(TokenTextTest, TogetherTheyAreTheText) {
  TokenTexts texts(*tokenizer_, true);
  std::string all;
  bool amid_a_character = false;
  for (const int32_t token : tokenizer_->Encode(kText, false)) {
    amid_a_character = amid_a_character || !texts.TextOf(token);
    const std::string added = texts.Append(token);
    EXPECT_TRUE(IsUtf8(added));
    all += added;
  }
  EXPECT_EQ(all, kText);
  EXPECT_TRUE(amid_a_character);  // or this test shows nothing
}

TEST_F(TokenTextTest, SpecialTokensHaveTextIfWanted) {
  EXPECT_EQ(TokenTexts(*tokenizer_, true).TextOf(tokenizer_->eos_id()), "<|endoftext|>");
  EXPECT_EQ(TokenTexts(*tokenizer_, false).TextOf(tokenizer_->eos_id()), "");
}

// The text of the tokens as an engine would cut it, and its pieces.
struct Streamed {
  std::string whole;
  std::string pieces;
};
Streamed StreamOf(const Tokenizer& tokenizer, const std::vector<int32_t>& tokens,
                  const std::vector<std::string>& until) {
  const native::StopStrings stops(tokenizer, until);
  TextStream stream(tokenizer, until);
  std::vector<int32_t> generated;
  Streamed streamed;
  for (const int32_t token : tokens) {
    generated.push_back(token);
    streamed.pieces += stream.Add(token);
    EXPECT_TRUE(IsUtf8(streamed.pieces));
    if (stops.Reached(generated)) break;
  }
  streamed.whole = stops.Text(generated);
  streamed.pieces += stream.Finish(streamed.whole);
  return streamed;
}

TEST_F(TokenTextTest, PiecesAreTheWholeText) {
  const Streamed streamed = StreamOf(*tokenizer_, tokenizer_->Encode(kText, false), {});
  EXPECT_EQ(streamed.pieces, kText);
  EXPECT_EQ(streamed.whole, kText);
}

TEST_F(TokenTextTest, NoPieceHoldsAPartOfAStopString) {
  for (const std::string stop : {"語 😀", "add", "\n  n", "end", "d", "def", "none of it"}) {
    const Streamed streamed = StreamOf(*tokenizer_, tokenizer_->Encode(kText, false), {stop});
    EXPECT_EQ(streamed.pieces, std::string(kText).substr(0, std::string(kText).find(stop)));
    EXPECT_EQ(streamed.pieces, streamed.whole);
  }
}

TEST_F(TokenTextTest, PiecesOfAnyTokensAreTheWholeText) {
  std::mt19937 random(7);
  const std::vector<std::string> until = {"a", " th", "\n", "ee"};
  for (int round = 0; round < 300; ++round) {
    std::vector<int32_t> tokens;
    for (int i = 0; i < 40; ++i)
      tokens.push_back(static_cast<int32_t>(random() % tokenizer_->vocabulary_size()));
    const std::vector<std::string> some(until.begin(), until.begin() + round % 5);
    const Streamed streamed = StreamOf(*tokenizer_, tokens, some);
    EXPECT_EQ(streamed.pieces, streamed.whole) << round;
  }
}

TEST_F(TokenTextTest, AStreamThatIsNotTheTextIsAnError) {
  TextStream stream(*tokenizer_, {});
  stream.Add(tokenizer_->Encode("def", false)[0]);
  EXPECT_THROW(stream.Finish("other"), Error);
}

}  // namespace
}  // namespace evald::endpoint::test
