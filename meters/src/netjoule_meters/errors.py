# SPDX-License-Identifier: Apache-2.0
"""What can go wrong between a program and a power meter.

MeterError                       one clear sentence: what, where, what to do next; ``exit_code``
+-- UsageError            (2)    the caller's fault: a setting, a file, a combination
+-- MeterUnavailable      (3)    the meter asked for is not there
|   +-- PortUnavailable          no such port, no permission, port in use, not a serial port
|   +-- NoAnswer                 the port opens, nothing answers
|   +-- WrongMode                something answers, but not in the language it must be switched to
|   +-- WrongInstrument          another instrument answers
+-- SettingRefused        (1)    the instrument refused or did not keep a setting
+-- LogWriteError         (1)    readings cannot be written
+-- InvalidLog            (4)    an existing file of readings is not one

DialogueError                    one exchange failed; the base class of adapters deals with these
+-- ReplyTimeout                 no (whole) answer in time; what came so far is kept
+-- ConnectionLost               the port is gone (cable pulled, program ended)
+-- GarbageReply                 an answer that cannot be read, or cannot be true
+-- Cancelled                    the caller asked to stop waiting
"""

from __future__ import annotations


class MeterError(Exception):
    """A failure to report to the person at the bench, in one sentence."""

    exit_code = 1


class UsageError(MeterError):
    """A setting, file or combination that cannot work."""

    exit_code = 2


class MeterUnavailable(MeterError):
    """The meter asked for is not there."""

    exit_code = 3


class PortUnavailable(MeterUnavailable):
    """The port does not exist, is not permitted, is in use or is not a serial port."""


class NoAnswer(MeterUnavailable):
    """The port opens and nothing answers."""


class WrongMode(MeterUnavailable):
    """Something answers in a language that the adapter does not speak."""


class WrongInstrument(MeterUnavailable):
    """Another instrument answers."""


class SettingRefused(MeterError):
    """The instrument refused a setting, or reads back another value."""


class LogWriteError(MeterError):
    """Readings cannot be written to disk."""


class InvalidLog(MeterError):
    """A file of readings that should be continued is not one."""

    exit_code = 4


class DialogueError(Exception):
    """One exchange with an instrument failed."""


class ReplyTimeout(DialogueError):
    """No whole answer came in time."""


class ConnectionLost(DialogueError):
    """The port is gone."""


class GarbageReply(DialogueError):
    """An answer that cannot be read or cannot be true."""


class Cancelled(DialogueError):
    """The wait was called off."""
