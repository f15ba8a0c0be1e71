# The GPU part that runs on a GPU (evald_cuda_real) is built where the CUDA toolkit is. Its emulation
# (evald_cuda_emulated) needs none and is built always.
#   EVALD_CUDA             found here: ON or OFF
#   EVALD_CUDA_MISSING     what was not found, in one line
#   EVALD_CUBLAS_INCLUDE   folder of cublasLt.h, where it is not the toolkit's. It is not needed: libcublasLt is loaded
#                          when a GPU is first used; but where it is found, cublaslt_abi.h is compared with it.
set(EVALD_CUDA_ARCHITECTURES "80-virtual;90-real" CACHE STRING
  "What device code is compiled for, as CMAKE_CUDA_ARCHITECTURES")
set(EVALD_CUBLAS_INCLUDE "" CACHE PATH "Folder of cublasLt.h, where it is not the CUDA toolkit's")
option(EVALD_WITH_CUDA "Build for GPUs where the CUDA toolkit is found" ON)

# Headers and runtime are taken from beside nvcc, so that all are of one version.
function(evald_find_cuda)
  set(EVALD_CUDA OFF PARENT_SCOPE)
  if(NOT EVALD_WITH_CUDA)
    set(EVALD_CUDA_MISSING "EVALD_WITH_CUDA is OFF" PARENT_SCOPE)
    return()
  endif()
  find_program(EVALD_NVCC nvcc HINTS ENV CUDAToolkit_ROOT ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda
               PATH_SUFFIXES bin DOC "The CUDA compiler")
  if(NOT EVALD_NVCC)
    set(EVALD_CUDA_MISSING "nvcc of the CUDA toolkit (12.4 or later) was not found" PARENT_SCOPE)
    return()
  endif()
  get_filename_component(root ${EVALD_NVCC} REALPATH)
  get_filename_component(root ${root} DIRECTORY)
  get_filename_component(root ${root} DIRECTORY)
  find_path(EVALD_CUDA_INCLUDE cuda_runtime_api.h HINTS ${root}/include ${root}/targets/x86_64-linux/include
            NO_DEFAULT_PATH)
  find_library(EVALD_CUDART cudart_static HINTS ${root}/lib64 ${root}/lib ${root}/targets/x86_64-linux/lib
               NO_DEFAULT_PATH)
  find_path(EVALD_CUBLASLT_H cublasLt.h HINTS ${EVALD_CUBLAS_INCLUDE} ${EVALD_CUDA_INCLUDE})
  foreach(part "EVALD_CUDA_INCLUDE:cuda_runtime_api.h" "EVALD_CUDART:libcudart_static.a")
    string(REPLACE ":" ";" part ${part})
    list(GET part 0 variable)
    list(GET part 1 file)
    if(NOT ${variable})
      set(EVALD_CUDA_MISSING "${file} was not found beside ${EVALD_NVCC}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(EVALD_CUDA ON PARENT_SCOPE)
endfunction()
evald_find_cuda()

# Must be included at the top of the tree, as languages are enabled there.
if(EVALD_CUDA)
  set(CMAKE_CUDA_COMPILER ${EVALD_NVCC})
  set(CMAKE_CUDA_ARCHITECTURES ${EVALD_CUDA_ARCHITECTURES})
  set(CMAKE_CUDA_RUNTIME_LIBRARY None)  # linked by its path (EVALD_CUDART)
  if(NOT CMAKE_CUDA_HOST_COMPILER AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
  endif()
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake before 3.25.2 does not know that nvcc has it
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  find_program(CCACHE ccache)
  if(CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
  endif()
  message(STATUS "GPU: built with ${EVALD_NVCC} ${CMAKE_CUDA_COMPILER_VERSION} for ${EVALD_CUDA_ARCHITECTURES}")
else()
  message(STATUS "GPU: built for the emulated device only: ${EVALD_CUDA_MISSING}")
endif()
