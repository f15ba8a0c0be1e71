// The answers of the device: the product with the head, block by block, and the wishes about its
// rows.
#include <fmt/format.h>

#include <algorithm>

#include "evald/error.h"
#include "worker/native/cuda/cuda_device.h"
#include "worker/native/likeliest.h"

namespace evald::native::cuda {
namespace {

DeviceWish WishFor(const Wish& wish) {
  DeviceWish result;
  result.target = wish.target;
  result.uniform = wish.uniform;
  if (wish.target < 0 && !wish.logits && wish.settings != nullptr && wish.settings->do_sample) {
    result.sample = 1;
    result.top_k = wish.settings->top_k;
    result.temperature = wish.settings->temperature;
    result.top_p = wish.settings->top_p;
  }
  return result;
}

}  // namespace

void CudaDevice::HeadBlocks(const Linear& head, const std::function<void(int64_t, int64_t)>& done) {
  const DeviceLinear& weights = weights_->Of(head);
  for (int64_t first = 0; first < rows_->rows; first += logits_rows_) {
    Product product;
    product.type = weights_->type();
    product.weights = weights.weights;
    product.x = buffers_.At(Rows::kNormed) +
                static_cast<uint64_t>(first) * buffers_.row_bytes(Rows::kNormed);
    product.y = logits_.data();
    product.y_type = WeightType::kF32;
    product.rows = std::min(logits_rows_, rows_->rows - first);
    product.outputs = weights.outputs;
    product.inputs = weights.inputs;
    products_->Multiply(product, stream_);
    done(first, product.rows);
  }
}

void CudaDevice::Ask(const Linear& head, const std::vector<Wish>& wishes) {
  if (static_cast<int64_t>(wishes.size()) != rows_->rows || asked_ > 1) {
    throw Error(ErrorKind::kInternal, fmt::format("{} wishes for {} rows of logits, {} uncollected",
                                                  wishes.size(), rows_->rows, asked_));
  }
  FinishOperations();
  Question& question = questions_[next_question_];
  question.answered.Synchronize();  // the question's answers may never have been collected
  std::transform(wishes.begin(), wishes.end(), question.wishes.as<DeviceWish>(), WishFor);
  CopyToDevice(wishes_.data(), question.wishes.data(), wishes.size() * sizeof(DeviceWish), stream_);
  question.wants = WantsOf(wishes);
  const uint64_t row_bytes = static_cast<uint64_t>(config_.vocab_size) * sizeof(float);
  const auto with_logits = std::count_if(question.wants.begin(), question.wants.end(),
                                         [](const Want& w) { return w.logits; });
  const uint64_t wanted_bytes = static_cast<uint64_t>(with_logits) * row_bytes;
  if (question.logits.bytes() < wanted_bytes) {
    question.logits = Memory(MemoryKind::kPinned, wanted_bytes + wanted_bytes / 2);
  }
  char* logits_to = question.logits.data();
  HeadBlocks(head, [&](int64_t first, int64_t rows) {
    AnswerArgs args;
    args.logits = logits_.as<float>();
    args.rows = rows;
    args.vocab = config_.vocab_size;
    args.wishes = wishes_.as<DeviceWish>() + first;
    args.answers = answers_.as<DeviceAnswer>() + first;
    args.scratch = answer_scratch_.data();
    AnswerRows(args, stream_);
    for (const Want& want : question.wants) {
      if (!want.logits || want.row < first || want.row >= first + rows) continue;
      CopyToHost(logits_to, logits_.data() + static_cast<uint64_t>(want.row - first) * row_bytes,
                 row_bytes, stream_);
      logits_to += row_bytes;
    }
  });
  CopyToHost(question.answers.data(), answers_.data(), wishes.size() * sizeof(DeviceAnswer),
             stream_);
  question.answered.Record(stream_);
  question.count = wishes.size();
  next_question_ = 1 - next_question_;
  ++asked_;
}

std::vector<Answer> CudaDevice::Collect() {
  if (asked_ == 0) throw Error(ErrorKind::kInternal, "nothing was asked");
  const Question& question = questions_[(next_question_ + asked_) % 2];
  --asked_;
  question.answered.Synchronize();
  std::vector<Answer> answers;
  for (size_t i = 0; i < question.count; ++i) {
    const DeviceAnswer& answer = question.answers.as<DeviceAnswer>()[i];
    answers.push_back({answer.token, answer.log_probability, answer.defined != 0, {}, {}});
  }
  AddWanted(question, &answers);
  return answers;
}

std::vector<CudaDevice::Want> CudaDevice::WantsOf(const std::vector<Wish>& wishes) {
  std::vector<Want> wants;
  for (size_t row = 0; row < wishes.size(); ++row) {
    const Wish& wish = wishes[row];
    const bool target = wish.target >= 0;
    if (!wish.logits && wish.top < (target ? 1 : 0)) continue;
    // The device knows the target and the likeliest token where a target is scored
    const bool logits = wish.logits || !target || wish.top > 1;
    wants.push_back({static_cast<int64_t>(row), wish.top, wish.target, logits, wish.logits});
  }
  return wants;
}

// Adds what the device's answers lack: logits, and log-probabilities of further tokens.
void CudaDevice::AddWanted(const Question& question, std::vector<Answer>* answers) const {
  const auto vocab = config_.vocab_size;
  const float* logits = question.logits.as<float>();
  for (const Want& want : question.wants) {
    Answer& answer = (*answers)[static_cast<size_t>(want.row)];
    if (want.returned) {
      answer.logits.assign(logits, logits + vocab);
    } else if (want.logits) {
      TokenReport report = ReportOn(answer.token, logits, vocab, want.top);
      if (want.target < 0) answer.log_probability = report.log_probability;
      answer.top = std::move(report.top);
      for (TokenLogProbability& likely : answer.top) {  // the device sums in another order
        if (likely.token == want.target) likely.log_probability = answer.log_probability;
      }
    } else if (answer.defined) {
      const auto row = static_cast<size_t>(want.row);
      answer.top = {{answer.token, question.answers.as<DeviceAnswer>()[row].log_largest}};
    }
    if (want.logits) logits += vocab;
  }
}

std::vector<float> CudaDevice::Logits(const Linear& head) {
  FinishOperations();
  const auto vocab = static_cast<size_t>(config_.vocab_size);
  std::vector<float> logits(static_cast<size_t>(rows_->rows) * vocab);
  HeadBlocks(head, [&](int64_t first, int64_t rows) {
    CopyToHost(logits.data() + static_cast<size_t>(first) * vocab, logits_.data(),
               static_cast<size_t>(rows) * vocab * sizeof(float), stream_);
  });
  stream_.Synchronize();
  return logits;
}

}  // namespace evald::native::cuda
