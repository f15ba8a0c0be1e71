// Code of a program that C code calls, and that takes away what the C code works with.

#include "tests/unit/sandbox/fixtures.h"

namespace evald::sandbox_test {
namespace {

using enum ProgramStatus;

constexpr const char* kRefuses =
    "def refused(attempt, *arguments, kind=ValueError):\n"
    "  try: attempt(*arguments)\n"
    "  except kind as error: assert 'sandbox refuses' in str(error), error; return\n"
    "  raise AssertionError(attempt)\n";

/// A program that passes if each line of `body` behaves.
std::string WithRefuses(const char* body) { return std::string(kRefuses) + body; }

TEST_F(Isolated, AStructIsStartedOnce) {
  ExpectPasses(
      WithRefuses("import struct\n"
                  "class Struct(struct.Struct): pass\n"
                  "for make in (struct.Struct, Struct):\n"
                  "  s = make('3q')\n"
                  "  class Grows:\n"
                  "    def __index__(self): s.__init__('60q'); return 1\n"
                  "  refused(s.pack_into, bytearray(24), 0, Grows(), 2, 3)\n"
                  "  refused(s.pack, Grows(), 2, 3)\n"
                  "  it = s.iter_unpack(bytes(48))\n"
                  "  refused(s.__init__, '60q')\n"
                  "  refused(struct.Struct.__init__, s, '60q')\n"
                  "  refused(type(s).__mro__[-2].__init__, s, '60q')\n"
                  "  assert next(it) == (0, 0, 0) and s.size == 24 and s.format == '3q'\n"
                  "fresh = Struct.__new__(Struct)\n"
                  "fresh.own = 1\n"
                  "fresh.__init__('2b')\n"
                  "assert fresh.pack(1, 2) == b'\\1\\2'\n"
                  "refused(fresh.__init__, '3b')\n"));
}

TEST_F(Isolated, FilesPicklersAndCompressorsAreStartedOnce) {
  ExpectPasses(
      WithRefuses("import io, pickle, bz2, lzma\n"
                  "class Raw(io.RawIOBase):\n"
                  "  def readable(self): return True\n"
                  "  def read(self, n=-1): text.__init__(io.BytesIO(b'abc')); return b'xyz'\n"
                  "  read1 = read\n"
                  "text = io.TextIOWrapper(Raw())\n"
                  "refused(text.read, 1)\n"
                  "class U(pickle.Unpickler):\n"
                  "  def find_class(self, module, name):\n"
                  "    self.__init__(io.BytesIO(b'x'))\n"
                  "refused(U(io.BytesIO(pickle.dumps(print))).load)\n"
                  "class P(pickle.Pickler):\n"
                  "  def persistent_id(self, item): self.__init__(io.BytesIO())\n"
                  "refused(P(io.BytesIO()).dump, [1])\n"
                  "decoder = io.IncrementalNewlineDecoder(None, True)\n"
                  "refused(decoder.__init__, None, True)\n"
                  "for make in (io.BufferedReader, io.BufferedWriter, io.BufferedRandom):\n"
                  "  refused(make(io.BytesIO()).__init__, io.BytesIO())\n"
                  "for make in (bz2.BZ2Compressor, bz2.BZ2Decompressor, lzma.LZMACompressor,\n"
                  "             lzma.LZMADecompressor):\n"
                  "  if '__init__' in make.__dict__: refused(make().__init__)\n"
                  "class Text(io.TextIOWrapper):\n"
                  "  def __init__(self, file): self.own = 1; super().__init__(file)\n"
                  "assert Text(io.BytesIO(b'a')).read() == 'a'\n"
                  "assert bz2.decompress(bz2.compress(b'a')) == b'a'\n"
                  "assert lzma.decompress(lzma.compress(b'a')) == b'a'\n"));
}

TEST_F(Isolated, ModulesWithCallbacksAreInPythonOnly) {
  ExpectPasses(
      "import asyncio, csv, io, copy, sys, _imp, types\n"
      "import xml.etree.ElementTree as ET\n"
      "async def twice(x): await asyncio.sleep(0); return 2 * x\n"
      "async def main(): return await asyncio.gather(*[twice(i) for i in range(5)])\n"
      "assert asyncio.run(main()) == [0, 2, 4, 6, 8]\n"
      "root = ET.fromstring('<a><b c=\"1\">x</b><b/></a>')\n"
      "assert [e.get('c') for e in root.findall('b')] == ['1', None]\n"
      "assert ET.tostring(copy.deepcopy(root)) == b'<a><b c=\"1\">x</b><b /></a>'\n"
      "root.remove(root[0]); assert len(root) == 1\n"
      "import datetime, zoneinfo\n"
      "assert zoneinfo.ZoneInfo.__module__.startswith('zoneinfo')\n"
      "for name in ('_asyncio', '_elementtree', '_zoneinfo'):\n"
      "  sys.modules.pop(name, None)\n"
      "  try: __import__(name)\n"
      "  except ImportError: pass\n"
      "  else: raise AssertionError(name)\n"
      "  if name in sys.builtin_module_names:\n"
      "    try: _imp.create_builtin(types.SimpleNamespace(name=name))\n"
      "    except ImportError: pass\n"
      "    else: raise AssertionError(name)\n"
      "assert 'Element' not in [t.__name__ for t in object.__subclasses__() if t.__module__ == "
      "'_elementtree']");
}

TEST_F(Isolated, TypesAreNotMadeAnewWithoutTheirChecks) {
  ExpectPasses(
      "import _imp, sys, types\n"
      "class Name(str): pass\n"
      "class Spec:\n"
      "  names = ['json', 'itertools']\n"
      "  @property\n"
      "  def name(self): return self.names.pop(0)\n"
      "for name in ('_struct', 'itertools', '_csv', '_io', '_pickle', '_collections', '_ctypes'):\n"
      "  if name not in sys.builtin_module_names: continue\n"
      "  try: _imp.create_builtin(types.SimpleNamespace(name=name))\n"
      "  except ImportError: pass\n"
      "  else: raise AssertionError(name)\n"
      "  try: _imp.create_builtin(types.SimpleNamespace(name=Name(name)))\n"
      "  except TypeError: pass\n"
      "  else: raise AssertionError(name)\n"
      "assert _imp.create_builtin(Spec()) is None\n"
      "import importlib, struct, _struct, itertools\n"
      "importlib.reload(_struct); importlib.reload(struct); importlib.reload(itertools)\n"
      "rest = [n for n in sys.builtin_module_names if n not in sys.modules and n[0] != '_']\n"
      "for name in rest:\n"
      "  if name != 'xxsubtype': importlib.import_module(name)\n");
}

TEST_F(Isolated, ACycleLooksAtTheLengthOfItsList) {
  ExpectPasses(
      "import gc, itertools\n"
      "c = itertools.cycle([1, 2, 3])\n"
      "assert [next(c) for _ in range(8)] == [1, 2, 3, 1, 2, 3, 1, 2]\n"
      "saved = c.__reduce__()[2][0]\n"
      "saved[:] = [7]\n"
      "assert [next(c), next(c)] == [7, 7]\n"
      "saved.clear()\n"
      "assert list(c) == []\n"
      "c = itertools.cycle([])\n"
      "state = [1] * 6\n"
      "c.__setstate__((state, 1))\n"
      "for _ in range(5): next(c)\n"
      "state[:] = [7]\n"
      "assert next(c) == 7\n"
      "import copy\n"
      "d = itertools.cycle('ab'); next(d)\n"
      "e = copy.copy(d)\n"
      "assert [next(e) for _ in range(3)] == ['b', 'a', 'b']\n");
}

TEST_F(Isolated, IteratorsAreNotEnteredWhileTheyWork) {
  ExpectPasses(
      WithRefuses("import csv, itertools\n"
                  "class Enters:\n"
                  "  def __init__(self): self.items = iter('abcdef')\n"
                  "  def __iter__(self): return self\n"
                  "  def __next__(self):\n"
                  "    it = self.outer\n"
                  "    next(it)\n"
                  "    return next(self.items)\n"
                  "for make in (itertools.chain, itertools.pairwise, itertools.zip_longest,\n"
                  "             lambda x: itertools.islice(x, 3), itertools.groupby, csv.reader):\n"
                  "  inner = Enters()\n"
                  "  inner.outer = make(inner)\n"
                  "  refused(next, inner.outer)\n"
                  "class Key:\n"
                  "  def __eq__(self, other): next(groups); return False\n"
                  "groups = itertools.groupby([1, 2, 3], lambda x: Key())\n"
                  "key, group = next(groups)\n"
                  "refused(list, group)\n"
                  "assert list(itertools.chain('ab', itertools.chain('c'))) == ['a', 'b', 'c']\n"
                  "assert [(k, list(g)) for k, g in itertools.groupby('aab')] == "
                  "[('a', ['a', 'a']), ('b', ['b'])]\n"
                  "def stops(): raise KeyError\n"
                  "it = itertools.chain((stops() for _ in range(2)), 'x')\n"
                  "try: next(it)\n"
                  "except KeyError: pass\n"
                  "assert next(it) == 'x'\n"));
}

TEST_F(Isolated, StatesAreNotExchangedWhileTheyAreUsed) {
  ExpectPasses(WithRefuses(
      "import copy, functools, itertools, pickle\n"
      "p = functools.partial(sorted, [3, 1, 2])\n"
      "def evil(x): p.__setstate__((print, (), {}, None)); return x\n"
      "refused(lambda: p(key=evil))\n"
      "bare = functools.partial(len)\n"
      "refused(bare.__setstate__, (print, (), {}, None))\n"
      "for clone in (copy.copy, copy.deepcopy, lambda q: pickle.loads(pickle.dumps(q))):\n"
      "  assert clone(p)() == [1, 2, 3]\n"
      "one, other = itertools.tee([1, 2])\n"
      "if hasattr(one, '__setstate__'):\n"
      "  refused(one.__setstate__, (one.__reduce__()[2][0], 50), kind=PermissionError)\n"
      "assert list(copy.copy(one)) == [1, 2]\n"));
}

TEST_F(Isolated, ListsAndOrderedDictsKeepWhatIsCompared) {
  ExpectPasses(
      "from collections import OrderedDict\n"
      "import gc\n"
      "a = [0] * 20\n"
      "class Empties:\n"
      "  def __iter__(self): a.clear(); return iter([1] * 10)\n"
      "def attempt():\n"
      "  try: a[::2] = Empties()\n"
      "  except ValueError: return\n"
      "  raise AssertionError\n"
      "attempt()\n"
      "a[:] = range(6); a[::2] = (x * 2 for x in 'abc'); assert a == ['aa', 1, 'bb', 3, 'cc', 5]\n"
      "a[1:3] = 'xy'; a[-1] = 9; del a[0]; assert a == ['x', 'y', 3, 'cc', 9]\n"
      "a[::-1] = a; assert a == [9, 'cc', 3, 'y', 'x']\n"
      "class Item:\n"
      "  def __eq__(self, other): return False\n"
      "  def __lt__(self, other): left.clear(); right.clear(); gc.collect(); return "
      "NotImplemented\n"
      "  def __gt__(self, other): return 'greater'\n"
      "left, right = [Item()], [Item()]\n"
      "assert (left < right) == 'greater' and left == []\n"
      "assert [1, 2] < [1, 3] and [1] < [1, 0] and not [2] < [1, 5] and [1, 2] <= [1, 2]\n"
      "assert [2] > [1, 9] and [1, 2] >= [1, 2] and not [1] > [1] and not [] < [] and [] >= []\n"
      "assert [1] != [2] and [1] == [1] and [] < [1] and sorted([[2], [1, 5], [1]]) == "
      "[[1], [1, 5], [2]]\n"
      "nan = float('nan'); assert not [nan] < [nan] and [nan] <= [nan]\n"
      "for bad in ((1,), 'x', None):\n"
      "  try: [1] < bad\n"
      "  except TypeError: continue\n"
      "  raise AssertionError(bad)\n"
      "class Key(str):\n"
      "  __hash__ = str.__hash__\n"
      "  def __eq__(self, other): second.clear(); gc.collect(); return True\n"
      "first, second = (OrderedDict.fromkeys([Key('a'), Key('b')]) for _ in range(2))\n"
      "first == second\n"
      "pairs = [('a', 1), ('b', 2)]\n"
      "one, two = OrderedDict(pairs), OrderedDict(reversed(pairs))\n"
      "assert one == OrderedDict(pairs) and one != two and one == dict(two) and dict(one) == two\n"
      "assert not one != OrderedDict(pairs) and one != 5 and not one == 5\n"
      "try: one < two\n"
      "except TypeError: pass\n"
      "else: raise AssertionError\n");
}

TEST_F(Isolated, AParserOutlivesTheOneThatMadeIt) {
  ExpectPasses(
      "from xml.parsers import expat\n"
      "import gc, sys\n"
      "parent = expat.ParserCreate()\n"
      "before = sys.getrefcount(parent)\n"
      "child = parent.ExternalEntityParserCreate('x')\n"
      "assert sys.getrefcount(parent) > before\n"
      "del parent\n"
      "gc.collect()\n"
      "fill = [bytearray(b'A' * n) for n in range(16, 3000, 16)]\n"
      "child.Parse(b'<a/>', True)\n");
}

}  // namespace
}  // namespace evald::sandbox_test
