# SPDX-License-Identifier: Apache-2.0
"""How names and addresses are found and what takes their place: text by text, without a campaign."""

import html
import json
import re
from urllib.parse import quote

import pytest
from golden_sentences import raises, same_sentence
from hypothesis import given
from hypothesis import strategies as st
from masked_texts import masked

import netjoule_contracts as contracts
from netjoule.core.errors import InvalidData
from netjoule.publishing import detection
from netjoule.publishing.identifiers import FIELDS, KEPT, SECRET_FIELD, Kind, device_models, nobody, own_words
from netjoule.publishing.masking import Books, Collector, Masker, transformed
from netjoule.publishing.vocabulary import Vocabulary

# -- names in running text ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("open /home/anna/x and /home/anna/y", "open /home/user-1/x and /home/user-1/y"),
        ("/Users/Anna/x, then anna again", "/Users/user-1/x, then user-1 again"),
        (r"C:\Users\anna\x", r"C:\Users\user-1\x"),
        ("~anna/.ssh and ~/.ssh", "~user-1/.ssh and ~/.ssh"),
        ("/home/jo/x of Jo", "/home/user-1/x of Jo"),  # two letters: an ordinary word elsewhere
        (
            "Failed password for invalid user anna from 10.1.2.3",
            "Failed password for invalid user user-1 from 198.18.0.1",
        ),
        ("anna@nas-7: Permission denied; nas-7 is up", "user-1@host-1: Permission denied; host-1 is up"),
        ("root@localhost and pi@raspberrypi", "root@localhost and pi@raspberrypi"),
        ("cannot resolve nas-7.lab.uni.example", "cannot resolve host-1.domain-1"),
        ("nas-7.lab.uni.example is not nas-8.lab.uni.example", "host-1.domain-1 is not host-2.domain-1"),
        ("nas-7.local; lab.uni.example", "host-1.domain-1; host-2.domain-2"),
        ("http://nas-7:8080/x", "http://host-1:8080/x"),
        ("http://anna:hunter2@nas-7/x; hunter2", "http://user-1:***@host-1/x; ***"),
        ("host=nas-7, node: tower2; host: no route", "host=host-1, node: host-2; host: no route"),
        (
            "see https://doi.org/10.1145/1 and www.rfc-editor.org",
            "see https://doi.org/10.1145/1 and www.rfc-editor.org",
        ),
        ('ESSID:"Home Net" Mode', 'ESSID:"ssid-1" Mode'),
        ('ssid="a \\"b\\" c"; a "b" c', 'ssid="ssid-1"; ssid-1'),
        ("SSID 'Home Net' is gone: home net", "SSID 'ssid-1' is gone: ssid-1"),
        ("SSID: Annas Home Wifi", "SSID: ssid-1"),
        ("BSS x\n\tSSID: Annas Home\n\tfreq: 2412", "BSS x\n\tSSID: ssid-1\n\tfreq: 2412"),
        ("\tssid Annas Home Wifi\n\ttype managed", "\tssid ssid-1\n\ttype managed"),
        ("ssid is Annas Home Wifi, wanted B C", "ssid is ssid-1, wanted ssid-2"),
        ("ssid is 'A B', wanted \"C D\"", "ssid is 'ssid-1', wanted \"ssid-2\""),
        ("up ssid=Annas Home Wifi id=0", "up ssid=ssid-1 id=0"),
        ("ssid[0]=Annas Home Wifi", "ssid[0]=ssid-1"),
        ("up ssid= id=0", "up ssid= id=0"),
        ("up ssid=a=b c id=0", "up ssid=ssid-1 id=0"),
        ("SSID of the network", "SSID of the network"),
        ("serial number 91K0A, S/N: 91K0A", "serial number serial-1, S/N: serial-1"),
        ("serial: a port of 9600 Bd", "serial: a port of 9600 Bd"),
        ("'YOKOGAWA,WT310,C3QA01,F1.02'", "'YOKOGAWA,WT310,serial-1,F1.02'"),
        (
            "/dev/serial/by-id/usb-Prolific_USB_Ab12-if00-port0",
            "/dev/serial/by-id/usb-Prolific_USB_serial-1-if00-port0",
        ),
        ("visa:USB0::0x0B21::0x0025::91K0A::INSTR", "visa:USB0::0x0B21::0x0025::serial-1::INSTR"),
        ("psk=x1y2z3w4 failed; x1y2z3w4", "psk=*** failed; ***"),
        ("password: 'a b c'", "password: '***'"),
        ("curl --token abcd1234 x", "curl --token *** x"),
        ("open, WPA2-PSK with CCMP, WPA2-PSK: on", "open, WPA2-PSK with CCMP, WPA2-PSK: on"),
        ("wpa-psk=abcd1234, psk: 'x y'", "wpa-psk=***, psk: '***'"),
        ("a process in user space, from user space", "a process in user space, from user space"),
        ("a secret is given by reference (env:NAME)", "a secret is given by reference (env:NAME)"),
        ("passphrase: env:WIFI", "passphrase: env:WIFI"),
        ("flow.json, runs/b01m001-udp-a1/intervals.csv", "flow.json, runs/b01m001-udp-a1/intervals.csv"),
        ("0.1.0 at /usr/local/bin/x, libc.so.6, a.b.c", "0.1.0 at /usr/local/bin/x, libc.so.6, a.b.c"),
        ("ssh: connect to host nas-7 port 22: no", "ssh: connect to host host-1 port 22: no"),
        (
            "uid=1000(anna) gid=1000(anna); anna's password",
            "uid=1000(user-1) gid=1000(user-1); user-1's password",
        ),
        ("Accepted publickey for anna from 10.1.2.3", "Accepted publickey for user-1 from 198.18.0.1"),
        ("9.3.2.1.in-addr.arpa has 9 names", "host-1.domain-1 has 9 names"),
        ("key SHA256:" + "Ab1+" * 10 + "xyz is new", "key host-1 is new"),
    ],
)
def test_a_text_is_masked_where_it_names_somebody(text, expected):
    assert masked(text) == [expected]


def test_what_netjoule_says_by_itself_names_nobody():
    """Reasons, glossary and descriptions of contracts pass unchanged."""
    sentences = [*_sentences(json.loads((contracts.root() / "reasons.json").read_text()))]
    sentences += _sentences(json.loads((contracts.root() / "glossary.json").read_text()))
    for path in [*contracts.root().glob("schemas/*.json"), *contracts.root().glob("tables/*.json")]:
        sentences += _sentences(json.loads(path.read_text()), "description")
    assert len(sentences) > 500
    sentences = [text for text in sentences if not list(detection.ips(text))]  # examples of addresses
    changed = [
        (before, after) for text in sentences for before, after in [(text, *masked(text))] if before != after
    ]
    assert changed == []


def _sentences(value, only: str = ""):
    if isinstance(value, dict):
        for key, child in value.items():
            if isinstance(child, str) and " " in child and only in ("", key):
                yield child
            yield from _sentences(child, only)
    elif isinstance(value, list):
        for child in value:
            yield from _sentences(child, only)


def test_a_name_of_a_field_is_found_in_every_text():
    before = "Annas-Laptop, xannas-laptopx, ANNAS-LAPTOP.lab.example.org and annas"
    text, host = masked(before, host="annas-laptop")
    assert text == "host-1, xhost-1x, host-1.domain-1 and annas"
    assert host == "host-1"


def test_a_field_of_hosts_tells_a_domain_that_ends_as_no_other_does():
    out = masked(
        "nas-7.rack.bench and rack.bench, nas-7", host="nas-7.rack.bench", control_address="nas-8.rack.bench"
    )
    assert out == ["host-1.domain-1 and domain-1, host-1", "host-1.domain-1", "host-2.domain-1"]


@pytest.mark.parametrize("name", ["power", "udp", "a1", "netjoule", "absolut"])
def test_a_name_that_is_a_word_of_netjoule_spoils_no_text(name):
    text, host = masked("netjoule-traffic: udp absolute, power of run b01m001-udp-a1", host=name)
    assert host == "host-1"
    assert text.replace("host-1", name) == "netjoule-traffic: udp absolute, power of run b01m001-udp-a1"
    same_sentence(text)


@pytest.mark.parametrize(
    "name",
    ["client", "access_point", "access-point", "server2", "meter-host-1", "localhost", "raspberrypi", ""],
)
def test_a_host_called_by_its_role_keeps_its_name(name):
    assert nobody(Kind.HOST, name)
    assert masked(host=name) == [name]


AWKWARD = [
    'Anna\'s "Home" Net',
    "Café Straße 5",
    "a\\b/c & <d>",
    "  edges  ",
    "x" * 32,
    "комната 7",
    "semi;colon,comma",
]


@pytest.mark.parametrize("name", AWKWARD)
def test_an_awkward_name_is_found_however_it_is_written(name):
    writings = [
        name.strip(),
        json.dumps(name),
        json.dumps(name, ensure_ascii=False),
        json.dumps(json.dumps({"ssid": name})),
        repr(name),
        name.replace('"', '""'),
        html.escape(name),
        quote(name),
        name.encode().hex(),
        name.strip().upper(),
    ]
    out = masked(*[f"said {writing} there" for writing in writings], ssid=name)
    plain = name.strip().lower()
    for writing, text in zip(writings, out, strict=False):
        assert "ssid-1" in text, (writing, text)
        assert plain not in text.lower(), (writing, text)


def test_json_inside_a_text_is_masked_by_its_fields():
    (text,) = masked(json.dumps({"user": "anna", "hosts": {"nas": {"serial": 4711}}, "n": 4711}))
    assert json.loads(text) == {"user": "user-1", "hosts": {"host-1": {"serial": "serial-1"}}, "n": 4711}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"password": 12345678}, {"password": "***"}),
        ({"psk": 12345678, "ssid": 20242024}, {"psk": "***", "ssid": "ssid-1"}),
        ({"user": 1000, "host": 4711}, {"user": "user-1", "host": "host-1"}),
        ({"password": {"value": "hunter22"}}, {"password": {"value": "***"}}),
        ({"token": [{"a": [87654321]}], "a": 87654321}, {"token": [{"a": ["***"]}], "a": 87654321}),
        ({"serial": 0, "port": 5301, "password": True}, {"serial": 0, "port": 5301, "password": True}),
    ],
)
def test_numbers_and_what_stands_inside_are_masked_by_their_fields(before, after):
    (text,) = masked(json.dumps(before))
    assert json.loads(text) == after


def test_two_keys_with_one_stand_in_are_refused():
    with raises(InvalidData):
        masked(json.dumps({"hosts": {"LAB1": {}, "lab1": {}}}))


def test_a_name_of_nobody_is_masked_where_somebody_has_it_as_well():
    assert masked("at debian", user="debian", ssid="debian") == ["at ssid-1", "ssid-1", "ssid-1"]


def test_json_beyond_reason_is_a_text():
    deep = "[" * 10_000 + "]" * 10_000
    assert masked(deep) == [deep]


def test_a_kept_name_stays_although_it_holds_a_masked_one():
    text, host, _ = masked(
        "annamaria-laptop of annamaria", kept=(Kind.HOST,), host="annamaria-laptop", user="annamaria"
    )
    assert (text, host) == ("annamaria-laptop of user-1", "annamaria-laptop")


def test_a_text_that_is_a_kept_name_and_a_masked_one_is_masked():
    assert masked(kept=(Kind.HOST,), host="annamaria", user="annamaria") == ["user-1", "user-1"]


def test_no_stand_in_is_given_that_already_stands_somewhere():
    text, host = masked("host-1 and host-2 are spare", host="annas-laptop")
    assert (text, host) == ("host-1 and host-2 are spare", "host-3")


def test_stand_ins_depend_on_the_order_of_names_alone():
    one, other = (masked(host=a, user=b) for a, b in (("annas-laptop", "anna"), ("zoes-desktop", "zoe")))
    assert one == other == ["host-1", "user-1"]


def test_forms_of_netjoule_are_left_alone():
    out = masked(
        run_id="b01m001-udp-a1", event="sender_ready", started_utc="2026-01-02T03:04:05Z", host="sender"
    )
    assert out[:3] == ["b01m001-udp-a1", "sender_ready", "2026-01-02T03:04:05Z"]
    assert masked(boot_id="annas-laptop", host="annas-laptop") == ["host-1", "host-1"]


def test_a_client_that_is_a_program_keeps_its_name():
    out = masked(client="curl-Z", server="apache", host="annas-laptop")
    assert out == ["curl-Z", "apache", "host-1"]
    assert masked(client="annas-laptop") == ["host-1"]


def test_a_shipped_device_model_keeps_its_name():
    assert "laptop-cpu" in device_models()
    assert masked(model="laptop-cpu", device_model="laptop-cpu", host="laptop")[:2] == [
        "laptop-cpu",
        "laptop-cpu",
    ]
    changed = "s5-seed:connection_w=0.03,active_w=2"
    assert masked(device_model=changed, host="s5-seed")[0] == changed
    assert masked(device_model="laptop-cpu:x=nas-7", host="nas-7")[0] == "laptop-cpu:x=host-1"


# -- every text of the contracts is decided upon ---------------------------------------------------------

# Texts that people, programs and instruments write: masked as running text.
_RUNNING = (
    "access adapter addresses anchor arm base bssid buffers bursts build calibration campaign code "
    "cpu_model csv cycles_reason description detail device device_model direction directory "
    "distribution document elements emulation environment factors failed failure file filter "
    "firmware flag generator_version generator_versions governor head identification identity_file "
    "interface ipv4 ipv6 json kernel known_hosts load machine make mapping_source message meter_id "
    "model name offloads pacing part path power_cycle profile programs provisional reason reference regex "
    "resource room run scaling server_ready settings source state station status sysctls system text to "
    "transport_options transport_stats unit varying version versions via work_unit"
)
RUNNING = {"", *_RUNNING.split()}


def test_every_field_of_a_campaign_that_may_hold_any_text_is_decided_upon():
    free = set()
    for name in (
        "campaign",
        "topology",
        "workload",
        "profile",
        "meter_passport",
        "run",
        "flow_report",
        "result",
    ):
        free |= set(_free_texts(contracts.schema(name), ""))
    for name in ("plan", "status", "clocks", "meters", "radio", "intervals", "events", "routers"):
        fields = contracts.table(name)["fields"]
        free |= {
            f["name"] for f in fields if f["type"] == "string" and "enum" not in f.get("constraints", {})
        }
    undecided = {field for field in free if field not in RUNNING | set(FIELDS) | set(KEPT)}
    assert {field for field in undecided if not SECRET_FIELD.search(field)} <= CLOSED


# Their patterns leave no room for a name.
CLOSED = {
    "term",
    "congestion_control",
    "country",
    "mode",
    "rates",
    "fault",
    "code",
    "transport",
    "transports",
    "ea_reason",
    "device_form",
    "started",
    "http",
    "dataset",
    "kind",
}


def _free_texts(schema, field):
    if not isinstance(schema, dict):
        return
    kinds = schema.get("type")
    if "string" in (kinds if isinstance(kinds, list) else [kinds]) and not {"enum", "const"} & set(schema):
        yield field
    for name, child in schema.get("properties", {}).items():
        yield from _free_texts(child, name)
    for child in schema.get("patternProperties", {}).values():
        yield from _free_texts(child, "secret")
    for part in ("additionalProperties", "items"):
        yield from _free_texts(schema.get(part), field)
    for part in ("anyOf", "oneOf", "allOf"):
        for child in schema.get(part, ()):
            yield from _free_texts(child, field)


def test_no_field_of_a_contract_is_taken_for_a_secret_but_secrets():
    names = {word for word in own_words() if SECRET_FIELD.search(word)}
    # The last is a part of owner_token, a number that only grows.
    assert names == {"passphrase", "password", "secret", "community", "traffic_secret", "token"}


# -- any text --------------------------------------------------------------------------------------


@given(st.text(max_size=200))
def test_any_text_can_be_masked(text):
    (once,) = masked(text)
    assert isinstance(once, str)


@given(st.text(alphabet="abc:./@-_0123456789\"'\\= ", max_size=120))
def test_any_text_of_addresses_and_quotes_can_be_masked(text):
    assert all(isinstance(out, str) for out in masked(text, host=text, ssid=text, user=text, serial=text))


def test_long_texts_take_no_more_than_their_length():
    for text in (
        "a" * 200_000,
        "a." * 100_000,
        "a@" * 50_000,
        ":" * 100_000,
        '\\"' * 50_000,
        "/home/" * 20_000,
        "ssid is " * 25_000,
        "ssid=" * 40_000,
        "ssh -a " * 30_000,
        "curl " * 40_000,
        "wpa_passphrase " * 13_000,
        "snmpget -" * 20_000,
        "Cookie: a=" * 20_000,
        "Digest " * 30_000,
        "ab.cd." * 30_000,
        "mac " * 50_000,
        "*IDN? " * 30_000,
        "password is " * 16_000,
    ):
        assert list(detection.spans(text)) is not None
        assert list(detection.ips(text)) is not None
        assert list(detection.macs(text)) is not None


def test_the_last_check_is_a_plain_search():
    vocabulary = Vocabulary(frozenset({Kind.HOST}))
    vocabulary.note(Kind.USER, "annamaria")
    vocabulary.note(Kind.HOST, "annamaria-laptop")
    vocabulary.note(Kind.SSID, 'My "Net" 77')
    vocabulary.freeze()
    assert vocabulary.leaks("x ANNAMARIAx")
    assert not vocabulary.leaks("annamaria-laptop")
    assert vocabulary.leaks(json.dumps('my "net" 77'))
    assert vocabulary.leaks_in_bytes(b"\0annamaria\0")
    assert not vocabulary.leaks("nothing")


def test_keys_and_lists_are_visited_by_their_fields():
    books = Books(frozenset())
    document = {
        "hosts": {"annas-laptop": {"roles": ["client"]}},
        "versions": {"x on annas-laptop": None},
        "user": ["anna"],
    }
    transformed(Collector(books), document)
    books.freeze()
    expected = {
        "hosts": {"host-1": {"roles": ["client"]}},
        "versions": {"x on host-1": None},
        "user": ["user-1"],
    }
    assert transformed(Masker(books), document) == expected
    assert re.fullmatch(r"host-\d", books.vocabulary.mask(Kind.HOST, "ANNAS-LAPTOP"))
