#pragma once

#include <cstddef>

namespace evald::cli {

/// Whether standard output is a terminal.
bool IsTerminal();

/// The columns that text on standard output may take: those of the terminal; 80 if the
/// terminal does not say. Elsewhere lines are as long as they are: programs search in them.
size_t OutputColumns();

/// The lines of the terminal on standard output.
size_t OutputRows();

}  // namespace evald::cli
