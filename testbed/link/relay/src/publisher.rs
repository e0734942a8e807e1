// SPDX-License-Identifier: Apache-2.0
//! Who hears the statistics? Subscribers of a unix stream socket; none of them is ever waited for.

use std::io::{ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::error::LinkError;

/// Greatest length of a unix socket path, bytes (sun_path with its final NUL).
const PATH_BYTES_MAX: usize = 107;

/// The statistics socket. Its file is removed when this is dropped.
#[derive(Debug)]
pub struct Publisher {
    listener: UnixListener,
    path: PathBuf,
    subscribers: Vec<UnixStream>,
    dropped: u64,
}

impl Publisher {
    /// Listens at `path`; a socket that a dead link left there is replaced.
    ///
    /// # Errors
    /// [`LinkError::Usage`] when the place is taken or cannot be used.
    pub fn bind(path: &Path) -> Result<Self, LinkError> {
        let wrong = |sentence: &str| LinkError::Usage(format!("stats_socket {}: {sentence}", path.display()));
        if path.as_os_str().len() > PATH_BYTES_MAX {
            return Err(wrong("path is longer than 107 bytes; choose a shorter one"));
        }
        if let Ok(metadata) = std::fs::symlink_metadata(path) {
            if !metadata.file_type().is_socket() {
                return Err(wrong("exists and is no socket; choose another path"));
            }
            if UnixStream::connect(path).is_ok() {
                return Err(wrong("another link serves here; choose another path"));
            }
            std::fs::remove_file(path).map_err(|error| wrong(&format!("cannot be replaced: {error}")))?;
        }
        let listener = UnixListener::bind(path).map_err(|error| wrong(&format!("cannot listen: {error}")))?;
        listener.set_nonblocking(true).map_err(|error| wrong(&error.to_string()))?;
        Ok(Self { listener, path: path.to_owned(), subscribers: Vec::new(), dropped: 0 })
    }

    /// Takes in new subscribers.
    pub fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            if stream.set_nonblocking(true).is_ok() {
                self.subscribers.push(stream);
            }
        }
    }

    /// Sends lines (each with its newline) to all; who does not take them whole is let go.
    pub fn publish(&mut self, lines: &[u8]) {
        let dropped = &mut self.dropped;
        self.subscribers.retain_mut(|stream| match stream.write(lines) {
            Ok(written) if written == lines.len() => true,
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => false,
            _ => {
                *dropped += 1;
                false
            }
        });
    }

    /// Subscribers let go because they did not read.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl AsFd for Publisher {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        // Gone already is as good.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    fn place(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("netjoule-link-{name}-{}.sock", std::process::id()))
    }

    #[test]
    fn all_subscribers_hear_all_lines_and_the_slow_one_is_let_go() {
        let path = place("publish");
        let mut publisher = Publisher::bind(&path).unwrap();
        let quick = UnixStream::connect(&path).unwrap();
        let slow = UnixStream::connect(&path).unwrap();
        publisher.accept();
        let mut quick = BufReader::new(quick);
        let line = [b"x".repeat(1000), b"\n".to_vec()].concat();
        for _ in 0..2000 {
            publisher.publish(&line);
            let mut heard = String::new();
            quick.read_line(&mut heard).unwrap();
            assert_eq!(heard.as_bytes(), line);
        }
        assert_eq!((publisher.dropped(), publisher.subscribers.len()), (1, 1));
        drop(slow);
        drop(publisher);
        assert!(!path.exists());
    }

    #[test]
    fn a_dead_socket_is_replaced_and_a_living_one_is_not() {
        let path = place("replace");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let publisher = Publisher::bind(&path).unwrap();
        assert!(Publisher::bind(&path).unwrap_err().to_string().contains("another link serves here"));
        drop(publisher);
        std::fs::write(&path, "").unwrap();
        assert!(Publisher::bind(&path).unwrap_err().to_string().contains("is no socket"));
        std::fs::remove_file(&path).unwrap();
    }
}
