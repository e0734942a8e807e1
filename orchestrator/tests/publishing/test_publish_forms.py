# SPDX-License-Identifier: Apache-2.0
"""The forms of names, numbers and secrets that `netjoule publish` finds in running text, one by one."""

import pytest
from masked_texts import masked


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("001B.4411.3AB7, 00-1b-44-11-3a-b7", "0200.5E00.0001, 02-00-5e-00-00-01"),
        ("00.1b.44.11.3a.b7 is 001b44113ab7", "02.00.5e.00.00.01 is 02005e000001"),
        ("001b-4411-3ab7 is 00_1B_44_11_3A_B7", "0200-5e00-0001 is 02_00_5E_00_00_01"),
        ("BSSID: 001b44113ab7 of 001b44113ab7", "BSSID: 02005e000001 of 02005e000001"),
        ("mac=001b44113ab7, hwaddr 001b44113ab8", "mac=02005e000001, hwaddr 02005e000002"),
        ('{mac_address: "001b44113ab7"}', '{mac_address: "02005e000001"}'),
    ],
)
def test_a_mac_address_is_found_however_it_is_separated(text, expected):
    assert masked(text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Linux nas-7 6.1.0-18-amd64 #1 SMP x86_64", "Linux host-1 6.1.0-18-amd64 #1 SMP x86_64"),
        (
            "Nov 12 10:11:12 nas-7 sshd[123]: Accepted password for anna",
            "Nov 12 10:11:12 host-1 sshd[123]: Accepted password for user-1",
        ),
        ("2026-11-12T10:11:12Z nas-7 kernel: up", "2026-11-12T10:11:12Z host-1 kernel: up"),
        ("ping: nas-7: Name or service not known", "ping: host-1: Name or service not known"),
        ("Connection closed by nas-7 port 22", "Connection closed by host-1 port 22"),
        ("Permanently added 'nas-7,10.1.2.3' (ED25519)", "Permanently added 'host-1,198.18.0.1' (ED25519)"),
        ("fatal: [nas-7]: UNREACHABLE! => {}", "fatal: [host-1]: UNREACHABLE! => {}"),
        ("ruser=anna rhost=nas-8", "ruser=user-1 rhost=host-1"),
        ("ssh -p 22 nas-7 -l anna ls", "ssh -p 22 nas-7 -l user-1 ls"),
        ("/var/mail/anna of anna", "/var/mail/user-1 of user-1"),
    ],
)
def test_hosts_and_users_are_found_where_programs_print_them(text, expected):
    assert masked(text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SSID 1 : Home Net", "SSID 1 : ssid-1"),
        ('"ssid" value "Home Net"', '"ssid" value "ssid-1"'),
        ("Activation: (wifi) connection 'Home Net' is up", "Activation: (wifi) connection 'ssid-1' is up"),
        ("Connection 'Home Net' successfully activated", "Connection 'ssid-1' successfully activated"),
        (
            "/etc/NetworkManager/system-connections/Home Net.nmconnection",
            "/etc/NetworkManager/system-connections/ssid-1.nmconnection",
        ),
        ("/var/lib/iwd/Home Net.psk", "/var/lib/iwd/ssid-1.psk"),
        ('wpa_passphrase "Home Net" "hunter 2222"', 'wpa_passphrase "ssid-1" "***"'),
        ("wpa_passphrase HomeNet hunter2222", "wpa_passphrase ssid-1 ***"),
    ],
)
def test_networks_are_found_where_programs_print_them(text, expected):
    assert masked(text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("S/N 91K0A7", "S/N serial-1"),
        ("iSerial                 3 0123ABCD", "iSerial                 3 serial-1"),
        ("/dev/tty.usbserial-A50285BI", "/dev/tty.usbserial-serial-1"),
        ("ID_SERIAL_SHORT=A50285BI", "ID_SERIAL_SHORT=serial-1"),
        ("Seriennummer: A50285BI", "Seriennummer: serial-1"),
        ("serial_no=77ab1; SER=abc12", "serial_no=serial-1; SER=serial-2"),
        ("*IDN? YOKOGAWA,WT310,C3QA01,F1.02", "*IDN? YOKOGAWA,WT310,serial-1,F1.02"),
    ],
)
def test_serial_numbers_are_found_where_programs_print_them(text, expected):
    assert masked(text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Basic YW5uYTpodW50ZXIy", "Authorization: Basic ***"),
        ("Authorization: Bearer abcdefgh1234", "Authorization: Bearer ***"),
        ("Set-Cookie: sid=abc123def; x=y, abc123def", "Set-Cookie: ***, ***"),
        ("saw ghp_abcdefghijklmnopqrst1234", "saw ***"),
        ("saw glpat-abcdefghijklmnopqrst", "saw ***"),
        ("sshpass -p hunter22 ssh x", "sshpass -p *** ssh x"),
        ("curl -u anna:hunter22 http://x9", "curl -u user-1:*** http://host-1"),
        ("snmpget -v2c -c s3cr3t 10.1.2.3", "snmpget -v2c -c *** 198.18.0.1"),
        ("pwd=hunter22, auth_key: hunter33", "pwd=***, auth_key: ***"),
        ('password "hunter22" was refused', 'password "***" was refused'),
        ("the password is hunter22", "the password is ***"),
    ],
)
def test_secrets_are_found_where_programs_print_them(text, expected):
    assert masked(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "version 10.20.30.40.50.60, 1.3.6.1.4.1, 2026-1123-2328, 1234-5678-9012",
        "123e4567-e89b-12d3-a456-426614174000 and 0123456789ab",
        "aa.bb.cc.dd.ee.ff.00 and 3f2a-11bb-22cc-33dd",
        "S/N of 20 dB, S/N 30dB, S/N 25.5 dB",
        "PWD=/srv/bench",
        "the password is required, the psk is of 8 to 63 characters, password 123 times",
        "wpa_passphrase is a program of hostapd",
        "power 12.345678 W, 20.1 Mb/s, 1234567890123 ns, 0.000123 J, -55 dBm",
        "Linux version 6.1.0, Linux kernel 6.1",
        "snmpget -v2c -c public PDU",
        "Connection closed by remote host port 22",
        "ssh -l",
    ],
)
def test_numbers_and_sentences_stay(text):
    assert masked(text) == [text]
