"""Rules on side effects of imports, and on the modules and functions that the core may use."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from house.sources import LITERATURE, PACKAGES, ROOT, Source, Violation

CORE = ("streams", "nfa", "constraints", "workflows", "shards")
SHARED_MODULES = ("reference", "errors")  # public modules that other packages may import directly

_CLOCK_HOME = "streams/clock.py"
_CLOCKS = {
    "time.time",
    "time.time_ns",
    "time.localtime",
    "time.gmtime",
    "time.ctime",
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "datetime.datetime.today",
    "datetime.date.today",
}
_ENVIRONMENT = {"os.environ", "os.environb", "os.getenv", "os.getenvb", "os.putenv"}
_ENTRY_POINTS = ("service/settings.py", "service/processes/pipeline_process.py", "service/delivery/deliverer.py")
_MUTABLE_CALLS = {
    "list",
    "dict",
    "set",
    "bytearray",
    "collections.defaultdict",
    "collections.deque",
    "collections.Counter",
    "collections.OrderedDict",
    "weakref.WeakValueDictionary",
    "weakref.WeakKeyDictionary",
}
_MUTATORS = {
    "append",
    "add",
    "update",
    "extend",
    "insert",
    "pop",
    "popitem",
    "remove",
    "clear",
    "setdefault",
    "discard",
}
_CONSTANT = re.compile(r"_{0,2}[A-Z][A-Z0-9_]*|__all__")
_IO_CALLS = {"open", "subprocess.run", "subprocess.Popen", "socket.socket", "socket.create_connection", "os.makedirs"}
_IO_METHODS = {"read_text", "read_bytes", "write_text", "write_bytes", "mkdir"}


def wall_clock(source: Source) -> Iterator[Violation]:
    """Check that the core never reads a clock itself: it takes a ``Clock`` as an argument."""
    if source.package not in CORE or source.path == _CLOCK_HOME:
        return
    for node in source.nodes:
        if isinstance(node, ast.Attribute | ast.Name) and source.resolve(node) in _CLOCKS:
            yield Violation(source.path, node.lineno, f"{source.resolve(node)}: take the time from a streams.Clock")


def environment_reads(source: Source) -> Iterator[Violation]:
    """Check that only service.settings and entry points read the environment.

    All other code gets settings as arguments.
    """
    is_entry_point = source.path in _ENTRY_POINTS or Path(source.path).name == "__main__.py"
    if source.package is None or is_entry_point:
        return
    written = {
        id(node.value) for node in source.nodes if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
    }
    for node in source.nodes:
        if not isinstance(node, ast.Attribute | ast.Name) or id(node) in written:
            continue
        if source.resolve(node) in _ENVIRONMENT:
            yield Violation(source.path, node.lineno, "the environment is read by service.settings only")


def module_state(source: Source) -> Iterator[Violation]:
    """Check that a module has no mutable state.

    A container at module level must have a constant's name, and no code may change it.
    """
    if source.package is None:
        return
    for statement in source.tree.body:
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or not _is_container(source, statement.value):
            continue
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        is_final = isinstance(statement, ast.AnnAssign) and "Final" in ast.unparse(statement.annotation)
        for target in targets:
            if isinstance(target, ast.Name) and not _CONSTANT.fullmatch(target.id) and not is_final:
                yield Violation(
                    source.path, statement.lineno, f"{target.id} is state of a module; pass it as an argument"
                )
    yield from _changes_of_constants(source)


def import_time_io(source: Source) -> Iterator[Violation]:
    """Check that the import of a module neither reads nor writes files."""
    if source.package is None:
        return
    for node in _evaluated_at_import(source.tree.body):
        if not isinstance(node, ast.Call):
            continue
        is_method = isinstance(node.func, ast.Attribute) and node.func.attr in _IO_METHODS
        if is_method or source.resolve(node.func) in _IO_CALLS:
            yield Violation(
                source.path, node.lineno, f"{ast.unparse(node.func)}(...) runs at import; move it into a function"
            )


def inner_imports(source: Source) -> Iterator[Violation]:
    """Check that packages import each other through a front (``__init__.py``), not through inner modules.

    ``literature`` is exempt, because it compares itself with inner modules of the product.
    """
    if source.package in (None, LITERATURE):
        return
    for node in source.nodes:
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules = [node.module]
        else:
            continue
        for module in modules:
            top, _, inner = module.partition(".")
            is_shared_kernel = source.is_kernel and inner.startswith("kernels.")
            if top in PACKAGES and top != source.package and inner and not _is_front(module) and not is_shared_kernel:
                yield Violation(source.path, node.lineno, f"import from {top}, not from its inner module {module}")


def _is_front(module: str) -> bool:
    return module.rpartition(".")[2] in SHARED_MODULES or (ROOT / module.replace(".", "/") / "__init__.py").is_file()


def _is_container(source: Source, value: ast.expr | None) -> bool:
    if isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp):
        return True
    return isinstance(value, ast.Call) and source.resolve(value.func) in _MUTABLE_CALLS


def _changes_of_constants(source: Source) -> Iterator[Violation]:
    tops = {
        target.id
        for statement in source.tree.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
        if isinstance(target, ast.Name) and _CONSTANT.fullmatch(target.id) and target.id != "__all__"
    }
    for node in source.nodes:
        changed: ast.expr | None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            changed = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MUTATORS:
            changed = node.func.value
        else:
            continue
        if isinstance(changed, ast.Name) and changed.id in tops:
            yield Violation(source.path, node.lineno, f"{changed.id} is a constant of the module and is changed here")


def _evaluated_at_import(body: list[ast.stmt]) -> Iterator[ast.AST]:
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(statement, ast.ClassDef):
            yield from _evaluated_at_import(statement.body)
        elif not _is_main_guard(statement):
            yield from _without_lambdas(statement)


def _without_lambdas(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _without_lambdas(child)


def _is_main_guard(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)


def named_modules(source: Source) -> Iterator[Violation]:
    """Check that texts refer to a module by its dotted name, because the build of a wheel renames modules.

    An f-string that names a module must start with the package and a dot. ``scripts/relocation.py`` rewrites these
    texts. A bare name such as ``api`` is not rewritten, because it may mean something else.
    """
    if source.package not in PACKAGES:
        return
    moved = set(PACKAGES) - {"forestall"}
    for node in source.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if "." in alias.name and not alias.asname and alias.name.partition(".")[0] in moved:
                    yield Violation(source.path, node.lineno, f"write from … import …, not import {alias.name}")
        elif isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant):
            beginning = str(node.values[0].value)
            if _NAMES_MODULE.match(beginning) and beginning.partition(".")[0] in moved and not beginning.endswith("."):
                yield Violation(source.path, node.lineno, "an f-string that names a module begins with f'PACKAGE.{…}'")
        for line, name in _named(node):
            if name in moved:
                yield Violation(
                    source.path, line, f"name a module within {name}, such as {name}.__main__, or __package__"
                )


_NAMES_MODULE = re.compile(r"\w+\.[\w.:]*$")
_NAMING_CALLS = ("import_module", "find_spec", "files", "read_script", "run_module")


def _named(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of each module name: arguments of importing calls, and texts after ``-m`` in a list."""
    if isinstance(node, ast.Call) and node.args:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in _NAMING_CALLS and isinstance(node.args[0], ast.Constant):
            yield node.lineno, str(node.args[0].value)
    if isinstance(node, ast.List | ast.Tuple):
        words = [element.value if isinstance(element, ast.Constant) else None for element in node.elts]
        yield from ((node.lineno, str(word)) for option, word in pairwise(words) if option == "-m")
