# evald_room(NAME [COLD] SOURCES ... LINKS ...) a static library `evald_NAME` from one folder; it links what the room's row
#                                          in docs/architecture.md lists (tests/rooms/test_rooms.py). COLD: its code takes
#                                          no time worth measuring when it runs, so it is built for the compiler's speed
# evald_program(NAME [COLD] [UNITY] SOURCES ... LINKS ...) an executable in the build folder's top. UNITY: its files are
#                                          compiled together, as those of a room
# evald_test(NAME SOURCES ... LINKS ... [LABELS ...]) a GoogleTest program, registered with CTest. CI runs two kinds of
#                                          them under sanitizers as well: those labelled `bytes`, of rooms that read
#                                          foreign bytes, and those labelled `threads`

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
                                  ${CCACHE})
endif()

add_library(evald_options INTERFACE)
target_compile_features(evald_options INTERFACE cxx_std_20)
target_include_directories(evald_options INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
target_compile_options(evald_options INTERFACE -Wall -Wextra -Werror -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # The compiler collects its own garbage less often: a tenth less processor time, for 150 MB more memory.
  target_compile_options(evald_options INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-expand=300 --param ggc-min-heapsize=1048576>")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")  # libstdc++ 12 itself calls its std::get_temporary_buffer
  target_compile_options(evald_options INTERFACE -Wno-deprecated-declarations)
endif()
target_link_libraries(evald_options INTERFACE nlohmann_json::nlohmann_json fmt::fmt Threads::Threads)
if(EVALD_SANITIZE)
  target_compile_options(evald_options INTERFACE -fsanitize=${EVALD_SANITIZE} -fno-omit-frame-pointer
                                                 -fno-sanitize-recover=undefined)
  target_link_options(evald_options INTERFACE -fsanitize=${EVALD_SANITIZE})
endif()

# Precompiled: the headers that nearly every file includes and that cost the most to parse; for tests
# GoogleTest's besides.
set(EVALD_COMMON_HEADERS <nlohmann/json.hpp> <fmt/format.h> <filesystem> <functional> <map> <memory> <optional>
                         <string> <string_view> <vector>)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/pch.cc CONTENT "// anchors a precompiled header\n")  # written once
function(evald_precompiled name)
  cmake_parse_arguments(ARG "" "" "HEADERS;LINKS;OPTIONS" ${ARGN})
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/pch.cc)
  target_link_libraries(${name} PUBLIC evald_options ${ARG_LINKS})
  target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${EVALD_COMMON_HEADERS} ${ARG_HEADERS})
endfunction()
# Test code is built for the compiler's speed, not its own.
set(EVALD_TEST_OPTIONS -O0)
# Of `ctest -j4`, a test takes two slots, and one that mostly waits takes one: two tests compute at a time.
set(EVALD_TEST_SLOTS 2)
evald_precompiled(evald_pch)
evald_precompiled(evald_test_pch HEADERS <gmock/gmock.h> <gtest/gtest.h> LINKS GTest::gtest GTest::gmock
                  OPTIONS ${EVALD_TEST_OPTIONS})

# What uses Boost.Asio links this instead of Boost::headers.
add_library(evald_asio STATIC ${CMAKE_SOURCE_DIR}/cmake/asio.cc)
target_link_libraries(evald_asio PUBLIC evald_options Boost::headers OpenSSL::SSL OpenSSL::Crypto)
target_compile_definitions(evald_asio PUBLIC BOOST_ASIO_SEPARATE_COMPILATION)

# The files of a room are compiled eight at a time: most of the time goes to headers that all of them include. Names in
# an unnamed namespace must therefore differ within a room.
option(EVALD_UNITY "Compile several files of a room at once" ON)
# A type with members from an unnamed namespace is sound in the one file that has both. The other warnings are wrong in
# g++ 12 once it inlines std::string's operators.
set(EVALD_UNITY_OPTIONS -Wno-subobject-linkage -Wno-array-bounds -Wno-restrict -Wno-stringop-overread
                        -Wno-stringop-overflow)
set(EVALD_COLD_PCH evald_pch)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  # A function that takes a temporary and returns a reference to something else is sound.
  target_compile_options(evald_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-dangling-reference>)
  # The frames of Boost.Asio's coroutines have an operator delete of their own beside their operator new; g++ 14 looks
  # through the latter and misses the former.
  target_compile_options(evald_asio PUBLIC $<$<COMPILE_LANGUAGE:CXX>:-Wno-mismatched-new-delete>)
  # g++ 13 and later refuse a header that was precompiled at another level of optimisation.
  evald_precompiled(evald_cold_pch OPTIONS -O1)
  set(EVALD_COLD_PCH evald_cold_pch)
endif()

# How the files of a target are compiled: several at once, and quickly at the cost of the code's speed.
function(evald_compiling target unity cold)
  if(cold)
    target_precompile_headers(${target} REUSE_FROM ${EVALD_COLD_PCH})
    target_compile_options(${target} PRIVATE -O1)
  else()
    target_precompile_headers(${target} REUSE_FROM evald_pch)
  endif()
  if(EVALD_UNITY AND unity)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:${EVALD_UNITY_OPTIONS}>")
  endif()
endfunction()

function(evald_room name)
  cmake_parse_arguments(ARG "COLD" "" "SOURCES;LINKS" ${ARGN})
  add_library(evald_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(evald_${name} PUBLIC evald_options ${ARG_LINKS})
  evald_compiling(evald_${name} ON ${ARG_COLD})
endfunction()

function(evald_program name)
  cmake_parse_arguments(ARG "COLD;UNITY" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE evald_options ${ARG_LINKS})
  # The tarball of scripts/package brings libraries in a folder beside the programs. Old tags: the libraries that these
  # libraries need are found there, too.
  set_target_properties(${name} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/lib")
  target_link_options(${name} PRIVATE -Wl,--disable-new-dtags)
  evald_compiling(${name} ${ARG_UNITY} ${ARG_COLD})
endfunction()

# Every GoogleTest program and every corpus of a fuzz target, but for those labelled `emulated`; all fuzz targets with
# libFuzzer.
add_custom_target(unit_tests)
add_dependencies(unit_tests evald-worker)  # some tests start a worker
add_custom_target(bytes_tests)
add_custom_target(threads_tests)
add_custom_target(fuzz_targets)

# Adds the test `name` to the targets of its labels.
function(evald_join_sanitized name labels)
  foreach(label bytes threads)
    if(label IN_LIST labels)
      add_dependencies(${label}_tests ${name})
    endif()
  endforeach()
endfunction()

function(evald_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE evald_options ${ARG_LINKS} GTest::gtest GTest::gmock
                                        GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE EVALD_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                                             EVALD_BINARY_DIR="${CMAKE_BINARY_DIR}")
  target_compile_options(${name} PRIVATE ${EVALD_TEST_OPTIONS})
  target_precompile_headers(${name} REUSE_FROM evald_test_pch)
  if(EVALD_UNITY)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "unit;${ARG_LABELS}" TIMEOUT 600 PROCESSORS ${EVALD_TEST_SLOTS})
  if(NOT "emulated" IN_LIST ARG_LABELS)
    add_dependencies(unit_tests ${name})
  endif()
  evald_join_sanitized(${name} "${ARG_LABELS}")
endfunction()

# evald_fuzz(NAME SOURCES ... LINKS ... [LABELS bytes])   a fuzz target; its corpus is tests/fuzz/corpus/NAME. The fuzz preset links it
# with libFuzzer; every other build makes a test of it that runs the corpus.
function(evald_fuzz name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS;LABELS" ${ARGN})
  if(EVALD_FUZZ)
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE evald_options ${ARG_LINKS})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
    add_dependencies(fuzz_targets ${name})
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES} run_corpus.cc)
  target_link_libraries(${name} PRIVATE evald_options evald_base ${ARG_LINKS})
  target_precompile_headers(${name} REUSE_FROM evald_pch)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name} ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name})
  set_tests_properties(${name} PROPERTIES LABELS "unit;corpus;${ARG_LABELS}" TIMEOUT 600 PROCESSORS ${EVALD_TEST_SLOTS})
  add_dependencies(unit_tests ${name})
  evald_join_sanitized(${name} "${ARG_LABELS}")
endfunction()
