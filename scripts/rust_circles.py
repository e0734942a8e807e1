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
from pathlib import Path

ROOT = Path(__file__).parent.parent
TOKEN = re.compile(
    r"""(?P<skip>//[^\n]*|/\*.*?\*/|b?r(?P<h>\#*)".*?"(?P=h)|[bc]?"(?:\\.|[^"\\])*"|b?'(?:\\[^']*'|\\'|[^\\']')|'\w+)"""
    r"|(?P<word>\w+|::|[^\s\w])",
    re.DOTALL | re.VERBOSE,
)
Names = tuple[str, ...]
Token = tuple[str, int]


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
        tokens = [
            (match["word"], text.count("\n", 0, match.start()) + 1)
            for match in TOKEN.finditer(text)
            if match["word"]
        ]
        paths = re.findall(r'#\[path = "([^"]+)"\]\s*(?:pub(?:\(\w+\))? )?mod (\w+);', text)
        self._body(
            tokens, Module(path, str(file.relative_to(ROOT))), file, folder, {name: at for at, name in paths}
        )

    def _body(
        self, tokens: list[Token], module: Module, file: Path, folder: Path, paths: dict[str, str]
    ) -> None:
        self.modules[module.path] = module
        at, is_public, is_test = 0, False, False
        while at < len(tokens):
            word = tokens[at][0]
            if word == "#":
                end = closing(tokens, at + (2 if tokens[at + 1][0] == "!" else 1))
                words = [each for each, _ in tokens[at:end]]
                is_test |= "cfg" in words and "test" in words and "not" not in words
                at = end
            elif is_test:
                at, is_test = after_item(tokens, at), False
            elif word == "pub":
                at = closing(tokens, at + 1) if tokens[at + 1][0] == "(" else at + 1
                is_public = True
                continue
            elif word == "mod" and tokens[at + 2][0] == ";":
                self._declared(tokens[at + 1][0], module, file, folder, paths)
                at += 3
            elif word == "mod" and tokens[at + 2][0] == "{":
                name, end = tokens[at + 1][0], closing(tokens, at + 2)
                inner = Module((*module.path, name), module.file)
                self._body(tokens[at + 3 : end - 1], inner, file, folder / name, {})
                at = end
            elif word == "use":
                at = self._use(tokens, at + 1, module, is_public)
            else:
                if word == "impl" and (at == 0 or tokens[at - 1][0] in {"}", ";", "]", "unsafe"}):
                    module.impls += implemented(tokens, at)
                at = self._path(tokens, at, module)
            is_public = False

    def _declared(self, name: str, module: Module, file: Path, folder: Path, paths: dict[str, str]) -> None:
        places = [folder / f"{name}.rs", folder / name / "mod.rs"]
        found = file.parent / paths[name] if name in paths else next(each for each in places if each.exists())
        inner = found.parent if found.name == "mod.rs" else found.parent / name
        self._file(found, (*module.path, name), inner)

    def _use(self, tokens: list[Token], at: int, module: Module, is_public: bool) -> int:
        end = next(index for index in range(at, len(tokens)) if tokens[index][0] == ";")
        for path, name, line in leaves(tokens[at:end], ()):
            module.aliases[name] = path
            if not is_public:
                module.uses.append((path, line))
        return end + 1

    def _path(self, tokens: list[Token], at: int, module: Module) -> int:
        """A path in code; a word after a dot is a field or a method."""
        word, line = tokens[at]
        path = [word]
        while at + 2 < len(tokens) and tokens[at + 1][0] == "::" and re.match(r"\w", tokens[at + 2][0]):
            at += 2
            path.append(tokens[at][0])
        before = tokens[at - 2 * len(path) + 1][0] if at - 2 * len(path) + 1 >= 0 else ""
        if re.match(r"[A-Za-z_]", word) and before not in {".", "::"}:
            module.uses.append((tuple(path), line))
        return at + 1

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
                depth = common(module.path, target)
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


def common(one: Names, other: Names) -> int:
    """How many names two paths begin with in common."""
    return next(
        (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def implemented(tokens: list[Token], at: int) -> list[Names]:
    """The type that an `impl` block is for, as it is written there; none for a tuple's or the like."""
    words = [word for word, _ in tokens[at + 1 : at + 80]]
    words = words[: words.index("{")] if "{" in words else words
    if "for" in words and words[words.index("for") + 1] != "<":
        words = words[words.index("for") + 1 :]
    elif words[0] == "<":
        level = 0
        for end, word in enumerate(words):
            level += {"<": 1, ">": -1}.get(word, 0)
            if level == 0:
                words = words[end + 1 :]
                break
    path = re.match(r"\w+(?: :: \w+)*", " ".join(words))
    return [tuple(path[0].split(" :: "))] if path else []


def closing(tokens: list[Token], at: int) -> int:
    """The place after the bracket that closes the one at `at`."""
    level = 0
    while at < len(tokens):
        level += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(tokens[at][0], 0)
        at += 1
        if level == 0:
            break
    return at


def after_item(tokens: list[Token], at: int) -> int:
    """The place after an item: its semicolon, or the block that ends it; after a field, its comma."""
    while at < len(tokens):
        word = tokens[at][0]
        if word == "}":
            return at
        at = closing(tokens, at) if word in {"(", "[", "{"} else at + 1
        if word in {";", "{", ","}:
            break
    return at


def leaves(tokens: list[Token], prefix: Names = ()) -> Iterator[tuple[Names, str, int]]:
    """The paths of a `use` tree, each with the name that it brings and its line."""
    path = prefix
    for at, (word, line) in enumerate(tokens):
        if word == "{":
            inner = tokens[at + 1 : closing(tokens, at) - 1]
            while inner:
                end = first_comma(inner)
                yield from leaves(inner[:end], path)
                inner = inner[end + 1 :]
            return
        if word == "as":
            yield path, tokens[at + 1][0], line
            return
        if word != "::" and not (word == "self" and path):
            path = (*path, word)
    if path:
        yield path, path[-1], tokens[0][1]


def first_comma(tokens: list[Token]) -> int:
    """The place of the first comma outside brackets, or the end."""
    at = 0
    while at < len(tokens) and tokens[at][0] != ",":
        at = closing(tokens, at)
    return at


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
