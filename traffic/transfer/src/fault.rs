// SPDX-License-Identifier: Apache-2.0
//! Why a file did not come: a name for programs and one sentence for people, and what may help.

use std::time::Duration;

use serde::Serialize;

/// What went wrong with a file or an origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Fault {
    /// Machine-readable name of the case.
    pub(crate) code: &'static str,
    /// What, where, and what to do.
    pub(crate) sentence: String,
}

impl Fault {
    /// A fault of this kind.
    pub(crate) fn new(code: &'static str, sentence: impl Into<String>) -> Self {
        Self { code, sentence: sentence.into() }
    }

    /// The file was another one than before, or came otherwise than was asked for.
    pub(crate) fn changed(sentence: impl Into<String>) -> Self {
        Self::new("changed", sentence)
    }

    /// Exit code of a command in which this was the gravest: 4 where what came is not what was promised, 3 where this
    /// host has no room, else 1.
    pub(crate) fn exit(&self) -> u8 {
        match self.code {
            "hash" | "signature" | "length" | "changed" => 4,
            "storage" => 3,
            _ => 1,
        }
    }
}

/// What one request ended with, where it was not its bytes.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The connection was gone before the first byte of an answer: the same again, elsewhere.
    Unanswered(String),
    /// The answer broke off: on from there.
    Broken(String),
    /// The server is busy: again after a time, which it may have told.
    Busy(Option<Duration>, String),
    /// There is another file there now, no ranges, or no way to go on: from the start, in one piece. What is wrong where
    /// that does not help.
    Restart(Fault),
    /// It is somewhere else.
    Moved(url::Url),
    /// Of this file: nothing will help.
    Final(Fault),
    /// Of all files of this server.
    Server(Fault),
    /// Of all files: this host is to blame.
    Fatal(Fault),
}
