// SPDX-License-Identifier: Apache-2.0
//! What is said on stdin.

use std::io::{self, Read};

use super::{Session, StdinUse};

impl Session<'_> {
    pub(super) fn hear_stdin(&mut self) {
        let mut bytes = [0; 8 << 10];
        match io::stdin().lock().read(&mut bytes) {
            Ok(0) | Err(_) => {
                self.events.stdin_ended = true;
                self.events.interrupted |= self.stdin_use == StdinUse::EndStops;
            }
            Ok(length) if self.stdin_use == StdinUse::Lines => self.hear_lines(&bytes[..length]),
            Ok(_) => {}
        }
    }

    /// Lines of stdin, the last of them perhaps unfinished.
    pub fn hear_lines(&mut self, bytes: &[u8]) {
        self.stdin_bytes.extend_from_slice(bytes);
        while let Some(end) = self.stdin_bytes.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.stdin_bytes.drain(..=end).collect();
            self.events.lines.push(String::from_utf8_lossy(&line).trim().to_owned());
        }
        // A line of this length is not one of ours.
        self.stdin_bytes.truncate(4096);
    }
}
