#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "evald/json.h"
#include "python/moment.h"

namespace evald::jinja {

class Value;
class Interpreter;

/// A Python sequence. A generator yields its items once.
struct Sequence {
  enum class Flavour { kList, kTuple, kRange, kView, kGenerator };
  Flavour flavour = Flavour::kList;
  std::vector<Value> items;
  bool group = false;   ///< an item of groupby: a tuple with .grouper and .list
  uint64_t weight = 1;  ///< see Value::Weight
  int depth = 1;
  mutable bool consumed = false;  ///< a generator over which a loop has gone
};

/// A Python dict: keeps insertion order, takes any hashable key.
class Dict {
 public:
  const Value* Find(const Value& key) const;
  const Value* Find(std::string_view key) const;
  void Set(Value key, Value value);
  const std::vector<std::pair<Value, Value>>& items() const { return items_; }
  size_t size() const;
  uint64_t weight() const { return weight_; }
  int depth() const { return depth_; }

 private:
  std::vector<std::pair<Value, Value>> items_;
  uint64_t weight_ = 1;
  int depth_ = 1;
  std::unordered_map<std::string, size_t> index_;
};

/// Arguments of a call.
struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

struct Callable {
  std::string name;
  std::function<Value(Interpreter&, const Args&)> call;
};

/// namespace(): the only value that a template may change in place.
struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
};

/// A string. `markup`: it is jinja2's Markup, whose operators would escape.
struct Text {
  std::string bytes;
  bool markup = false;
};

struct Undefined {
  std::string message;   ///< "'x' is undefined"
  bool lenient = false;  ///< never a StrictUndefined: of an inline if without else
};
struct None {};

/// The state of a for loop, shown as the name `loop`. The loop owns it. Templates read it while the
/// loop runs.
struct LoopState {
  std::vector<Value> items;
  size_t index = 0;
  std::shared_ptr<Value> changed;  ///< the last arguments of loop.changed()
};

/// A value of a template: a Python value, as far as templates can see it. Cheap to copy. Its data
/// is immutable, except a namespace's. One thread at a time.
class Value {
 public:
  using Storage =
      std::variant<std::shared_ptr<const Undefined>, None, bool, int64_t, double,
                   std::shared_ptr<const Text>, std::shared_ptr<const Sequence>,
                   std::shared_ptr<const Dict>, std::shared_ptr<const Callable>,
                   std::shared_ptr<Namespace>, std::shared_ptr<LoopState>, python::Moment>;

  Value() : storage_(None{}) {}
  explicit Value(bool value) : storage_(value) {}
  explicit Value(int64_t value) : storage_(value) {}
  explicit Value(double value) : storage_(value) {}
  explicit Value(std::string value)
      : storage_(std::make_shared<const Text>(Text{std::move(value), false})) {}
  explicit Value(const char* value) : Value(std::string(value)) {}
  explicit Value(Storage storage) : storage_(std::move(storage)) {}

  static Value Undef(std::string message, bool lenient = false);
  static Value Markup(std::string text);
  static Value List(std::vector<Value> items);
  static Value Tuple(std::vector<Value> items);
  static Value Seq(Sequence::Flavour flavour, std::vector<Value> items);
  static Value FromJson(const Json& json);

  template <typename T>
  const T* Get() const {
    if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, int64_t> ||
                  std::is_same_v<T, double> || std::is_same_v<T, python::Moment>) {
      return std::get_if<T>(&storage_);
    } else {
      const auto* held = std::get_if<std::shared_ptr<T>>(&storage_);
      return held == nullptr ? nullptr : held->get();
    }
  }

  bool IsUndefined() const { return storage_.index() == 0; }
  bool IsNone() const { return std::holds_alternative<None>(storage_); }
  const Undefined* undefined() const { return Get<const Undefined>(); }
  const Text* text() const { return Get<const Text>(); }
  const Sequence* sequence() const { return Get<const Sequence>(); }
  const Dict* dict() const { return Get<const Dict>(); }
  const python::Moment* moment() const { return Get<python::Moment>(); }
  const Callable* callable() const { return Get<const Callable>(); }
  Namespace* name_space() const { return const_cast<Namespace*>(Get<Namespace>()); }
  std::shared_ptr<LoopState> loop() const;
  bool IsString() const { return text() != nullptr; }
  bool IsNumber() const;    ///< int, float or bool
  bool IsInteger() const;   ///< int or bool
  int64_t AsInt() const;    ///< of an int or bool
  double AsDouble() const;  ///< of a number
  std::string_view AsText() const { return text()->bytes; }
  /// The number of values on a walk through this value. Text counts one for each 64 bytes. A list
  /// that holds the same list twice counts it twice. A value heavier or deeper than the limits is
  /// refused when it is made.
  uint64_t Weight() const;
  int Depth() const;
  /// A list, a tuple, or a range, which is indexed like them.
  bool IsIndexable() const;

  const Storage& storage() const { return storage_; }

 private:
  Storage storage_;
};

inline size_t Dict::size() const { return items_.size(); }

/// type(value).__name__.
std::string TypeName(const Value& value);

/// bool(value). Only the interpreter throws for a strict undefined value.
bool Truthy(const Value& value);

/// str(value) and repr(value). Throw Error(kInput) without a line if the value has no stable text
/// (a generator, a function).
std::string Str(const Value& value);
std::string Repr(const Value& value);

/// a == b.
bool Equals(const Value& a, const Value& b);
/// a < b. Throws Error(kInput) for types that Python does not order.
bool Less(const Value& a, const Value& b);

/// A key under which equal hashable values are equal strings. Throws Error(kInput) for others.
std::string HashKey(const Value& value);

/// The JSON form of a value, for tojson. Throws Error(kInput) if json.dumps refuses the value.
Json ToJsonValue(const Value& value);

/// Throws Error(kInput) if a template asks for a single value of more than 64 MiB.
void CheckSize(uint64_t bytes);
/// The same for `count` pieces of `bytes` each.
void CheckSize(uint64_t count, uint64_t bytes);

/// The memory of an item of a list, beside the bytes of its text and its own items: of a text, and
/// of a list or tuple. They count the blocks of the allocator, for RenderLimits::bytes_max.
inline constexpr uint64_t kTextItemBytes = sizeof(Value) + sizeof(Text) + 32;
inline constexpr uint64_t kSequenceItemBytes = sizeof(Value) + sizeof(Sequence) + 48;

inline constexpr uint64_t kWeightMax = 4'000'000;
inline constexpr int kDepthMax = 120;

}  // namespace evald::jinja
