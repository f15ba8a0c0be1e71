#include "worker/native/model.h"

#include <algorithm>
#include <cmath>

namespace evald::native {
namespace {

constexpr int kAttentionRows = 8;           // query rows that share one pass over the keys
constexpr int64_t kLogitsFloats = 8 << 20;  // of one block of logits
constexpr int64_t kColumnsPerTask = 48;     // of a matrix product, a multiple of every tile

void Resize(std::vector<float>* buffer, int64_t floats) {
  if (static_cast<int64_t>(buffer->size()) < floats) buffer->resize(static_cast<size_t>(floats));
}

}  // namespace

LlamaModel::LlamaModel(const LlamaConfig& config, const LlamaWeights& weights,
                       const PageLayout& layout, const Kernels& kernels, ThreadPool* pool)
    : config_(config),
      weights_(weights),
      layout_(layout),
      kernels_(kernels),
      pool_(pool),
      rope_(config.rope, config.head_dim),
      scratch_(static_cast<size_t>(pool->threads())) {}

void LlamaModel::Forward(const std::vector<Segment>& segments, const LogitsSink& sink) {
  rows_ = 0;
  int64_t positions = 0;
  for (const Segment& segment : segments) {
    rows_ += segment.count;
    positions = std::max(positions, segment.first_position + segment.count);
  }
  rope_.Grow(positions);
  const int64_t inner =
      std::max({config_.hidden_size, config_.intermediate_size, config_.query_size()});
  const int64_t attention_rows = std::max<int64_t>(config_.group(), kAttentionRows);
  for (auto& scratch : scratch_) {
    Resize(&scratch,
           std::max(inner * kMultiplyScratchRows, attention_rows * ScoreStride(positions)));
  }
  for (auto* buffer : {&hidden_, &normalized_}) Resize(buffer, rows_ * config_.hidden_size);
  for (auto* buffer : {&query_, &attended_}) Resize(buffer, rows_ * config_.query_size());
  for (auto* buffer : {&key_, &value_}) Resize(buffer, rows_ * config_.kv_size());
  for (auto* buffer : {&gate_, &up_}) Resize(buffer, rows_ * config_.intermediate_size);

  Embed(segments);
  std::vector<Segment> active = segments;
  for (int64_t layer = 0; layer < config_.layers; ++layer) ComputeLayer(layer, &active);
  ComputeLogits(segments, sink);
}

void LlamaModel::Embed(const std::vector<Segment>& segments) {
  const Matrix& embedding = weights_.embedding();
  const int64_t width = config_.hidden_size;
  const int64_t row_bytes = width * (embedding.type == WeightType::kF32 ? 4 : 2);
  float* out = hidden_.data();
  for (const Segment& segment : segments) {
    for (int i = 0; i < segment.count; ++i, out += width) {
      kernels_.widen(embedding.data + segment.tokens[i] * row_bytes, embedding.type, width, out);
    }
  }
}

void LlamaModel::ComputeLayer(int64_t index, std::vector<Segment>* segments) {
  const LayerWeights& layer = weights_.layers()[static_cast<size_t>(index)];
  Normalize(layer.attention_norm);
  Multiply(layer.key, normalized_.data(), rows_, key_.data());
  Multiply(layer.value, normalized_.data(), rows_, value_.data());
  RotateHeads(*segments, key_.data(), config_.kv_heads);
  StoreKeysAndValues(index, *segments);
  // After the last keys and values, only the rows whose logits are wanted matter.
  if (index + 1 == config_.layers) KeepWanted(segments);
  if (rows_ == 0) return;
  Multiply(layer.query, normalized_.data(), rows_, query_.data());
  RotateHeads(*segments, query_.data(), config_.heads);
  Attend(index, *segments);
  Multiply(layer.output, attended_.data(), rows_, normalized_.data());
  AddResidual();

  Normalize(layer.mlp_norm);
  Multiply(layer.gate, normalized_.data(), rows_, gate_.data());
  Multiply(layer.up, normalized_.data(), rows_, up_.data());
  pool_->ForEach(rows_, 8 * rows_ * config_.intermediate_size, [&](int64_t row, int) {
    const int64_t offset = row * config_.intermediate_size;
    kernels_.silu_multiply(gate_.data() + offset, up_.data() + offset, config_.intermediate_size);
  });
  Multiply(layer.down, gate_.data(), rows_, normalized_.data());
  AddResidual();
}

void LlamaModel::RotateHeads(const std::vector<Segment>& segments, float* heads, int64_t count) {
  for (const Segment& segment : segments) {
    for (int i = 0; i < segment.count; ++i) {
      const float* cosines = rope_.cosines(segment.first_position + i);
      const float* sines = rope_.sines(segment.first_position + i);
      for (int64_t h = 0; h < count; ++h, heads += config_.head_dim) {
        Rotate(heads, config_.head_dim, cosines, sines);
      }
    }
  }
}

void LlamaModel::StoreKeysAndValues(int64_t layer, const std::vector<Segment>& segments) {
  const float* key = key_.data();
  const float* value = value_.data();
  for (const Segment& segment : segments) {
    for (int i = 0; i < segment.count; ++i) {
      const int64_t position = segment.first_position + i;
      float* page = segment.pages[position / kPagePositions];
      for (int64_t h = 0; h < config_.kv_heads; ++h) {
        layout_.Store(page, layer, h, position % kPagePositions, key, value);
        key += config_.head_dim;
        value += config_.head_dim;
      }
    }
  }
}

void LlamaModel::Attend(int64_t layer, const std::vector<Segment>& segments) {
  std::vector<AttentionTask> tasks;
  std::vector<int64_t> first_row;
  const int step = std::max<int>(1, kAttentionRows / static_cast<int>(config_.group()));
  int64_t row = 0, pairs = 0;  // pairs of query and key
  for (size_t s = 0; s < segments.size(); ++s) {
    first_row.push_back(row);
    row += segments[s].count;
    pairs += segments[s].count * (segments[s].first_position + segments[s].count);
    for (int first = 0; first < segments[s].count; first += step) {
      for (int64_t h = 0; h < config_.kv_heads; ++h) {
        tasks.push_back({s, h, first, std::min(step, segments[s].count - first)});
      }
    }
  }
  const float scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim));
  const int64_t work = 2 * pairs * config_.query_size();
  pool_->ForEach(static_cast<int64_t>(tasks.size()), work, [&](int64_t index, int thread) {
    const AttentionTask& task = tasks[static_cast<size_t>(index)];
    const Segment& segment = segments[task.segment];
    const int64_t offset = (first_row[task.segment] + task.first) * config_.query_size() +
                           task.head * config_.group() * config_.head_dim;
    AttendArgs args;
    args.q = query_.data() + offset;
    args.q_stride = config_.query_size();
    args.positions = task.count;
    args.group = static_cast<int>(config_.group());
    args.first_position = segment.first_position + task.first;
    args.head_dim = static_cast<int>(config_.head_dim);
    args.scale = scale;
    args.pages = segment.pages;
    args.key_offset = layout_.keys(layer, task.head);
    args.value_offset = layout_.values(layer, task.head);
    args.value_stride = layout_.value_stride;
    args.out = attended_.data() + offset;
    args.out_stride = config_.query_size();
    args.scratch = scratch_[static_cast<size_t>(thread)].data();
    kernels_.attend(args);
  });
}

void LlamaModel::KeepWanted(std::vector<Segment>* segments) {
  const int64_t width = config_.hidden_size;
  int64_t from = 0, to = 0;
  std::vector<Segment> wanted;
  for (const Segment& segment : *segments) {
    const int count = segment.count - segment.logits_from;
    const int64_t first = from + segment.logits_from;
    for (std::vector<float>* buffer : {&hidden_, &normalized_}) {
      std::copy_n(buffer->begin() + first * width, count * width, buffer->begin() + to * width);
    }
    from += segment.count;
    to += count;
    if (count == 0) continue;
    wanted.push_back(segment);
    wanted.back().tokens += segment.logits_from;
    wanted.back().first_position += segment.logits_from;
    wanted.back().count = count;
    wanted.back().logits_from = 0;
  }
  rows_ = to;
  *segments = std::move(wanted);
}

void LlamaModel::ComputeLogits(const std::vector<Segment>& segments, const LogitsSink& sink) {
  Normalize(weights_.norm());
  const int64_t vocab = config_.vocab_size;
  const int64_t block = std::clamp<int64_t>(kLogitsFloats / vocab, 1, std::max<int64_t>(rows_, 1));
  Resize(&logits_, block * vocab);
  int64_t row = 0;
  for (size_t s = 0; s < segments.size(); ++s) {
    for (int i = segments[s].logits_from; i < segments[s].count; ++i, ++row) {
      if (row % block == 0) {
        Multiply(weights_.head(), normalized_.data() + row * config_.hidden_size,
                 std::min(block, rows_ - row), logits_.data());
      }
      sink(s, i, logits_.data() + row % block * vocab);
    }
  }
}

void LlamaModel::Normalize(const std::vector<float>& weight) {
  const int64_t width = config_.hidden_size;
  const auto eps = static_cast<float>(config_.rms_norm_eps);
  pool_->ForEach(rows_, rows_ * width, [&](int64_t row, int) {
    kernels_.rms_norm(hidden_.data() + row * width, weight.data(), eps, width,
                      normalized_.data() + row * width);
  });
}

void LlamaModel::Multiply(const Matrix& matrix, const float* x, int64_t rows, float* y) {
  MultiplyArgs args;
  args.x = x;
  args.rows = rows;
  args.inner = matrix.columns;
  args.weights = matrix.data;
  args.type = matrix.type;
  args.bias = matrix.bias.empty() ? nullptr : matrix.bias.data();
  args.y = y;
  args.y_stride = matrix.rows;
  const int64_t tasks = (matrix.rows + kColumnsPerTask - 1) / kColumnsPerTask;
  pool_->ForEach(tasks, rows * matrix.rows * matrix.columns, [&](int64_t task, int thread) {
    MultiplyArgs mine = args;
    mine.first = task * kColumnsPerTask;
    mine.end = std::min(matrix.rows, mine.first + kColumnsPerTask);
    mine.scratch = scratch_[static_cast<size_t>(thread)].data();
    kernels_.multiply(mine);
  });
}

void LlamaModel::AddResidual() {
  const int64_t width = config_.hidden_size;
  pool_->ForEach(rows_, rows_ * width, [&](int64_t row, int) {
    kernels_.add(hidden_.data() + row * width, normalized_.data() + row * width, width);
  });
}

}  // namespace evald::native
