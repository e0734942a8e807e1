// SPDX-License-Identifier: Apache-2.0
//! What a command prints: lines of JSON for machines, or a few lines for people.

use std::io::Write;

use serde::Serialize;
use serde_json::{json, Value};

use crate::failure::{Code, Failure, Outcome};
use crate::process::program;

/// Where the words go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// One JSON object per line on stdout.
    Json,
    /// The same for the process that started this one for a flow: people are told by that one.
    Relayed,
    /// Plain lines on stdout, by whoever knows all flows of a command.
    Plain,
    /// Nothing (the server's flows: the client prints both halves).
    Silent,
}

impl Output {
    /// Whether events are printed.
    pub fn is_json(self) -> bool {
        matches!(self, Self::Json | Self::Relayed)
    }

    /// An event with its fields (a JSON object).
    pub fn event(self, name: &str, fields: Value) -> Outcome<()> {
        if !self.is_json() {
            return Ok(());
        }
        let mut line = json!({ "event": name });
        if let (Value::Object(line), Value::Object(fields)) = (&mut line, fields) {
            line.extend(fields);
        }
        write(&line.to_string())
    }

    /// A line for a person.
    pub fn say(self, words: impl FnOnce() -> String) -> Outcome<()> {
        if self == Self::Plain {
            write(&words())?;
        }
        Ok(())
    }

    /// Several of one kind, an event each.
    pub fn events(self, name: &str, items: &[impl Serialize]) -> Outcome<()> {
        items.iter().try_for_each(|item| self.document(name, item))
    }

    /// An event whose fields are those of a document.
    pub fn document(self, name: &str, document: &impl Serialize) -> Outcome<()> {
        if !self.is_json() {
            return Ok(());
        }
        self.event(name, serde_json::to_value(document).expect("reports always serialise"))
    }

    /// One line for a person on stderr.
    pub fn complain(self, message: &str) {
        if self == Self::Relayed {
            return;
        }
        // Nothing is left to do when stderr is gone too.
        let _ = std::io::stderr().write_all(format!("{}: {message}\n", program()).as_bytes());
    }

    /// A failure: an event for machines, always one line on stderr.
    pub fn failure(self, failure: &Failure) {
        // Nothing is left to do when stdout is gone too.
        let _ = self.event("error", json!({ "code": failure.code.name(), "message": failure.message }));
        self.complain(&failure.message);
    }
}

/// Write a line to stdout now, in one piece: a server's flows, each a process, share it.
pub fn write(line: &str) -> Outcome<()> {
    let mut stdout = std::io::stdout().lock();
    let _turn = crate::stdout_lock::on_stdout();
    stdout
        .write_all(format!("{line}\n").as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::new(Code::Interrupted, format!("stdout was closed: {error}")))
}
