// Compiled if cuBLASLt's own header is found: checks that cublaslt_abi.h agrees with it.
#include <cublasLt.h>

#include <type_traits>

#include "worker/native/cuda/cublaslt_abi.h"

namespace evald::native::cuda::lt {
namespace {

// Compares values of two enumerations.
template <typename Ours, typename Theirs>
constexpr bool Same(Ours ours, Theirs theirs) {
  return static_cast<int64_t>(ours) == static_cast<int64_t>(theirs);
}

static_assert(Same(kSuccess, CUBLAS_STATUS_SUCCESS));
static_assert(Same(kAllocFailed, CUBLAS_STATUS_ALLOC_FAILED));
static_assert(Same(kInvalidValue, CUBLAS_STATUS_INVALID_VALUE));
static_assert(Same(kExecutionFailed, CUBLAS_STATUS_EXECUTION_FAILED));
static_assert(Same(kNotSupported, CUBLAS_STATUS_NOT_SUPPORTED));
static_assert(Same(kR32F, CUDA_R_32F));
static_assert(Same(kR16F, CUDA_R_16F));
static_assert(Same(kR16BF, CUDA_R_16BF));
static_assert(Same(kCompute32F, CUBLAS_COMPUTE_32F));
static_assert(Same(kTransposed, CUBLAS_OP_T));
static_assert(Same(kTransA, CUBLASLT_MATMUL_DESC_TRANSA));
static_assert(Same(kColumns, CUBLASLT_MATRIX_LAYOUT_COLS));
static_assert(Same(kMaxWorkspaceBytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES));
static_assert(Same(kReductionSchemeMask, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK));
static_assert(Same(kMinAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES));
static_assert(Same(kMinAlignmentB, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES));
static_assert(Same(kMinAlignmentC, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES));
static_assert(Same(kMinAlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES));
static_assert(Same(kId, CUBLASLT_ALGO_CONFIG_ID));
static_assert(Same(kTileId, CUBLASLT_ALGO_CONFIG_TILE_ID));
static_assert(Same(kSplitK, CUBLASLT_ALGO_CONFIG_SPLITK_NUM));
static_assert(Same(kReductionScheme, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME));
static_assert(Same(kSwizzling, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING));
static_assert(Same(kCustomOption, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION));
static_assert(Same(kStagesId, CUBLASLT_ALGO_CONFIG_STAGES_ID));
static_assert(Same(kInnerShapeId, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID));
static_assert(Same(kClusterShapeId, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID));
static_assert(Same(kNoReduction, CUBLASLT_REDUCTION_SCHEME_NONE));

static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t) &&
              alignof(Algorithm) == alignof(cublasLtMatmulAlgo_t));
static_assert(sizeof(HeuristicResult) == sizeof(cublasLtMatmulHeuristicResult_t) &&
              offsetof(HeuristicResult, workspace_bytes) ==
                  offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) &&
              offsetof(HeuristicResult, status) ==
                  offsetof(cublasLtMatmulHeuristicResult_t, state) &&
              offsetof(HeuristicResult, waves) ==
                  offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));

// Parameters pass alike: pointers for pointers, and whole numbers and enumerations of one size.
template <typename Ours, typename Theirs>
constexpr bool kPassAlike =
    std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> && sizeof(Ours) == sizeof(Theirs) &&
    std::is_floating_point_v<Ours> == std::is_floating_point_v<Theirs>;
template <typename Ours, typename Theirs>
struct Alike : std::false_type {};
template <typename OursResult, typename... Ours, typename TheirsResult, typename... Theirs>
struct Alike<OursResult (*)(Ours...), TheirsResult (*)(Theirs...)>
    : std::bool_constant<kPassAlike<OursResult, TheirsResult> &&
                         (kPassAlike<Ours, Theirs> && ...)> {};

static_assert(Alike<CreateFunction, decltype(&cublasLtCreate)>::value);
static_assert(Alike<DestroyFunction, decltype(&cublasLtDestroy)>::value);
static_assert(Alike<GetVersionFunction, decltype(&cublasLtGetVersion)>::value);
static_assert(Alike<GetStatusStringFunction, decltype(&cublasLtGetStatusString)>::value);
static_assert(Alike<MatmulFunction, decltype(&cublasLtMatmul)>::value);
static_assert(Alike<MatmulDescCreateFunction, decltype(&cublasLtMatmulDescCreate)>::value);
static_assert(Alike<MatmulDescDestroyFunction, decltype(&cublasLtMatmulDescDestroy)>::value);
static_assert(Alike<MatmulDescSetFunction, decltype(&cublasLtMatmulDescSetAttribute)>::value);
static_assert(Alike<LayoutCreateFunction, decltype(&cublasLtMatrixLayoutCreate)>::value);
static_assert(Alike<LayoutDestroyFunction, decltype(&cublasLtMatrixLayoutDestroy)>::value);
static_assert(Alike<LayoutSetFunction, decltype(&cublasLtMatrixLayoutSetAttribute)>::value);
static_assert(Alike<PreferenceCreateFunction, decltype(&cublasLtMatmulPreferenceCreate)>::value);
static_assert(Alike<PreferenceDestroyFunction, decltype(&cublasLtMatmulPreferenceDestroy)>::value);
static_assert(Alike<PreferenceSetFunction, decltype(&cublasLtMatmulPreferenceSetAttribute)>::value);
static_assert(Alike<GetHeuristicFunction, decltype(&cublasLtMatmulAlgoGetHeuristic)>::value);
static_assert(Alike<AlgorithmGetFunction, decltype(&cublasLtMatmulAlgoConfigGetAttribute)>::value);

}  // namespace
}  // namespace evald::native::cuda::lt
