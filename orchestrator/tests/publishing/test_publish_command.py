# SPDX-License-Identifier: Apache-2.0
"""The command `netjoule publish`: what it says, and what it takes."""

import hashlib
import json

import pytest
import synthetic
from bundles import unpacked
from golden_sentences import same_sentence

from netjoule.cli.app import run_command
from netjoule.publishing.identifiers import Kind
from netjoule.publishing.leak_check import Searcher
from netjoule.publishing.masking import Books, Collector, Masker

pytestmark = pytest.mark.usefixtures("secrets_of_this_host")


# -- the command ------------------------------------------------------------------------------------------


def test_the_command_tells_what_it_did(canary_campaign, tmp_path, capsys):
    words = ["publish", str(canary_campaign), "--out", str(tmp_path / "b.zip"), "--include", "MAC, ip"]
    assert run_command([*words, "--author", "Doe, Jo"]) == 0
    said = capsys.readouterr().out
    assert "kept: ip, mac" in said
    same_sentence(said)
    assert "b.zip" in said.splitlines()[-1]
    assert not any(name in said for name in ("kanari", "KNRI"))


def test_a_licence_is_given_by_its_identifier(campaign_dir, tmp_path, capsys):
    words = ["publish", str(campaign_dir), "--out", str(tmp_path / "b.zip"), "--licence", "cc-by-4.0"]
    assert run_command(words) == 0
    same_sentence(capsys.readouterr().out)


def test_it_warns_of_names_that_are_masked_in_fields_only():
    books = Books(frozenset())
    collector = Collector(books)
    for field, name in {"user": "power", "host": "nas-7", "ssid": "x1"}.items():
        collector.text(field, name)
    books.freeze()
    assert books.vocabulary.only_in_fields() == ("power", "x1")


def test_it_lists_words_that_a_masked_name_is_a_part_of():
    books = Books(frozenset())
    Collector(books).text("user", "anna")
    books.freeze()
    searcher = Searcher(books)
    for text in ("campaign anna2026 of Johanna, not anna, not planned", "0anna1"):
        searcher.text("", Masker(books).text("", text))
    assert searcher.longer_words == {"anna2026", "Johanna", "0anna1"}


def test_the_words_that_may_tell_are_on_the_terminal(campaign_dir, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("NETJOULE_TEST_PLUG", "lab")
    path = campaign_dir / "campaign.json"
    document = json.loads(path.read_text())
    document["topology"]["description"] = "ssh anna@box for annaberg"
    document["topology"]["traffic_secret"] = "env:NETJOULE_TEST_PLUG"
    path.write_text(json.dumps(document))
    assert run_command(["publish", str(campaign_dir), "--out", str(tmp_path / "b.zip")]) == 0
    said = capsys.readouterr().out
    same_sentence(said)
    assert "lab:" not in said


def test_for_machines_it_is_one_document(campaign_dir, tmp_path, capsys):
    assert run_command(["publish", str(campaign_dir), "--out", str(tmp_path / "b.tgz"), "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    told = json.loads(line)
    assert told["event"] == "published"
    assert told["sha256"] == hashlib.sha256((tmp_path / "b.tgz").read_bytes()).hexdigest()
    assert set(told["masked"]) == set(Kind)


def test_by_default_the_bundle_stands_beside_the_campaign(campaign_dir):
    assert run_command(["publish", str(campaign_dir)]) == 0
    assert (campaign_dir.parent / "tiny.zip").exists()


def test_by_default_it_is_called_as_the_campaign_is_masked(campaign_dir):
    path = campaign_dir / "campaign.json"
    document = json.loads(path.read_text())
    document["campaign"] = "on nas-7"
    document["topology"]["description"] = "ssh anna@nas-7"
    path.write_text(json.dumps(document))
    assert run_command(["publish", str(campaign_dir)]) == 0
    assert (campaign_dir.parent / "on-host-1.zip").exists()


HOSTILE = "a\x1b[2Jb\u202ec\u2066d"


def test_what_a_terminal_would_obey_is_written_out(campaign_dir, tmp_path, capsys):
    (campaign_dir / f"left-{HOSTILE}.txt").write_text("x")
    path = campaign_dir / "campaign.json"
    document = json.loads(path.read_text())
    document["campaign"] = HOSTILE
    document["workload"]["description"] = f"one {HOSTILE}\ntwo"
    document["versions"][f"tool-{HOSTILE}"] = HOSTILE
    path.write_text(json.dumps(document))
    assert run_command(["publish", str(campaign_dir), "--out", str(tmp_path / "b.zip")]) == 0
    said = capsys.readouterr().out
    assert "left out: left-a\\x1b[2Jb\\u202ec\\u2066d.txt" in said
    folder = unpacked(tmp_path / "b.zip", tmp_path / "unpacked")
    texts = {name: (folder / name).read_text() for name in ("README.md", "LICENCE.txt", "CITATION.cff")}
    for text in (said, *texts.values()):
        assert all(line.isprintable() for line in text.split("\n"))
    assert "# netjoule campaign a\\x1b[2Jb\\u202ec\\u2066d\n" in texts["README.md"]
    assert "one a\\x1b[2Jb\\u202ec\\u2066d\ntwo" in texts["README.md"]


def test_a_refusal_writes_out_what_a_terminal_would_obey(campaign_dir, tmp_path, capsys):
    path = campaign_dir / "campaign.json"
    document = json.loads(path.read_text())
    document["versions"] |= {f"x on {name}{HOSTILE}": None for name in ("LAB", "lab")}
    path.write_text(json.dumps(document))
    assert run_command(["publish", str(campaign_dir), "--out", str(tmp_path / "b.zip")]) == 4
    said = capsys.readouterr().err
    assert "are one name" in said
    assert said.rstrip("\n").isprintable()


@pytest.mark.parametrize(
    "words",
    [
        ["--include", "ssid,names"],
        ["--licence", "mine"],
        ["--author", ", Jo"],
        ["--author", "Doe,"],
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(campaign_dir, words, capsys):
    assert run_command(["publish", str(campaign_dir), *words]) == 2
    same_sentence(capsys.readouterr().err)


def test_a_campaign_that_lacks_runs_is_published_only_when_asked_for(tmp_path, capsys):
    synthetic.create(tmp_path / "c").close()
    assert run_command(["publish", str(tmp_path / "c")]) == 4
    said = capsys.readouterr().err
    same_sentence(said)
    assert "netjoule resume" in said
    assert not list(tmp_path.glob("*.zip"))
    assert (
        run_command(["publish", str(tmp_path / "c"), "--incomplete", "--out", str(tmp_path / "b.zip")]) == 0
    )


def test_a_folder_that_is_no_campaign_is_refused(tmp_path, capsys):
    assert run_command(["publish", str(tmp_path)]) == 2
    same_sentence(capsys.readouterr().err)
