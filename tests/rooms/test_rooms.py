"""Holds includes and CMake targets against the table of rooms in docs/architecture.md; see rooms.py."""
import os
import tempfile
import unittest

import rooms

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

TREE = {
    "docs/architecture.md": "| room | holds | may use |\n|---|---|---|\n| `include/` | types | nothing |\n| `low/` | a | nothing |\n"
                            "| `high/` | b | `low/` |\n| `tests/` | c | everything |\n",
    "include/evald/kind.h": "",
    "low/low.h": '#include "evald/kind.h"\n',
    "low/low.cc": '#include "low/low.h"\n',
    "low/CMakeLists.txt": "evald_room(low SOURCES low.cc)\n",
    "high/high.cc": '#include <evald/kind.h>\n\n#include "low/low.h"\n',
    "high/CMakeLists.txt": "# The upper one.\nevald_room(high SOURCES high.cc LINKS evald_low ZLIB::ZLIB)\n",
    "tests/low_test.cc": '#include "low/low.h"\n',
    "tests/CMakeLists.txt": "evald_test(low_test SOURCES low_test.cc LINKS evald_low)\n",
}


class Repository(unittest.TestCase):
    def test_includes_and_targets_are_as_the_table_says(self):
        problems = rooms.problems_of(ROOT)
        self.assertFalse(problems, "\n" + "\n".join(problems))


class MadeUpTrees(unittest.TestCase):
    """What is wrong is found, and named with file and line."""

    def problems(self, changes):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**TREE, **changes}.items():
                if text is None:
                    continue
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return rooms.problems_of(root)

    def table(self, old, new):
        return {"docs/architecture.md": TREE["docs/architecture.md"].replace(old, new)}

    def test_nothing_is_wrong(self):
        self.assertEqual(self.problems({}), [])

    def test_a_room_that_it_may_not_use(self):
        self.assertEqual(self.problems({"low/low.cc": '#include "low/low.h"\n#include "high/high.h"\n', "high/high.h": ""}),
                         ["low/low.cc:2: low/ uses high/ (high/high.h); docs/architecture.md allows it nothing"])

    def test_a_library_that_another_room_holds(self):
        self.assertEqual(self.problems({"low/low.cc": '#include "low/low.h"\n#include <curl/curl.h>\n'}),
                         ["low/low.cc:2: includes curl/curl.h, which only http_client/ may"])

    def test_a_header_named_from_its_own_folder(self):
        self.assertIn("low/low.cc:1: low/ uses high/ (high/high.h); docs/architecture.md allows it nothing",
                      self.problems({"low/low.cc": '#  include "../high/high.h"\n', "high/high.h": ""}))

    def test_a_cycle_of_the_table(self):
        found = self.problems({**self.table("| `low/` | a | nothing |", "| `low/` | a | `high/` |"),
                               "low/low.cc": '#include "high/high.h"\n', "high/high.h": "",
                               "low/CMakeLists.txt": "evald_room(low SOURCES low.cc LINKS evald_high)\n"})
        self.assertEqual(found, ["docs/architecture.md:4: a cycle of rooms: low -> high -> low",
                                 "docs/architecture.md:5: a cycle of rooms: high -> low -> high"])

    def test_a_room_that_may_be_used_and_is_not(self):
        found = self.problems({"high/high.cc": ""})
        self.assertEqual(found, ["docs/architecture.md:5: high/ may use low/, and no file of it does"])

    def test_a_folder_without_a_row(self):
        self.assertEqual(self.problems({"new/new.cc": ""}), ["new/new.cc:1: new/ has no row in docs/architecture.md"])

    def test_a_row_without_a_folder(self):
        self.assertEqual(self.problems(self.table("| `tests/`", "| `gone/` | d | nothing |\n| `tests/`")),
                         ["docs/architecture.md:6: gone/ holds no code"])

    def test_a_row_that_cannot_be_read(self):
        self.assertIn("docs/architecture.md:5: found 'low and others', expected rooms such as `base/`, `nothing` or `everything`",
                      self.problems(self.table("`low/` |\n| `tests/`", "low and others |\n| `tests/`")))

    def test_a_row_that_names_no_room(self):
        self.assertIn("docs/architecture.md:5: high/ may use lower/, which has no row",
                      self.problems(self.table("b | `low/`", "b | `low/`, `lower/`")))

    def test_a_target_that_links_what_it_may_not(self):
        found = self.problems({"low/CMakeLists.txt": "\nevald_room(low SOURCES low.cc LINKS evald_high)\n"})
        self.assertEqual(found, ["low/CMakeLists.txt:2: evald_low links evald_high (high/); docs/architecture.md allows low/ nothing"])

    def test_a_program_that_links_what_its_room_may_not(self):
        found = self.problems({"low/CMakeLists.txt": "evald_room(low SOURCES low.cc)\nset(links evald_high)\n"
                                                     "evald_program(tool SOURCES main.cc LINKS ${links})\n"})
        self.assertEqual(found, ["low/CMakeLists.txt:3: tool links evald_high (high/); docs/architecture.md allows low/ nothing"])

    def test_a_target_that_links_too_little(self):
        found = self.problems({"high/CMakeLists.txt": "evald_room(high SOURCES high.cc)\n"})
        self.assertEqual(found, ["high/CMakeLists.txt:1: evald_high does not link evald_low, which docs/architecture.md allows high/"])

    def test_a_room_without_a_target(self):
        found = self.problems({"high/CMakeLists.txt": "evald_room(other SOURCES high.cc LINKS evald_low)\n"})
        self.assertEqual(found, ["high/CMakeLists.txt:1: no evald_room(high ...) is there"])

    def test_a_test_that_does_not_link_what_it_tests(self):
        found = self.problems({"tests/CMakeLists.txt": "evald_test(low_test SOURCES low_test.cc)\n"})
        self.assertEqual(found, ["tests/low_test.cc:1: uses low/ (low/low.h); tests/CMakeLists.txt:1: low_test does not link evald_low"])

    def test_a_test_that_links_by_way_of_a_library_of_tests(self):
        self.assertEqual(self.problems({"tests/help.cc": "", "tests/CMakeLists.txt":
                                        "evald_room(help SOURCES help.cc LINKS evald_low)\n"
                                        "evald_test(low_test SOURCES low_test.cc LINKS evald_help)\n"}), [])

    def test_a_room_with_the_code_of_a_contract(self):
        self.assertEqual(self.problems({"low/kind.cc": '#include "evald/kind.h"\n', "high/high.cc": '#include "evald/kind.h"\n'}), [])


if __name__ == "__main__":
    unittest.main()
