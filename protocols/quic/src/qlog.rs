// SPDX-License-Identifier: Apache-2.0
//! Where does the record of a connection's events go (qlog, draft-ietf-quic-qlog-main-schema, as JSON-SEQ)?
//!
//! A client's goes to its file from the start. A server's stays in memory until its peer has proven itself, so that who
//! only knocks never writes to the disk.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::QuicError;

/// Ending of the file's name, as qlog viewers expect it of JSON-SEQ.
const ENDING: &str = "sqlog";

/// What an unproven peer may make this end remember, in bytes; what goes beyond is not recorded.
const HELD_BYTES: usize = 1 << 20;

enum Sink {
    Held(Vec<u8>),
    File(BufWriter<File>),
}

/// The record of one connection; clones write to the same.
#[derive(Clone)]
pub(crate) struct EventLog(Arc<Mutex<Sink>>);

impl EventLog {
    /// A record in memory.
    pub(crate) fn held() -> Self {
        Self(Arc::new(Mutex::new(Sink::Held(Vec::new()))))
    }

    /// Writes to the file `stem`.sqlog from now on, and what was held first.
    ///
    /// # Errors
    /// When the file cannot be made or written.
    pub(crate) fn keep(&self, stem: &Path) -> Result<(), QuicError> {
        let path = path(stem);
        let failed = |source| QuicError::EventLog { path: path.clone(), source };
        let mut sink = self.sink();
        if let Sink::Held(bytes) = &*sink {
            let mut file = BufWriter::new(File::create(&path).map_err(failed)?);
            file.write_all(bytes).map_err(failed)?;
            *sink = Sink::File(file);
        }
        Ok(())
    }

    /// Has `quic` record itself here, with `title`.
    pub(crate) fn attach(&self, quic: &mut quiche::Connection, title: &str) {
        let description = "one flow of netjoule-traffic".to_owned();
        quic.set_qlog(Box::new(self.clone()), title.to_owned(), description);
    }

    fn sink(&self) -> MutexGuard<'_, Sink> {
        // Writing does not panic half-way: what a poisoned lock holds is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for EventLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut *self.sink() {
            Sink::Held(held) => {
                if held.len() + bytes.len() <= HELD_BYTES {
                    held.extend_from_slice(bytes);
                }
                Ok(bytes.len())
            }
            Sink::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut *self.sink() {
            Sink::Held(_) => Ok(()),
            Sink::File(file) => file.flush(),
        }
    }
}

fn path(stem: &Path) -> PathBuf {
    // Not `with_extension`, which would cut off what follows a dot in the name.
    let mut name = stem.as_os_str().to_owned();
    name.push(".");
    name.push(ENDING);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_held_comes_first_in_the_file() {
        let folder = std::env::temp_dir().join(format!("netjoule-qlog-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let stem = folder.join("flow-1.5-server");
        let mut log = EventLog::held();
        log.write_all(b"before ").unwrap();
        assert!(!path(&stem).exists());
        log.keep(&stem).unwrap();
        log.write_all(b"after").unwrap();
        log.flush().unwrap();
        let written = std::fs::read(folder.join("flow-1.5-server.sqlog")).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(written, b"before after");
    }

    #[test]
    fn an_unproven_peer_fills_no_memory() {
        let mut log = EventLog::held();
        (0..2 * HELD_BYTES / 1000).for_each(|_| log.write_all(&[7; 1000]).unwrap());
        let Sink::Held(held) = &*log.sink() else { panic!("not held") };
        assert!(held.len() <= HELD_BYTES);
    }

    #[test]
    fn a_folder_that_does_not_exist_is_an_error_that_names_the_file() {
        let error = EventLog::held().keep(Path::new("/nonexistent/flow")).err().unwrap();
        assert!(error.to_string().contains("/nonexistent/flow.sqlog"), "{error}");
    }
}
