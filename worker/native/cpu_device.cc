#include "worker/native/cpu_device.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "worker/native/families/family.h"
#include "worker/native/likeliest.h"
#include "worker/native/sampler.h"

namespace evald::native {
namespace {

constexpr int kAttentionRows = 56;          // query rows that share one pass over the keys
constexpr int64_t kLogitsFloats = 8 << 20;  // in one block of logits
constexpr int64_t kStretch = 1 << 14;       // logits for one thread
constexpr int64_t kColumnsPerTask = 48;     // in a product with few rows; a multiple of every tile
constexpr int64_t kColumnsMin = 12;         // likewise
constexpr int64_t kTaskElements = 1 << 15;  // elements of weights in such a product
constexpr int64_t kPanelsPerTask = 12;      // in a product with more rows

void Grow(Floats* buffer, int64_t floats) {
  if (static_cast<int64_t>(buffer->size()) < floats) buffer->resize(static_cast<size_t>(floats));
}

struct Columns {
  int64_t first, end;
};

// The memory of the weights is the limit here: small tasks keep all threads reading to the end.
std::vector<Columns> TasksOfFewRows(int64_t columns, int64_t inner) {
  const int64_t step =
      std::clamp(kTaskElements / inner / kColumnsMin * kColumnsMin, kColumnsMin, kColumnsPerTask);
  std::vector<Columns> tasks;
  for (int64_t first = 0; first < columns; first += step) {
    tasks.push_back({first, std::min(columns, first + step)});
  }
  return tasks;
}

// Tasks of whole panels: the same number for each thread, of nearly the same size.
std::vector<Columns> TasksOfManyRows(int64_t columns, int64_t panel_columns, int64_t threads) {
  const int64_t panels = (columns + panel_columns - 1) / panel_columns;
  const int64_t rounds = (panels + threads * kPanelsPerTask - 1) / (threads * kPanelsPerTask);
  const int64_t count = std::min(panels, rounds * threads);
  std::vector<Columns> tasks;
  for (int64_t i = 0; i < count; ++i) {
    tasks.push_back({panels * i / count * panel_columns,
                     std::min(columns, panels * (i + 1) / count * panel_columns)});
  }
  return tasks;
}

bool IsDrawn(const Wish& wish) {
  return wish.target < 0 && wish.settings != nullptr && wish.settings->do_sample;
}

bool WantsLogProbability(const Wish& wish) { return wish.target >= 0 || wish.top >= 0; }

// Answers from a row of logits with NaN or infinities, like torch's log_softmax and argmax.
void AnswerWithCare(const float* logits, int64_t vocab, const Wish& wish, Answer* answer) {
  answer->defined = HaveSoftmax(logits, vocab);
  if (wish.logits) {
    answer->logits.assign(logits, logits + vocab);
    return;
  }
  if (IsDrawn(wish)) {
    if (answer->defined) answer->token = Sample(logits, vocab, *wish.settings, wish.uniform);
  } else if (wish.target < 0 || answer->defined) {
    answer->token = ArgMax(logits, vocab);
  }
  if (!WantsLogProbability(wish)) return;
  TokenReport report = ReportOn(wish.target >= 0 ? wish.target : answer->token, logits, vocab,
                                std::max(wish.top, 0));
  answer->log_probability = report.log_probability;
  answer->top = std::move(report.top);
}

}  // namespace

CpuDevice::CpuDevice(const ModelConfig& config, const Kernels& kernels, ThreadPool* pool)
    : config_(config),
      layout_(config),
      kernels_(kernels),
      pool_(pool),
      rope_(config.rope, kernels.round),
      packed_(config.family->names.packed != nullptr),
      scratch_(static_cast<size_t>(pool->threads())),
      attend_rows_(scratch_.size()) {
  if (config.local_rope) local_rope_.emplace(*config.local_rope, kernels.round);
}

Page* CpuDevice::NewPage() {
  auto* floats = new (kAlignment) float[static_cast<size_t>(layout_.floats)]();
  return reinterpret_cast<Page*>(floats);
}

void CpuDevice::DeletePage(Page* page) {
  ::operator delete[](reinterpret_cast<float*>(page), kAlignment);
}

void CpuDevice::CopyPage(const Page* from, Page* to) {
  std::copy_n(reinterpret_cast<const float*>(from), layout_.floats, reinterpret_cast<float*>(to));
}

void CpuDevice::Begin(const std::vector<Segment>& segments) {
  segments_ = segments;
  rows_.clear();
  int64_t positions = 0;
  for (const Segment& segment : segments) {
    for (int i = 0; i < segment.count; ++i) {
      rows_.push_back({segment.tokens[i], segment.first_position + i, segment.pages});
    }
    positions = std::max(positions, segment.first_position + segment.count);
  }
  rope_.Grow(positions);
  if (local_rope_) local_rope_->Grow(positions);
  const int64_t attention_rows = std::max<int64_t>(config_.group(), kAttentionRows);
  for (auto& scratch : scratch_) {
    Grow(&scratch, std::max(kernels_.multiply_scratch_floats(static_cast<int64_t>(rows_.size())),
                            attention_rows * ScoreStride(positions)));
  }
}

float* CpuDevice::Reserve(Rows rows, int64_t width) {
  auto& buffer = buffers_[static_cast<size_t>(rows)];
  Grow(&buffer, static_cast<int64_t>(rows_.size()) * width);
  return buffer.data();
}

void CpuDevice::Embed(const Matrix& embedding) {
  const int64_t width = config_.hidden_size;
  const int64_t row_bytes = width * (embedding.type == WeightType::kF32 ? 4 : 2);
  float* out = Reserve(Rows::kHidden, width);
  for (const Row& row : rows_) {
    kernels_.widen(embedding.data + row.token * row_bytes, embedding.type, width, out);
    out += width;
  }
  if (config_.embedding_scale == 1) return;
  const auto scale = static_cast<float>(config_.embedding_scale);
  float* hidden = rows(Rows::kHidden);
  const auto count = static_cast<int64_t>(rows_.size());
  for (int64_t i = 0; i < count * width; ++i) hidden[i] *= scale;
}

void CpuDevice::NormalizeRow(const NormWeights& norm, const float* x, int64_t width,
                             float* out) const {
  const auto eps = static_cast<float>(config_.norm_eps);
  if (norm.bias.empty()) {
    kernels_.rms_norm(x, norm.weight.data(), eps, width, out);
  } else {
    kernels_.layer_norm(x, norm.weight.data(), norm.bias.data(), eps, width, out);
  }
}

void CpuDevice::Normalize(const NormWeights& norm, Rows from, Rows to) {
  const int64_t width = config_.hidden_size;
  float* out = Reserve(to, width);
  const float* in = rows(from);
  const auto count = static_cast<int64_t>(rows_.size());
  pool_->ForEach(count, count * width, [&](int64_t row, int) {
    NormalizeRow(norm, in + row * width, width, out + row * width);
  });
}

void CpuDevice::Multiply(const Linear& linear, Rows from, Rows to) {
  float* y = Reserve(to, linear.outputs());
  Multiply(linear, rows(from), static_cast<int64_t>(rows_.size()), y);
}

// x [count][inputs] in the kernels' layout for a product with that many rows and such weights.
const float* CpuDevice::Packed(const float* x, int64_t count, int64_t inputs, WeightType type) {
  const int64_t floats = kernels_.packed_floats(count, inputs, type);
  if (floats == 0) return x;
  Floats& packed = packed_rows_[static_cast<size_t>(type)];
  Grow(&packed, floats);
  pool_->ForEach(kernels_.row_blocks(count), 4 * count * inputs, [&](int64_t block, int) {
    kernels_.pack_rows(x, count, inputs, type, block, packed.data());
  });
  return packed.data();
}

// y[row][outputs] = x[row][inputs] times all parts, each of which is a column block of y.
void CpuDevice::Multiply(const Linear& linear, const float* x, int64_t count, float* y) {
  struct Task {
    const Linear::Part* part;
    const float* x;
    Columns columns;
    float* y;
  };
  const int64_t outputs = linear.outputs(), inputs = linear.inputs();
  std::vector<Task> tasks;
  std::array<const float*, 3> packed = {};  // by the parts' WeightType; nearly always one
  float* part_y = y;
  for (const Linear::Part& part : linear.parts) {
    const int64_t columns = part.matrix.rows;
    const float*& part_x = packed[static_cast<size_t>(part.matrix.type)];
    if (part_x == nullptr) part_x = Packed(x, count, inputs, part.matrix.type);
    for (const Columns& task :
         count <= kernels_.few_rows
             ? TasksOfFewRows(columns, inputs)
             : TasksOfManyRows(columns, kernels_.panel_columns, pool_->threads())) {
      tasks.push_back({&part, part_x, task, part_y});
    }
    part_y += columns;
  }
  MultiplyArgs all;
  all.rows = count;
  all.inner = inputs;
  all.y_stride = outputs;
  pool_->ForEach(static_cast<int64_t>(tasks.size()), count * outputs * inputs,
                 [&](int64_t index, int thread) {
                   const Task& task = tasks[static_cast<size_t>(index)];
                   MultiplyArgs args = all;
                   args.x = task.x;
                   args.weights = task.part->matrix.data;
                   args.type = task.part->matrix.type;
                   args.first = task.columns.first;
                   args.end = task.columns.end;
                   args.bias = task.part->bias.empty() ? nullptr : task.part->bias.data();
                   args.y = task.y;
                   args.scratch = scratch_[static_cast<size_t>(thread)].data();
                   kernels_.multiply(args);
                 });
}

CpuDevice::HeadOffsets CpuDevice::Offsets(int64_t head) const {
  const int64_t dim = config_.head_dim, group = config_.group() * dim;
  if (packed_) {
    const int64_t query = head * (group + 2 * dim);
    return {query, query + group, query + group + dim};
  }
  const int64_t key = config_.query_size() + head * dim;
  return {head * group, key, key + config_.kv_size()};
}

void CpuDevice::NormalizeHeads(const NormWeights& query, const NormWeights& key) {
  const int64_t width = config_.qkv_size(), dim = config_.head_dim;
  const auto count = static_cast<int64_t>(rows_.size());
  const bool each = config_.head_norm == HeadNorm::kEach;
  pool_->ForEach(count, count * width, [&](int64_t index, int) {
    float* row = rows(Rows::kQkv) + index * width;
    if (!each) {
      NormalizeRow(query, row, config_.query_size(), row);
      float* keys = row + config_.query_size();
      NormalizeRow(key, keys, config_.kv_size(), keys);
      return;
    }
    for (int64_t head = 0; head < config_.kv_heads; ++head) {
      const HeadOffsets offsets = Offsets(head);
      for (int64_t i = 0; i < config_.group(); ++i) {
        float* q = row + offsets.query + i * dim;
        NormalizeRow(query, q, dim, q);
      }
      NormalizeRow(key, row + offsets.key, dim, row + offsets.key);
    }
  });
}

void CpuDevice::Rotate(int64_t layer) {
  const RopeTable& rope = config_.IsLocal(layer) ? *local_rope_ : rope_;
  const int64_t width = config_.qkv_size(), dim = config_.head_dim;
  const auto count = static_cast<int64_t>(rows_.size());
  pool_->ForEach(count, count * width, [&](int64_t index, int) {
    float* row = rows(Rows::kQkv) + index * width;
    const int64_t position = rows_[static_cast<size_t>(index)].position;
    const float* cosines = rope.cosines(position);
    const float* sines = rope.sines(position);
    for (int64_t head = 0; head < config_.kv_heads; ++head) {
      const HeadOffsets offsets = Offsets(head);
      for (int64_t i = 0; i < config_.group(); ++i) {
        native::Rotate(row + offsets.query + i * dim, config_.rotary_dim, cosines, sines);
      }
      native::Rotate(row + offsets.key, config_.rotary_dim, cosines, sines);
    }
    if (kernels_.round != nullptr) kernels_.round(row, width);
  });
}

void CpuDevice::StoreKeysAndValues(int64_t layer) {
  const auto count = static_cast<int64_t>(rows_.size());
  pool_->ForEach(count, count * 2 * config_.kv_size(), [&](int64_t index, int) {
    const Row& row = rows_[static_cast<size_t>(index)];
    auto* page = reinterpret_cast<float*>(row.pages[row.position / kPagePositions]);
    const float* qkv = rows(Rows::kQkv) + index * config_.qkv_size();
    for (int64_t head = 0; head < config_.kv_heads; ++head) {
      const HeadOffsets offsets = Offsets(head);
      layout_.Store(page, layer, head, row.position % kPagePositions, qkv + offsets.key,
                    qkv + offsets.value);
    }
  });
}

int64_t CpuDevice::KeepWanted() {
  const std::pair<Rows, int64_t> kept[] = {{Rows::kHidden, config_.hidden_size},
                                           {Rows::kQkv, config_.qkv_size()}};
  std::vector<Segment> segments;
  size_t from = 0, to = 0;
  for (Segment segment : segments_) {
    const size_t first = from + static_cast<size_t>(segment.logits_from);
    const auto count = static_cast<size_t>(segment.count - segment.logits_from);
    from += static_cast<size_t>(segment.count);
    for (const auto& [buffer, width] : kept) {
      float* data = rows(buffer);
      std::copy_n(data + static_cast<int64_t>(first) * width, static_cast<int64_t>(count) * width,
                  data + static_cast<int64_t>(to) * width);
    }
    std::copy_n(rows_.begin() + static_cast<int64_t>(first), count,
                rows_.begin() + static_cast<int64_t>(to));
    to += count;
    if (count == 0) continue;
    segment.tokens += segment.logits_from;
    segment.first_position += segment.logits_from;
    segment.count = static_cast<int>(count);
    segment.logits_from = 0;
    segments.push_back(segment);
  }
  rows_.resize(to);
  segments_ = std::move(segments);
  return static_cast<int64_t>(to);
}

// Takes neighbouring rows together, whatever their sequences: a prefix that they share is read
// once.
void CpuDevice::Attend(int64_t layer, int64_t window) {
  Reserve(Rows::kAttended, config_.query_size());
  const auto count = static_cast<int64_t>(rows_.size());
  const int64_t step = std::max<int64_t>(1, kAttentionRows / config_.group());
  int64_t pairs = 0;  // of query and key
  for (const Row& row : rows_) {
    pairs += window > 0 ? std::min(window, row.position + 1) : row.position + 1;
  }
  pool_->ForEach((count + step - 1) / step * config_.kv_heads, 2 * pairs * config_.query_size(),
                 [&](int64_t index, int thread) {
                   const int64_t first = index / config_.kv_heads * step;
                   AttendTask(first, std::min(count, first + step), index % config_.kv_heads, layer,
                              window, thread);
                 });
}

// Attends the rows [first, end) of the batch with one key-value head.
void CpuDevice::AttendTask(int64_t first, int64_t end, int64_t head, int64_t layer, int64_t window,
                           int thread) {
  const int64_t dim = config_.head_dim;
  const auto hidden = [&](const Row& row) {
    return window > 0 ? std::max<int64_t>(row.position + 1 - window, 0) : 0;
  };
  // Skips whole pages before all rows' windows.
  int64_t skipped = INT64_MAX;
  for (int64_t i = first; i < end; ++i) {
    skipped = std::min(skipped, hidden(rows_[static_cast<size_t>(i)]) / kPagePositions);
  }
  std::vector<AttendRow>& queries = attend_rows_[static_cast<size_t>(thread)];
  queries.clear();
  for (int64_t i = first; i < end; ++i) {
    const Row& row = rows_[static_cast<size_t>(i)];
    AttendRow query;
    query.q = rows(Rows::kQkv) + i * config_.qkv_size() + Offsets(head).query;
    query.out = rows(Rows::kAttended) + i * config_.query_size() + head * config_.group() * dim;
    query.pages = reinterpret_cast<const float* const*>(row.pages + skipped);
    query.first = hidden(row) - skipped * kPagePositions;
    query.end = row.position + 1 - skipped * kPagePositions;
    for (int64_t n = 0; n < config_.group(); ++n, query.q += dim, query.out += dim) {
      queries.push_back(query);
    }
  }
  AttendArgs args;
  args.rows = queries.data();
  args.count = static_cast<int>(queries.size());
  args.head_dim = static_cast<int>(dim);
  args.scale = config_.query_scale();
  args.cap = static_cast<float>(config_.attention_cap);
  args.key_offset = layout_.keys(layer, head);
  args.value_offset = layout_.values(layer, head);
  args.value_stride = layout_.value_stride;
  args.scratch = scratch_[static_cast<size_t>(thread)].data();
  kernels_.attend(args);
}

// Each row gives `width` numbers. With gates, a row holds `width` gates before `width` factors.
void CpuDevice::ActivateRows(const float* in, int64_t count, int64_t width, float* out) {
  const int64_t stride = config_.gated ? 2 * width : width;
  pool_->ForEach(count, 8 * count * width, [&](int64_t row, int) {
    const float* x = in + row * stride;
    kernels_.activate(config_.activation, x, config_.gated ? x + width : nullptr, width,
                      out + row * width);
  });
}

void CpuDevice::Activate() {
  float* out = Reserve(Rows::kActivated, config_.intermediate_size);
  ActivateRows(rows(Rows::kInner), static_cast<int64_t>(rows_.size()), config_.intermediate_size,
               out);
}

// For each expert, the rows that it gets: each row goes to the `per_token` largest of the router's
// softmax, the first among equals.
std::vector<std::vector<CpuDevice::Choice>> CpuDevice::ChooseExperts(const LayerWeights& layer) {
  const int64_t experts = config_.experts.count, chosen = config_.experts.per_token;
  const auto count = static_cast<int64_t>(rows_.size());
  Grow(&logits_, count * experts);
  Multiply(layer.router, rows(Rows::kNormed), count, logits_.data());
  std::vector<std::vector<Choice>> choices(static_cast<size_t>(experts));
  std::vector<int64_t> order(static_cast<size_t>(experts));
  for (int64_t row = 0; row < count; ++row) {
    float* p = logits_.data() + row * experts;
    float top = 0, sum = 0, kept = 0;
    // Carries the NaN on, to be reported with the logits
    if (!kernels_.maximum(p, experts, &top)) {
      for (int64_t i = 0; i < chosen; ++i) choices[static_cast<size_t>(i)].push_back({row, NAN});
      continue;
    }
    for (int64_t e = 0; e < experts; ++e) sum += p[e] = std::exp(p[e] - top);
    for (int64_t e = 0; e < experts; ++e) p[e] /= sum;
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + chosen, order.end(),
                      [&](int64_t a, int64_t b) { return p[a] != p[b] ? p[a] > p[b] : a < b; });
    for (int64_t i = 0; i < chosen; ++i) kept += p[order[static_cast<size_t>(i)]];
    for (int64_t i = 0; i < chosen; ++i) {
      const int64_t e = order[static_cast<size_t>(i)];
      choices[static_cast<size_t>(e)].push_back(
          {row, config_.experts.normalize ? p[e] / kept : p[e]});
    }
  }
  return choices;
}

void CpuDevice::MixExperts(const LayerWeights& layer) {
  const int64_t hidden = config_.hidden_size, inner = config_.experts.intermediate_size;
  const auto choices = ChooseExperts(layer);
  float* sum = Reserve(Rows::kOut, hidden);
  std::fill_n(sum, static_cast<int64_t>(rows_.size()) * hidden, 0.0f);
  for (size_t e = 0; e < choices.size(); ++e) {  // in this order for any batch
    const auto count = static_cast<int64_t>(choices[e].size());
    if (count == 0) continue;
    Grow(&gathered_, count * hidden);
    Grow(&expert_inner_, count * layer.experts[e].in.outputs());
    Grow(&expert_activated_, count * inner);
    Grow(&expert_out_, count * hidden);
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(rows(Rows::kNormed) + choices[e][static_cast<size_t>(i)].row * hidden, hidden,
                  gathered_.data() + i * hidden);
    }
    Multiply(layer.experts[e].in, gathered_.data(), count, expert_inner_.data());
    ActivateRows(expert_inner_.data(), count, inner, expert_activated_.data());
    Multiply(layer.experts[e].down, expert_activated_.data(), count, expert_out_.data());
    for (int64_t i = 0; i < count; ++i) {
      const Choice& choice = choices[e][static_cast<size_t>(i)];
      float* to = sum + choice.row * hidden;
      const float* from = expert_out_.data() + i * hidden;
      for (int64_t d = 0; d < hidden; ++d) to[d] += choice.weight * from[d];
    }
  }
}

void CpuDevice::AddOut() {
  const int64_t width = config_.hidden_size;
  const auto count = static_cast<int64_t>(rows_.size());
  pool_->ForEach(count, count * width, [&](int64_t row, int) {
    kernels_.add(rows(Rows::kHidden) + row * width, rows(Rows::kOut) + row * width, width);
  });
}

void CpuDevice::Ask(const Linear& head, const std::vector<Wish>& wishes) {
  const int64_t vocab = config_.vocab_size;
  const auto count = static_cast<int64_t>(rows_.size());
  const int64_t block = std::clamp<int64_t>(kLogitsFloats / vocab, 1, std::max<int64_t>(count, 1));
  Grow(&logits_, block * vocab);
  answers_.assign(wishes.size(), {});
  for (int64_t first = 0; first < count; first += block) {
    const int64_t rows_here = std::min(block, count - first);
    MultiplyByHead(head, rows(Rows::kNormed) + first * config_.hidden_size, rows_here,
                   logits_.data());
    AnswerBlock(wishes.data() + first, rows_here, answers_.data() + first);
  }
}

void CpuDevice::MultiplyByHead(const Linear& head, const float* x, int64_t count, float* logits) {
  Multiply(head, x, count, logits);
  if (config_.logits_cap == 0) return;
  const auto cap = static_cast<float>(config_.logits_cap);
  const int64_t floats = count * config_.vocab_size;
  pool_->ForEach((floats + kStretch - 1) / kStretch, 8 * floats, [&](int64_t index, int) {
    const int64_t first = index * kStretch;
    kernels_.soft_cap(logits + first, std::min(kStretch, floats - first), 1, cap);
  });
}

// Answers the rows of logits_, cut into stretches that threads can share.
void CpuDevice::AnswerBlock(const Wish* wishes, int64_t count, Answer* answers) {
  const int64_t vocab = config_.vocab_size;
  const int64_t stretches = (vocab + kStretch - 1) / kStretch;
  std::vector<Stretch> parts(static_cast<size_t>(count * stretches));
  const auto part_of = [&](int64_t row, int64_t i) -> Stretch& {
    return parts[static_cast<size_t>(row * stretches + i)];
  };
  const auto for_each = [&](const auto& body) {
    pool_->ForEach(count * stretches, 8 * count * vocab, [&](int64_t index, int) {
      const int64_t row = index / stretches, i = index % stretches;
      body(row, i, logits_.data() + row * vocab + i * kStretch,
           std::min(kStretch, vocab - i * kStretch));
    });
  };
  for_each([&](int64_t row, int64_t i, const float* x, int64_t n) {
    Stretch& part = part_of(row, i);
    part.finite = kernels_.maximum(x, n, &part.maximum);
  });
  std::vector<float> maxima(static_cast<size_t>(count), -INFINITY);
  std::vector<char> finite(static_cast<size_t>(count), 1);
  for (int64_t row = 0; row < count; ++row) {
    float& maximum = maxima[static_cast<size_t>(row)];
    for (int64_t i = 0; i < stretches; ++i) {
      maximum = std::max(maximum, part_of(row, i).maximum);
      finite[static_cast<size_t>(row)] = finite[static_cast<size_t>(row)] && part_of(row, i).finite;
    }
  }
  for_each([&](int64_t row, int64_t i, const float* x, int64_t n) {
    if (!WantsLogProbability(wishes[row])) return;
    part_of(row, i).sum_exp = kernels_.sum_exp(x, n, maxima[static_cast<size_t>(row)]);
  });
  pool_->ForEach(count, 8 * count * vocab, [&](int64_t row, int) {
    const Wish& wish = wishes[row];
    Answer& answer = answers[row];
    const float* logits = logits_.data() + row * vocab;
    if (!finite[static_cast<size_t>(row)]) return AnswerWithCare(logits, vocab, wish, &answer);
    const float maximum = maxima[static_cast<size_t>(row)];
    if (wish.logits) {
      answer.logits.assign(logits, logits + vocab);
      return;
    }
    if (IsDrawn(wish)) {
      answer.token = Sample(logits, vocab, *wish.settings, wish.uniform);
    } else {
      int64_t i = 0;
      while (part_of(row, i).maximum != maximum) ++i;
      const float* from = logits + i * kStretch;
      answer.token = static_cast<int32_t>(i * kStretch) +
                     Greedy(from, std::min(kStretch, vocab - i * kStretch), maximum);
    }
    if (!WantsLogProbability(wish)) return;
    double total = 0;
    for (int64_t i = 0; i < stretches; ++i) total += part_of(row, i).sum_exp;
    const int32_t token = wish.target >= 0 ? wish.target : answer.token;
    const double log_total = std::log(total);
    answer.log_probability = static_cast<double>(logits[token]) - maximum - log_total;
    if (wish.top > 0) answer.top = Likeliest(logits, vocab, wish.top, maximum, log_total);
  });
}

std::vector<float> CpuDevice::Logits(const Linear& head) {
  std::vector<float> logits(rows_.size() * static_cast<size_t>(config_.vocab_size));
  MultiplyByHead(head, rows(Rows::kNormed), static_cast<int64_t>(rows_.size()), logits.data());
  return logits;
}

}  // namespace evald::native
