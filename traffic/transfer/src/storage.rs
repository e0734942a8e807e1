// SPDX-License-Identifier: Apache-2.0
//! Where bytes go: files, a ring of 64 MiB in memory (the same calls, bounded), or nowhere.
//!
//! A file grows as NAME.part and gets its name when all of it is there and verified. Beside it NAME.part.json says
//! which ranges have come, of which ETag, so that a later run goes on from there; without a strong ETag there is none.

use std::cell::Cell;
use std::fs::{File, TryLockError};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use nix::sys::memfd::{memfd_create, MemFdCreateFlag};
use rangemap::RangeSet;
use ring::digest;
use serde::{Deserialize, Serialize};

const RING_BYTES: u64 = 64 << 20;

/// Where all files of a transfer go.
#[derive(Debug)]
pub(crate) enum Storage {
    /// Files in this folder.
    Folder(PathBuf),
    /// Over each other, in memory.
    Ring(Ring),
    /// Counted and dropped.
    Nowhere,
}

/// A file on tmpfs that is written round and round.
#[derive(Debug)]
pub(crate) struct Ring {
    file: File,
    at: Cell<u64>,
}

impl Ring {
    /// In memory of this process, which goes with it.
    pub(crate) fn new() -> io::Result<Self> {
        let file = File::from(memfd_create(c"netjoule-transfer", MemFdCreateFlag::MFD_CLOEXEC)?);
        file.set_len(RING_BYTES)?;
        Ok(Self { file, at: Cell::new(0) })
    }

    fn write(&self, block: &[u8]) -> io::Result<()> {
        let length = block.len() as u64;
        let start = if self.at.get() + length > RING_BYTES { 0 } else { self.at.get() };
        self.at.set(start + length);
        self.file.write_all_at(block, start)
    }
}

/// Where one file goes.
#[derive(Debug)]
pub(crate) struct Target {
    /// Its name at the end; none where it is not kept.
    path: Option<PathBuf>,
    file: Option<File>,
    /// Whether what an earlier run left is part of it.
    goes_on: bool,
}

impl Target {
    /// For the file of this name; nothing is opened yet.
    pub(crate) fn new(storage: &Storage, name: &str) -> Self {
        let path = if let Storage::Folder(folder) = storage { Some(folder.join(name)) } else { None };
        Self { path, file: None, goes_on: false }
    }

    /// Put `block` at `offset`.
    pub(crate) fn write(&mut self, storage: &Storage, offset: u64, block: &[u8]) -> io::Result<()> {
        match storage {
            Storage::Nowhere => Ok(()),
            Storage::Ring(ring) => ring.write(block),
            Storage::Folder(_) => self.file()?.write_all_at(block, offset),
        }
    }

    /// What an earlier run left of it, if that can be gone on with.
    pub(crate) fn left(&self, url: &str, seed: Option<u64>) -> Option<Left> {
        let path = self.path.as_ref()?;
        let text = std::fs::read_to_string(beside(path, ".part.json")).ok()?;
        let left: Left = serde_json::from_str(&text).ok()?;
        let length = std::fs::metadata(beside(path, ".part")).ok()?.len();
        let fits =
            left.done.iter().all(|[from, until]| from < until && *until <= length.min(left.size_bytes));
        (left.url == url && left.seed == seed && fits).then_some(left)
    }

    /// What an earlier run left is part of it.
    pub(crate) fn go_on(&mut self) {
        self.goes_on = true;
    }

    /// Nothing of what was written is part of it any more.
    pub(crate) fn restart(&mut self) {
        self.file = None;
        self.goes_on = false;
    }

    /// Note what has come, for a later run.
    pub(crate) fn note(&self, left: &Left) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        // A note that is cut would take the one before with it.
        let (note, new) = (beside(path, ".part.json"), beside(path, ".part.json.new"));
        std::fs::write(&new, serde_json::to_vec(left)?)?;
        std::fs::rename(new, note)
    }

    /// SHA-256 of what was written; none where it is not kept.
    pub(crate) fn digest(&mut self) -> io::Result<Option<digest::Digest>> {
        if self.path.is_none() {
            return Ok(None);
        }
        digest_of(self.file()?).map(Some)
    }

    /// Give the file, which is whole and has `size` bytes, its name.
    pub(crate) fn finish(&mut self, size: u64) -> io::Result<()> {
        let Some(path) = self.path.clone() else { return Ok(()) };
        // An earlier, longer attempt may have left something behind the end.
        self.file()?.set_len(size)?;
        std::fs::rename(beside(&path, ".part"), &path)?;
        self.forget(&path)
    }

    /// Throw away what was written: it is wrong.
    pub(crate) fn discard(&mut self) -> io::Result<()> {
        let Some(path) = self.path.clone() else { return Ok(()) };
        self.file = None;
        gone(std::fs::remove_file(beside(&path, ".part")))?;
        self.forget(&path)
    }

    fn forget(&mut self, path: &Path) -> io::Result<()> {
        self.file = None;
        gone(std::fs::remove_file(beside(path, ".part.json")))
    }

    fn file(&mut self) -> io::Result<&File> {
        if self.file.is_none() {
            let path = self.path.as_ref().ok_or(io::ErrorKind::NotFound)?;
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            let (part, goes_on) = (beside(path, ".part"), self.goes_on);
            if !goes_on {
                // A note that speaks of other bytes would outlive them.
                gone(std::fs::remove_file(beside(path, ".part.json")))?;
            }
            let file = File::options().read(true).write(true).create(true).truncate(false).open(part)?;
            // The lock goes with the file; until then another run leaves it alone.
            file.try_lock().map_err(|error| match error {
                TryLockError::WouldBlock => {
                    io::Error::new(io::ErrorKind::ResourceBusy, "another run fetches it")
                }
                TryLockError::Error(error) => error,
            })?;
            if !goes_on {
                file.set_len(0)?;
            }
            self.file = Some(file);
        }
        self.file.as_ref().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// What has come of a file, as its NAME.part.json says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Left {
    url: String,
    /// Of the data set: servers may give the files of all seeds one ETag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    /// Strong ETag of all ranges.
    pub(crate) etag: String,
    /// Length of the whole file.
    pub(crate) size_bytes: u64,
    done: Vec<[u64; 2]>,
}

impl Left {
    /// Of a file that is under way.
    pub(crate) fn new(
        url: &str,
        seed: Option<u64>,
        etag: &str,
        size_bytes: u64,
        done: &RangeSet<u64>,
    ) -> Self {
        let done = done.iter().map(|range| [range.start, range.end]).collect();
        Self { url: url.into(), seed, etag: etag.into(), size_bytes, done }
    }

    /// The ranges that have come.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.done.iter().map(|[from, until]| *from..*until)
    }
}

/// SHA-256 of a file from its start, wherever it stands.
pub(crate) fn digest_of(file: &File) -> io::Result<digest::Digest> {
    let mut context = digest::Context::new(&digest::SHA256);
    let mut buffer = vec![0; 256 << 10];
    let mut offset = 0;
    loop {
        match file.read_at(&mut buffer, offset)? {
            0 => return Ok(context.finish()),
            length => {
                context.update(&buffer[..length]);
                offset += length as u64;
            }
        }
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_never_grows_and_takes_every_block() {
        let ring = Ring::new().unwrap();
        for block in [1_000, 1 << 20, 30 << 20, 33 << 20, 64 << 20] {
            ring.write(&vec![1; block]).unwrap();
        }
        assert_eq!(ring.file.metadata().unwrap().len(), RING_BYTES);
    }
}
