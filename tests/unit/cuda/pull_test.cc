#include "worker/native/cuda/pull.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <limits>
#include <mutex>
#include <random>
#include <thread>

#include "base/cpu_list.h"
#include "base/file.h"
#include "evald/error.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"
#include "transfer_reference.h"
#include "worker/native/cuda/convert.h"
#include "worker/native/cuda/numa.h"

namespace evald::native::cuda {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Transfer = DeviceWeights::Transfer;

constexpr WeightType kTypes[] = {WeightType::kF32, WeightType::kF16, WeightType::kBF16};

// Tensors in host memory and their places on the device, with gaps between them.
class Tensors {
 public:
  // `elements` weights for each pair of stored and wanted type.
  explicit Tensors(const std::vector<uint64_t>& elements, uint32_t seed = 1) {
    uint64_t bytes = 0;
    for (const uint64_t count : elements) {
      for (const WeightType stored : kTypes) {
        for (const WeightType wanted : kTypes) {
          transfers_.push_back({nullptr, nullptr, count, stored, wanted});
          bytes += count * 4 + kGap;
        }
      }
    }
    device_ = Memory(MemoryKind::kDevice, bytes);
    host_.resize(bytes);
    Fill(seed);
    uint64_t at = 1;  // files align nothing
    for (Transfer& transfer : transfers_) {
      transfer.from = host_.data() + at;
      transfer.to = device_.data() + (at + 15) / 16 * 16;
      at += transfer.elements * 4 + kGap;
    }
    Poison();
  }

  // Weights of moderate size, in whatever type they are read.
  void Fill(uint32_t seed) {
    std::minstd_rand random(seed);
    for (char& byte : host_) byte = static_cast<char>(random() % 64);
  }
  void Poison() {
    Stream stream;
    FillBytes(device_.data(), 0x5b, device_.bytes(), stream);
    stream.Synchronize();
  }
  std::string* host() { return &host_; }
  const std::vector<Transfer>& transfers() const { return transfers_; }
  uint64_t bytes() const {
    uint64_t sum = 0;
    for (const Transfer& transfer : transfers_) sum += transfer.elements * BytesOf(transfer.stored);
    return sum;
  }
  // The number of changed bytes in the device's memory that belong to no transfer.
  int64_t Spoilt() const {
    std::string now = Download(device_.data(), device_.bytes());
    for (const Transfer& transfer : transfers_) {
      std::memset(now.data() + (transfer.to - device_.data()), 0x5b,
                  transfer.elements * BytesOf(transfer.wanted));
    }
    return std::count_if(now.begin(), now.end(), [](char byte) { return byte != 0x5b; });
  }

 private:
  static constexpr uint64_t kGap = 64;
  std::vector<Transfer> transfers_;
  std::string host_;
  Memory device_;
};

// Bytes before `here` have landed.
class Landing : public Arrival {
 public:
  bool Wait(const char* from, uint64_t bytes, milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    ++asked_;
    const bool landed =
        changed_.wait_for(lock, timeout, [&] { return failed_ || from + bytes <= here_; });
    if (failed_) throw Error(ErrorKind::kInfrastructure, "the staging came to nothing");
    return landed;
  }
  void Land(const char* until) {
    const std::lock_guard lock(mutex_);
    here_ = until;
    changed_.notify_all();
  }
  void Fail() {
    const std::lock_guard lock(mutex_);
    failed_ = true;
    changed_.notify_all();
  }
  int asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  const char* here_ = nullptr;
  bool failed_ = false;
  int asked_ = 0;
};

PullOptions Small(int threads, uint64_t chunk_bytes = 4096, int depth = 3) {
  PullOptions options;
  options.threads = threads;
  options.chunk_bytes = chunk_bytes;
  options.depth = depth;
  return options;
}

TEST(ConvertTest, RoundsToTheNearestAsTheFormatsAreDefined) {
  std::mt19937 random(7);
  std::vector<float> values = {0.0F,        -0.0F,
                               1.0F,        65504.0F,
                               65519.9F,    65520.0F,
                               -70000.0F,   1e-8F,
                               2.98023e-8F, 2.9802323e-8F,
                               5.96e-8F,    6.1035156e-5F,
                               6.1e-5F,     std::numeric_limits<float>::max(),
                               3.39e38F,    std::numeric_limits<float>::denorm_min(),
                               1e-40F};
  for (int i = 0; i < 200'000; ++i) {
    auto bits = static_cast<uint32_t>(random());
    if (i % 2 == 0) bits = (bits & 0x8fffffff) | 0x30000000;  // near fp16's range
    if (i % 4 == 0) bits &= 0xfffff000;                       // ties are frequent
    const auto value = std::bit_cast<float>(bits);
    if (!std::isnan(value)) values.push_back(value);
  }
  for (const float value : values) {
    ASSERT_EQ(ToF16(value), TableOf(WeightType::kF16).Encode(value)) << value;
    ASSERT_EQ(ToBF16(value), TableOf(WeightType::kBF16).Encode(value)) << value;
  }
  for (const uint32_t bits : {0x7fc00000U, 0x7f800001U, 0xffffffffU}) {
    const auto nan = std::bit_cast<float>(bits);
    EXPECT_TRUE(std::isnan(DecodeHalf(ToF16(nan), 5, 10)));
    EXPECT_TRUE(std::isnan(DecodeHalf(ToBF16(nan), 8, 7)));
  }
}

TEST(ConvertTest, SaysWhenAWeightDoesNotFit) {
  for (const size_t place : {size_t{0}, size_t{5000}}) {
    std::vector<float> weights(5001, 1.0F);
    std::string to(5001 * 2, '\0');
    const auto fits = [&](float weight, WeightType wanted) {
      weights[place] = weight;
      return Convert(reinterpret_cast<const char*>(weights.data()), WeightType::kF32, 5001, wanted,
                     to.data());
    };
    EXPECT_TRUE(fits(65519.0F, WeightType::kF16));
    EXPECT_FALSE(fits(65520.0F, WeightType::kF16));
    EXPECT_TRUE(fits(-INFINITY, WeightType::kF16));  // infinite before the conversion too
    EXPECT_TRUE(fits(NAN, WeightType::kF16));
    EXPECT_TRUE(fits(65520.0F, WeightType::kBF16));
    EXPECT_FALSE(fits(std::numeric_limits<float>::max(), WeightType::kBF16));
  }
}

TEST(NumaTest, ReadsLists) {
  EXPECT_THAT(ParseCpuList("0-3,8\n"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(ParseCpuList("7"), ElementsAre(7));
  for (const char* wrong : {"", "a", "1-", "-1", "3,,4", "99999999"}) {
    EXPECT_THAT(ParseCpuList(wrong), IsEmpty()) << wrong;
  }
  EXPECT_FALSE(CpusNear(-1).empty());
  EXPECT_FALSE(CpusNear(4711).empty()) << "an unknown node leaves all";
}

TEST(PullTest, EveryTypeArrivesAsWanted) {
  Tensors tensors({1, 7, 1000, 1023, 2049, 30'001});
  for (const int threads : {1, 2, 5}) {
    for (const int depth : {1, 4}) {
      tensors.Poison();
      Puller puller(Small(threads, 4096, depth));
      PullProgress progress;
      const PullReport report = puller.Run(tensors.transfers(), nullptr, &progress);
      EXPECT_EQ(FirstWrong(tensors.transfers()), "") << threads << " threads, depth " << depth;
      EXPECT_EQ(tensors.Spoilt(), 0);
      EXPECT_EQ(report.bytes, tensors.bytes());
      EXPECT_EQ(report.threads, threads);
      EXPECT_GT(report.gb_per_s(), 0);
      EXPECT_EQ(progress.bytes, tensors.bytes());
      EXPECT_EQ(progress.total, tensors.bytes());
    }
  }
}

TEST(PullTest, LargeChunksHoldManyTensors) {
  Tensors tensors({1, 3, 100, 5000, 70'000});
  for (const uint64_t chunk : {uint64_t{100}, uint64_t{1} << 16, uint64_t{1} << 22}) {
    tensors.Poison();
    Puller(Small(2, chunk)).Run(tensors.transfers());
    EXPECT_EQ(FirstWrong(tensors.transfers()), "") << chunk;
    EXPECT_EQ(tensors.Spoilt(), 0);
  }
}

TEST(PullTest, TheRingServesOneCheckpointAfterAnother) {
  Tensors tensors({5000, 20'000});
  Puller puller(Small(3));
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    tensors.Fill(seed);
    puller.Run(tensors.transfers());
    EXPECT_EQ(FirstWrong(tensors.transfers()), "") << seed;
  }
  EXPECT_EQ(puller.Run({}).bytes, 0u);
}

// The transfers, from an open file with the same bytes.
std::vector<Transfer> InFile(const Tensors& tensors, const std::string& bytes, int file) {
  std::vector<Transfer> transfers = tensors.transfers();
  for (Transfer& transfer : transfers) {
    transfer.file = file;
    transfer.offset = static_cast<uint64_t>(transfer.from - bytes.data());
  }
  return transfers;
}

TEST(PullTest, ReadsOpenFiles) {
  const TemporaryFolder folder;
  Tensors tensors({1, 1023, 30'001});
  const std::string bytes = *tensors.host();
  const std::filesystem::path path = folder.Write("weights", bytes);
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto transfers = InFile(tensors, *tensors.host(), file.get());
  std::fill(tensors.host()->begin(), tensors.host()->end(), '\x7f');
  Puller puller(Small(3));
  puller.Run(transfers);
  *tensors.host() = bytes;
  EXPECT_EQ(FirstWrong(tensors.transfers()), "");
  EXPECT_EQ(tensors.Spoilt(), 0);

  std::filesystem::resize_file(path, bytes.size() / 2);
  EXPECT_THAT(CaughtText([&] { puller.Run(transfers); }),
              AllOf(HasSubstr(path.string()), HasSubstr("the file ends before the weight does")));
}

TEST(PullTest, ReadsNothingThatHasNotLanded) {
  Tensors tensors({3000, 10'000});
  const std::string whole = *tensors.host();
  std::string* host = tensors.host();
  std::fill(host->begin(), host->end(), '\x7f');
  Landing landing;
  std::thread staging([&] {
    while (landing.asked() == 0) std::this_thread::yield();
    for (size_t at = 0; at < whole.size();) {
      const size_t end = std::min(at + 20'000, whole.size());
      std::copy(whole.begin() + static_cast<std::ptrdiff_t>(at),
                whole.begin() + static_cast<std::ptrdiff_t>(end),
                host->begin() + static_cast<std::ptrdiff_t>(at));
      landing.Land(host->data() + end);
      std::this_thread::sleep_for(milliseconds(2));
      at = end;
    }
  });
  const PullReport report = Puller(Small(3)).Run(tensors.transfers(), &landing);
  staging.join();
  EXPECT_EQ(FirstWrong(tensors.transfers()), "");
  EXPECT_GT(report.waited_seconds, 0);
}

TEST(PullTest, PullsWhatIsThereWhileTheRestIsComing) {
  Tensors tensors({3000, 10'000});
  Landing landing;
  PullProgress progress;
  const char* half = tensors.host()->data() + tensors.host()->size() / 2;
  landing.Land(half);
  std::thread staging([&] {
    while (progress.bytes < tensors.bytes() / 4) std::this_thread::yield();
    EXPECT_LT(progress.bytes, tensors.bytes());
    landing.Land(tensors.host()->data() + tensors.host()->size());
  });
  Puller(Small(2)).Run(tensors.transfers(), &landing, &progress);
  staging.join();
  EXPECT_EQ(FirstWrong(tensors.transfers()), "");
}

TEST(PullTest, AStagingThatFailsEndsThePullAndTheNextTryWorks) {
  Tensors tensors({3000, 10'000});
  Puller puller(Small(3));
  Landing landing;
  landing.Land(tensors.host()->data() + tensors.host()->size() / 3);
  std::thread failing([&] {
    while (landing.asked() < 5) std::this_thread::yield();
    landing.Fail();
  });
  EXPECT_EQ(CaughtText([&] { puller.Run(tensors.transfers(), &landing); }),
            "the staging came to nothing");
  failing.join();
  tensors.Poison();
  puller.Run(tensors.transfers());
  EXPECT_EQ(FirstWrong(tensors.transfers()), "");
  EXPECT_EQ(tensors.Spoilt(), 0);
}

TEST(PullTest, CanBeCancelledWhileItWaits) {
  Tensors tensors({3000});
  Puller puller(Small(3));
  Landing landing;
  PullProgress progress;
  std::thread cancelling([&] {
    while (landing.asked() == 0) std::this_thread::yield();
    progress.cancel = true;
  });
  EXPECT_THAT(CaughtText([&] { puller.Run(tensors.transfers(), &landing, &progress); }),
              HasSubstr("was cancelled"));
  cancelling.join();
  progress.cancel = false;
  puller.Run(tensors.transfers(), nullptr, &progress);
  EXPECT_EQ(FirstWrong(tensors.transfers()), "");
}

TEST(PullTest, RefusesAWeightThatTheDevicesTypeCannotHold) {
  const std::vector<float> weights = {1.0F, 1e6F, 2.0F};
  const Memory device(MemoryKind::kDevice, 64);
  const auto* from = reinterpret_cast<const char*>(weights.data());
  Puller puller(Small(1));
  EXPECT_THAT(CaughtText([&] {
                puller.Run({{from, device.data(), 3, WeightType::kF32, WeightType::kF16}});
              }),
              HasSubstr("too large for fp16"));
  puller.Run({{from, device.data(), 3, WeightType::kF32, WeightType::kBF16}});
}

}  // namespace
}  // namespace evald::native::cuda
