#include "orchestrator/fleet_machine/worker_slot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <queue>

namespace evald {
namespace {

using S = WorkerState;
using E = WorkerEvent;

constexpr int kStates = static_cast<int>(S::kSetAside) + 1;
constexpr int kEvents = static_cast<int>(E::kRetire) + 1;

WorkerSlot After(std::initializer_list<E> events) {
  WorkerSlot slot;
  for (const E event : events)
    EXPECT_TRUE(slot.Apply(event)) << Name(event) << " when " << Name(slot.state());
  return slot;
}

TEST(WorkerSlot, ItsLife) {
  WorkerSlot slot;
  const std::pair<E, S> life[] = {
      {E::kHosted, S::kIdle},    {E::kStart, S::kStarting},   {E::kWait, S::kWaiting},
      {E::kHello, S::kEmpty},    {E::kFollow, S::kFollowing}, {E::kLoad, S::kLoading},
      {E::kLoaded, S::kReady},   {E::kLoad, S::kLoading},     {E::kRefuse, S::kEmpty},
      {E::kStop, S::kStopping},  {E::kEnd, S::kIdle},         {E::kPause, S::kPausing},
      {E::kStart, S::kStarting}, {E::kEnd, S::kIdle},         {E::kGiveUp, S::kGivenUp},
      {E::kStart, S::kStarting}, {E::kEnd, S::kIdle},         {E::kSetAside, S::kSetAside},
      {E::kHosted, S::kIdle},    {E::kRetire, S::kAbsent}};
  for (const auto& [event, state] : life) {
    ASSERT_TRUE(slot.Apply(event)) << Name(event);
    ASSERT_EQ(slot.state(), state) << Name(event);
  }
}

TEST(WorkerSlot, EveryStateIsReachedAndEveryEventIsKnownSomewhere) {
  std::set<S> seen = {S::kAbsent};
  std::set<E> known;
  std::queue<S> open({S::kAbsent});
  for (; !open.empty(); open.pop()) {
    for (int e = 0; e < kEvents; ++e) {
      const auto next = Next(open.front(), static_cast<E>(e));
      if (!next) continue;
      known.insert(static_cast<E>(e));
      if (seen.insert(*next).second) open.push(*next);
    }
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(kStates));
  EXPECT_EQ(known.size(), static_cast<size_t>(kEvents));
}

// A process gets no message that it could not understand, and no second process is started beside
// it.
TEST(WorkerSlot, WhatNoStateAllows) {
  for (int s = 0; s < kStates; ++s) {
    const S state = static_cast<S>(s);
    const bool process = s >= static_cast<int>(S::kStarting) && s <= static_cast<int>(S::kStopping);
    const bool engine = s >= static_cast<int>(S::kEmpty) && s <= static_cast<int>(S::kReady);
    EXPECT_EQ(Next(state, E::kEnd).has_value(), process) << Name(state);
    if (process) {
      EXPECT_FALSE(Next(state, E::kStart)) << Name(state);
    }
    if (!engine) {
      for (const E event : {E::kLoad, E::kFollow, E::kLoaded, E::kStop}) {
        EXPECT_FALSE(Next(state, event)) << Name(state);
      }
    }
    EXPECT_EQ(Next(state, E::kRetire), S::kAbsent) << Name(state);
  }
  EXPECT_FALSE(Next(S::kLoading, E::kLoad)) << "the last Load is not answered";
}

TEST(WorkerSlot, AnEventThatSaysNothingChangesNothing) {
  WorkerSlot slot = After({E::kHosted, E::kStart, E::kHello});
  slot.profile = "p";
  slot.due_us = 7;
  EXPECT_FALSE(slot.Apply(E::kLoaded));
  EXPECT_EQ(slot.state(), S::kEmpty);
  EXPECT_EQ(slot.due_us, 7);
}

TEST(WorkerSlot, ItHasNothingThatItsStateDoesNot) {
  WorkerSlot slot = After({E::kHosted, E::kStart, E::kHello, E::kLoad});
  slot.loading = "c1";
  ASSERT_TRUE(slot.Apply(E::kLoaded));
  slot.engine = EngineFacts{"native", "1", "cpu", false};
  slot.wants = 2;
  slot.held.insert({1, 2, 3});
  ASSERT_TRUE(slot.Apply(E::kLoad));
  EXPECT_EQ(slot.wants, 0) << "a load voids wants";
  EXPECT_FALSE(slot.engine || slot.loading);
  EXPECT_EQ(slot.held.size(), 1u) << "leases before a load are worked off";
  slot.loading = "c2";
  slot.cause = "why";
  slot.excused = true;
  ASSERT_TRUE(slot.Apply(E::kEnd));
  EXPECT_TRUE(slot.held.empty() && slot.cause.empty() && !slot.excused && !slot.loading);
}

}  // namespace
}  // namespace evald
