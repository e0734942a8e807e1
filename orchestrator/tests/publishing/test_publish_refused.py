# SPDX-License-Identifier: Apache-2.0
"""What `netjoule publish` refuses, what a failure leaves, and the last look at a bundle."""

import errno
import fcntl
import json
import os
import signal
from pathlib import Path

import canaries
import pytest
from bundles import published
from golden_sentences import raises

from netjoule.cli.app import run_command
from netjoule.core import files
from netjoule.core.errors import InvalidData, RunFailed, UsageError
from netjoule.publishing import archive, bundle, papers
from netjoule.publishing.bundle import publish
from netjoule.publishing.leak_check import Left, Searcher
from netjoule.publishing.masking import Books, Collector, Masker

pytestmark = pytest.mark.usefixtures("secrets_of_this_host")


# -- what is refused, and what a failure leaves ----------------------------------------------------------


def nothing_left(folder: Path) -> bool:
    return [path.name for path in folder.iterdir()] == []


def test_a_campaign_with_a_defect_is_refused_with_exit_code_4(campaign_dir, tmp_path, capsys):
    (campaign_dir / "plan.csv").write_text("x\n")
    place = tmp_path / "made"
    place.mkdir()
    assert run_command(["publish", str(campaign_dir), "--out", str(place / "b.zip")]) == 4
    said = capsys.readouterr().err
    assert "plan.csv" in said
    assert "netjoule check" in said
    assert nothing_left(place)


def test_a_campaign_whose_readings_were_cut_off_is_refused(campaign_dir, tmp_path):
    readings = campaign_dir / "meters" / "m.csv"
    kept = readings.read_bytes()[:705]
    readings.write_bytes(kept[: kept.rfind(b"\n") + 1])
    with raises(InvalidData):
        publish(campaign_dir, tmp_path / "b.zip")
    assert not (tmp_path / "b.zip").exists()


def test_there_is_no_force(campaign_dir):
    assert run_command(["publish", str(campaign_dir), "--force"]) == 2


@pytest.mark.parametrize("words", ["b.rar", "b", ".zip", "nowhere/b.zip"])
def test_a_name_that_can_be_no_bundle_is_refused_before_any_work(campaign_dir, tmp_path, words, monkeypatch):
    monkeypatch.setattr(bundle, "check_campaign", lambda _: pytest.fail("work was done"))
    with pytest.raises(UsageError):
        publish(campaign_dir, tmp_path / words)


def test_nothing_is_overwritten(campaign_dir, tmp_path):
    taken = tmp_path / "b.zip"
    taken.write_text("mine")
    with raises(UsageError):
        publish(campaign_dir, taken)
    (tmp_path / "c.zip").symlink_to(tmp_path / "nowhere")
    with raises(UsageError):
        publish(campaign_dir, tmp_path / "c.zip")
    assert taken.read_text() == "mine"


@pytest.mark.parametrize("links", [True, False])
def test_a_name_that_is_taken_meanwhile_is_left_alone(campaign_dir, tmp_path, monkeypatch, links):
    place = tmp_path / "made"
    place.mkdir()
    whole = archive.written

    def written(*arguments):
        whole(*arguments)
        (place / "b.zip").write_text("mine")

    monkeypatch.setattr(archive, "written", written)
    if not links:
        monkeypatch.setattr(archive.os, "link", refusing(errno.EPERM))
    with raises(UsageError):
        publish(campaign_dir, place / "b.zip")
    assert [path.name for path in place.iterdir()] == ["b.zip"]
    assert (place / "b.zip").read_text() == "mine"


def refusing(number: int):
    def refuse(*_arguments, **_named):
        raise OSError(number, "refused")

    return refuse


def test_a_file_system_without_hard_links_will_do(campaign_dir, tmp_path, monkeypatch):
    expected = publish(campaign_dir, tmp_path / "a.zip").path.read_bytes()
    monkeypatch.setattr(archive.os, "link", refusing(errno.EPERM))
    assert publish(campaign_dir, tmp_path / "b.zip").path.read_bytes() == expected


@pytest.mark.parametrize("where", ["papers", "archive", "place"])
def test_a_full_disk_leaves_nothing(campaign_dir, tmp_path, monkeypatch, where):
    place = tmp_path / "made"
    place.mkdir()
    if where == "papers":
        monkeypatch.setattr(bundle.papers, "write", refusing(errno.ENOSPC))
    elif where == "archive":
        monkeypatch.setattr(archive.shutil, "copyfileobj", refusing(errno.ENOSPC))
    else:
        monkeypatch.setattr(archive.os, "link", refusing(errno.ENOSPC))
    with raises(RunFailed):
        publish(campaign_dir, place / "b.zip")
    assert nothing_left(place)


def test_a_stop_leaves_nothing(campaign_dir, tmp_path, monkeypatch):
    place = tmp_path / "made"
    place.mkdir()

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(bundle.papers, "write_sums", stopped)
    assert run_command(["publish", str(campaign_dir), "--out", str(place / "b.zip")]) != 0
    assert nothing_left(place)


@pytest.mark.parametrize("where", ["write", "write_sums"])
def test_sigterm_leaves_nothing_and_ends_as_other_commands_do(campaign_dir, tmp_path, monkeypatch, where):
    place = tmp_path / "made"
    place.mkdir()
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(bundle.papers, where, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    # Without a handler it would end the tests as well.
    monkeypatch.setattr(bundle, "check_campaign", with_a_handler(bundle.check_campaign))
    with pytest.raises(SystemExit) as ended:
        run_command(["publish", str(campaign_dir), "--out", str(place / "b.zip")])
    assert ended.value.code == 128 + signal.SIGTERM
    assert nothing_left(place)
    assert signal.getsignal(signal.SIGTERM) is before


def with_a_handler(check):
    def checked(campaign: Path):
        assert callable(signal.getsignal(signal.SIGTERM))
        return check(campaign)

    return checked


def test_a_campaign_that_is_being_written_is_refused(campaign_dir, tmp_path):
    with (campaign_dir / ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with raises(UsageError):
            publish(campaign_dir, tmp_path / "b.zip")


def test_nobody_may_write_the_campaign_until_the_bundle_is_packed(campaign_dir, tmp_path, monkeypatch):
    (campaign_dir / ".lock").touch()
    whole = archive.written

    def written(*arguments):
        with raises(UsageError):
            files.take_lock(campaign_dir)
        os.close(files.take_lock(campaign_dir, shared=True))  # readers do not mind each other
        whole(*arguments)

    monkeypatch.setattr(archive, "written", written)
    publish(campaign_dir, tmp_path / "b.zip")
    os.close(files.take_lock(campaign_dir))


def test_the_campaign_stays_as_it_was(canary_campaign, tmp_path):
    before = {p: p.read_bytes() for p in canary_campaign.rglob("*") if p.is_file()}
    publish(canary_campaign, tmp_path / "b.zip")
    assert {p: p.read_bytes() for p in canary_campaign.rglob("*") if p.is_file()} == before


def test_a_link_out_of_the_campaign_is_refused(campaign_dir, tmp_path):
    (campaign_dir / "meters" / "m.csv").unlink()
    (campaign_dir / "meters" / "m.csv").symlink_to("/etc/hostname")
    with raises(InvalidData):
        publish(campaign_dir, tmp_path / "b.zip")


def test_the_last_check_finds_what_masking_missed(canary_campaign, tmp_path, monkeypatch):
    monkeypatch.setattr("netjoule.publishing.masking.Masker.free", lambda _, text: text)
    place = tmp_path / "made"
    place.mkdir()
    with raises(RunFailed):
        publish(canary_campaign, place / "b.zip")
    assert nothing_left(place)


@pytest.mark.parametrize(
    ("of", "left"),
    [
        ("10.1.2.3 is down", "10.1.2.3"),
        ("fe80::1:2 is down", "FE80:0::1:2"),
        ("02:00:00:aa:00:01", "0200.00aa.0001"),
        ("serial number 987650123", "987650123"),
        ("user@nas", "nas"),
        ("psk=12345678", "12345678"),
        ('{"user": 1000}', '{"user": 1000}'),
        ('{"password": 1000}', '{"password": 1000}'),
    ],
)
def test_the_last_check_finds_every_kind(of, left):
    books = Books(frozenset())
    Collector(books).text("", of)
    books.freeze()
    searcher = Searcher(books)
    masked = Masker(books).text("", of)
    assert searcher.text("", masked) == masked
    with pytest.raises(Left):
        searcher.text("", f"told: {left}" if left[0] != "{" else left)


def test_the_last_check_searches_what_is_written_beside_the_campaign(canary_campaign, tmp_path, monkeypatch):
    of_readme = papers._readme
    monkeypatch.setattr(papers, "_readme", lambda *given: [*of_readme(*given), "at 10.123.45.67"])
    with raises(RunFailed):
        publish(canary_campaign, tmp_path / "b.zip")


@pytest.mark.parametrize("ssid", ["Access Point", "802.11n", "over-range", "Frictionless"])
def test_a_network_called_as_netjoule_writes_is_masked_and_no_obstacle(campaign_dir, tmp_path, ssid):
    path = campaign_dir / "campaign.json"
    document = json.loads(path.read_text())
    document["topology"]["description"] = f'seen ssid="{ssid}"'
    path.write_text(json.dumps(document))
    folder = published(campaign_dir, tmp_path / "x")
    assert f'ssid="{ssid}"' not in (folder / "topology.yaml").read_text()


def test_what_an_author_shares_with_a_masked_name_hides_no_other_name(canary_campaign, tmp_path, monkeypatch):
    of_readme = papers._readme
    monkeypatch.setattr(papers, "_readme", lambda *given: [*of_readme(*given), "at 10.123.45.67"])
    with raises(RunFailed):
        publish(canary_campaign, tmp_path / "b.zip", authors=("Doe, 1", "10, ."))


def test_an_author_may_be_called_as_what_is_masked(canary_campaign, tmp_path):
    made = publish(canary_campaign, tmp_path / "b.zip", authors=("kanari-7, kanariuser", canaries.HOST))
    assert made.path.exists()
