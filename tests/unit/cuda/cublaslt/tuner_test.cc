// The choice of algorithms of products (product_tuner.h), with a library of known algorithms
// (library.cc) on the emulated device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "worker/native/cuda/product_tuner.h"
#include "worker/native/cuda/tuning.h"

namespace evald::native::cuda {
namespace {

const int kLibraryIsSet = ::setenv("EVALD_CUBLASLT", EVALD_TEST_CUBLASLT, 1);

constexpr int64_t kOutputs = 5, kInputs = 33, kRows = 600;
constexpr ProductShape kShape = {WeightType::kF32, WeightType::kF32, kOutputs, kInputs, kRows};

struct Matrices {
  Matrices() {
    FillRandom(WeightType::kF32, weights.data(), kOutputs * kInputs, 7, stream);
    FillRandom(WeightType::kF32, x.data(), kRows * kInputs, 8, stream);
  }
  ~Matrices() { stream.Synchronize(); }  // queued work still writes to the memory
  // The first row of a product of `rows` rows.
  std::vector<float> FirstRow(Products* products, int64_t rows) { return Row(products, rows, 0); }
  // Row `wanted` of a product of the rows [first, rows).
  std::vector<float> Row(Products* products, int64_t rows, int64_t wanted, int64_t first = 0) {
    Product product;
    product.type = product.y_type = WeightType::kF32;
    product.weights = weights.data();
    product.x = x.as<float>() + first * kInputs;
    product.y = y.as<float>() + first * kOutputs;
    product.rows = rows - first;
    product.outputs = kOutputs;
    product.inputs = kInputs;
    products->Multiply(product, stream);
    std::vector<float> row(kOutputs);
    CopyToHost(row.data(), y.as<float>() + wanted * kOutputs, kOutputs * sizeof(float), stream);
    return row;
  }

  Stream stream;
  Memory weights{MemoryKind::kDevice, kOutputs* kInputs * 4};
  Memory x{MemoryKind::kDevice, (kRows + kRowsSlack) * kInputs * 4};
  Memory y{MemoryKind::kDevice, (kRows + kRowsSlack) * kOutputs * 4};
};

std::vector<std::string> Algorithms(const Products& products) {
  std::vector<std::string> ids;
  const Json report = products.Report();
  for (const Json& bucket : report["shapes"][0]["buckets"]) {
    const auto text = bucket["algorithm"].get<std::string>();
    ids.push_back(text.substr(0, text.find(" tile")));
  }
  return ids;
}

TEST(BucketTest, RowsOfEach) {
  for (const auto& [rows, bucket] :
       std::vector<std::pair<int64_t, int>>{{1, 0}, {8, 0}, {9, 1}, {16, 1}, {17, 2}, {8192, 10}}) {
    EXPECT_EQ(BucketOf(rows), bucket) << rows;
    EXPECT_LE(rows, RowsOfBucket(bucket));
  }
}

TEST(TunerTest, TheFastestOfThoseWithTheReferencesBits) {
  ASSERT_EQ(kLibraryIsSet, 0);
  Matrices matrices;
  // With 8, 16, 32 and 64 rows, 6 is fast. With more, 3 and 5 take the same time, but 5 splits sums
  // there.
  const std::vector<std::string> fastest = {"id 6", "id 6", "id 6", "id 6",
                                            "id 3", "id 3", "id 3", "id 3"};
  // A machine that stalls during a measurement makes the fast algorithm look slow. Another try
  // shows it.
  std::unique_ptr<Products> products;
  for (int tries = 0; tries < 10 && (products == nullptr || Algorithms(*products) != fastest);
       ++tries) {
    products = MakeProducts(/*fast=*/false);
    products->Prepare({kShape}, matrices.stream);
  }
  EXPECT_EQ(Algorithms(*products), fastest);
  const std::vector<float> expected = matrices.FirstRow(products.get(), 1);
  for (const int64_t rows : {2, 8, 9, 16, 17, 63, 64, 65, 128, 129, 512, 600}) {
    EXPECT_EQ(matrices.FirstRow(products.get(), rows), expected) << rows;
  }
  const Json report = products->Report();
  EXPECT_GT(report["shapes"][0]["buckets"][0]["microseconds"].get<double>(), 0);
}

class QuirkTest : public testing::Test {
 protected:
  void TearDown() override { ::unsetenv("EVALD_TEST_CUBLASLT_QUIRK"); }
  static void Set(const char* quirk) { ::setenv("EVALD_TEST_CUBLASLT_QUIRK", quirk, 1); }

  static void ExpectTheSameBits(Matrices* matrices, Products* products) {
    const std::vector<float> expected = matrices->FirstRow(products, 1);
    for (const int64_t rows : {8, 9, 16, 17, 64, 65, 512, 513, 600}) {
      EXPECT_EQ(matrices->FirstRow(products, rows), expected) << rows;
    }
  }
};

TEST_F(QuirkTest, ManyRowsAreComputedInPartsWhereNoAlgorithmAgrees) {
  Set("many");
  Matrices matrices;
  const auto products = MakeProducts(false);
  products->Prepare({kShape}, matrices.stream);
  const Json buckets = products->Report()["shapes"][0]["buckets"];
  EXPECT_EQ(buckets.back().value("rows_at_once", 0), 512);
  EXPECT_FALSE(buckets[6].contains("rows_at_once"));
  ExpectTheSameBits(&matrices, products.get());
  EXPECT_EQ(matrices.Row(products.get(), 600, 599), matrices.Row(products.get(), 600, 599, 599));
}

TEST_F(QuirkTest, AReferenceThatDisagreesWithItselfIsPassedOver) {
  Set("few");
  Matrices matrices;
  const auto products = MakeProducts(false);
  products->Prepare({kShape}, matrices.stream);
  EXPECT_EQ(Algorithms(*products).front(), "id 4");
  ExpectTheSameBits(&matrices, products.get());
}

TEST(TunerTest, MoreRowsKeepTheReference) {
  Matrices matrices;
  const auto products = MakeProducts(false);
  ProductShape few = kShape;
  few.rows_max = 8;
  products->Prepare({few}, matrices.stream);
  const std::vector<float> expected = matrices.FirstRow(products.get(), 1);
  products->Prepare({kShape}, matrices.stream);
  EXPECT_EQ(matrices.FirstRow(products.get(), 600), expected);
}

TEST(TunerTest, FastTakesWhatIsRecommended) {
  Matrices matrices;
  const auto products = MakeProducts(/*fast=*/true);
  products->Prepare({kShape}, matrices.stream);
  EXPECT_THAT(Algorithms(*products), testing::Each("id 1"));
}

TEST(TunerTest, WhatWasNotPreparedIsRefused) {
  Matrices matrices;
  const auto products = MakeProducts(false);
  EXPECT_THROW(matrices.FirstRow(products.get(), 1), Error);
}

}  // namespace
}  // namespace evald::native::cuda
