# SPDX-License-Identifier: Apache-2.0
"""Circles of modules in the crates of the workspace, with the lines that make them; exit code 1 if any.

Within every module, its children may not form a circle: if `a` (or anything inside it) names something of
`b`, no chain leads from `b` back to `a`. Types count as functions do. Counted is every path that a file
writes outside tests: `use` trees, `crate::`, `self::` and `super::` in code, and names that a `use` has
brought into the module. A re-export is followed to the module that defines the item, so that a child may
take a sibling's item through the parent.

The parent itself is one more member of the round, with the items that it defines: a child may use them, or
the parent may use the child, not both. `mod child;` and `pub use child::Item;` are no use. A child with an
`impl` block for a type of its parent is one more file of the parent and counted as the parent itself.
"""

import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

ROOT = Path(__file__).parent.parent
SAID = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(?P<h>\#*)".*?"(?P=h)|[bc]?"(?:\\.|[^"\\])*"|b?'(?:\\[^']*'|\\'|[^\\']')|'\w+""",
    re.DOTALL,
)
"""Comments, texts, characters and lifetimes."""
ATTRIBUTE = re.compile(r"#!?\[")
PLACED = re.compile(r'#\[path = "([^"]+)"\]\s*(?:pub(?:\(\w+\))? )?mod (\w+);')
FILE = re.compile(r"\bmod (\w+);")
BLOCK = re.compile(r"\bmod (\w+) \{")
USE = re.compile(r"(\bpub(?:\([^)]*\))? )?\buse\s([^;]*);")
NO_PATH = re.compile(rf"{USE.pattern}|\bpub\([^)]*\)|{FILE.pattern}")
IMPL = re.compile(r"^ *(?:unsafe )?impl\b([^{]*)\{", re.MULTILINE)
PATH = re.compile(r"(?<![\w.])(?<!::)[A-Za-z_]\w*(?:\s*::\s*\w+)*")
Names = tuple[str, ...]


@dataclass
class Module:
    """One module: where it stands, what it calls by which name, and every path that it writes."""

    path: Names
    file: str
    aliases: dict[str, Names] = field(default_factory=dict)
    uses: list[tuple[Names, int]] = field(default_factory=list)
    impls: list[Names] = field(default_factory=list)


class Crate:
    """The modules of one root file (a library or a program), found by their `mod` lines."""

    def __init__(self, root: Path) -> None:
        self.modules: dict[Names, Module] = {}
        self._file(root, (), root.parent)

    def _file(self, file: Path, path: Names, folder: Path) -> None:
        text = file.read_text()
        placed = {name: file.parent / at for at, name in PLACED.findall(text)}
        self._body(code_of(text), Module(path, str(file.relative_to(ROOT))), folder, placed)

    def _body(self, code: str, module: Module, folder: Path, placed: dict[str, Path]) -> None:
        self.modules[module.path] = module
        while block := BLOCK.search(code):
            end, name = closing(code, block.end() - 1), block[1]
            inner = blank(code[: block.end()]) + code[block.end() : end - 1]
            self._body(inner, Module((*module.path, name), module.file), folder / name, {})
            code = code[: block.start()] + blank(code[block.start() : end]) + code[end:]
        for name in FILE.findall(code):
            places = [placed.get(name, folder / f"{name}.rs"), folder / name / "mod.rs"]
            found = next(each for each in places if each.exists())
            inner_folder = found.parent if found.name == "mod.rs" else found.parent / name
            self._file(found, (*module.path, name), inner_folder)
        for use in USE.finditer(code):
            for path, name in leaves(use[2]):
                module.aliases[name] = path
                if not use[1]:
                    module.uses.append((path, line_of(code, use.start(2))))
        module.impls = [path for header in IMPL.findall(code) if (path := implemented(header))]
        for path in PATH.finditer(NO_PATH.sub(lambda found: blank(found[0]), code)):
            module.uses.append((names_of(path[0]), line_of(code, path.start())))

    def resolve(self, module: Names, path: Names, seen: frozenset = frozenset()) -> Names | None:
        """The module of this crate that defines what a path names; None if another crate does, or no one."""
        if (module, path) in seen:
            return None
        seen = seen | {(module, path)}
        head, rest = path[0], path[1:]
        steps = {"crate": (), "self": module, "super": module[:-1]}
        if head in steps:
            return self._down(steps[head], rest, seen)
        meant = self.modules[module].aliases.get(head, path)
        if meant != path and meant[0] != head:
            return self.resolve(module, meant + rest, seen)
        return self._down(module, path, seen) if (*module, head) in self.modules else None

    def _down(self, module: Names, rest: Names, seen: frozenset) -> Names | None:
        if not rest:
            return module
        if rest[0] == "super":
            return self._down(module[:-1], rest[1:], seen)
        if (*module, rest[0]) in self.modules:
            return self._down((*module, rest[0]), rest[1:], seen)
        if rest[0] in self.modules[module].aliases:
            # What another crate defines is the re-exporting module's own.
            return self.resolve(module, self.modules[module].aliases[rest[0]] + rest[1:], seen) or module
        return module

    def circles(self) -> list[str]:
        """One text for each round of modules under one parent."""
        edges: dict[Names, dict[tuple[str, str], list[str]]] = defaultdict(lambda: defaultdict(list))
        for module in self.modules.values():
            for path, line in module.uses:
                target = self.resolve(module.path, path)
                if target is None or target == module.path:
                    continue
                # A parent's name alone is no use of it yet; a single word may be a variable or a field.
                is_parent = target == module.path[: len(target)]
                if (is_parent or len(path) == 1) and self._is_module(module.path, path):
                    continue
                depth = next(n for n in count() if module.path[: n + 1] != target[: n + 1])
                pair = (self._member(module.path, depth), self._member(target, depth))
                if pair[0] == pair[1]:
                    continue
                edges[module.path[:depth]][pair].append(f"{module.file}:{line} {'::'.join(path)}")
        return [text for parent, graph in sorted(edges.items()) for text in rounds(parent, graph)]

    def _member(self, path: Names, depth: int) -> str:
        """What a module is called among the children of the parent whose path is `depth` names long."""
        child = path[: depth + 1]
        if len(child) == depth or any(
            self.resolve(child, each) == child[:-1] for each in self.modules[child].impls
        ):
            return "(itself)"
        return child[-1]

    def _is_module(self, module: Names, path: Names) -> bool:
        """Whether a path names a module and not an item in one."""
        target = self.resolve(module, path)
        last = self.modules[module].aliases.get(path[-1], path)[-1]
        return bool(
            target is not None and ((target and last == target[-1]) or last in {"super", "self", "crate"})
        )


def code_of(text: str) -> str:
    """The same lines without comments, texts, attributes and what is for tests alone."""
    code = SAID.sub(lambda found: blank(found[0]), text)
    while attribute := ATTRIBUTE.search(code):
        end = closing(code, attribute.end() - 1)
        words = set(re.findall(r"\w+", code[attribute.end() : end]))
        if {"cfg", "test"} <= words and "not" not in words:
            end = after_item(code, end)
        code = code[: attribute.start()] + blank(code[attribute.start() : end]) + code[end:]
    return code


def blank(code: str) -> str:
    """Nothing, on as many lines."""
    return re.sub(r"[^\n]", " ", code)


def line_of(code: str, at: int) -> int:
    """The line of a place."""
    return code.count("\n", 0, at) + 1


def closing(code: str, at: int) -> int:
    """The place after the bracket that closes the one at `at`."""
    level = 0
    for bracket in re.compile(r"[][(){}]").finditer(code, at):
        level += 1 if bracket[0] in "([{" else -1
        if level == 0:
            return bracket.end()
    return len(code)


def after_item(code: str, at: int) -> int:
    """The place after an item: its semicolon, or the block that ends it; after a field, its comma."""
    while found := re.compile(r"[][(){};,]").search(code, at):
        if found[0] == "}":
            return found.start()
        at = closing(code, found.start()) if found[0] in "([{" else found.end()
        if found[0] in ";{,":
            break
    return at


def names_of(path: str) -> Names:
    """`a::b` as names."""
    return tuple(filter(None, re.split(r"\s*::\s*", path.strip())))


def leaves(tree: str) -> Iterator[tuple[Names, str]]:
    """The paths of a `use` tree, each with the name that it brings."""
    while inner := re.search(r"([\w:]*)\{([^{}]*)\}", tree):
        each = [inner[1] + leaf.strip() for leaf in inner[2].split(",") if leaf.strip()]
        tree = tree[: inner.start()] + ",".join(each) + tree[inner.end() :]
    for leaf in tree.split(","):
        path, _, name = leaf.partition(" as ")
        names = names_of(path.removesuffix("::self"))
        yield names, name.strip() or names[-1]


def implemented(header: str) -> Names:
    """The type that an `impl` block is for, as it is written there; none for a tuple's or the like."""
    header = header.partition(" where")[0].replace("->", "")
    while header != (shorter := re.sub(r"<[^<>]*>", "", header)):
        header = shorter
    path = re.match(r"\s*(\w+(?:::\w+)*)", header.rpartition(" for ")[2])
    return names_of(path[1]) if path else ()


def rounds(parent: Names, graph: dict[tuple[str, str], list[str]]) -> list[str]:
    """The rounds in one module: its members that reach each other."""
    names = sorted({name for pair in graph for name in pair})
    reach = {name: {to for source, to in graph if source == name} for name in names}
    for middle in names:
        for name in names:
            if middle in reach[name]:
                reach[name] |= reach[middle]
    texts, done = [], set()
    for name in names:
        together = {other for other in reach[name] if name in reach[other]}
        if name in reach[name] and name not in done:
            done |= together
            texts.append(f"  in {'::'.join(('crate', *parent))}: {', '.join(sorted(together))}")
            for (source, to), lines in sorted(graph.items()):
                if source in together and to in together:
                    texts.append(f"    {source} -> {to}: " + "; ".join(lines[:3]))
    return texts


def roots() -> list[Path]:
    """The root files of all crates of the workspace."""
    members = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["members"]
    sources = [ROOT / member / "src" for member in members]
    return [
        file
        for source in sources
        for file in (source / "lib.rs", source / "main.rs", *source.glob("bin/*.rs"))
        if file.exists()
    ]


def main() -> int:
    """Print the circles of every crate."""
    found = {str(root.relative_to(ROOT)): Crate(root).circles() for root in roots()}
    for root, texts in found.items():
        if texts:
            print("\n".join([root, *texts]))
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main())
