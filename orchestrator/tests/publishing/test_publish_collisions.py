# SPDX-License-Identifier: Apache-2.0
"""Names of a bench that are, or have as a part, what `netjoule publish` puts in the place of names."""

import json

import pytest
from bundles import published
from golden_sentences import same_sentence

from netjoule.cli.app import run_command
from netjoule.publishing.identifiers import Kind
from netjoule.publishing.leak_check import Left, Searcher
from netjoule.publishing.masking import Books, Collector, Masker
from netjoule.publishing.vocabulary import Vocabulary

TWELVE = [f"host-{number}" for number in range(1, 13)]


@pytest.fixture(autouse=True)
def forgotten_secrets(monkeypatch):
    """What these secrets mean is not to be taken out of the messages of other tests."""
    monkeypatch.setattr("netjoule.core.secrets._known", set())


def described(campaign, **changes) -> None:
    """Change the topology of a campaign."""
    path = campaign / "campaign.json"
    document = json.loads(path.read_text())
    document["topology"].update(changes)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize("names", [TWELVE, TWELVE[::-1], [f"nas{number}" for number in range(1, 13)]])
def test_a_bundle_of_many_hosts_is_made_whatever_they_are_called(campaign_dir, tmp_path, names):
    said = ", ".join(f"anna@{name}" for name in names)
    described(campaign_dir, description=f"reached by {said}")
    folder = published(campaign_dir, tmp_path / "x")
    text = json.loads((folder / "campaign.json").read_text())["topology"]["description"]
    assert len(set(text.split(", "))) == 12
    assert not any(f"@{name}," in f"{text}," for name in names)


@pytest.mark.parametrize(
    "ssid",
    [
        "domain",
        "Domain",
        "domain-1",
        "host-1",
        "host-",
        "ssid-1",
        "1.domain",
        "user-1@host",
        "serial-",
        "***",
    ],
)
def test_a_network_called_like_a_stand_in_is_no_obstacle(campaign_dir, tmp_path, ssid):
    words = f'ssid="{ssid}" anna@nas-7.lab.example.org serial number 77A, psk=hunter22 x1 02:00:00:aa:00:01'
    described(campaign_dir, description=words)
    folder = published(campaign_dir, tmp_path / "x")
    text = json.loads((folder / "campaign.json").read_text())["topology"]["description"]
    assert f'ssid="{ssid}"' not in text
    assert text.startswith('ssid="ssid-')
    assert "nas-7" not in text


@pytest.mark.parametrize("ssid", ["00:5e:00", "2001:db8:", "env:NETJOULE_", "NETJOULE_SECRET_1"])
def test_a_network_called_like_a_part_of_an_address_or_a_reference_is_no_obstacle(
    campaign_dir, tmp_path, ssid, monkeypatch
):
    monkeypatch.setenv("NETJOULE_TEST_PLUG", "a secret phrase")
    words = f'ssid="{ssid}" at 02:00:00:aa:00:01 and 2001:db9::7'
    described(campaign_dir, description=words, traffic_secret="env:NETJOULE_TEST_PLUG")
    folder = published(campaign_dir, tmp_path / "x")
    topology = json.loads((folder / "campaign.json").read_text())["topology"]
    assert topology["description"] == 'ssid="ssid-1" at 02:00:5e:00:00:01 and 2001:db8::1'
    assert topology["traffic_secret"] == "env:NETJOULE_SECRET_1"


@pytest.mark.parametrize("secret", ["domain", "host-1", "user-1", "NETJOULE_SECRET_1"])
def test_a_secret_called_like_a_stand_in_is_no_obstacle(campaign_dir, tmp_path, secret, monkeypatch):
    monkeypatch.setenv("NETJOULE_TEST_PLUG", secret)
    words = "anna@nas-7.lab.example.org"
    described(campaign_dir, description=words, traffic_secret="env:NETJOULE_TEST_PLUG")
    folder = published(campaign_dir, tmp_path / "x")
    text = json.loads((folder / "campaign.json").read_text())["topology"]["description"]
    assert secret == "domain" or secret not in text
    assert "nas-7" not in text


def test_a_name_that_is_left_beside_stand_ins_is_found():
    books = Books(frozenset())
    collector = Collector(books)
    for field, name in [
        ("ssid", "domain"),
        ("user", "annamaria"),
        *(("host", f"nas-{n}") for n in range(12)),
    ]:
        collector.text(field, name)
    books.freeze()
    searcher = Searcher(books)
    for text in ("host-12.domain-1 user-1", "xhost-10x"):
        searcher.text("", text.replace(".domain-1", ""))
        searcher.plain(text.replace(".domain-1", ""))
    for text in ("host-12 in domain", "host-1annamaria", "host-123 nas-3", "user-1 domain host-2"):
        with pytest.raises(Left):
            searcher.text("", text)
    assert Masker(books).text("", "nas-3 in domain") == "host-4 in ssid-1"


def test_a_host_whose_name_is_the_begin_of_a_stand_in_leaks_only_by_itself():
    vocabulary = Vocabulary(frozenset())
    for name in TWELVE:
        vocabulary.note(Kind.HOST, name)
    vocabulary.freeze()
    assert vocabulary.mask(Kind.HOST, "host-1") == "host-13"
    assert not vocabulary.leaks("host-13 and host-24")
    assert not list(vocabulary.left_in("host-13 and xhost-24"))
    assert vocabulary.leaks("host-13 and host-1")
    assert vocabulary.leaks("host-130")
    assert list(vocabulary.left_in("host-13, host-12")) == ["host-12"]


def test_two_files_with_one_stand_in_are_told_with_what_to_do(campaign_dir, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("netjoule.publishing.bundle.name_in_bundle", lambda *_: "meters/same.csv")
    assert run_command(["publish", str(campaign_dir), "--out", str(tmp_path / "b.zip")]) == 4
    said = capsys.readouterr().err
    same_sentence(said)
    assert "rename" in said
    assert "defect of netjoule" not in said
