#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "datasets/documents.h"
#include "datasets/sources.h"
#include "task_code/table_reader.h"

namespace evald {

/// Makes the process that reads tables, when the first one is to be read.
using MakeTableReader = std::function<std::unique_ptr<TableReader>()>;

/// Appends the rows of a file with a table (.parquet, .arrow), which have the values that the
/// package `datasets` gives them. Throws Error(kInput) with the file's name, also for columns other
/// than those of the rows before, and Error(kInfrastructure) if `cancel` is set. Returns the
/// SHA-256 of the file's bytes at the time of reading.
std::string ReadTableFile(TableReader* reader, const DataFile& file, const DataLimits& limits,
                          const std::optional<RowRange>& range, const std::atomic<bool>* cancel,
                          Documents* out);

}  // namespace evald
