#include "orchestrator/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace evald::cli {
namespace {

constexpr size_t kAnyColumns = 10'000;

winsize Size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    size.ws_col = 80, size.ws_row = 24;
  return size;
}

}  // namespace

bool IsTerminal() { return ::isatty(STDOUT_FILENO) == 1; }
size_t OutputColumns() { return IsTerminal() ? Size().ws_col : kAnyColumns; }
size_t OutputRows() { return Size().ws_row; }

}  // namespace evald::cli
