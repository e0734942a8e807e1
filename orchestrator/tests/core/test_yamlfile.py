# SPDX-License-Identifier: Apache-2.0
"""Files that are no YAML anybody wrote are refused at once, with a line where there is one."""

import pytest

from netjoule.core import yamlfile
from netjoule.core.errors import UsageError

RUBBISH = {
    "open brackets": (b"a: 1\nb: " + b"[" * 20_000, ", line 2", "nested too deeply"),
    "deep blocks": (b"\n".join(b" " * n + b"a:" for n in range(200)), ", line 50", "nested too deeply"),
    "deep lists": (b"- " * 20_000, ", line 1", "nested too deeply"),
    "a log": (b"a: 1\n" * 200_000, "", "longer than 500 kB"),
    "Latin-1": (b"name: x\ndescription: B\xfcro\n", ", line 2", "not UTF-8"),
    "UTF-16": ("name: x\n".encode("utf-16"), ", line 1", "not UTF-8"),
    "a null": (b"a: 1\nb: \x00\n", ", line 2", "the character U+0000 may not stand in it"),
}


@pytest.mark.parametrize(("content", "line", "words"), RUBBISH.values(), ids=RUBBISH)
def test_rubbish_is_refused_with_its_line(tmp_path, content, line, words):
    path = tmp_path / "r.yaml"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        yamlfile.load(path)
    assert caught.value.where == f"{path}{line}"
    assert words in caught.value.what
    assert "\n" not in str(caught.value)


def test_a_byte_order_mark_and_letters_beyond_ascii_are_read(tmp_path):
    path = tmp_path / "b.yaml"
    path.write_text("\ufeffname: Büro\n", encoding="utf-8")
    assert yamlfile.load(path).value == {"name": "Büro"}
