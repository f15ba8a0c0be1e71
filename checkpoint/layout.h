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

/// What a Hugging Face checkpoint folder holds, in a fixed order (by name). Files of the folder
/// itself count, the shards that the index names (in subfolders too) and
/// `additional_chat_templates/*.jinja`; weights in other formats, safetensors files that the index
/// does not name, hidden files and other subfolders (a trainer's `checkpoint-500/`) do not.
/// Symbolic links are followed, as far as the folder's ReadRoots allow: the snapshots of the
/// Hugging Face hub's cache consist of them.
struct CheckpointLayout {
  ReadFolder folder;           ///< that it was read from, open
  std::filesystem::path root;  ///< its name
  std::vector<CheckpointFile>
      files;  ///< everything an engine may open: json, txt, model, safetensors, jinja
  std::vector<std::string>
      shards;  ///< the safetensors files, as the index names them, or the single one
  uint64_t total_bytes = 0;
  /// What lies in the folder and is not staged ("optimizer.pt", "checkpoint-500/"), by name.
  std::vector<std::string> skipped;
};

/// Looks at a checkpoint folder without reading its weights. Throws Error(kInput), naming folder
/// and file, when it is missing, empty, has no config.json, no tokenizer.json (a checkpoint with
/// only `tokenizer.model` gets the command that converts it), no safetensors, a broken index, or an
/// index naming a file that is not there. Names that leave the folder ("../x") are refused.
CheckpointLayout ReadCheckpointLayout(const ReadFolder& root);

/// Names of the files of a checkpoint folder that may be staged, sorted, found without opening any:
/// all that ReadCheckpointLayout may choose but for shards in subfolders, which only the index
/// names. Throws Error(kInput) when the folder is missing or cannot be listed.
std::vector<std::string> CandidateNames(const ReadFolder& root);

/// Reads every shard's header and checks that each is as long as its header says and that it holds
/// the tensors that the index maps to it. Tensors that the index does not name are left alone.
/// Throws Error(kInput).
void CheckShards(const CheckpointLayout& layout);

}  // namespace evald
