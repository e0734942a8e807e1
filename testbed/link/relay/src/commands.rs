// SPDX-License-Identifier: Apache-2.0
//! What is the running link told? Lines on standard input.

use std::io::Stdin;
use std::os::fd::AsRawFd;

use nix::errno::Errno;

/// Longest command, bytes; the rest of a longer one is not kept.
const LINE_BYTES_MAX: usize = 65_536;

/// Standard input, read by lines without ever waiting for the end of one.
#[derive(Debug, Default)]
pub struct Commands {
    rest: Vec<u8>,
}

impl Commands {
    /// The lines that are complete with what has come on `stdin`; `None` at its end.
    pub fn read(&mut self, stdin: &Stdin) -> Option<Vec<String>> {
        let mut buffer = [0u8; 4096];
        // Not through the buffer of `stdin`: what that holds back no poll would tell of.
        match nix::unistd::read(stdin.as_raw_fd(), &mut buffer) {
            Ok(0) => return None,
            Ok(bytes) => self.rest.extend(&buffer[..bytes]),
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            Err(_) => return None,
        }
        let mut lines = Vec::new();
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            lines.push(String::from_utf8_lossy(&self.rest[..end]).into_owned());
            self.rest.drain(..=end);
        }
        self.rest.truncate(LINE_BYTES_MAX);
        Some(lines)
    }
}
