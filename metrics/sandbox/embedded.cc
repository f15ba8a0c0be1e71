#include "metrics/sandbox/embedded.h"

// CMakeLists.txt sets the paths, and rebuilds this file if one of the files changes.
#define EVALD_EMBED(symbol, path)                                               \
  asm(".pushsection .rodata\n"                                                  \
      ".balign 16\n"                                                            \
      ".hidden " #symbol                                                        \
      "_begin\n"                                                                \
      ".globl " #symbol "_begin\n" #symbol                                      \
      "_begin:\n"                                                               \
      ".incbin \"" path                                                         \
      "\"\n"                                                                    \
      ".hidden " #symbol                                                        \
      "_end\n"                                                                  \
      ".globl " #symbol "_end\n" #symbol                                        \
      "_end:\n"                                                                 \
      ".byte 0\n"                                                               \
      ".popsection\n");                                                         \
  extern "C" __attribute__((visibility("hidden"))) const char symbol##_begin[]; \
  extern "C" __attribute__((visibility("hidden"))) const char symbol##_end[];

EVALD_EMBED(evald_sandbox_guest, EVALD_SANDBOX_GUEST)
EVALD_EMBED(evald_sandbox_keeper, EVALD_SANDBOX_KEEPER)
EVALD_EMBED(evald_sandbox_zygote, EVALD_SANDBOX_ZYGOTE)
EVALD_EMBED(evald_sandbox_discover, EVALD_SANDBOX_DISCOVER)

namespace evald::sandbox {

std::string_view GuestLibrary() {
  return {evald_sandbox_guest_begin,
          static_cast<size_t>(evald_sandbox_guest_end - evald_sandbox_guest_begin)};
}

std::string_view KeeperProgram() {
  return {evald_sandbox_keeper_begin,
          static_cast<size_t>(evald_sandbox_keeper_end - evald_sandbox_keeper_begin)};
}

std::string_view ZygoteScript() {
  return {evald_sandbox_zygote_begin,
          static_cast<size_t>(evald_sandbox_zygote_end - evald_sandbox_zygote_begin)};
}

std::string_view DiscoverScript() {
  return {evald_sandbox_discover_begin,
          static_cast<size_t>(evald_sandbox_discover_end - evald_sandbox_discover_begin)};
}

}  // namespace evald::sandbox
