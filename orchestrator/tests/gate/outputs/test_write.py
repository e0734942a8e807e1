# SPDX-License-Identifier: Apache-2.0
import os

import pytest
import verdict_documents as made

from netjoule.core.errors import UsageError
from netjoule.gate import outputs


def test_every_format_is_written(tmp_path):
    verdict = made.verdict("fail")
    wanted = {name: tmp_path / "new" / name for name in outputs.FORMATS}
    assert outputs.write(verdict, wanted, {}) == []
    assert {path.name: path.read_text() for path in (tmp_path / "new").iterdir()} == {
        name: outputs.text(verdict, name) for name in outputs.FORMATS
    }
    assert all(outputs.text(verdict, name) for name in outputs.FORMATS)


def test_what_cannot_be_written_is_one_sentence_and_the_others_are(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("")
    bad = {
        "junit": tmp_path / "folder",
        "bencher": tmp_path / "pipe",
        "openmetrics": tmp_path / "file" / "x",
    }
    said = outputs.write(made.verdict(), {**bad, "markdown": tmp_path / "good.md"}, {})
    assert len(said) == 3
    assert all(
        str(path) in words and "\n" not in words for path, words in zip(bad.values(), said, strict=True)
    )
    assert (tmp_path / "good.md").read_text().startswith("**netjoule gate:**")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder", "good.md", "pipe"]


def test_one_file_is_not_two_formats(tmp_path):
    wanted = {"junit": tmp_path / "out", "markdown": tmp_path / "x" / ".." / "out"}
    with pytest.raises(UsageError, match="--junit and --markdown name one file"):
        outputs.distinct(wanted)
    assert outputs.distinct({"junit": tmp_path / "out"}) == {"junit": tmp_path / "out"}


def test_a_link_is_kept_and_what_it_leads_to_is_replaced(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    assert outputs.write(made.verdict("fail"), {"bencher": tmp_path / "link"}, {}) == []
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text().startswith("{")


def test_the_summary_of_a_step_is_appended_to(tmp_path):
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    assert outputs.write(made.verdict(), {}, {outputs.SUMMARY: str(summary)}) == []
    assert summary.read_text() == "before\n**netjoule gate:** pass: one sentence\n\n"
    (said,) = outputs.write(made.verdict(), {}, {outputs.SUMMARY: str(tmp_path)})
    assert str(tmp_path) in said


@pytest.mark.parametrize("name", outputs.FORMATS)
@pytest.mark.parametrize("kind", ["pass", "fail", "inconclusive", "skipped"])
def test_every_kind_goes_into_every_format(kind, name):
    assert isinstance(outputs.text(made.verdict(kind), name), str)
    assert isinstance(outputs.text(made.pilot(), name), str)
