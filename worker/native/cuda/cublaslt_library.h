#pragma once

#include <string>

#include "worker/native/cuda/cublaslt_abi.h"

namespace evald::native::cuda {

/// cuBLASLt's functions, from the library that is found when the program runs: it is hundreds of
/// megabytes large and often lies in a Python package. Versions 12 and 13 have the same interface
/// for these functions.
struct CublasLt {
  lt::CreateFunction Create;
  lt::DestroyFunction Destroy;
  lt::GetVersionFunction GetVersion;
  lt::GetStatusStringFunction GetStatusString;
  lt::MatmulFunction Matmul;
  lt::MatmulDescCreateFunction MatmulDescCreate;
  lt::MatmulDescDestroyFunction MatmulDescDestroy;
  lt::MatmulDescSetFunction MatmulDescSetAttribute;
  lt::LayoutCreateFunction MatrixLayoutCreate;
  lt::LayoutDestroyFunction MatrixLayoutDestroy;
  lt::LayoutSetFunction MatrixLayoutSetAttribute;
  lt::PreferenceCreateFunction MatmulPreferenceCreate;
  lt::PreferenceDestroyFunction MatmulPreferenceDestroy;
  lt::PreferenceSetFunction MatmulPreferenceSetAttribute;
  lt::GetHeuristicFunction MatmulAlgoGetHeuristic;
  lt::AlgorithmGetFunction MatmulAlgoConfigGetAttribute;

  /// Throws DeviceError unless the status is success.
  void Check(lt::Status status, const char* doing) const;
};

/// Loads the library once: the file that EVALD_CUBLASLT names, otherwise by the system's search.
/// Throws Error(kInfrastructure) if no library is found.
const CublasLt& LoadCublasLt();

}  // namespace evald::native::cuda
