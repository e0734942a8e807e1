# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from golden_sentences import raises

from netjoule_meters.emulated.declared_dialogue import DeclaredDialogue, load_declaration
from netjoule_meters.errors import UsageError

# The kind of file that pyvisa-sim's own documentation shows, and nothing else.
PLAIN = """
spec: "1.1"
devices:
  LSG:
    eom:
      ASRL INSTR: {q: "\\r\\n", r: "\\n"}
    error: ERROR
    dialogues:
      - {q: "?IDN", r: "LSG Serial #1234"}
      - {q: "!CAL"}
    properties:
      frequency:
        default: 100.0
        getter: {q: "?FREQ", r: "{:.2f}"}
        setter: {q: "!FREQ {:.2f}", r: "OK", e: "FREQ_ERROR"}
        specs: {min: 1, max: 100000, type: float}
      waveform:
        default: SIN
        getter: {q: "?WVF", r: "{}"}
        setter: {q: "!WVF {}"}
        specs: {valid: [SIN, SQR]}
"""


def declared(tmp_path, text=PLAIN, device="LSG"):
    path = tmp_path / "device.yaml"
    path.write_text(text)
    return load_declaration(path, device)


def device(tmp_path, text=PLAIN, **options):
    return DeclaredDialogue(declared(tmp_path, text), **options)


def test_dialogues_and_properties(tmp_path):
    lsg = device(tmp_path)
    assert lsg.receive(b"?IDN\r\n") == b"LSG Serial #1234\n"
    assert lsg.receive(b"!CAL\r\n") == b""
    assert lsg.receive(b"?FREQ\r\n!FREQ 10.3\r\n?FREQ\r\n") == b"100.00\nOK\n10.30\n"
    assert lsg.receive(b"!WVF SQR\r\n?WVF\r\n") == b"SQR\n"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (b"?FREQUENCY", b"ERROR\n"),
        (b"?idn", b"ERROR\n"),
        (b"!FREQ 0.5", b"FREQ_ERROR\n"),
        (b"!FREQ 1e9", b"FREQ_ERROR\n"),
        (b"!FREQ ten", b"FREQ_ERROR\n"),
        (b"!WVF TRI", b"ERROR\n"),
        (b"", b""),
    ],
)
def test_what_is_not_understood(tmp_path, question, answer):
    lsg = device(tmp_path)
    assert lsg.receive(question + b"\r\n") == answer
    assert lsg.values == {"frequency": 100.0, "waveform": "SIN"}


def test_bytes_may_come_in_pieces_and_too_many_are_lost(tmp_path):
    lsg = device(tmp_path)
    assert lsg.receive(b"?I") == lsg.receive(b"DN\r") == b""
    assert lsg.receive(b"\n") == b"LSG Serial #1234\n"
    lsg.receive(b"x" * 1000)
    assert lsg.receive(b"\r\n?IDN\r\n") == b"ERROR\nLSG Serial #1234\n"


def test_null_response_is_no_answer(tmp_path):
    assert device(tmp_path, PLAIN.replace("error: ERROR", "error: null_response")).receive(b"what\r\n") == b""


EXTENDED = """
spec: "1.1"
devices:
  LSG:
    ignore_case: true
    eom: {ASRL INSTR: {q: "\\r", r: "\\r"}}
    dialogues:
      - {q: "STATUS?", r: "{function} U{range}"}
      - {q: "VAR", set: {function: VAR}}
      - {q: "VAL?", call: value}
    properties:
      function: {default: WATT}
      range: {default: 3, setter: {q: "SET:U{}"}, specs: {type: int, valid: [1, 2, 3]}}
"""


def test_what_is_added_to_the_form(tmp_path):
    told = []
    answers = iter(["1.0", None])
    lsg = device(
        tmp_path,
        EXTENDED,
        calls={"value": lambda: next(answers)},
        changed=lambda *change: told.append(change),
    )
    assert lsg.receive(b"status?\rvar\rset:u2\rSet:U9\rSTATUS?\r") == b"WATT U3\rVAR U2\r"
    assert lsg.receive(b"VAL?\rVAL?\r") == b"1.0\r"
    assert told == [("function", "WATT", "VAR"), ("range", 3, 2)]


@pytest.mark.parametrize("calls", [{}, {"value": str, "other": str}])
def test_calls_must_be_those_of_the_file(tmp_path, calls):
    with raises(UsageError):
        device(tmp_path, EXTENDED, calls=calls)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('r: "LSG Serial #1234"', 'answer: "x"'),
        ('r: "LSG Serial #1234"', 'r: "x", call: y'),
        ("getter: {q", "getter: {question"),
        ("!WVF {}", "!WVF"),
        ("type: float", "type: complex"),
        ("    error: ERROR", "    channels: {}"),
        ('ASRL INSTR: {q: "\\r\\n", r: "\\n"}', "{}"),
        ('{q: "!CAL"}', "{q: x, set: {phase: 1}}"),
        ("  LSG:", "  OTHER:"),
        ("devices:", "instruments:"),
    ],
)
def test_a_wrong_file_names_the_place(tmp_path, old, new):
    assert old in PLAIN
    with raises(UsageError):
        declared(tmp_path, PLAIN.replace(old, new))
