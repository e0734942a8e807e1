# SPDX-License-Identifier: Apache-2.0
"""The places and words around names and secrets in running text, as tables of patterns.

`find` says what of that is accepted. A pattern is to match what a program prints and no sentence about it:
where the words alone may stand in a sentence, what they stand before has to look like what it is.
"""

from __future__ import annotations

import re

from netjoule.publishing.identifiers import Kind

_NAME = r"[A-Za-z0-9_](?:[\w.-]*\w)?"
_VALUE = r"""(?:"(?P<dq>(?:[^"\\]|\\.)+)"|'(?P<sq>(?:[^'\\]|\\.)+)'|(?P<bare>[^\s,;"'(){}\[\]<>]+))"""
_QUOTED = r"""(?:"(?P<dq>(?:[^"\\]|\\.)+)"|'(?P<sq>(?:[^'\\]|\\.)+)')"""
# The same where words alone show a secret: without quotes it has a digit and is no short number.
_NO_WORD = r"(?=[\"'\\]|[^\s,;\"'(){}\[\]<>]*\d)(?![^\s\"'\\]{1,5}(?:[\s.,;:]|$))"
_ARGUMENT = r"""(?:"[^"\r\n]*"|'[^'\r\n]*'|[^\s"']+)"""
# A name without quotes, blanks in it, up to what follows in a line of iw, wpa_cli, hostapd_cli or link_state.
_NEXT = r"[a-z_]\w{0,30}="
_TO_THE_END = rf"""(?P<bare>(?!\\*["'])[^\s,;][^\r\n]*?)(?=$|[\r\n]|, wanted\b|[ \t]{_NEXT})"""
# A serial number that only a word like S/N shows: of some length, and neither decibels nor a short number.
_SERIAL = r"(?!\d+dBm?\b)(?=[\w-]*\d)(?P<serial>(?=[\w-]*[a-z])\w[\w-]{3,}\w|\d{6,})"
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_SYSLOG_TIME = (
    rf"(?:\b{_MONTH} [ \d]\d \d\d:\d\d:\d\d|\b\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]*(?:Z|[+-]\d\d:?\d\d))"
)
_UNRESOLVED = "(?:Name or service|Name does not|Temporary failure|No address|nodename nor|Unknown host)"
# How names of fields of secrets begin.
_BEFORE_IT = (
    r"(?:pass(?:word|wort|phrase|wd)|(?<![a-z])(?<!wpa2-)psk|secret|token|credential|community|"
    r"(?:api|auth|access|private|wep)[_-]?key)"
)


def _ignoring_case(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)


_USERS = (
    r"(?:/home/|/Users/|/media/|/var/(?:spool/)?mail/|[\\/]Users[\\/]+|Documents and Settings[\\/]+)"
    r"(?P<user>[^/\\\s:\"'`<>|,;()\[\]]+)",
    r"(?<![\w.-])~(?P<user>[a-z_][\w.-]*)(?=/)",
    rf"(?<![\w.+/-])(?P<user>[a-z_][\w.+-]*)@(?P<host>{_NAME})",
    r"://(?:(?P<user>[^\s:/@\"']+)(?::(?P<secret>[^\s/@\"']*))?@)?(?P<host>[^\s:/?#@\"'`<>\[\],;()]+)",
    rf"\b(?:as|for|of|from|by|invalid|unknown|illegal|login)\s+user\s+[\"'`]?(?P<user>{_NAME})",
    r"\buser\s+[\"'`](?P<user>[^\"'`\s]+)[\"'`]",
    rf"\b(?:password|publickey) for [\"'`]?(?P<user>{_NAME})",
    rf"(?<![\w.-])(?P<user>{_NAME})(?: is not in the sudoers|'s password)",
    r"\b[ug]id=\d+\((?P<user>[^()\s]+)\)",
    # ssh [OPTION [ARGUMENT]]... [HOST] -l USER
    rf"\bssh(?:\s+-(?!l\b)\S+(?:\s+[^\s-]\S*)?){{0,8}}(?:\s+(?!ls\s)[^\s-]\S*)?\s+(?-i:-l)\s*(?P<user>{_NAME})",
    r"\b(?:curl|wget)\s(?:[^\r\n]{0,300}?\s)?(?:-[a-z]*u|--user|--proxy-user)[ =]?[\"']?"
    r"(?P<user>[^\s:\"']+):(?P<secret>[^\s\"']+)",
)
_HOSTS = (
    r"\bhost(?:name)?\s+[\"'`](?P<host>[^\"'`\s]+)[\"'`]",
    rf"\b(?:host key for|resolve host(?:name)?|to host)\s+\[?(?P<host>{_NAME})",
    rf"\bCN\s*=\s*(?P<host>{_NAME})",
    # A line of syslog, with the program that wrote it.
    rf"{_SYSLOG_TIME}\s+(?!(?:error|warn|warning|info|debug|notice|critical)\b)(?P<host>{_NAME})"
    r"\s+(?:[\w./@()-]+\[\d+\]|kernel|sudo|su|systemd):",
    # uname -a: the kernel's version and what it was built for follow.
    rf"\b(?:Linux|Darwin)\s+(?!(?:version|kernel)\b)(?P<host>{_NAME})\s+\d+\.\d+\.\d+\S*"
    r"\s+(?:#\d|Darwin Kernel|x86_64|aarch64|armv\d|i686|mips|riscv64)",
    rf"\bping6?:\s+(?P<host>{_NAME}):\s+{_UNRESOLVED}",
    rf"\bconnection (?:closed|reset) by (?!(?:remote|peer|foreign|other|the|a)\b)(?P<host>{_NAME}) port \d",
    rf"\bpermanently added '\[?(?P<host>{_NAME})",
    rf"\bfatal: \[(?P<host>{_NAME})(?: -> [^\]\s]+)?\]: (?-i:UNREACHABLE|FAILED)",
    # The fingerprint of a host's key, as OpenSSH prints it.
    r"(?P<host>\bSHA256:[a-z0-9+/]{43})",
)
_SSIDS = (
    # Files of NetworkManager and iwd.
    r"\bsystem-connections/(?P<ssid>[^/\r\n\"']+?)\.nmconnection\b",
    r"/var/lib/iwd/(?P<ssid>[^/\r\n\"']+?)\.(?:psk|open|8021x)\b",
)
_SERIALS = (
    # Names that udev, VISA, pyserial and instruments make of serial numbers.
    r"/by-id/\w+-[^/\s\"']*_(?P<serial>[^/\s\"'_]+?)(?=-if\d|-port\d|-part\d|:\d|[/\s\"']|$)",
    r"\bUSB\d*::\w+::\w+::(?P<serial>[^:\s\"']+)(?=::)",
    r"\bjoulescope:(?P<serial>[\w-]+)",
    rf"\b(?:tty|cu)\.usbserial-{_SERIAL}",
    r"[\"'`][^\"'`,]+,[^\"'`,]+,(?P<serial>[^\"'`,]+),[^\"'`,]+[\"'`]",
    r"\*IDN\?[^,\r\n]{0,80},[^,\r\n]{1,60},\s*(?P<serial>[^\s,\"'`]+)\s*,",
    r"\bserial[ _-]?(?:number|num|no|nr)\b\.?\s*(?:[:=#]|is\b|of\b)?\s*[\"'`]?(?P<serial>[A-Z0-9][\w./-]*\w)",
    rf"(?<![\w/])S/N\s+[\"'`]?{_SERIAL}",
    r"\biSerial\s+\d+\s+(?P<serial>[^\s\"']+)",
    rf"\bdeviceId[\"']?\s*[:=]?\s*[\"']?{_SERIAL}",
)
_SECRETS = (
    r"\bBearer\s+(?P<secret>[\w.~+/-]{8,}=*)",
    r"authori[sz]ation[\"']?\s*[:=]\s*[\"']?(?:basic|token|apikey|negotiate|ntlm)\s+(?P<secret>[\w.~+/-]{4,}=*)",
    r"\bDigest\s[^\r\n]{0,500}?\bresponse=[\"']?(?P<secret>[^\s,\"']+)",
    # All of a cookie's pairs, and the value of the first, which may stand elsewhere.
    r"(?<![\w-])(?:set-)?cookie[\"']?\s*[:=]\s*[\"']?"
    r"(?P<secret>[\w.$-]+=[^\s;,\"']+(?:;\s*[\w.$-]+=[^\s;,\"']*)*)",
    r"(?<![\w-])(?:set-)?cookie[\"']?\s*[:=]\s*[\"']?[\w.$-]+=(?P<secret>[^\s;,\"']+)",
    r"(?<![\w-])--?(?:password|passphrase|psk|token|secret)[ =](?P<secret>[^\s\"']+)",
    # Tokens that say themselves what they are: of GitHub, GitLab, Slack.
    r"\b(?P<secret>gh[opsur]_[a-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{20,}|xox[a-z]-[\w-]{10,})",
    r"(?P<secret>-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$))",
)

BY_PLACE = _ignoring_case(*_USERS, *_HOSTS, *_SSIDS, *_SERIALS, *_SECRETS)
"""The groups of each are named by the kind of what they hold, ``secret`` for a secret."""

_BY_KEY: dict[Kind | None, tuple[str, ...]] = {
    Kind.SSID: (
        rf"(?<![a-z0-9])e?ssid\d*[\"']\s*(?P<sign>[:=])\s*{_VALUE}",
        rf"(?<![a-z0-9])e?ssid(?:\[\d+\]|\d*)(?:\s*(?P<sign>[:=])\s*|\s+(?:is\s+)?){_QUOTED}",
        rf"(?<![a-z0-9])e?ssid(?:\[\d+\]|\d*)[ \t]*(?P<sign>[:=])(?:(?=\S)|[ \t]+(?!{_NEXT})){_TO_THE_END}",
        # A line of iw; not a sentence that begins with the word.
        rf"(?:^[ \t]+|[\r\n][ \t]*)(?-i:ssid)[ \t]+{_TO_THE_END}",
        r"(?<![a-z0-9])ssid is (?P<bare>(?![\"'])\S[^\r\n]{0,200}?)(?=, wanted )",
        rf"(?<![a-z0-9])ssid is [^\r\n]{{1,200}}?, wanted (?:{_QUOTED}|{_TO_THE_END})",
        # Of netsh, of NetworkManager.
        rf"(?<![a-z0-9])(?-i:SSID) \d+[ \t]*:[ \t]*{_TO_THE_END}",
        rf"(?<![a-z0-9])ssid[\"'] value {_QUOTED}",
        rf"\bconnection {_QUOTED}(?=[^\r\n]{{0,100}}?\b(?:de)?activat)",
        rf"\bactivation: \(wi-?fi\) connection {_QUOTED}",
        # wpa_passphrase SSID PASSPHRASE; the latter has 8 to 63 characters, more in quotes.
        rf"\bwpa_passphrase[ \t]+{_VALUE}(?=[ \t]+(?:[\"'][^\r\n]{{8}}|(?=\S*\d)\S{{8}}))",
    ),
    Kind.HOST: (
        rf"(?<![a-z0-9])(?:host[_ ]?name|r?host|node|fqdn)[\"']?\s*(?P<sign>[:=])\s*(?!{_NEXT}){_VALUE}",
    ),
    Kind.USER: (
        rf"(?<![a-z0-9])(?:r?user(?:[_ ]?name)?|login|logname)[\"']?\s*(?P<sign>[:=])\s*(?!{_NEXT}){_VALUE}",
    ),
    Kind.SERIAL: (
        rf"(?<![a-z0-9])(?:serial|s/n|sn)[\"']?\s*(?P<sign>[:=#])\s*{_VALUE}",
        rf"(?<![a-z0-9])(?:serial[_-]?(?:number|short|num|no|nr)|seriennummer)[\"']?\s*(?P<sign>[:=#])\s*{_VALUE}",
        rf"\b(?-i:SER)(?P<sign>=){_VALUE}",
    ),
    None: (
        rf"{_BEFORE_IT}[\w-]{{0,40}}[\"']?\s*(?P<sign>[:=])\s*{_VALUE}",
        # PWD=/home is a folder.
        rf"(?<![a-z0-9])pwd[\"']?\s*(?P<sign>[:=])\s*(?![\"']?(?:[/~.]|[a-z]:\\)){_VALUE}",
        rf"(?<![\w-])(?:password|passphrase|psk)\s+(?:is\s+)?(?=[\"']){_VALUE}",
        rf"\b(?:password|passphrase|psk) is {_NO_WORD}{_VALUE}",
        rf"\b(?:password|passphrase|psk) {_NO_WORD}{_VALUE}(?= (?:(?:is|was) )?"
        r"(?:refused|rejected|denied|wrong|incorrect|invalid)\b)",
        # Of command lines.
        rf"\bsshpass\s+-p\s*{_VALUE}",
        rf"\bsnmp(?:bulk)?(?:get|getnext|walk|set|table)\s[^\r\n]{{0,200}}?(?<=\s)(?-i:-[cAX])\s*(?!public\b){_VALUE}",
        rf"\bwpa_passphrase[ \t]+{_ARGUMENT}[ \t]+(?=(?:[\"'][^\r\n]{{8}}|(?=\S*\d)\S{{8}})){_VALUE}",
    ),
}
BY_KEY = tuple((kind, pattern) for kind, patterns in _BY_KEY.items() for pattern in _ignoring_case(*patterns))
"""A kind (None: a secret) with what finds its value, quoted (groups ``dq``, ``sq``) or not (``bare``)."""
