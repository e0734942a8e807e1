# SPDX-License-Identifier: Apache-2.0
"""Finds in running text what tells whose bench it was: by its form, or by the words around it. Pure.

Error messages, paths, command lines and what instruments answer pass through here. A name in a field of its
own is known by the field (`identifiers.FIELDS`); addresses are found by their form wherever they are.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from netjoule.publishing.addresses import Address, parsed
from netjoule.publishing.identifiers import Kind, nobody
from netjoule.publishing.patterns import BY_KEY, BY_PLACE


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a text.

    Attributes:
        kind: of what stands there; None for a secret.
        value: what it says, escapes undone.
    """

    start: int
    end: int
    kind: Kind | None
    value: str


@dataclass(frozen=True, slots=True)
class FoundIp:
    """An IP address.

    Attributes:
        prefix: the length written behind it; None without one.
        certain: whether its form alone shows that it is one; else four numbers before a fifth, which may be
            an address and a port as tcpdump writes them, or an object identifier.
    """

    start: int
    end: int
    written: str
    address: Address
    prefix: int | None
    certain: bool = True


# Two-letter top-level domains (ISO 3166 and the few others), and those of them that files end with as well.
_COUNTRY_CODES = (
    "ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs bt bw "
    "by bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es et "
    "eu fi fj fk fm fo fr ga gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie "
    "il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv "
    "ly ma mc md me mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr "
    "nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se sg sh si sk sl "
    "sm sn so sr ss st su sv sx sy sz tc td tf tg th tj tk tl tm tn to tr tt tv tw tz ua ug uk us uy uz "
    "va vc ve vg vi vn vu wf ws ye yt za zm zw"
)
_COUNTRIES = frozenset(_COUNTRY_CODES.split())
_ALSO_ENDINGS = "as at be cc do id in is it la md me ms my no pl pm ps py rs sh so to us"
_ENDINGS_OF_FILES = frozenset(_ALSO_ENDINGS.split())
_GENERIC_DOMAINS = (
    "com org net edu gov mil int info biz name pro dev app cloud online tech xyz arpa example test invalid"
)
_GENERIC = frozenset(_GENERIC_DOMAINS.split())
# Domains without a registry: their first label is a machine.
_PRIVATE_DOMAINS = "local lan home internal intranet intra corp localdomain private lab wifi onion box wlan"
_PRIVATE = frozenset(_PRIVATE_DOMAINS.split())
# Where papers, standards and programs are; named in descriptions, they tell nothing of a bench.
_SITES = (
    "3gpp.org acm.org arxiv.org creativecommons.org debian.org doi.org etsi.org github.com gitlab.com "
    "iana.org ieee.org ietf.org iso.org itu.int kernel.org opendatacommons.org python.org rfc-editor.org "
    "r-project.org spdx.org w3.org wikipedia.org zenodo.org"
)
_PUBLIC = frozenset(_SITES.split())
_SMALL_WORDS = (
    "a an the this that it its is are was were not no any all another each other same own of on in at to "
    "by for from with without and or invalid illegal user users "
    "space"
)
_STOP = frozenset(_SMALL_WORDS.split())

_FQDN = re.compile(
    r"(?<![A-Za-z0-9_.-])(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)+[A-Za-z]{2,24}(?![A-Za-z0-9_-])"
    r"(?!\.[A-Za-z0-9])"
)
_IP = re.compile(
    r"(?<![0-9A-Za-z])(?P<ip6>(?:[0-9A-Fa-f]{0,4}:){2,8}(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f]{0,4}))"
    r"(?![0-9A-Za-z])(?:/(?P<prefix6>\d{1,3})(?!\d))?"
    # v1.2.3.4 is a version, and what has more than four parts is no address either.
    r"|(?<![0-9.])(?<![vV])(?P<ip4>\d{1,3}(?:\.\d{1,3}){3})(?!\d|\.\d)(?:/(?P<prefix4>\d{1,2})(?!\d))?"
    r"|(?<![0-9.])(?<![vV])(?P<before_port>\d{1,3}(?:\.\d{1,3}){3})\.(?P<port>\d{1,5})(?!\d|\.\d)"
)
# Five numbers may also be an object identifier (SNMP), which begins with 0, 1 or 2 (X.660).
_OBJECT_IDENTIFIER = re.compile(r"[012]\.\d{1,3}(?:\.\d{1,3}){3}$")
_MAC = re.compile(
    r"(?<![0-9A-Za-z])(?P<pairs>[0-9A-Fa-f]{2}(?P<sign>[:_-])(?:[0-9A-Fa-f]{2}(?P=sign)){4,}[0-9A-Fa-f]{2})"
    r"(?![0-9A-Za-z])"
    r"|(?<![0-9A-Za-z.])(?P<dotted>[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4})(?![0-9A-Za-z.])"
    # Names of interfaces made of it (systemd.net-naming-scheme(7)).
    r"|(?<![0-9A-Za-z])(?:en|wl|ww|sl|ib|eth|usb)x(?P<digits>[0-9A-Fa-f]{12})(?![0-9A-Za-z])"
    # Pairs with dots and fours with hyphens: without a letter they are versions, object identifiers or days.
    r"|(?<![0-9A-Za-z.])(?=[0-9.]*[A-Fa-f])(?P<dots>(?:[0-9A-Fa-f]{2}\.){5}[0-9A-Fa-f]{2})(?![0-9A-Za-z]|\.[0-9A-Za-z])"
    r"|(?<![0-9A-Za-z-])(?=[0-9-]*[A-Fa-f])(?P<fours>(?:[0-9A-Fa-f]{4}-){2}[0-9A-Fa-f]{4})(?![0-9A-Za-z-])"
    # Digits alone, after a word that says what they are.
    r"|(?<![0-9A-Za-z])(?:mac|bssid|hwaddr|lladdr|ether)(?:[ _-]?addr(?:ess)?)?[\"']?\s{0,8}[:=]?"
    r"\s{0,8}[\"']?(?P<said>[0-9A-Fa-f]{12})(?![0-9A-Za-z])",
    re.IGNORECASE,
)
_FORMS_OF_MAC = ("pairs", "dotted", "digits", "dots", "fours", "said")
_REFERENCE = re.compile(r"(?:env|file|vault):")


def spans(text: str) -> Iterator[Span]:
    """Every name and secret that a text shows by its form or its surroundings; no addresses."""
    for pattern in BY_PLACE:
        for match in pattern.finditer(text):
            for group, value in match.groupdict().items():
                if value:
                    kind = None if group == "secret" else Kind(group)
                    yield from _accepted(Span(*match.span(group), kind, value))
    for kind, pattern in BY_KEY:
        for match in pattern.finditer(text):
            yield from _accepted_by_key(kind, match)
    for match in _FQDN.finditer(text):
        if domain_of(match.group()) is not None:
            yield Span(*match.span(), Kind.HOST, match.group())


def macs(text: str) -> Iterator[Span]:
    """Every MAC address of a text, however it is written; bare digits only after a word for it.

    Longer runs of pairs, such as the fingerprint of a key, count as one.
    """
    for match in _MAC.finditer(text):
        group = next(name for name in _FORMS_OF_MAC if match.group(name))
        written = match.group(group)
        if not (written.count(":") == 7 and parsed(written)):  # IPv6 in full length
            yield Span(*match.span(group), Kind.MAC, written)


def ips(text: str) -> Iterator[FoundIp]:
    """Every IP address of a text, without brackets, zone and port."""
    for match in _IP.finditer(text):
        group = next(name for name in ("ip6", "ip4", "before_port") if match.group(name))
        written = match.group(group)
        address = parsed(written)
        if address is None and written.endswith(":"):  # of the sentence
            written = written[:-1]
            address = parsed(written) if ":" in written else None
        if address is not None:
            prefix = match.group("prefix6") or match.group("prefix4")
            start = match.start(group)
            certain = group != "before_port" or not _OBJECT_IDENTIFIER.match(match.group())
            length = int(prefix) if prefix else None
            yield FoundIp(start, start + len(written), written, address, length, certain)


def readings(text: str) -> Iterator[str]:
    """The text, and what it says with escapes undone: of JSON, CSV, HTML and addresses, as deep as three."""
    for _ in range(4):
        yield text
        plain = re.sub(r"\\u([0-9A-Fa-f]{4})", lambda match: chr(int(match.group(1), 16)), text)
        plain = re.sub(r"\\([\"'\\/ ])", r"\1", plain).replace('""', '"')
        plain = html.unescape(unquote(plain))
        if plain == text:
            return
        text = plain


def domain_of(name: str) -> str | None:
    """The domain that a host's name ends with, without its first label; all of it where that is a domain.

    None when the name is no fully qualified one, or that of a well-known site.
    """
    labels = name.rstrip(".").casefold().split(".")
    last = labels[-1]
    if len(labels) == 1 or not all(labels) or ".".join(labels).removeprefix("www.") in _PUBLIC:
        return None
    if len(labels) == 2:
        if last in _PRIVATE:
            return last
        public = last in _GENERIC or (last in _COUNTRIES and last not in _ENDINGS_OF_FILES)
        return ".".join(labels) if public else None
    known = last in _PRIVATE or last in _GENERIC or last in _COUNTRIES
    return ".".join(labels[1:]) if known else None


def _accepted(span: Span) -> Iterator[Span]:
    """A finding, unless it is an address (which is found as such), nobody's name or an ordinary word."""
    value = span.value
    if span.kind is None:
        if not _REFERENCE.match(value):
            yield span
    elif span.kind is Kind.SSID or not (nobody(span.kind, value) or value.casefold() in _STOP):
        is_serial = span.kind is Kind.SERIAL
        is_public = span.kind is Kind.HOST and value.casefold().removeprefix("www.") in _PUBLIC
        if not (is_public or parsed(value) or (is_serial and not re.search(r"\d", value))):
            yield span


def _accepted_by_key(kind: Kind | None, match: re.Match[str]) -> Iterator[Span]:
    groups = match.groupdict()
    group = next((name for name in ("dq", "sq", "bare") if groups.get(name)), None)
    if group is None:
        return
    value, sign = groups[group], groups.get("sign")
    if group == "bare":
        value = value.rstrip(".: \t")
        # "host: connection refused" names none.
        is_word = not re.search(r"[\d.-]", value)
        if sign != "=" and ((kind is Kind.HOST and is_word) or kind is Kind.USER):
            return
    elif kind in (Kind.HOST, Kind.USER, Kind.SERIAL) and re.search(r"\s", value):
        return
    start = match.start(group)
    end = start + len(value)
    if value.strip("\\"):
        yield from _accepted(Span(start, end, kind, value if group == "bare" else _unescaped(value)))


def _unescaped(value: str) -> str:
    """What stands between quotes, as JSON means it, else with every backslash taken at its word."""
    try:
        return str(json.loads(f'"{value}"'))
    except ValueError:
        return re.sub(r"\\(.)", r"\1", value)
