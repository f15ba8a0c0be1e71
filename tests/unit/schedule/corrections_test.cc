#include "orchestrator/schedule/corrections.h"

#include <gtest/gtest.h>

namespace evald {
namespace {

// A task of 1000 documents of 2 s, the longest 40 s. The prior counts as ten documents.
struct Case {
  Case() {
    TaskEstimate prior;
    prior.documents = 1000;
    prior.device_s = 2;
    prior.request_s = 40;
    prior.score_s = 1;
    costs.Add({prior, 10});
    work.Add(costs.Now(0), {{0, 1000}});
  }
  OpenWork work{1, 1, 1};
  Corrections costs;
};

TEST(Corrections, TheWorkIsToldEveryFewDocuments) {
  Case c;
  c.costs.Generated(0, 10, 60, 8, &c.work);
  EXPECT_DOUBLE_EQ(c.costs.Now(0).device_s, 4);
  EXPECT_DOUBLE_EQ(c.work.estimate(0).device_s, 2)
      << "1 % of the documents is not worth a new order";
  c.costs.Scored(0, 10, 30, &c.work);
  EXPECT_DOUBLE_EQ(c.work.estimate(0).device_s, 4) << "2 % is";
  EXPECT_DOUBLE_EQ(c.work.estimate(0).score_s, 2);
  EXPECT_DOUBLE_EQ(c.costs.prior(0).device_s, 2);
}

TEST(Corrections, ALateRequestIsToldAtOnce) {
  Case c;
  c.costs.Overdue(0, 43, &c.work);
  EXPECT_DOUBLE_EQ(c.work.estimate(0).request_s, 40) << "not by a tenth";
  c.costs.Overdue(0, 40 * 1.1, &c.work);
  EXPECT_DOUBLE_EQ(c.work.estimate(0).request_s, 44);
  c.costs.Overdue(0, 90, &c.work);
  EXPECT_DOUBLE_EQ(c.work.estimate(0).request_s, 90);
}

TEST(Corrections, WhatHasNotEndedIsNotAmongWhatHas) {
  Case c;
  c.costs.Overdue(0, 90, &c.work);
  EXPECT_DOUBLE_EQ(c.costs.ended_request_s(0), 40);
  c.costs.Generated(0, 1, 5, 60, &c.work);
  EXPECT_DOUBLE_EQ(c.costs.ended_request_s(0), 60);
  EXPECT_DOUBLE_EQ(c.costs.Now(0).request_s, 90);
}

}  // namespace
}  // namespace evald
