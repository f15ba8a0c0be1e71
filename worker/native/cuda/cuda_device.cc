#include "worker/native/cuda/cuda_device.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/log.h"
#include "evald/error.h"
#include "worker/native/families/family.h"

namespace evald::native::cuda {
namespace {

constexpr int64_t kLogitsFloats = int64_t{64} << 20;  // in one block of logits
constexpr int64_t kGraphRowsMax = 1024;
constexpr int64_t kPositionsMin = 4096;
constexpr uint64_t kUploadBytesMin = uint64_t{1} << 20;
constexpr uint64_t kScratchShare = 16;  // at most this part of the device's memory
constexpr int64_t kPartialsProbed = 1 << 12;

int64_t LogitsRows(const ModelConfig& config, int64_t rows) {
  const int64_t fit = kLogitsFloats / config.vocab_size;
  const int64_t step = fit >= kRowsSlack ? kRowsSlack : 8;  // so that blocks stay aligned
  return std::min(std::max(fit / step * step, step), (rows + step - 1) / step * step);
}

uint64_t Bytes(int64_t count, size_t size) { return static_cast<uint64_t>(count) * size; }

}  // namespace

std::vector<ProductShape> ProductsOf(const ModelConfig& config, WeightType type, int64_t rows) {
  const int64_t hidden = config.hidden_size, inner = config.intermediate_size;
  std::vector<ProductShape> shapes = {
      {type, type, config.qkv_size(), hidden, rows},
      {type, WeightType::kF32, hidden, config.query_size(), rows},
      {type, WeightType::kF32, config.vocab_size, hidden, LogitsRows(config, rows)}};
  if (std::count(config.sparse.begin(), config.sparse.end(), false) > 0) {
    shapes.push_back({type, type, config.gated ? 2 * inner : inner, hidden, rows});
    shapes.push_back({type, WeightType::kF32, hidden, inner, rows});
  }
  if (config.experts.count > 0) {  // the router; experts have a kernel of their own
    shapes.push_back({type, WeightType::kF32, config.experts.count, hidden, rows});
  }
  return shapes;
}

CudaDevice::CudaDevice(const ModelConfig& config, const DeviceWeights* weights, Products* products,
                       const CudaOptions& options)
    : config_(config),
      weights_(weights),
      products_(products),
      options_(options),
      layout_{weights->type(), config.layers, config.kv_heads, config.head_dim},
      packed_(config.family->names.packed != nullptr),
      partial_bytes_(AttentionScratchBytes(kPartialsProbed, config.heads, config.head_dim) /
                         kPartialsProbed +
                     1),
      scratch_max_(
          std::min(options.attention_scratch_bytes, MemoryOfDevice().total / kScratchShare)),
      slabs_(layout_.page_bytes()),
      rope_(config.rope),
      buffers_(config, weights->type()),
      experts_(config, weights, products) {
  TakeRows(options.rows_max);
  TakeRope(std::min(config.max_positions, kPositionsMin));
}

CudaDevice::~CudaDevice() {
  try {
    Drain();
  } catch (const DeviceError&) {  // a broken context computes nothing any more
  }
}

void CudaDevice::Drain() {
  if (mode_ == Mode::kCapturing) Graph::AbandonCapture(stream_);
  mode_ = Mode::kDirect;
  stream_.Synchronize();
}

uint64_t CudaDevice::reserve_bytes() const {
  return scratch_max_ - std::min<uint64_t>(scratch_.bytes(), scratch_max_) + kUploadBytesMin;
}

Json CudaDevice::Report() const {
  return {{"products", products_->Report()},
          {"graphs_captured", graphs_.captured()},
          {"graphs_replayed", graphs_.replayed()},
          {"activation_bytes", buffers_.bytes() + experts_.bytes()},
          {"attention_scratch_bytes", scratch_.bytes()},
          {"page_bytes", slabs_.bytes()}};
}

// Replaces `memory` by a larger one if it is too small; the content is lost then. Graphs refer to
// the old memory.
void CudaDevice::Grow(Memory* memory, uint64_t bytes) {
  if (memory->bytes() >= bytes) return;
  Drain();
  graphs_.Clear();
  *memory = Memory();  // the old memory goes first, so that both need not fit
  *memory = Memory(MemoryKind::kDevice, bytes);
}

// Grows all memory that depends on a batch's rows.
void CudaDevice::TakeRows(int64_t rows) {
  if (rows <= rows_taken_) return;
  Drain();
  graphs_.Clear();
  rows_taken_ = 0;
  products_->Prepare(ProductsOf(config_, weights_->type(), rows), stream_);
  buffers_.Take(products_->RowsFor(rows) + kRowsSlack);
  experts_.Take(rows);
  logits_rows_ = LogitsRows(config_, rows);
  Grow(&logits_, Bytes((logits_rows_ + kRowsSlack) * config_.vocab_size, sizeof(float)));
  Grow(&answer_scratch_, AnswerScratchBytes(logits_rows_, config_.vocab_size));
  Grow(&wishes_, Bytes(rows, sizeof(DeviceWish)));
  TakeAnswers(rows);
  rows_taken_ = rows;
}

// Existing answers are kept: the next batch reads tokens from them, and some are not collected.
void CudaDevice::TakeAnswers(int64_t rows) {
  Memory answers(MemoryKind::kDevice, Bytes(rows, sizeof(DeviceAnswer)));
  CopyOnDevice(answers.data(), answers_.data(), answers_.bytes(), stream_);
  stream_.Synchronize();
  answers_ = std::move(answers);
  for (Question& question : questions_) {
    Memory host(MemoryKind::kPinned, Bytes(rows, sizeof(DeviceAnswer)));
    std::copy_n(question.answers.data(), question.answers.bytes(), host.data());
    question.answers = std::move(host);
    question.wishes = Memory(MemoryKind::kPinned, Bytes(rows, sizeof(DeviceWish)));
  }
}

void CudaDevice::TakeRope(int64_t positions) {
  if (positions <= rope_positions_) return;
  const int64_t wanted =
      std::max(positions, std::min(config_.max_positions, std::max(kPositionsMin, 2 * positions)));
  rope_.Grow(wanted);
  const uint64_t bytes = Bytes(wanted * config_.rotary_dim / 2, sizeof(float));
  rope_positions_ = 0;
  Grow(&cosines_, bytes);
  Grow(&sines_, bytes);
  CopyToDevice(cosines_.data(), rope_.cosines(0), bytes, stream_);
  CopyToDevice(sines_.data(), rope_.sines(0), bytes, stream_);
  stream_.Synchronize();  // the table may move when it grows
  rope_positions_ = wanted;
}

Page* CudaDevice::NewPage() { return reinterpret_cast<Page*>(slabs_.Take(stream_)); }

void CudaDevice::DeletePage(Page* page) { slabs_.GiveBack(reinterpret_cast<char*>(page)); }

void CudaDevice::CopyPage(const Page* from, Page* to) {
  CopyOnDevice(to, from, page_bytes(), stream_);
}

BatchLimits CudaDevice::Limits() const {
  BatchLimits limits;
  limits.group = config_.group();
  for (const int64_t window : config_.windows) {
    if (std::count(limits.windows.begin(), limits.windows.end(), window) == 0) {
      limits.windows.push_back(window);
    }
  }
  limits.last_window = config_.windows.back();
  limits.partials_max = std::max<int64_t>(1, static_cast<int64_t>(scratch_max_ / partial_bytes_));
  return limits;
}

// Whether the batch is one of decoding, which may be captured.
bool CudaDevice::Captured(const std::vector<Segment>& segments) const {
  return options_.graphs && !segments.empty() &&
         static_cast<int64_t>(segments.size()) <= std::min(kGraphRowsMax, rows_taken_) &&
         std::all_of(segments.begin(), segments.end(), [](const Segment& segment) {
           return segment.count == 1 && segment.logits_from == 0;
         });
}

void CudaDevice::Begin(const std::vector<Segment>& segments) {
  Recover();  // if an operation of the last batch failed
  out_pending_ = false;
  query_norm_ = key_norm_ = qkv_bias_ = inner_bias_ = nullptr;
  const bool captured = Captured(segments);
  plan_ = BatchPlan(segments, Limits(),
                    captured ? products_->RowsFor(static_cast<int64_t>(segments.size())) : 0);
  rows_ = &plan_.all();
  TakeRows(rows_->rows);
  TakeRope(plan_.positions());
  const uint64_t scratch = AttentionScratchBytes(plan_.partials(), config_.heads, config_.head_dim);
  if (scratch > scratch_.bytes()) {
    Grow(&scratch_, std::max(scratch, std::min(2 * scratch, scratch_max_)));
  }
  buffers_.Reset();
  Upload();
  ChooseMode(captured);
}

void CudaDevice::Upload() {
  const std::vector<char>& data = plan_.data();
  if (data.empty()) return;
  const uint64_t wanted = std::max<uint64_t>(2 * data.size(), kUploadBytesMin);
  if (upload_.bytes() < data.size()) Grow(&upload_, wanted);
  Staging& staging = staging_[next_staging_];
  next_staging_ = 1 - next_staging_;
  staging.sent.Synchronize();
  if (staging.memory.bytes() < data.size()) {
    staging.memory = Memory();
    staging.memory = Memory(MemoryKind::kPinned, wanted);
  }
  std::memcpy(staging.memory.data(), data.data(), data.size());
  CopyToDevice(upload_.data(), staging.memory.data(), data.size(), stream_);
  staging.sent.Record(stream_);
}

// A capture or replay that failed, because memory is short or a library does something that is
// forbidden in a capture, would fail in each batch again. Without graphs it is only slower.
bool CudaDevice::Recover() {
  if (mode_ == Mode::kDirect) return false;
  Drain();
  graphs_.Clear();
  options_.graphs = false;
  log::Warn("a batch could not be captured or replayed; none is from now on");
  return true;
}

void CudaDevice::ChooseMode(bool captured) {
  if (!captured) return;
  const GraphKey key = KeyOf(plan_);
  if (key.rows == 0) return;
  switch (graphs_.See(key)) {
    case DecodeGraphs::Next::kRun:
      return;
    case DecodeGraphs::Next::kCapture:
      Graph::BeginCapture(stream_);
      mode_ = Mode::kCapturing;
      return;
    case DecodeGraphs::Next::kReplay:
      mode_ = Mode::kReplaying;
      return;
  }
}

// Called once all operations before the product with the head are queued.
void CudaDevice::FinishOperations() {
  if (mode_ == Mode::kDirect) return;
  if (mode_ == Mode::kCapturing) {
    graphs_.Put(Graph::EndCapture(stream_));
    mode_ = Mode::kReplaying;
  }
  graphs_.graph().Launch(stream_);
  mode_ = Mode::kDirect;
}

void CudaDevice::Embed(const Matrix& embedding) {
  if (Idle()) return;
  EmbedArgs args;
  args.type = weights_->type();
  args.embedding = weights_->OfMatrix(embedding);
  args.tokens = reinterpret_cast<const int32_t*>(upload_.data() + plan_.tokens_at());
  args.answers = answers_.as<DeviceAnswer>();
  args.rows = rows_->padded;
  args.width = config_.hidden_size;
  args.out = reinterpret_cast<float*>(buffers_.At(Rows::kHidden));
  cuda::Embed(args, stream_);
}

void CudaDevice::Normalize(const NormWeights& norm, Rows from, Rows to) {
  if (Idle()) return;
  if (buffers_.type(from) != WeightType::kF32) {
    throw Error(ErrorKind::kInternal, "only fp32 rows are normalized");
  }
  if (to == Rows::kOut) FlushOut();
  const DeviceNorm& weights = weights_->Of(norm);
  NormArgs args;
  args.kind = config_.norm;
  args.eps = static_cast<float>(config_.norm_eps);
  args.weight = weights.weight;
  args.bias = weights.bias;
  args.x = reinterpret_cast<float*>(buffers_.At(from));
  args.addend = nullptr;
  if (from == Rows::kHidden && out_pending_) {
    args.addend = reinterpret_cast<const float*>(buffers_.At(Rows::kOut));
    out_pending_ = false;
  }
  args.rows = rows_->padded;
  args.width = config_.hidden_size;
  args.out = buffers_.At(to);
  args.out_type = buffers_.type(to);
  cuda::Normalize(args, stream_);
}

void CudaDevice::AddOut() {
  if (Idle()) return;
  FlushOut();
  out_pending_ = true;
}

void CudaDevice::FlushOut() {
  if (!out_pending_) return;
  out_pending_ = false;
  Add(reinterpret_cast<float*>(buffers_.At(Rows::kHidden)),
      reinterpret_cast<const float*>(buffers_.At(Rows::kOut)), rows_->padded * config_.hidden_size,
      stream_);
}

// The rows in the weights' type.
const void* CudaDevice::Input(Rows from) {
  if (from != Rows::kHidden) return buffers_.At(from);
  if (weights_->type() == WeightType::kF32) {
    FlushOut();
    return buffers_.At(from);
  }
  const auto* out = reinterpret_cast<const float*>(buffers_.At(Rows::kOut));
  Narrow(weights_->type(), reinterpret_cast<float*>(buffers_.At(from)),
         out_pending_ ? out : nullptr, rows_->padded * config_.hidden_size, buffers_.narrowed(),
         stream_);
  out_pending_ = false;
  return buffers_.narrowed();
}

void CudaDevice::Multiply(const Linear& linear, Rows from, Rows to) {
  if (Idle()) return;
  if (to == Rows::kOut) FlushOut();
  const DeviceLinear& weights = weights_->Of(linear);
  Product product;
  product.type = weights_->type();
  product.weights = weights.weights;
  product.x = Input(from);
  product.y = buffers_.At(to);
  product.y_type = buffers_.type(to);
  product.rows = rows_->padded;
  product.outputs = weights.outputs;
  product.inputs = weights.inputs;
  products_->Multiply(product, stream_);
  if (to == Rows::kQkv) {
    qkv_bias_ = weights.bias;
  } else if (to == Rows::kInner) {
    inner_bias_ = weights.bias;
  } else if (weights.bias != nullptr) {
    AddBias(product.y_type, product.y, weights.bias, product.rows, product.outputs, stream_);
  }
}

void CudaDevice::NormalizeHeads(const NormWeights& query, const NormWeights& key) {
  if (Idle()) return;
  query_norm_ = weights_->Of(query).weight;
  key_norm_ = weights_->Of(key).weight;
}

void CudaDevice::Rotate(int64_t /*layer*/) {}  // done by StoreKeysAndValues

BatchRows CudaDevice::RowsFrom(int64_t first_row, int64_t rows) const {
  const char* data = upload_.data();
  BatchRows batch;
  batch.rows = rows;
  batch.positions = reinterpret_cast<const int32_t*>(data + rows_->positions_at) + first_row;
  batch.tables = reinterpret_cast<const int32_t*>(data + rows_->tables_at) + first_row;
  batch.pages = reinterpret_cast<char* const*>(data + plan_.pages_at());
  return batch;
}

void CudaDevice::StoreKeysAndValues(int64_t layer) {
  if (Idle()) return;
  HeadsArgs args;
  args.batch = RowsFrom(0, rows_->padded);
  args.qkv = buffers_.At(Rows::kQkv);
  args.kv = layout_;
  args.layer = layer;
  args.heads = config_.heads;
  args.rotary_dim = config_.rotary_dim;
  args.packed = packed_;
  args.bias = qkv_bias_;
  args.norm = query_norm_ != nullptr ? config_.head_norm : HeadNorm::kNone;
  args.query_norm = query_norm_;
  args.key_norm = key_norm_;
  args.eps = static_cast<float>(config_.norm_eps);
  args.cosines = cosines_.as<float>();
  args.sines = sines_.as<float>();
  PrepareHeads(args, stream_);
}

int64_t CudaDevice::KeepWanted() {
  if (plan_.all_wanted()) return rows_->rows;
  FlushOut();
  const RowSet& kept = plan_.kept();
  if (kept.rows > 0) {
    const auto* wanted = reinterpret_cast<const int32_t*>(upload_.data() + plan_.wanted_at());
    GatherRows(buffers_.At(Rows::kHidden), wanted, kept.rows,
               static_cast<int64_t>(buffers_.row_bytes(Rows::kHidden)), buffers_.spare_hidden(),
               stream_);
    GatherRows(buffers_.At(Rows::kQkv), wanted, kept.rows,
               static_cast<int64_t>(buffers_.row_bytes(Rows::kQkv)), buffers_.spare_qkv(), stream_);
    buffers_.Swap();
  }
  rows_ = &kept;
  return kept.rows;
}

void CudaDevice::Attend(int64_t layer, int64_t window) {
  if (Idle()) return;
  for (const AttendPart& part : rows_->Attention(window)) {
    AttendArgs args;
    args.batch = RowsFrom(part.first_row, part.rows);
    args.qkv = buffers_.At(Rows::kQkv) +
               static_cast<uint64_t>(part.first_row) * buffers_.row_bytes(Rows::kQkv);
    args.kv = layout_;
    args.layer = layer;
    args.heads = config_.heads;
    args.packed = packed_;
    args.window = window;
    args.scale = config_.query_scale();
    args.items = reinterpret_cast<const AttendItem*>(upload_.data() + part.items_at);
    args.item_count = part.items;
    args.partials = reinterpret_cast<const int32_t*>(upload_.data() + part.partials_at);
    args.scratch = scratch_.data();
    args.out = buffers_.At(Rows::kAttended) +
               static_cast<uint64_t>(part.first_row) * buffers_.row_bytes(Rows::kAttended);
    cuda::Attend(args, stream_);
  }
}

void CudaDevice::Activate() {
  if (Idle()) return;
  ActivateArgs args;
  args.type = weights_->type();
  args.activation = config_.activation;
  args.gated = config_.gated;
  args.in = buffers_.At(Rows::kInner);
  args.bias = inner_bias_;
  args.rows = rows_->padded;
  args.width = config_.intermediate_size;
  args.out = buffers_.At(Rows::kActivated);
  cuda::Activate(args, stream_);
}

void CudaDevice::MixExperts(const LayerWeights& layer) {
  if (Idle()) return;
  FlushOut();
  experts_.Mix(layer, buffers_.At(Rows::kNormed), rows_->padded,
               reinterpret_cast<float*>(buffers_.At(Rows::kOut)), stream_);
}

}  // namespace evald::native::cuda
