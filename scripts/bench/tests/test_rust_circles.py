# SPDX-License-Identifier: Apache-2.0
"""scripts/rust_circles.py on crates that are made up here."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def circles(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("rust_circles", ROOT / "scripts/rust_circles.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)

    def of(files: dict[str, str]) -> list[str]:
        for name, text in files.items():
            (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "src" / name).write_text(text)
        return [
            line.strip()
            for line in module.Crate(tmp_path / "src/lib.rs").circles()
            if line.startswith("  in ")
        ]

    return of


LIB = "mod a;\nmod b;\n"


@pytest.mark.parametrize(
    "a",
    [
        "use crate::b::Two;",
        "use super::{\n    b::{self as bee, Two},\n};",
        "pub fn f() { crate::b::g() }",
        "use crate::b;\npub fn f() { b::g() }",
        "pub struct One { two: Option<crate::b::Two> }",
    ],
)
def test_two_that_name_each_other_are_a_circle(circles, a):
    assert circles({"lib.rs": LIB, "a.rs": a, "b.rs": "use crate::a::One;"}) == ["in crate: a, b"]


def test_what_only_tests_text_and_comments_name_is_none(circles):
    a = """
        // use crate::b::Two;
        const TEXT: &str = "crate::b::Two";
        #[cfg(test)]
        use crate::b::Two;
        #[cfg(test)]
        mod tests { use crate::b::Two; }
        fn f(b: u8) -> u8 { b }
    """
    assert circles({"lib.rs": LIB, "a.rs": a, "b.rs": "use crate::a::One;"}) == []


def test_a_re_export_is_followed_to_its_module(circles):
    lib = "pub mod a;\npub mod b;\npub use a::One;\npub use b::Two;"
    assert circles({"lib.rs": lib, "a.rs": "pub struct One;", "b.rs": "use crate::One;"}) == []
    assert circles({"a.rs": "use crate::Two;"}) == ["in crate: a, b"]


def test_a_parent_that_uses_its_child_is_not_used_by_it(circles):
    lib = "mod a;\nuse a::One;\npub const MOST: u8 = 1;"
    assert circles({"lib.rs": lib, "a.rs": "use crate::MOST;"}) == ["in crate: (itself), a"]
    assert circles({"a.rs": "pub struct One;"}) == []


def test_a_child_with_a_block_of_its_parents_type_is_part_of_the_parent(circles):
    lib = "mod a;\nmod b;\nuse a::Kept;\npub struct End(Kept);"
    a = "use super::End;\npub struct Kept;\nimpl<'a> End { fn f(&self) { crate::b::g(); } }"
    assert circles({"lib.rs": lib, "a.rs": a, "b.rs": "fn g() {}"}) == []
    assert circles({"b.rs": "use crate::End;"}) == ["in crate: (itself), b"]


def test_a_circle_within_a_module_is_found_there(circles):
    files = {"lib.rs": "mod a;", "a/mod.rs": "mod one;\nmod two;"}
    inner = {"a/one.rs": "use super::two::Two;", "a/two.rs": "use crate::a::one::One;"}
    assert circles(files | inner) == ["in crate::a: one, two"]
