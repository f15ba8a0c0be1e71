// A warp's operations on small matrices. Their layout in the lanes' registers is from "Warp Level
// Matrix Instructions" in NVIDIA's PTX ISA (ldmatrix; mma.m16n8k16 with 16-bit numbers).
#include "worker/native/cuda/emulated/device_code.h"

namespace evald::native::cuda {
namespace {

constexpr uint32_t kAllLanes = 0xFFFFFFFF;

struct Load {
  const void* row;  // of matrix lane / 8, its row lane % 8: eight numbers
  uint32_t r[4];
};

uint16_t Number(const emulated::Arguments& lanes, int matrix, int row, int column) {
  const auto* load = static_cast<const Load*>(lanes[static_cast<size_t>(8 * matrix + row)]);
  uint16_t bits;
  std::memcpy(&bits, static_cast<const char*>(load->row) + 2 * column, 2);
  return bits;
}

template <bool kTransposed>
void CompleteLoad(const emulated::Arguments& lanes, uint32_t) {
  for (int lane = 0; lane < 32; ++lane) {
    auto* load = static_cast<Load*>(lanes[static_cast<size_t>(lane)]);
    for (int matrix = 0; matrix < 4; ++matrix) {
      const int row = lane / 4, column = lane % 4 * 2;
      const uint32_t low =
          kTransposed ? Number(lanes, matrix, column, row) : Number(lanes, matrix, row, column);
      const uint32_t high = kTransposed ? Number(lanes, matrix, column + 1, row)
                                        : Number(lanes, matrix, row, column + 1);
      load->r[matrix] = low | high << 16;
    }
  }
}

template <bool kTransposed>
void LoadAll(uint32_t (&r)[4], const void* row, emulated::Place place) {
  emulated::CheckAccess(row, 16, place);
  Load mine{row, {}};
  emulated::WaitForLanes(kTransposed ? "LoadMatrix4Transposed" : "LoadMatrix4", kAllLanes, &mine,
                         &CompleteLoad<kTransposed>, place);
  std::memcpy(r, mine.r, sizeof(mine.r));
}

struct Factors {
  float* d;
  const uint32_t* a;
  const uint32_t* b;
};

// Products are exact in fp32, and added by ascending k.
template <typename T>
void CompleteMma(const emulated::Arguments& lanes, uint32_t) {
  float a[16][16], b[16][8];
  for (int lane = 0; lane < 32; ++lane) {
    const auto* f = static_cast<const Factors*>(lanes[static_cast<size_t>(lane)]);
    const int group = lane / 4, pair = lane % 4 * 2;
    for (int which = 0; which < 2; ++which) {
      for (int i = 0; i < 4; ++i) {
        a[group + 8 * (i % 2)][pair + which + 8 * (i / 2)] = Unpack<T>(f->a[i], which);
      }
      for (int i = 0; i < 2; ++i) b[pair + which + 8 * i][group] = Unpack<T>(f->b[i], which);
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    const auto* f = static_cast<const Factors*>(lanes[static_cast<size_t>(lane)]);
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
      for (int k = 0; k < 16; ++k) f->d[i] += a[row][k] * b[k][column];
    }
  }
}

}  // namespace

void LoadMatrix4(uint32_t (&r)[4], const void* row, emulated::Place place) {
  LoadAll<false>(r, row, place);
}

void LoadMatrix4Transposed(uint32_t (&r)[4], const void* row, emulated::Place place) {
  LoadAll<true>(r, row, place);
}

template <typename T>
void MmaM16N8K16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                 emulated::Place place) {
  Factors mine{d, a, b};
  emulated::WaitForLanes("MmaM16N8K16", kAllLanes, &mine, &CompleteMma<T>, place);
}
template void MmaM16N8K16<BF16>(float (&)[4], const uint32_t (&)[4], const uint32_t (&)[2],
                                emulated::Place);
template void MmaM16N8K16<F16>(float (&)[4], const uint32_t (&)[4], const uint32_t (&)[2],
                               emulated::Place);

}  // namespace evald::native::cuda
