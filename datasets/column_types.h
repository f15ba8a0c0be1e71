#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evald/json.h"
#include "jinja/moment.h"

namespace evald {

/// The type of a column, or of what a list or a struct in it holds, as Arrow infers it.
struct ColumnType {
  enum class Kind {
    kNull,  ///< no value but null was seen
    kBoolean,
    kInteger,
    kFloat,
    kText,
    kMoment,  ///< texts that are all dates
    kList,    ///< `parts` holds the type of its items
    kStruct,  ///< `names` and `parts` hold its fields, in the order of their first appearance
    kAny,     ///< values of several types; the `datasets` library calls it Json
  };
  Kind kind = Kind::kNull;
  std::vector<std::string> names;
  std::vector<ColumnType> parts;
  bool holds_nulls = false;     ///< of a list: an item is null
  bool begins_in_null = false;  ///< of a list: an item was null before one was not

  const ColumnType* Find(std::string_view name) const;
};

/// What decides the types that rows of JSON get.
struct TypingRules {
  /// As load_dataset("json") types them: texts that are dates become moments, and integers beyond
  /// 64 bits floats. Otherwise the rows stand for a dataset that has types already, and texts stay
  /// texts.
  bool as_loader = false;
  /// Structs whose keys differ are kAny; otherwise they get the keys of all.
  bool structs_vary = false;
};

/// Makes `table`, a struct of columns, wide enough for one more row, an object.
void WidenForRow(const Json& row, const TypingRules& rules, ColumnType* table);

/// Whether a kAny is in it.
bool HoldsAny(const ColumnType& type);

/// The name of a column with lists of which `holds` is true; empty where there is none.
std::string FindList(const ColumnType& type, bool (*holds)(const ColumnType& list),
                     const std::string& column = "");

/// Whether rows of the type `from` may be made rows of the type `to`. Returns a sentence that says
/// why not, for conversions that the `datasets` library refuses and for those that are not rebuilt
/// here; empty if they may be.
std::string WhyNotCast(const ColumnType& from, const ColumnType& to,
                       const std::string& column = "");

/// Whether two batches need no cast to stand in one table, `decided` being the type of the first.
/// Values of several types agree with any.
bool IsAlike(const ColumnType& type, const ColumnType& decided);

/// How the values of a batch of rows change on their way into the columns.
struct CastRules {
  bool as_loader = false;     ///< see TypingRules
  bool ten_decimals = false;  ///< the rows passed through ujson, which keeps ten decimals
};

/// A value of the type `from` as one of the type `to`; WhyNotCast found no reason against it.
/// Objects get the keys of the struct, in its order, and null for those that they lack. Throws
/// Error(kInput) that names `column` for a number that the type does not hold.
Json Cast(Json value, const ColumnType& from, const ColumnType& to, const CastRules& rules,
          const std::string& column = "");

/// The date that Arrow reads from a text when it infers types: YYYY-MM-DD, then none or one of hh,
/// hh:mm and hh:mm:ss, behind a space or a T, then none or one of Z, +hh, +hhmm and +hh:mm; in UTC
/// (arrow/util/value_parsing.h).
std::optional<jinja::Moment> ParseDate(std::string_view text);

}  // namespace evald
