#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/read_roots.h"

namespace evald {

/// One file of a checkpoint that is to be staged.
struct CheckpointFile {
  std::string name;  ///< relative to the checkpoint's folder, with '/'
  uint64_t bytes = 0;
};

/// The content of a Hugging Face checkpoint folder, in a fixed order (by name). These files count:
/// files of the folder itself, the shards that the index names (in subfolders too), and
/// `additional_chat_templates/*.jinja`. These do not: weights in other formats, safetensors files
/// that the index does not name, hidden files, and other subfolders (a trainer's
/// `checkpoint-500/`). Symbolic links are followed as far as the folder's ReadRoots allow, since
/// snapshots in the Hugging Face hub's cache consist of links.
struct CheckpointLayout {
  ReadFolder folder;           ///< the folder, open
  std::filesystem::path root;  ///< its name
  std::vector<CheckpointFile>
      files;  ///< everything an engine may open: json, txt, model, safetensors, jinja
  std::vector<std::string>
      shards;  ///< the safetensors files, as the index names them, or the single one
  uint64_t total_bytes = 0;
  /// Entries of the folder that are not staged ("optimizer.pt", "checkpoint-500/"), by name.
  std::vector<std::string> skipped;
};

/// Looks at a checkpoint folder without reading its weights. Throws Error(kInput), which names
/// folder and file, if the folder is missing or empty, if it has no config.json, no tokenizer.json
/// or no safetensors, if its index is broken, or if the index names a file that does not exist. The
/// remedy for a checkpoint that has only `tokenizer.model` is the command that converts it. Names
/// that leave the folder ("../x") are refused.
CheckpointLayout ReadCheckpointLayout(const ReadFolder& root);

/// Names of the files of a checkpoint folder that may be staged, sorted. No file is opened. They
/// are all files that ReadCheckpointLayout may choose, except shards in subfolders, which only the
/// index names. Throws Error(kInput) if the folder is missing or cannot be listed.
std::vector<std::string> CandidateNames(const ReadFolder& root);

/// Reads every shard's header. Checks that each shard is as long as its header says, and that it
/// holds the tensors that the index maps to it. Tensors that the index does not name are left
/// alone. Throws Error(kInput).
void CheckShards(const CheckpointLayout& layout);

}  // namespace evald
