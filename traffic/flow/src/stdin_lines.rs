// SPDX-License-Identifier: Apache-2.0
//! What is said on stdin: lines that steer held flows ("go", "end").

use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};

use netjoule_measure::failure::{Code, Outcome};

/// Lines on stdin.
#[derive(Debug, Default)]
pub struct StdinLines {
    bytes: Vec<u8>,
    ended: bool,
}

impl StdinLines {
    /// Where `bytes` were read already.
    pub(crate) fn after(bytes: Vec<u8>) -> Self {
        Self { bytes, ended: false }
    }

    /// For whoever heeds them and may still hear something: the descriptor to wait for.
    pub(crate) fn fd(&self) -> Option<RawFd> {
        (!self.ended).then(|| io::stdin().as_raw_fd())
    }

    /// Read what is there; call when stdin is readable. One that cannot be read has ended.
    pub(crate) fn read(&mut self) {
        // Greater than the library's buffer, which is passed by then: nothing may stay where poll does not see it.
        let mut block = vec![0; 64 << 10];
        let length = io::stdin().read(&mut block).unwrap_or(0);
        self.ended |= length == 0;
        self.bytes.extend_from_slice(&block[..length]);
        // A line of this length is not one of ours.
        if !self.bytes.contains(&b'\n') {
            self.bytes.truncate(4096);
        }
    }

    /// Whether the next line is "go"; false while there is none.
    pub(crate) fn says_go(&mut self) -> Outcome<bool> {
        match self.take().as_deref() {
            Some("go") => Ok(true),
            Some(other) => Code::Usage.fail(format!("expected \"go\" on stdin, got {other:?}")),
            None if self.ended => Code::Interrupted.fail("stdin ended before \"go\""),
            None => Ok(false),
        }
    }

    /// Whether one of the lines that are there is "end", or nothing more will come. All are taken: stdin does not wake
    /// anybody for a line that was read with another.
    pub(crate) fn says_end(&mut self) -> bool {
        let mut told = self.ended;
        while let Some(line) = self.take() {
            told |= line == "end";
        }
        told
    }

    /// The next whole line.
    fn take(&mut self) -> Option<String> {
        let end = self.bytes.iter().position(|byte| *byte == b'\n')?;
        let line: Vec<u8> = self.bytes.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line).trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_one_by_one_and_only_whole() {
        let mut lines = StdinLines { bytes: b"go\nend".to_vec(), ended: false };
        assert_eq!((lines.take().as_deref(), lines.take()), (Some("go"), None));
        lines.bytes.push(b'\n');
        assert_eq!(lines.take().as_deref(), Some("end"));
    }

    #[test]
    fn the_end_is_heard_behind_other_lines_that_came_with_it() {
        let mut lines = StdinLines { bytes: b"x\nend\n".to_vec(), ended: false };
        assert!(lines.says_end());
        lines.bytes.extend_from_slice(b"x\n");
        assert!(!lines.says_end());
        lines.ended = true;
        assert!(lines.says_end());
    }
}
