// Iterators that a program enters again while they work.
//
// An iterator asks another for its next item, or compares keys, and so runs code of the program.
// That code can call the same iterator, which then frees what the first call goes on to use. Here
// such a call is refused, as Python itself refuses it of a generator.

#include <stdint.h>
#include <string.h>

#include "metrics/sandbox/guest/tables.h"

// Parts of Python's ABI since 3.8. The interpreter that loads this library defines them.
extern "C" {
extern PyObject* PyExc_ValueError;
extern PyObject PyList_Type;
PyObject* PyIter_Next(PyObject* iterator);
int PyList_Append(PyObject* list, PyObject* item);
PyObject* PyList_GetItem(PyObject* list, Py_ssize_t index);
PyObject* PyList_New(Py_ssize_t count);
Py_ssize_t PyList_Size(PyObject* list);
PyObject* PyObject_Type(PyObject* object);
PyObject* PyTuple_Pack(Py_ssize_t count, ...);
}

namespace evald::guest {
namespace {

using Next = PyObject* (*)(PyObject* self);

/// What follows what all objects have.
template <typename Fields>
Fields& FieldsOf(PyObject* object) {
  return *reinterpret_cast<Fields*>(reinterpret_cast<char*>(object) + HeadBytes());
}

/// A call that is running, in a ring of calls with the same hash.
struct Entry {
  PyObject* entered;
  Entry* before;
  Entry* after;
};

constexpr size_t kRings = 256;
Entry g_rings[kRings];

class Entered {
 public:
  explicit Entered(PyObject* object) : entry_{object, RingOf(object), RingOf(object)->after} {
    entry_.after->before = entry_.before->after = &entry_;
  }
  ~Entered() {
    entry_.before->after = entry_.after;
    entry_.after->before = entry_.before;
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

  static bool Contains(const PyObject* object) {
    const Entry* const ring = RingOf(object);
    for (const Entry* entry = ring->after; entry != ring; entry = entry->after) {
      if (entry->entered == object) return true;
    }
    return false;
  }

 private:
  static Entry* RingOf(const PyObject* object) {
    return &g_rings[(reinterpret_cast<uintptr_t>(object) >> 4) % kRings];
  }
  Entry entry_;
};

/// A kind of iterator. The groups of one `groupby` count as one object, to which each of them leads
/// by its first field.
struct Kind {
  const char* module;
  const char* type;  ///< or a function that makes one from an empty tuple
  bool is_function;
  bool is_group;
  Next original;
};
Kind g_kinds[] = {{"itertools", "chain", false, false, nullptr},
                  {"itertools", "islice", false, false, nullptr},
                  {"itertools", "zip_longest", false, false, nullptr},
                  {"itertools", "pairwise", false, false, nullptr},
                  {"itertools", "groupby", false, false, nullptr},
                  {"itertools", "_grouper", false, true, nullptr},
                  {"_csv", "reader", true, false, nullptr}};
constexpr size_t kKindCount = sizeof(g_kinds) / sizeof(g_kinds[0]);

template <size_t kIndex>
PyObject* NextOnce(PyObject* self) {
  const Kind& kind = g_kinds[kIndex];
  PyObject* const entered = kind.is_group ? FieldsOf<PyObject*>(self) : self;
  if (Entered::Contains(entered)) {
    PyErr_SetString(PyExc_ValueError, "the sandbox refuses to enter an iterator while it works");
    return nullptr;
  }
  const Entered here(entered);
  return kind.original(self);
}

/// nullptr if this interpreter has no such iterator.
PyObject* TypeOfKind(const Kind& kind) {
  PyObject* const found = FindAttribute(kind.module, nullptr, kind.type);
  if (found == nullptr || !kind.is_function) return found;
  PyObject* const nothing = PyTuple_Pack(0);
  PyObject* const made = PyObject_CallFunctionObjArgs(found, nothing, nullptr);
  PyErr_Clear();
  return made == nullptr ? nullptr : PyObject_Type(made);
}

template <size_t kIndex>
bool EnterEachOnce() {
  if constexpr (kIndex == kKindCount) {
    return true;
  } else {
    Kind& kind = g_kinds[kIndex];
    PyObject* const type = TypeOfKind(kind);
    if (type != nullptr && !ReplaceSlot(type, "__next__", reinterpret_cast<void*>(NextOnce<kIndex>),
                                        reinterpret_cast<void**>(&kind.original))) {
      return false;
    }
    return EnterEachOnce<kIndex + 1>();
  }
}

/// itertools.cycle. CPython reads the list of saved items at `index` without a look at its length.
/// The program can find the list (`__reduce__`, gc) and shorten it.
struct Cycle {
  PyObject* iterator;
  PyObject* saved;
  Py_ssize_t index;
  int saves_nothing;  ///< not in CPython 3.14 and later
};
bool g_has_saves_nothing = false;
Next g_next_of_cycle = nullptr;

/// From the iterator. nullptr with or without an exception set.
PyObject* FirstTime(Cycle* cycle) {
  PyObject* const iterator = cycle->iterator;
  Py_IncRef(iterator);  // the program may end the cycle meanwhile
  PyObject* item = PyIter_Next(iterator);
  Py_DecRef(iterator);
  if (item != nullptr && !(g_has_saves_nothing && cycle->saves_nothing != 0) &&
      PyList_Append(cycle->saved, item) != 0) {
    Py_DecRef(item);
    item = nullptr;
  }
  return item;
}

/// In place of the type's own.
PyObject* NextOfCycle(PyObject* self) {
  Cycle& cycle = FieldsOf<Cycle>(self);
  if (cycle.iterator != nullptr) {
    PyObject* const item = FirstTime(&cycle);
    if (item != nullptr || PyErr_Occurred() != nullptr) return item;
    PyObject* const ended = cycle.iterator;
    cycle.iterator = nullptr;
    if (ended != nullptr) Py_DecRef(ended);
  }
  const Py_ssize_t count = PyList_Size(cycle.saved);
  if (count <= 0) return nullptr;
  if (cycle.index >= count) cycle.index = 0;
  PyObject* const item = PyList_GetItem(cycle.saved, cycle.index);
  Py_IncRef(item);
  if (++cycle.index >= count) cycle.index = 0;
  return item;
}

/// Whether a cycle has the fields of `Cycle`: three calls of a cycle of two.
bool KnowsCycles(PyObject* type) {
  g_has_saves_nothing =
      NumberOf(type, "__basicsize__") > HeadBytes() + 3 * static_cast<Py_ssize_t>(sizeof(void*));
  PyObject* const two = PyTuple_Pack(2, &_Py_NoneStruct, &_Py_NoneStruct);
  PyObject* const made = PyObject_CallFunctionObjArgs(type, two, nullptr);
  if (made == nullptr) return false;
  const Cycle& cycle = FieldsOf<Cycle>(made);
  bool known = cycle.iterator != nullptr && TypeOf(cycle.saved) == &PyList_Type &&
               PyList_Size(cycle.saved) == 0 && cycle.index == 0;
  for (int i = 0; known && i < 3; ++i) known = PyIter_Next(made) == &_Py_NoneStruct;
  known = known && cycle.iterator == nullptr && PyList_Size(cycle.saved) == 2 && cycle.index == 1 &&
          !(g_has_saves_nothing && cycle.saves_nothing != 0);
  Py_DecRef(made);
  return known;
}

bool CheckCycles() {
  PyObject* const type = FindAttribute("itertools", nullptr, "cycle");
  return type != nullptr && KnowsCycles(type) &&
         ReplaceSlot(type, "__next__", reinterpret_cast<void*>(NextOfCycle),
                     reinterpret_cast<void**>(&g_next_of_cycle));
}

}  // namespace

bool RefuseReentry() {
  for (Entry& ring : g_rings) ring = {nullptr, &ring, &ring};
  return CheckCycles() && EnterEachOnce<0>();
}

}  // namespace evald::guest
