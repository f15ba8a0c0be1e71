#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evald/json.h"
#include "python/moment.h"

namespace evald {

/// The type of a column, or of the values in its lists or structs, as Arrow infers it.
struct ColumnType {
  enum class Kind {
    kNull,  ///< only null was seen
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
  bool begins_in_null = false;  ///< of a list: its first item is null, and a later one is not

  std::map<std::string, size_t, std::less<>> places;  ///< of a struct: the places of `names`

  const ColumnType* Find(std::string_view name) const;
  /// The field `name`; a new one of the kind `fresh` if there is none. Valid until the next call.
  ColumnType* FindOrAdd(const std::string& name, Kind fresh = Kind::kNull);
};

/// Rules that decide the types of rows of JSON.
struct TypingRules {
  /// Types like those of load_dataset("json"): texts that are dates become moments, and integers
  /// beyond 64 bits floats. Otherwise the rows stand for a dataset that already has types, and
  /// texts stay texts.
  bool as_loader = false;
  /// Structs with different keys are kAny. Otherwise they get the keys of all.
  bool structs_vary = false;
};

/// Widens `table`, a struct of columns, so that one more row, an object, fits.
void WidenForRow(const Json& row, const TypingRules& rules, ColumnType* table);

/// Whether the type contains a kAny.
bool HoldsAny(const ColumnType& type);

/// The names that lead to a value: of a column, and of the structs' fields within it. A chain,
/// since a name may be as long as a line, and most are never written.
struct ColumnPath {
  const ColumnPath* outer = nullptr;
  const std::string* name = nullptr;  ///< null for the table
  std::string Text() const;           ///< "column.field"
};

/// The name of a column with lists for which `holds` is true; empty if there is none.
std::string FindList(const ColumnType& type, bool (*holds)(const ColumnType& list),
                     const ColumnPath& column = {});

/// Whether rows of the type `from` can become rows of the type `to`. Returns the reason why not,
/// for conversions that the `datasets` library refuses and for those that are not implemented here;
/// empty if they can.
std::string WhyNotCast(const ColumnType& from, const ColumnType& to, const ColumnPath& column = {});

/// Whether two batches fit into one table without a cast. `decided` is the type of the first.
/// A column with values of several types fits any other.
bool IsAlike(const ColumnType& type, const ColumnType& decided);

/// How the values of a batch of rows change when they enter the columns.
struct CastRules {
  bool as_loader = false;     ///< see TypingRules
  bool ten_decimals = false;  ///< the rows passed through ujson, which keeps ten decimals
};

/// A value of the type `from` as a value of the type `to`. WhyNotCast must have found no reason
/// against it. Objects get the keys of the struct, in its order, with null for keys that they lack.
/// Throws Error(kInput) that names `column` for a number that the type cannot hold.
Json Cast(Json value, const ColumnType& from, const ColumnType& to, const CastRules& rules,
          const ColumnPath& column = {});

/// The date that Arrow reads from a text when it infers types: YYYY-MM-DD, optionally followed by a
/// space or T and hh, hh:mm or hh:mm:ss, and then optionally by Z, +hh, +hhmm or +hh:mm; in UTC
/// (arrow/util/value_parsing.h).
std::optional<python::Moment> ParseDate(std::string_view text);

}  // namespace evald
