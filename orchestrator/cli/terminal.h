#pragma once

#include <cstddef>

namespace evald::cli {

/// Whether standard output is a terminal.
bool IsTerminal();

/// The columns that text on standard output may take: those of the terminal; 80 if it is none, or
/// if the terminal does not say.
size_t OutputColumns();

/// The lines of the terminal on standard output.
size_t OutputRows();

}  // namespace evald::cli
