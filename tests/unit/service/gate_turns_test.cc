#include "orchestrator/service/gate_turns.h"

#include <gtest/gtest.h>

#include <vector>

namespace evald {
namespace {

using Turns = GateTurns<int>;

std::string Next(Turns* turns) {
  const auto next = turns->Next();
  return next ? next->user + std::to_string(next->run) : "none";
}

TEST(GateTurnsTest, OneAtATimeUsersTakeTurns) {
  Turns turns;
  for (int64_t run : {1, 2, 3}) turns.Add(run, "ada", 0);
  std::vector<std::string> begun = {Next(&turns)};
  turns.Add(4, "bob", 0);
  turns.Add(5, "bob", 0);
  for (const char* user : {"ada", "bob", "ada", "bob"}) {
    turns.Done(user);
    begun.push_back(Next(&turns));
  }
  EXPECT_EQ(begun, (std::vector<std::string>{"ada1", "bob4", "ada2", "bob5", "ada3"}));
}

TEST(GateTurnsTest, AUserHasOneAtWork) {
  Turns turns;
  for (int64_t run : {1, 2, 3}) turns.Add(run, "ada", 0);
  EXPECT_EQ(Next(&turns), "ada1");
  EXPECT_EQ(Next(&turns), "none") << "others may come";
  turns.Add(4, "bob", 0);
  turns.Add(5, "bob", 0);
  EXPECT_EQ(Next(&turns), "bob4");
  EXPECT_EQ(Next(&turns), "none");
  turns.Done("ada");
  EXPECT_EQ(Next(&turns), "ada2");
}

TEST(GateTurnsTest, WithoutTokensTheyAreEverybodys) {
  Turns turns;
  turns.Add(1, "", 0);
  turns.Add(2, "", 0);
  EXPECT_EQ(Next(&turns), "1");
  EXPECT_EQ(Next(&turns), "2");
  EXPECT_EQ(Next(&turns), "none");
}

TEST(GateTurnsTest, OneThatWaitsIsTakenOut) {
  Turns turns;
  turns.Add(1, "ada", 7);
  turns.Add(2, "ada", 8);
  EXPECT_TRUE(turns.Has(2));
  EXPECT_EQ(turns.Take(2)->outcome, 8);
  EXPECT_FALSE(turns.Has(2));
  EXPECT_FALSE(turns.Take(2));
  EXPECT_EQ(Next(&turns), "ada1");
  EXPECT_FALSE(turns.Has(1)) << "it is at work";
}

}  // namespace
}  // namespace evald
