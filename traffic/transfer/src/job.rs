// SPDX-License-Identifier: Apache-2.0
//! One file of a transfer: where it is, what has come of it, and whether that is right.

use std::cell::{Cell, RefCell};
use std::io;
use std::ops::Range;
use std::time::Instant;

use rangemap::RangeSet;
use ring::digest;
use url::Url;

use crate::fault::{Fault, Trouble};
use crate::network::response::Coming;
use crate::sets::signature::Signed;
use crate::storage::{hexadecimal, Left, Storage, Target};

/// Bytes in a row that are noted as there at once: noting each block would cost more than writing a small one.
const NOTED_BYTES: u64 = 64 << 10;

/// What is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// Path below the folder.
    pub(crate) name: String,
    /// Where it is.
    pub(crate) url: Url,
    /// Length, where it is promised.
    pub(crate) size: Option<u64>,
    /// SHA-256 in hexadecimal digits, where it is promised.
    pub(crate) sha256: Option<String>,
    /// Of a data set.
    pub(crate) signed: Option<Signed>,
}

/// Scheme of what is made in memory in place of fetched, and the word for it after `--from`.
pub(crate) const MEMORY: &str = "memory";

/// A file of a transfer.
pub(crate) struct Job {
    /// As it was asked for.
    pub(crate) item: Item,
    /// Where it is now, redirects followed.
    pub(crate) url: RefCell<Url>,
    /// Length, where it is known.
    pub(crate) size: Cell<Option<u64>>,
    /// The strong ETag of all that has come.
    pub(crate) etag: RefCell<Option<String>>,
    /// Requests under way.
    pub(crate) parts: Cell<u32>,
    /// How often it began anew, and since when.
    pub(crate) restarts: Cell<u32>,
    pub(crate) restarting_since: Cell<Option<Instant>>,
    /// How it ended.
    pub(crate) outcome: RefCell<Option<Result<(), Fault>>>,
    target: RefCell<Target>,
    done: RefCell<RangeSet<u64>>,
    hash: RefCell<Option<InOrder>>,
    /// Something has come that the note beside the file does not say.
    is_news: Cell<bool>,
    /// Whether the ETag is that of an answer, or of what an earlier run left.
    was_answered: Cell<bool>,
}

/// SHA-256 of what came in order.
struct InOrder {
    context: digest::Context,
    next: u64,
}

impl InOrder {
    fn new() -> Self {
        Self { context: digest::Context::new(&digest::SHA256), next: 0 }
    }
}

impl Job {
    /// Nothing has come yet.
    pub(crate) fn new(item: Item, storage: &Storage) -> Self {
        let hash = item.sha256.is_some().then(InOrder::new);
        Self {
            url: RefCell::new(item.url.clone()),
            size: Cell::new(item.size),
            etag: RefCell::default(),
            parts: Cell::new(0),
            restarts: Cell::new(0),
            restarting_since: Cell::new(None),
            outcome: RefCell::default(),
            target: RefCell::new(Target::new(storage, &item.name)),
            done: RefCell::default(),
            hash: RefCell::new(hash),
            is_news: Cell::new(false),
            was_answered: Cell::new(false),
            item,
        }
    }

    /// Go on with what an earlier run left: length of the file, and what of it is there.
    pub(crate) fn resume(&self) -> Option<(u64, Vec<Range<u64>>)> {
        let left = self.target.borrow().left(self.item.url.as_str(), self.seed())?;
        if self.item.size.is_some_and(|size| size != left.size_bytes) {
            return None;
        }
        self.done.borrow_mut().extend(left.ranges());
        self.size.set(Some(left.size_bytes));
        self.etag.replace(Some(left.etag.clone()));
        self.was_answered.set(true);
        self.target.borrow_mut().go_on();
        Some((left.size_bytes, self.done.borrow().iter().cloned().collect()))
    }

    fn seed(&self) -> Option<u64> {
        self.item.signed.map(|signed| signed.seed)
    }

    /// Whether parts of it may come out of order: a hash of what is not kept needs them in order.
    pub(crate) fn may_be_divided(&self, storage: &Storage) -> bool {
        self.item.sha256.is_none() || matches!(storage, Storage::Folder(_))
    }

    /// Nothing of it has come or is under way but for one request.
    pub(crate) fn is_first(&self) -> bool {
        self.parts.get() <= 1 && self.done.borrow().is_empty() && self.size.get().is_none()
    }

    /// What an answer says of it. True where its length was not known before.
    ///
    /// # Errors
    /// When the answer is of another file than those before.
    pub(crate) fn learn(&self, coming: &Coming) -> Result<bool, Trouble> {
        let mut etag = self.etag.borrow_mut();
        // One without an ETag says nothing of the file that another one is of.
        let is_other = self.was_answered.replace(true) && coming.etag != *etag;
        let is_longer = self.size.get().is_some_and(|size| coming.size.is_some_and(|other| other != size));
        if is_other || is_longer {
            let words = format!("{} was changed", self.url.borrow());
            return Err(Trouble::Restart(Fault::changed(words)));
        }
        etag.clone_from(&coming.etag);
        let is_new = self.size.get().is_none() && coming.size.is_some();
        self.size.set(self.size.get().or(coming.size));
        Ok(is_new)
    }

    /// Hold bytes to the signatures of a data set, and hash them where that is asked for.
    pub(crate) fn check(&self, offset: u64, bytes: &[u8]) -> Result<(), Fault> {
        if let Some(wrong) = self.item.signed.and_then(|signed| signed.wrong_at(offset, bytes)) {
            let words =
                format!("{}: byte {wrong} and those behind are not those of the data set", self.url.borrow());
            return Err(Fault::new("signature", words));
        }
        if let Some(hash) = self.hash.borrow_mut().as_mut().filter(|hash| hash.next == offset) {
            hash.context.update(bytes);
            hash.next += bytes.len() as u64;
        }
        Ok(())
    }

    /// Forget what has come: it is of another file, or cannot be put together.
    pub(crate) fn restart(&self) {
        self.target.borrow_mut().restart();
        self.was_answered.set(false);
        self.done.borrow_mut().clear();
        self.etag.replace(None);
        self.size.set(self.item.size);
        self.hash.replace(self.item.sha256.is_some().then(InOrder::new));
        self.restarts.set(self.restarts.get() + 1);
        self.restarting_since.set(self.restarting_since.get().or_else(|| Some(Instant::now())));
        self.is_news.set(true);
    }

    /// For a later run: what has come, if that is news and can be gone on with.
    pub(crate) fn note(&self) -> io::Result<()> {
        if !self.is_news.replace(false) {
            return Ok(());
        }
        let (etag, size) = (self.etag.borrow(), self.size.get());
        let (Some(etag), Some(size)) = (etag.as_ref(), size) else { return Ok(()) };
        let left = Left::new(self.item.url.as_str(), self.seed(), etag, size, &self.done.borrow());
        self.target.borrow().note(&left)
    }

    /// Everything has come: hold it to what was promised, and give it its name.
    pub(crate) fn finish(&self) -> Result<(), Fault> {
        let storage = |error: io::Error| Fault::new("storage", format!("{}: {error}", self.item.name));
        let is_there = |size: u64| size == 0 || self.done.borrow().gaps(&(0..size)).next().is_none();
        let is_right = |size: &u64| is_there(*size) && self.item.size.is_none_or(|wanted| wanted == *size);
        let Some(size) = self.size.get().filter(is_right) else {
            self.discard();
            let words = format!("{}: what came is not all that was promised", self.url.borrow());
            return Err(Fault::new("length", words));
        };
        let right = self.is_hash_right(size).map_err(storage)?;
        let mut target = self.target.borrow_mut();
        if !right {
            target.discard().map_err(storage)?;
            let words = format!("{}: its SHA-256 is not the one that was promised", self.url.borrow());
            return Err(Fault::new("hash", words));
        }
        target.finish(size).map_err(storage)
    }

    fn is_hash_right(&self, size: u64) -> io::Result<bool> {
        let Some(wanted) = &self.item.sha256 else { return Ok(true) };
        let in_order = self.hash.borrow_mut().take().filter(|hash| hash.next == size);
        let found = match in_order {
            Some(hash) => Some(hash.context.finish()),
            None => self.target.borrow_mut().digest()?,
        };
        Ok(found.is_some_and(|found| hexadecimal(found.as_ref()).eq_ignore_ascii_case(wanted)))
    }

    /// Throw away what has come: it is wrong.
    pub(crate) fn discard(&self) {
        // What cannot be removed has no final name at least.
        let _ = self.target.borrow_mut().discard();
    }
}

/// Writes the bytes of one answer in blocks of one size.
pub(crate) struct Writer {
    block_bytes: usize,
    /// Behind the last byte that was written.
    at: u64,
    /// What is written but not noted begins here.
    noted: u64,
    /// Less than a block.
    rest: Vec<u8>,
}

impl Writer {
    /// From `at` on.
    pub(crate) fn new(block_bytes: usize, at: u64) -> Self {
        Self { block_bytes, at, noted: at, rest: Vec::new() }
    }

    /// The next bytes.
    pub(crate) fn put(&mut self, job: &Job, storage: &Storage, mut bytes: &[u8]) -> io::Result<()> {
        if !self.rest.is_empty() {
            let taken = bytes.len().min(self.block_bytes - self.rest.len());
            self.rest.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if self.rest.len() < self.block_bytes {
                return Ok(());
            }
            self.write_rest(job, storage)?;
        }
        let mut blocks = bytes.chunks_exact(self.block_bytes);
        for block in &mut blocks {
            self.write(job, storage, block)?;
        }
        self.rest.extend_from_slice(blocks.remainder());
        Ok(())
    }

    /// What is less than a block, too.
    pub(crate) fn flush(&mut self, job: &Job, storage: &Storage) -> io::Result<()> {
        let written = self.write_rest(job, storage);
        self.note(job);
        written
    }

    fn write_rest(&mut self, job: &Job, storage: &Storage) -> io::Result<()> {
        let mut rest = std::mem::take(&mut self.rest);
        if !rest.is_empty() {
            self.write(job, storage, &rest)?;
            rest.clear();
        }
        self.rest = rest;
        Ok(())
    }

    fn write(&mut self, job: &Job, storage: &Storage, block: &[u8]) -> io::Result<()> {
        job.target.borrow_mut().write(storage, self.at, block)?;
        self.at += block.len() as u64;
        if self.at - self.noted >= NOTED_BYTES {
            self.note(job);
        }
        Ok(())
    }

    fn note(&mut self, job: &Job) {
        if self.at > self.noted {
            job.done.borrow_mut().insert(self.noted..self.at);
            job.is_news.set(true);
            self.noted = self.at;
        }
    }
}
