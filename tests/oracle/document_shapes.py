"""The shape of a task's documents, read from its Python functions and Jinja templates without running them.

A Shape says what is done with a value: which keys are looked up, whether it is iterated over or indexed, which methods of
texts are called, with which constants it is compared, and in which other value it is looked for. shape_of(config) follows
documents through assignments, loops, calls of functions of the same module, and datasets' map and filter.
"""

import ast
import inspect
import textwrap

import jinja2
import jinja2.meta
import jinja2.nodes

TEXT_METHODS = {"strip", "lstrip", "rstrip", "lower", "upper", "replace", "split", "rsplit", "startswith", "endswith", "capitalize",
                "title", "find", "rfind", "format", "splitlines", "encode", "removeprefix", "removesuffix", "partition", "isdigit",
                "translate", "swapcase", "casefold", "zfill", "isupper", "islower"}
SAME = {"strip", "lstrip", "rstrip", "lower", "upper", "replace", "capitalize", "title", "removeprefix", "removesuffix", "format"}
ITERATING = {"enumerate", "list", "sorted", "reversed", "set", "tuple", "zip", "map", "filter", "iter", "any", "all", "sum", "max", "min"}
PARSERS = {"loads": "json", "literal_eval": "repr", "eval": "repr", "safe_load": "json"}
DEPTH = 6
UNROLLED = 30


class Shape:
    """What is done with a value. `path` is where it lies in the document; "*" stands for any element of a list."""

    def __init__(self, path=()):
        self.path, self.keys, self.item = path, {}, None
        self.uses, self.literals, self.parts, self.starts, self.inside, self.parsed = set(), [], [], [], [], None

    def key(self, name):
        return self.keys.setdefault(name, Shape((*self.path, name)))

    def element(self):
        if self.item is None:
            self.item = Shape((*self.path, "*"))
        return self.item

    def parse(self, how):
        if self.parsed is None:
            self.parsed = (how, Shape((*self.path, how)))
        return self.parsed[1]


class Rows:
    """A dataset, of which each row is the document."""

    def __init__(self, doc):
        self.doc = doc


class Constant:
    def __init__(self, value):
        self.value = value


class Numbered:
    """A text with one part that the code does not say, such as f"answer{i}"."""

    def __init__(self, before, after):
        self.names = [f"{before}{i}{after}" for i in range(4)]


class Made:
    """A list or mapping that the code makes of other values."""

    def __init__(self, members, keys=None):
        self.members, self.keys = members, keys or {}


def compare_with(shape, other):
    """Notes that a value is compared with a constant, or looked for in another."""
    if isinstance(shape, Shape) and isinstance(other, Constant) and isinstance(other.value, (str, int, float)):
        shape.literals.append(other.value)
    elif isinstance(shape, Shape) and isinstance(other, Made) and not other.keys:
        shape.element()


def look_for(shape, place):
    if isinstance(shape, Shape) and isinstance(place, Constant) and isinstance(place.value, (list, tuple, set, dict)):
        shape.literals += [value for value in place.value if isinstance(value, (str, int, float))]
    elif isinstance(shape, Shape) and isinstance(place, Constant) and isinstance(place.value, str):
        shape.literals += list(place.value)
    elif isinstance(shape, Shape) and isinstance(place, Made):
        shape.literals += [member.value for member in place.members if isinstance(member, Constant)]
        shape.literals += list(place.keys)
        shape.inside += [member for member in place.members if isinstance(member, Shape)]
    elif isinstance(place, Shape) and isinstance(shape, Shape):
        shape.inside.append(place)
    elif isinstance(place, Shape) and isinstance(shape, Constant) and isinstance(shape.value, str):
        place.parts.append(shape.value)
    elif isinstance(place, Shape):
        place.uses.add("searched")


def subscript(base, index, constant):
    """The value of base[index]; `constant` is the index if it is one."""
    if isinstance(base, Shape):
        if isinstance(constant, str):
            return base.key(constant)
        if isinstance(index, Numbered):
            first = base.key(index.names[0])
            base.keys.update({name: base.keys.get(name, first) for name in index.names})
            return first
        if isinstance(index, Shape):
            index.uses.add("index")
        return base.element()
    if isinstance(base, Constant) and isinstance(base.value, (dict, list, tuple)):
        if isinstance(index, Shape):
            index.literals += list(base.value) if isinstance(base.value, dict) else list(range(len(base.value)))
        try:
            return Constant(base.value[constant]) if constant is not None else None
        except (KeyError, IndexError, TypeError):
            return None
    if isinstance(base, Made):
        if isinstance(index, Shape):
            index.literals += list(base.keys) or list(range(len(base.members)))
        if isinstance(constant, str):
            return base.keys.get(constant)
        return next((member for member in base.members if isinstance(member, Shape)), None)
    return base if isinstance(base, Rows) else None


def member(base, method, arguments):
    """The value of base.method(*arguments), for methods of Python's own types."""
    first = arguments[0] if arguments else None
    if isinstance(base, (Constant, Made)) and method in ("index", "get", "find"):
        look_for(first, base)
        return None
    if not isinstance(base, Shape):
        return base if isinstance(base, Rows) else None
    if method in ("get", "pop") and isinstance(first, Constant) and isinstance(first.value, str):
        return base.key(first.value)
    if method in ("index", "count"):
        look_for(first, base)
        if isinstance(first, Shape):
            base.element()
        return None
    if method in TEXT_METHODS:
        base.uses.add("text")
        if method == "startswith" and isinstance(first, Constant) and isinstance(first.value, str):
            base.starts.append(first.value)
        if method in ("find", "split", "partition") and isinstance(first, Constant) and isinstance(first.value, str):
            base.parts.append(first.value)
        return base if method in SAME else None
    if method in ("values", "items", "keys"):
        base.uses.add("mapping")
        return Made(list(base.keys.values())) if base.keys else None
    return None


def iterated(value):
    """An element of a value."""
    if isinstance(value, Shape):
        return value.element() if not value.keys else None
    if isinstance(value, Rows):
        return value.doc
    if isinstance(value, Made) and value.members:
        return next((one for one in value.members if isinstance(one, Shape)), value.members[0])
    if isinstance(value, Constant) and isinstance(value.value, (list, tuple)) and value.value:
        return None
    return None


# ---------------------------------------------------------------- Python


def source_of(function):
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return ""


class Reader:
    """Follows documents through a function's syntax tree."""

    def __init__(self, module_names, depth, seen):
        self.globals, self.depth, self.seen, self.names, self.returned = module_names, depth, seen, {}, []

    # -- statements

    def run(self, body):
        for statement in body:
            self.statement(statement)

    def statement(self, node):
        if isinstance(node, ast.FunctionDef):
            self.names[node.name] = node
        elif isinstance(node, ast.Assign):
            value = self.value(node.value)
            for target in node.targets:
                self.bind(target, value)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.Expr)):
            value = self.value(node.value) if node.value is not None else None
            if not isinstance(node, ast.Expr):
                self.bind(node.target, value)
        elif isinstance(node, ast.Return):
            self.returned.append(self.value(node.value) if node.value is not None else None)
        elif isinstance(node, ast.For):
            for value in self.constants_of(node.iter):
                self.bind(node.target, Constant(value))
                self.run(node.body)
            if not self.constants_of(node.iter):
                self.bind_iteration(node.target, node.iter)
                self.run(node.body)
        else:
            for _, field in ast.iter_fields(node):
                for child in field if isinstance(field, list) else [field]:
                    if isinstance(child, ast.stmt):
                        self.statement(child)
                    elif isinstance(child, ast.expr):
                        self.value(child)
                    elif isinstance(child, (ast.ExceptHandler, ast.withitem)):
                        self.statement(child)

    def bind(self, target, value):
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            if isinstance(value, Constant) and isinstance(value.value, (list, tuple)) and len(value.value) == len(target.elts):
                value = Made([Constant(one) for one in value.value])
            if isinstance(value, Made) and len(value.members) == len(target.elts):
                for one, member_value in zip(target.elts, value.members):
                    self.bind(one, member_value)
            else:
                for one in target.elts:
                    self.bind(one, iterated(value))
        else:
            self.value(target)

    def bind_iteration(self, target, source):
        called = source.func.id if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) else ""
        if called == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2 and source.args:
            self.bind(target.elts[0], None)
            self.bind(target.elts[1], iterated(self.value(source.args[0])))
        elif called == "zip" and isinstance(target, ast.Tuple):
            for one, argument in zip(target.elts, source.args):
                self.bind(one, iterated(self.value(argument)))
        else:
            self.bind(target, iterated(self.value(source)))

    def constants_of(self, source):
        """The values that a loop goes through, if the code says which, and they are few."""
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.func.id == "range":
            ends = [self.value(argument) for argument in source.args]
            if ends and all(isinstance(end, Constant) and isinstance(end.value, int) for end in ends):
                return list(range(*(end.value for end in ends)))[:UNROLLED]
            return []
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.func.id == "enumerate" and source.args:
            return list(enumerate(self.constants_of(source.args[0])))
        found = self.value(source)
        if isinstance(found, Made) and found.members and all(isinstance(one, Constant) for one in found.members):
            found = Constant([one.value for one in found.members])
        return list(found.value)[:UNROLLED] if isinstance(found, Constant) and isinstance(found.value, (list, tuple)) else []

    # -- expressions

    def value(self, node):
        method = getattr(self, f"of_{type(node).__name__}", None)
        if method:
            return method(node)
        found = [self.value(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        return next((one for one in found if isinstance(one, (Shape, Rows))), None)

    def of_Constant(self, node):
        return Constant(node.value)

    def of_Name(self, node):
        if node.id in self.names:
            return self.names[node.id]
        value = self.globals.get(node.id)
        if isinstance(value, (str, int, float, list, tuple, dict)):
            return Constant(value)
        return value if inspect.isfunction(value) else None

    def of_Lambda(self, node):
        return node

    def of_Dict(self, node):
        keys = {}
        for key, value in zip(node.keys, node.values):
            found = self.value(value)
            if isinstance(key, ast.Constant):
                keys[key.value] = found
        return Made(list(keys.values()), keys)

    def of_List(self, node):
        return Made([self.value(one) for one in node.elts])

    of_Tuple = of_Set = of_List

    def comprehension(self, node):
        first = node.generators[0]
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)) and len(node.generators) == 1 and (
                values := self.constants_of(first.iter)):
            made = []
            for one in values:
                self.bind(first.target, Constant(one))
                made.append(self.value(node.elt))
            return Made(made)
        for generator in node.generators:
            self.bind_iteration(generator.target, generator.iter)
            for condition in generator.ifs:
                self.value(condition)
        if isinstance(node, ast.DictComp):
            self.value(node.key)
            return Made([self.value(node.value)])
        return Made([self.value(node.elt)])

    of_ListComp = of_SetComp = of_GeneratorExp = of_DictComp = comprehension

    def of_Subscript(self, node):
        base = self.value(node.value)
        if isinstance(node.slice, ast.Slice):
            for part in (node.slice.lower, node.slice.upper):
                if part is not None:
                    self.value(part)
            return base
        index = self.value(node.slice)
        return subscript(base, index, index.value if isinstance(index, Constant) else None)

    def of_Compare(self, node):
        left = self.value(node.left)
        for operator, comparator in zip(node.ops, node.comparators):
            right = self.value(comparator)
            if isinstance(operator, (ast.In, ast.NotIn)):
                look_for(left, right)
            elif isinstance(operator, (ast.Eq, ast.NotEq)):
                compare_with(left, right)
                compare_with(right, left)
            elif isinstance(left, Shape):
                left.uses.add("number")
            left = right
        return None

    def of_BinOp(self, node):
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(left, Constant) and isinstance(right, Constant) and isinstance(node.op, ast.Add):
            return Constant(left.value + right.value) if type(left.value) is type(right.value) else None
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Shape) and isinstance(other, Constant):
                if isinstance(other.value, str) and isinstance(node.op, ast.Add):
                    one.uses.add("text")
                elif isinstance(other.value, (int, float)) and not isinstance(node.op, (ast.Mod, ast.Mult)):
                    one.uses.add("int")
        return left if left is not None else right

    def of_JoinedStr(self, node):
        parts = [self.value(part.value if isinstance(part, ast.FormattedValue) else part) for part in node.values]
        if all(isinstance(part, Constant) for part in parts):
            return Constant("".join(str(part.value) for part in parts))
        unknown = [i for i, part in enumerate(parts) if not isinstance(part, Constant)]
        if len(unknown) == 1 and len(parts) > 1:
            before, after = parts[:unknown[0]], parts[unknown[0] + 1:]
            return Numbered("".join(str(part.value) for part in before), "".join(str(part.value) for part in after))
        return None

    def of_Call(self, node):
        arguments = [self.value(argument) for argument in node.args]
        keywords = {keyword.arg: self.value(keyword.value) for keyword in node.keywords}
        if isinstance(node.func, ast.Attribute):
            return self.call_method(node, arguments, keywords)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        target = self.value(node.func)
        if isinstance(target, (ast.FunctionDef, ast.Lambda)):
            return self.call_inner(target, arguments, keywords)
        if inspect.isfunction(target):
            return read_function(target, arguments, self.depth + 1, self.seen, keywords)
        first = arguments[0] if arguments else None
        if isinstance(first, Shape):
            if name in PARSERS:
                return first.parse(PARSERS[name])
            if name in ("int", "float"):
                first.uses.add("digit")
            elif name == "ord":
                first.uses.add("letter")
            elif name == "dict":
                return first
            elif name == "round":
                first.uses.add("number")
            elif name == "tuple" and not first.keys:
                first.element()
        if name == "str" or name in ITERATING:
            return first
        return None

    def call_method(self, node, arguments, keywords):
        method, base = node.func.attr, self.value(node.func.value)
        if isinstance(base, Rows) and method in ("map", "filter"):
            for function in [*arguments[:1], *[value for key, value in keywords.items() if key == "function"]]:
                self.call_any(function, [base.doc])
            return base
        first = arguments[0] if arguments else None
        if base is None and isinstance(node.func.value, ast.Name):
            if method in PARSERS and isinstance(first, Shape):
                return first.parse(PARSERS[method])
            module = self.globals.get(node.func.value.id)
            if node.func.value.id == "re" and len(arguments) > 1:
                for argument in arguments[1:]:
                    if isinstance(argument, Shape):
                        argument.uses.add("text")
                return arguments[-1] if method == "sub" else None
            function = getattr(module, method, None)
            if inspect.isfunction(function) and getattr(function, "__module__", "").startswith("lm_eval.tasks"):
                return read_function(function, arguments, self.depth + 1, self.seen, keywords)
        return member(base, method, arguments)

    def call_any(self, function, arguments):
        if isinstance(function, (ast.FunctionDef, ast.Lambda)):
            return self.call_inner(function, arguments, {})
        if inspect.isfunction(function):
            return read_function(function, arguments, self.depth + 1, self.seen)
        return None

    def defaults(self, parameters):
        names = [parameter.arg for parameter in (*parameters.posonlyargs, *parameters.args)]
        return dict(zip(names[len(names) - len(parameters.defaults):], map(self.value, parameters.defaults)))

    def call_inner(self, function, arguments, keywords):
        """Calls a function that is defined within another, which sees its names."""
        if self.depth > DEPTH:
            return None
        inner = Reader(self.globals, self.depth + 1, self.seen)
        inner.names = {**self.names, **named(function.args, arguments, {**self.defaults(function.args), **keywords})}
        if isinstance(function, ast.Lambda):
            return inner.value(function.body)
        inner.run(function.body)
        return next((one for one in inner.returned if one is not None), None)


def named(parameters, arguments, keywords):
    names = [parameter.arg for parameter in (*parameters.posonlyargs, *parameters.args)]
    return {**dict.fromkeys(names), **{key: value for key, value in keywords.items() if key}, **dict(zip(names, arguments))}


def read_function(function, arguments, depth=0, seen=None, keywords=None):
    """Follows the arguments through a function. Returns what the function returns."""
    seen = seen if seen is not None else set()
    marks = (id(function), tuple(id(argument) for argument in arguments if isinstance(argument, (Shape, Rows))))
    if depth > DEPTH or marks in seen:
        return None
    seen.add(marks)
    try:
        tree = ast.parse(source_of(function)).body
    except SyntaxError:
        return None
    if not tree or not isinstance(tree[0], ast.FunctionDef):
        found = next((one for statement in tree for one in ast.walk(statement) if isinstance(one, ast.Lambda)), None)
        if found is None:
            return None
        reader = Reader(function.__globals__, depth, seen)
        return reader.call_inner(found, arguments, keywords or {})
    reader = Reader(function.__globals__, depth, seen)
    closure = inspect.getclosurevars(function).nonlocals if function.__closure__ else {}
    reader.names = {key: value if inspect.isfunction(value) else Constant(value) for key, value in closure.items()}
    reader.names.update(named(tree[0].args, arguments, keywords or {}))
    reader.run(tree[0].body)
    return next((one for one in reader.returned if one is not None), None)


# ---------------------------------------------------------------- Jinja


class TemplateReader:
    """Follows the columns through a template."""

    def __init__(self, doc):
        self.doc, self.names = doc, {}

    def read(self, template):
        try:
            tree = jinja2.Environment().parse(template)
        except jinja2.TemplateError:
            return None
        self.columns = jinja2.meta.find_undeclared_variables(tree)
        found = [self.value(node) for node in tree.body]
        return found[0] if len(found) == 1 else None

    def value(self, node):
        method = getattr(self, f"of_{type(node).__name__}", None)
        if method:
            return method(node)
        found = [self.value(child) for child in node.iter_child_nodes()]
        return next((one for one in found if isinstance(one, Shape)), None)

    def of_Name(self, node):
        if node.name in self.names:
            return self.names[node.name]
        return self.doc.key(node.name) if node.name in self.columns and node.name != "doc" else (
            self.doc if node.name == "doc" else None)

    def of_Const(self, node):
        return Constant(node.value)

    def of_List(self, node):
        return Made([self.value(item) for item in node.items])

    of_Tuple = of_List

    def of_Dict(self, node):
        keys = {pair.key.value: self.value(pair.value) for pair in node.items if isinstance(pair.key, jinja2.nodes.Const)}
        return Made(list(keys.values()), keys)

    def of_Getattr(self, node):
        base = self.value(node.node)
        return base.key(node.attr) if isinstance(base, Shape) else None

    def of_Getitem(self, node):
        base = self.value(node.node)
        if isinstance(node.arg, jinja2.nodes.Slice):
            return base
        index = self.value(node.arg)
        return subscript(base, index, index.value if isinstance(index, Constant) else None)

    def of_Call(self, node):
        arguments = [self.value(argument) for argument in node.args]
        if isinstance(node.node, jinja2.nodes.Getattr):
            return member(self.value(node.node.node), node.node.attr, arguments)
        return None

    def of_Filter(self, node):
        base = self.value(node.node) if node.node is not None else None
        for argument in node.args:
            self.value(argument)
        if isinstance(base, Shape):
            attributes = [one.value.value for one in node.kwargs if one.key == "attribute" and isinstance(one.value, jinja2.nodes.Const)]
            if attributes:
                base.element().key(attributes[0])
            if node.name in ("int", "float"):
                base.uses.add("digit")
            elif node.name in ("join", "list", "first", "last", "random", "sort", "unique", "map", "select", "reject"):
                return base.element() if node.name in ("first", "last", "random") else base.element() and base
            elif node.name in ("trim", "lower", "upper", "replace", "capitalize", "title"):
                base.uses.add("text")
        return base

    def of_Compare(self, node):
        left = self.value(node.expr)
        for operand in node.ops:
            right = self.value(operand.expr)
            if operand.op in ("in", "notin"):
                look_for(left, right)
            elif operand.op in ("eq", "ne"):
                compare_with(left, right)
                compare_with(right, left)
            left = right
        return None

    def of_Sub(self, node):
        for side in (self.value(node.left), self.value(node.right)):
            if isinstance(side, Shape):
                side.uses.add("int")

    def of_For(self, node):
        source = self.value(node.iter)
        element = iterated(source)
        targets = [node.target] if isinstance(node.target, jinja2.nodes.Name) else list(node.target.items)
        for target in targets:
            self.names[target.name] = element
        for child in (*node.body, *node.else_):
            self.value(child)

    def of_Assign(self, node):
        value = self.value(node.node)
        if isinstance(node.target, jinja2.nodes.Name):
            self.names[node.target.name] = value


# ---------------------------------------------------------------- a task


def shape_of(config):
    """The shape of a task's documents before process_docs."""
    doc = Shape()
    fewshot = config.get("fewshot_config") or {}
    for holder in (config, fewshot):
        if callable(holder.get("process_docs")):
            read_any(holder["process_docs"], [Rows(doc)])
        for field in ("doc_to_text", "doc_to_target", "doc_to_choice", "description", "gen_prefix"):
            value = read_field(doc, holder.get(field))
            if field == "doc_to_choice" and isinstance(value, Shape):
                value.element()
            if field == "doc_to_target" and isinstance(value, Shape) and config.get("output_type") == "multiple_choice":
                (value if value.item is None else value.item).uses.add("label")
    if callable(config.get("process_results")):
        read_any(config["process_results"], [doc, None])
    for pipeline in config.get("filter_list") or []:
        for step in pipeline.get("filter") or []:
            read_filter(doc, step)
    return doc


def read_any(function, arguments):
    settings = {key: Constant(value) for key, value in getattr(function, "keywords", {}).items()}
    read_function(getattr(function, "func", function), arguments, keywords=settings)


def read_field(doc, field):
    """Follows the document through a field. Returns the value that a template of one expression gives."""
    if callable(field):
        read_any(field, [doc])
    elif isinstance(field, str) and field.isidentifier():
        return doc.key(field)
    elif isinstance(field, str):
        return TemplateReader(doc).read(field)
    elif isinstance(field, list):
        for one in field:
            if isinstance(one, str):
                TemplateReader(doc).read(one)
    return None


def read_filter(doc, step):
    function = step.get("filter_fn", step.get("function"))
    if inspect.isclass(function):
        function = function.__dict__.get("apply")
        if function is not None:
            read_any(function, [None, None, Rows(doc)])
    elif callable(function):
        read_any(function, [None, Rows(doc)])
