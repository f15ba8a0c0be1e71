#pragma once

#include <cstddef>
#include <cstdint>

/// The part of cuBLASLt's binary interface, versions 12 and 13, that evald uses. The library is
/// loaded when the program runs, so neither it nor its header is needed to build. Numbers and
/// signatures are from NVIDIA's documentation and header (cublasLt.h); cublaslt_abi_check.cc
/// compares them if that header is found.
namespace evald::native::cuda::lt {

using Handle = struct Context*;
using MatmulDesc = struct MatmulDescOpaque*;
using MatrixLayout = struct MatrixLayoutOpaque*;
using Preference = struct PreferenceOpaque*;
using CudaStream = void*;

enum Status : int {
  kSuccess = 0,
  kAllocFailed = 3,
  kInvalidValue = 7,
  kExecutionFailed = 13,
  kNotSupported = 15,
};

enum DataType : int { kR32F = 0, kR16F = 2, kR16BF = 14 };  // cudaDataType
enum Compute : int { kCompute32F = 68 };
enum Operation : int { kTransposed = 1 };

enum MatmulDescAttribute : int { kTransA = 3 };
enum LayoutAttribute : int { kColumns = 3 };
enum PreferenceAttribute : int {
  kMaxWorkspaceBytes = 1,
  kReductionSchemeMask = 3,
  kMinAlignmentA = 5,
  kMinAlignmentB = 6,
  kMinAlignmentC = 7,
  kMinAlignmentD = 8,
};
enum AlgorithmAttribute : int {
  kId = 0,
  kTileId = 1,
  kSplitK = 2,
  kReductionScheme = 3,
  kSwizzling = 4,
  kCustomOption = 5,
  kStagesId = 6,
  kInnerShapeId = 7,
  kClusterShapeId = 8,
};
inline constexpr uint32_t kNoReduction = 0;

struct Algorithm {
  uint64_t data[8];
};

struct HeuristicResult {
  Algorithm algorithm;
  size_t workspace_bytes;
  Status status;
  float waves;
  int reserved[4];
};

using CreateFunction = Status (*)(Handle*);
using DestroyFunction = Status (*)(Handle);
using GetVersionFunction = size_t (*)();
using GetStatusStringFunction = const char* (*)(Status);
using MatmulFunction = Status (*)(Handle, MatmulDesc, const void* alpha, const void* a,
                                  MatrixLayout, const void* b, MatrixLayout, const void* beta,
                                  const void* c, MatrixLayout, void* d, MatrixLayout,
                                  const Algorithm*, void* workspace, size_t workspace_bytes,
                                  CudaStream);
using MatmulDescCreateFunction = Status (*)(MatmulDesc*, Compute, DataType scale);
using MatmulDescDestroyFunction = Status (*)(MatmulDesc);
using MatmulDescSetFunction = Status (*)(MatmulDesc, MatmulDescAttribute, const void*, size_t);
using LayoutCreateFunction = Status (*)(MatrixLayout*, DataType, uint64_t rows, uint64_t columns,
                                        int64_t leading);
using LayoutDestroyFunction = Status (*)(MatrixLayout);
using LayoutSetFunction = Status (*)(MatrixLayout, LayoutAttribute, const void*, size_t);
using PreferenceCreateFunction = Status (*)(Preference*);
using PreferenceDestroyFunction = Status (*)(Preference);
using PreferenceSetFunction = Status (*)(Preference, PreferenceAttribute, const void*, size_t);
using GetHeuristicFunction = Status (*)(Handle, MatmulDesc, MatrixLayout a, MatrixLayout b,
                                        MatrixLayout c, MatrixLayout d, Preference, int wanted,
                                        HeuristicResult*, int* found);
using AlgorithmGetFunction = Status (*)(const Algorithm*, AlgorithmAttribute, void*, size_t,
                                        size_t* written);

}  // namespace evald::native::cuda::lt
