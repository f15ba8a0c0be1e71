"""The rooms of the code: the table in docs/architecture.md, the includes, the CMake targets, and where they disagree.

A room is a folder with a row in the table. Its files include headers of the rooms in its row, of include/ and of no other;
its targets link the targets of the same rooms. Each problem is one line: where, what was found, what the table allows.
"""
import os
import re

TABLE = "docs/architecture.md"
CONTRACTS = "include"  # every room may use its headers; no target stands for it
UNCHECKED = {"cmake"}  # holds no room: what CMake itself compiles
NESTED = ("orchestrator", "worker", "metrics")  # their subfolders are rooms of their own
CODE = (".h", ".cc", ".cu", ".cuh", ".inc")
HELD = {"curl/": "http_client"}  # libraries that one room alone includes
EVERYTHING = "everything"
INCLUDE = re.compile(r'\s*#\s*include\s*["<]([^">]+)[">]')


class Row:
    """What the table says of one room."""

    def __init__(self, room, line, used):
        self.room = room
        self.line = line
        self.used = used  # rooms, or EVERYTHING

    def allows(self, room):
        return self.used == EVERYTHING or room == CONTRACTS or room in self.used

    def text(self):
        if self.used == EVERYTHING:
            return EVERYTHING
        return ", ".join(f"{room}/" for room in self.used) or "nothing"


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def read_table(root):
    """Room -> Row, and the problems of the table's own text."""
    rows, problems = {}, []
    for number, line in enumerate(read(root, TABLE).split("\n"), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        match = re.fullmatch(r"`([a-z_/]+)/`", cells[0])
        if match is None or len(cells) != 3:
            continue
        used = re.findall(r"`([a-z_/]+)/`", cells[2])
        rest = re.sub(r"`[a-z_/]+/`", "", cells[2]).replace(",", "").strip()
        if rest == EVERYTHING and not used:
            used = EVERYTHING
        elif rest not in ("", "nothing") or (rest == "nothing") == bool(used):
            problems.append(f"{TABLE}:{number}: found '{cells[2]}', expected rooms such as `base/`, `nothing` or `everything`")
        if match[1] in rows:
            problems.append(f"{TABLE}:{number}: {match[1]}/ has a row already, in line {rows[match[1]].line}")
        rows[match[1]] = Row(match[1], number, used)
    for row in rows.values():
        for room in row.used if row.used != EVERYTHING else ():
            if room not in rows:
                problems.append(f"{TABLE}:{row.line}: {row.room}/ may use {room}/, which has no row")
            elif room == CONTRACTS:
                problems.append(f"{TABLE}:{row.line}: {row.room}/ lists {CONTRACTS}/, which every room may use")
    return rows, problems


def cycles(rows):
    """One problem for each room that may use itself by way of others."""
    def way(room, goal, seen):
        for used in rows[room].used if room in rows and rows[room].used != EVERYTHING else ():
            if used == goal:
                return [used]
            if used not in seen:
                seen.add(used)
                rest = way(used, goal, seen)
                if rest:
                    return [used] + rest
        return []

    for room, row in rows.items():
        found = way(room, room, set())
        if found:
            yield f"{TABLE}:{row.line}: a cycle of rooms: " + " -> ".join([room] + found)


def files_of(root):
    """All files of the tree that may be code or CMake lists, without what was built."""
    found = []
    for folder, folders, names in os.walk(root):
        relative = os.path.relpath(folder, root)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and not (relative == "." and name == "build"))
        for name in sorted(names):
            if name.endswith(CODE) or name == "CMakeLists.txt":
                found.append(os.path.normpath(os.path.join(relative, name)))
    return found


def room_of(path):
    parts = path.split("/")
    if parts[0] in NESTED and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0] if len(parts) > 1 else ""


def includes_of(root, path, names):
    """(line, header) of each own header that a file includes."""
    for number, line in enumerate(read(root, path).split("\n"), 1):
        match = INCLUDE.match(line)
        if match is None:
            continue
        for header in (match[1], os.path.normpath(os.path.join(os.path.dirname(path), match[1])), f"include/{match[1]}"):
            if header in names:
                yield number, header
                break


class Use:
    """A file that includes a header of another room."""

    def __init__(self, path, line, header):
        self.path = path
        self.line = line
        self.header = header
        self.room = room_of(path)
        self.used = room_of(header)


def uses_in(root, names):
    return [Use(path, line, header) for path in names if path.endswith(CODE) and room_of(path) not in UNCHECKED
            for line, header in includes_of(root, path, names) if room_of(header) != room_of(path)]


def check_folders(rows, names):
    with_code = {}
    for path in names:
        if path.endswith(CODE):
            with_code.setdefault(room_of(path), path)
    for room, path in sorted(with_code.items()):
        if room not in rows and room not in UNCHECKED:
            yield f"{path}:1: {room}/ has no row in {TABLE}"
    for room, row in rows.items():
        if room not in with_code:
            yield f"{TABLE}:{row.line}: {room}/ holds no code"


def check_includes(rows, uses, names):
    for use in uses:
        row = rows.get(use.room)
        if row is not None and not row.allows(use.used):
            yield f"{use.path}:{use.line}: {use.room}/ uses {use.used}/ ({use.header}); {TABLE} allows it {row.text()}"
    used = {(use.room, use.used) for use in uses} | set(contract_uses(uses, names))
    for row in rows.values():
        for room in row.used if row.used != EVERYTHING else ():
            if (row.room, room) not in used:
                yield f"{TABLE}:{row.line}: {row.room}/ may use {room}/, and no file of it does"


def check_libraries(root, names):
    for path in names:
        for number, line in enumerate(read(root, path).split("\n") if path.endswith(CODE) else [], 1):
            match = INCLUDE.match(line)
            for library, room in HELD.items() if match else ():
                if match[1].startswith(library) and room_of(path) != room:
                    yield f"{path}:{number}: includes {match[1]}, which only {room}/ may"


def contract_uses(uses, names):
    """Who includes include/evald/NAME.h may use the room that has NAME.cc: its functions are declared there."""
    homes = {}
    for use in uses:
        if use.used == CONTRACTS and os.path.basename(use.path) == os.path.basename(use.header)[:-2] + ".cc":
            homes[use.header] = use.room
    for use in uses:
        if use.header in homes:
            yield use.room, homes[use.header]


# ---- CMake

class Target:
    """A target made by a function of cmake/rooms.cmake."""

    def __init__(self, kind, path, line, words):
        self.kind = kind
        self.path = path
        self.line = line
        self.name = ("evald_" if kind == "evald_room" else "") + (words[""][0] if words[""] else "")
        self.sources = words["SOURCES"]
        self.links = words["LINKS"]

    def place(self):
        return f"{self.path}:{self.line}: {self.name}"


def commands_of(text):
    """(line, name, words) of each command of a CMake list."""
    plain = re.sub(r"\[\[.*?\]\]", lambda match: "\n" * match[0].count("\n"), text, flags=re.S)
    plain = re.sub(r'"(?:[^"\\]|\\.)*"', lambda match: '""' + "\n" * match[0].count("\n"), plain)
    plain = re.sub(r"#[^\n]*", "", plain)
    for match in re.finditer(r"(\w+)\s*\(([^()]*)\)", plain):
        yield plain.count("\n", 0, match.start()) + 1, match[1], match[2].split()


def expand(word, variables):
    """The words that a word stands for; one with an unknown variable stands for itself."""
    match = re.search(r"\$\{(\w+)\}", word)
    if match is None or match[1] not in variables:
        return [word]
    return [word[:match.start()] + value + word[match.end():] for value in variables[match[1]]]


def targets_of(root, path):
    variables = {"CMAKE_SOURCE_DIR": [os.path.relpath(".", os.path.dirname(path))]}
    for line, name, words in commands_of(read(root, path)):
        expanded = [made for word in words for made in expand(word, variables)]
        if name == "set" and expanded:
            variables[expanded[0]] = expanded[1:]
        if name in ("evald_room", "evald_program", "evald_test", "evald_fuzz"):
            parts, current = {"": [], "SOURCES": [], "LINKS": [], "LABELS": []}, ""
            for word in expanded:
                if word in parts:
                    current = word
                else:
                    parts[current].append(word)
            yield Target(name, path, line, parts)


def target_of(room):
    return "evald_" + room.split("/")[-1]


def check_room_targets(rows, names, targets):
    """Each room has its target, and its targets link exactly the rooms of its row."""
    room_of_target = {target_of(room): room for room, row in rows.items()
                      if row.used != EVERYTHING and room != CONTRACTS}
    for row in rows.values():
        if row.used == EVERYTHING or row.room == CONTRACTS:
            continue
        own = [target for target in targets if room_of(target.path) == row.room]
        main = [target for target in own if target.kind == "evald_room" and target.name == target_of(row.room)]
        if not main and any(room_of(path) == row.room and path.endswith(".cc") for path in names):
            yield f"{row.room}/CMakeLists.txt:1: no evald_room({row.room.split('/')[-1]} ...) is there"
            continue
        linked = set()
        for target in own:
            for link in target.links:
                room = room_of_target.get(link)
                if room is None or room == row.room:
                    continue
                linked.add(room)
                if room not in row.used:
                    yield f"{target.place()} links {link} ({room}/); {TABLE} allows {row.room}/ {row.text()}"
        for room in row.used:
            if main and room not in linked and room in rows:
                yield f"{main[0].place()} does not link {target_of(room)}, which {TABLE} allows {row.room}/"


def check_test_targets(root, rows, names, targets):
    """A test links the rooms whose headers its files include, itself or by way of a library of tests."""
    helpers = {target.name: target for target in targets if rows[room_of(target.path)].used == EVERYTHING}
    checked = {room for room, row in rows.items() if row.used != EVERYTHING and room != CONTRACTS}

    def linked_by(target, seen):
        found = set(target.links)
        for link in target.links:
            if link in helpers and link not in seen:
                found |= linked_by(helpers[link], seen | {link})
        return found

    for target in targets:
        if room_of(target.path) != "tests":
            continue
        linked = linked_by(target, {target.name})
        paths = [os.path.normpath(os.path.join(os.path.dirname(target.path), source)) for source in target.sources]
        linked |= {target_of(room_of(path)) for path in paths}  # what it compiles itself
        for path in paths:
            if path not in names or room_of(path) != "tests":
                continue  # made by CMake, named by a variable, or of a room
            for line, header in includes_of(root, path, names):
                room = room_of(header)
                if room in checked and target_of(room) not in linked:
                    yield f"{path}:{line}: uses {room}/ ({header}); {target.place()} does not link {target_of(room)}"


def problems_of(root):
    """All problems of a tree, one line each."""
    names = dict.fromkeys(files_of(root))
    rows, problems = read_table(root)
    if not rows:
        return [f"{TABLE}:1: no table of rooms is there"]
    uses = uses_in(root, names)
    targets = [target for path in names if path.endswith("CMakeLists.txt") and room_of(path) in rows
               for target in targets_of(root, path)]
    problems += cycles(rows)
    problems += check_folders(rows, names)
    problems += check_includes(rows, uses, names)
    problems += check_libraries(root, names)
    problems += check_room_targets(rows, names, targets)
    problems += check_test_targets(root, rows, names, targets)
    return list(dict.fromkeys(problems))
