# SPDX-License-Identifier: Apache-2.0
"""Stand-ins of IP and MAC addresses: in every writing, and networks stay networks."""

from ipaddress import ip_address, ip_interface, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st
from masked_texts import masked

from netjoule.publishing.addresses import IpBook, MacBook, from_mac, names_nobody, parsed
from netjoule.publishing.identifiers import Kind


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.77.0.2:5301 and 10.77.0.3", "198.18.0.1:5301 and 198.18.0.2"),
        ("10.77.0.2 is 010.077.000.002", "198.18.0.1 is 198.18.0.1"),
        (
            "127.0.0.1, ::1, 0.0.0.0, 255.255.255.0, 224.0.0.1, ff02::1",
            "127.0.0.1, ::1, 0.0.0.0, 255.255.255.0, 224.0.0.1, ff02::1",
        ),
        ("[2001:db9::1]:80, 2001:DB9:0:0:0:0:0:1", "[2001:db8::1]:80, 2001:db8::1"),
        ("reached fe80::1%wlan0: no", "reached fe80::1%wlan0: no"),
        ("node:2001:db9::9: gone", "node:2001:db8::1: gone"),
        ("::ffff:10.77.0.2 is 10.77.0.2", "::ffff:198.18.0.1 is 198.18.0.1"),
        ("TCPIP0::192.168.1.5::inst0::INSTR", "TCPIP0::198.18.0.1::inst0::INSTR"),
        ("v1.2.3.4, 1.3.6.1.4.1, 1.2.3, 300.1.1.1", "v1.2.3.4, 1.3.6.1.4.1, 1.2.3, 300.1.1.1"),
        ("IP 192.168.1.23.5301 > x; 192.168.1.23", "IP 198.18.0.1.5301 > x; 198.18.0.1"),
        ("IP 10.77.0.2.53 > 10.77.0.3.5301: UDP", "IP 198.18.0.1.53 > 198.18.0.2.5301: UDP"),
        ("10.77.0.2.53: 10.77.0.2", "198.18.0.1.53: 198.18.0.1"),
        ("1.3.6.1.4 is no address", "1.3.6.1.4 is no address"),
        ("1.3.6.1.53 > 1.3.6.1: known", "198.18.0.1.53 > 198.18.0.1: known"),
        ("12:14:43.477 std::io", "12:14:43.477 std::io"),
        (
            "02:00:00:AA:00:01 02-00-00-aa-00-01 0200.00aa.0001",
            "02:00:5E:00:00:01 02-00-5e-00-00-01 0200.5e00.0001",
        ),
        ("enx020000aa0001 0200-00AA", "enx02005e000001 0200-00AA"),
        ("ff:ff:ff:ff:ff:ff 00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff 00:00:00:00:00:00"),
        ("02:00:00:aa:00:01, 020000AA0001", "02:00:5e:00:00:01, 02005e000001"),
        ("at 2026-11-22-12-14-32", "at 2026-11-22-12-14-32"),
        ("10.77.0.2 as ip-10-77-0-2", "198.18.0.1 as ip-198-18-0-1"),
    ],
)
def test_an_address_is_masked_in_its_own_writing(text, expected):
    assert masked(text) == [expected]


def test_an_address_that_tells_a_mac_address_is_kept_only_with_both():
    text = "fe80::ca:feff:fe00:1 and 10.1.2.3 and 00:ca:fe:00:00:01"
    assert masked(text, kept=(Kind.IP,)) == ["fe80::1 and 10.1.2.3 and 02:00:5e:00:00:01"]
    assert masked(text, kept=(Kind.MAC,)) == ["fe80::1 and 198.18.0.1 and 00:ca:fe:00:00:01"]
    assert masked(text, kept=(Kind.IP, Kind.MAC)) == [text]


def test_networks_stay_networks():
    book = IpBook()
    for text in ("10.0.0.0/16", "10.0.5.0/24", "10.0.0.0/24", "2001:db9::/32"):
        book.note_network(text)
    met = [
        "10.0.0.0",
        "10.0.5.0",
        "10.0.5.7",
        "10.0.9.9",
        "10.0.255.255",
        "10.0.5.255",
        "10.9.0.1",
        "2001:db9:1::1",
    ]
    for text in met:
        book.note(ip_address(text))
    book.freeze()
    outer = ip_network((book.mask(ip_address("10.0.0.0"), 16), 16))
    inner = ip_network((book.mask(ip_address("10.0.5.0"), 24), 24))
    assert inner.subnet_of(outer)
    assert ip_network((book.mask(ip_address("10.0.0.0"), 24), 24)).subnet_of(outer)
    assert book.mask(ip_address("10.0.5.7")) in inner
    assert book.mask(ip_address("10.0.5.255")) == inner.broadcast_address
    assert book.mask(ip_address("10.0.9.9")) in outer
    assert book.mask(ip_address("10.0.9.9")) not in inner
    assert book.mask(ip_address("10.9.0.1")) not in outer


IPV4 = st.ip_addresses(v=4)
IPV6 = st.ip_addresses(v=6)


@given(
    addresses=st.lists(IPV4 | IPV6, max_size=40),
    networks=st.lists(st.tuples(IPV4, st.integers(12, 30)), max_size=6),
)
def test_stand_ins_are_one_to_one_and_keep_who_shares_a_network(addresses, networks):
    book = IpBook()
    declared = [ip_network(pair, strict=False) for pair in networks]
    for network in declared:
        book.note_network(str(network))
    inside = [network[min(9, network.num_addresses - 2)] for network in declared]
    met = list(dict.fromkeys(a for a in [*addresses, *inside] if not names_nobody(a)))
    met = [a for a in met if a.version == 4 or a.ipv4_mapped is None]
    for address in met:
        book.note(address)
    book.freeze()
    stand_ins = {address: book.mask(address) for address in met}
    assert len(set(stand_ins.values())) == len(stand_ins)
    for network in declared:
        base = book.mask(network.network_address, network.prefixlen)
        block = ip_network((base, network.prefixlen))
        for address, stand_in in stand_ins.items():
            assert (address in network) == (stand_in in block)


@given(st.integers(0, 2**48 - 1))
def test_a_mac_address_has_one_stand_in_in_every_writing(number):
    digits = f"{number:012x}"
    colons = ":".join(digits[k : k + 2] for k in range(0, 12, 2))
    book = MacBook()
    book.note(colons)
    if set(digits) in ({"0"}, {"f"}):
        assert book.mask(colons) == colons
        return
    assert book.mask(colons) == "02:00:5e:00:00:01"
    assert book.mask(colons.upper().replace(":", "-")) in ("02-00-5E-00-00-01", "02-00-5e-00-00-01")
    assert book.mask(digits) == "02005e000001"


def test_addresses_of_a_topology_keep_their_prefixes():
    out = masked("10.5.0.9", addresses="10.5.0.1/20", ipv4="10.5.14.2/20", to="10.6.0.0/24", via="10.5.0.1")
    direct, one, two, to, via = out
    assert ip_interface(one).network == ip_interface(two).network
    assert ip_address(direct) in ip_interface(one).network
    assert ip_network(to).prefixlen == 24
    assert via == one.partition("/")[0]


def test_eui64_is_told_from_other_interface_ids():
    assert from_mac(ip_address("fe80::ca:feff:fe00:1"))
    assert not from_mac(ip_address("fe80::1"))
    assert not from_mac(ip_address("10.0.0.1"))
    assert parsed("10.0.0.256") is None
