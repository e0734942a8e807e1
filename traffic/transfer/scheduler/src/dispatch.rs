// SPDX-License-Identifier: Apache-2.0
//! Which bytes of which file are next: files of each chunk, their parts, and what came of them.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use crate::level::{Left, Level, Share};

/// Of one part that was started; never used twice.
pub type PartId = u64;

/// What the caller is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask for bytes of a file.
    Start {
        /// Names the part from now on.
        part: PartId,
        /// Number of the file.
        file: usize,
        /// First byte.
        first: u64,
        /// Behind the last byte; to the file's end where it is not known.
        end: Option<u64>,
    },
    /// A part ends earlier than was asked for: another one has taken its rest.
    Limit {
        /// Which.
        part: PartId,
        /// Behind its last byte.
        end: u64,
    },
}

/// How a part ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It is whole.
    Done,
    /// What has not come is to be asked for again.
    Failed,
}

#[derive(Clone, Debug)]
struct File {
    chunk: usize,
    size: Option<u64>,
    has_ranges: bool,
    /// Nothing of it was started yet.
    is_untouched: bool,
    /// Parts that it is to come in.
    parts: u32,
    pending: VecDeque<Range<u64>>,
    /// Bytes that came, or were there before.
    received: u64,
    /// Parts under way.
    moving: u32,
    is_over: bool,
}

#[derive(Clone, Debug)]
struct Moving {
    file: usize,
    next: u64,
    end: Option<u64>,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    untouched: VecDeque<usize>,
    /// Begun, with bytes that nobody asked for yet.
    begun: VecDeque<usize>,
    parts: u32,
    left: Left,
}

/// All files of a transfer.
pub struct Dispatch {
    files: Vec<File>,
    queues: Vec<Queue>,
    moving: BTreeMap<PartId, Moving>,
    next_part: PartId,
    least_part_bytes: u64,
    /// Parts that a connection carries at once.
    streams: u32,
}

impl Dispatch {
    /// Files whose size may not be known yet, in one chunk, in this order.
    pub fn new(sizes: &[Option<u64>], least_part_bytes: u64, streams: u32) -> Self {
        let file = |size: &Option<u64>| File {
            chunk: 0,
            size: *size,
            has_ranges: true,
            is_untouched: true,
            parts: 1,
            pending: VecDeque::new(),
            received: 0,
            moving: 0,
            is_over: false,
        };
        let files: Vec<File> = sizes.iter().map(file).collect();
        let moving = BTreeMap::new();
        let mut dispatch =
            Self { files, queues: Vec::new(), moving, next_part: 0, least_part_bytes, streams };
        dispatch.divide(&[(0..sizes.len()).collect()]);
        dispatch
    }

    /// Numbers and sizes of the files that nothing was asked of yet, and whose size is known.
    pub fn untouched(&self) -> Vec<(usize, u64)> {
        let known = |(file, of): (usize, &File)| of.is_untouched.then_some(file).zip(of.size);
        self.files.iter().enumerate().filter_map(known).collect()
    }

    /// Puts files into chunks anew, in the order given. A file that no chunk names joins the last one.
    pub fn divide(&mut self, chunks: &[Vec<usize>]) {
        let last = chunks.len().saturating_sub(1);
        let mut named = vec![false; self.files.len()];
        let mut order: Vec<usize> = Vec::with_capacity(self.files.len());
        for (chunk, files) in chunks.iter().enumerate() {
            for file in files {
                self.files[*file].chunk = chunk;
                named[*file] = true;
                order.push(*file);
            }
        }
        for file in (0..self.files.len()).filter(|file| !named[*file]) {
            self.files[file].chunk = last;
            order.push(file);
        }
        self.queues = vec![Queue::default(); last + 1];
        for number in order {
            let file = &self.files[number];
            if file.is_over {
                continue;
            }
            let queue = &mut self.queues[file.chunk];
            queue.left.files += 1;
            queue.left.bytes += file.size.unwrap_or(0).saturating_sub(file.received);
            queue.parts += file.moving;
            if file.is_untouched {
                queue.untouched.push_back(number);
            } else if !file.pending.is_empty() {
                queue.begun.push_back(number);
            }
        }
    }

    /// Bytes of an untouched file that are there already: the rest is asked for in ranges.
    ///
    /// `size`: of the whole file. `there`: in order, apart from each other, within the file. A file with nothing
    /// left is over.
    pub fn resume(&mut self, number: usize, size: u64, there: &[Range<u64>]) {
        self.learn(number, size, true);
        let mut next = 0;
        let mut pending = VecDeque::new();
        for range in there.iter().chain(std::iter::once(&(size..size))) {
            if range.start > next {
                pending.push_back(next..range.start);
            }
            next = range.end;
        }
        let received: u64 = there.iter().map(|range| range.end - range.start).sum();
        let file = &mut self.files[number];
        file.is_untouched = false;
        file.pending = pending;
        file.received = received;
        let queue = &mut self.queues[file.chunk];
        queue.untouched.retain(|other| *other != number);
        queue.left.bytes -= received;
        if received == size {
            self.over(number);
        } else {
            queue.begun.push_back(number);
        }
    }

    /// What each chunk has left.
    pub fn left(&self) -> Vec<Left> {
        self.queues.iter().map(|queue| queue.left).collect()
    }

    /// Whether every file is whole or given up.
    pub fn is_finished(&self) -> bool {
        self.queues.iter().all(|queue| queue.left.files == 0)
    }

    /// Chunks that have bytes which nobody asked for yet.
    pub fn chunks_with_more(&self) -> usize {
        self.queues.iter().filter(|queue| !queue.begun.is_empty() || !queue.untouched.is_empty()).count()
    }

    /// What to do so that a level is used. While a chunk still has parts of a level before, over its share of this one,
    /// the others wait: there are never more parts than the level has connections for.
    pub fn fill(&mut self, level: &Level) -> Vec<Action> {
        let mut actions = Vec::new();
        let all = level.connections().saturating_mul(self.streams) as usize;
        for chunk in 0..self.queues.len() {
            let share = level.shares.get(chunk).copied().unwrap_or_default();
            let most = share.connections.saturating_mul(self.streams);
            let files = level.files(share).saturating_mul(self.streams);
            while self.queues[chunk].parts < most && self.moving.len() < all {
                let next = self.next_of(chunk, share, files, level.shared).map(|action| vec![action]);
                let next = next.or_else(|| self.split_longest(chunk, share));
                let Some(next) = next else { break };
                actions.extend(next);
            }
        }
        actions
    }

    /// A part of a file that is begun and may have another one, else of the next file.
    fn next_of(&mut self, chunk: usize, share: Share, files: u32, shared_out: bool) -> Option<Action> {
        let queue = &self.queues[chunk];
        let has_room = |file: &&usize| self.files[**file].moving < share.parallelism;
        if let Some(file) = queue.begun.iter().find(has_room).copied() {
            return Some(self.start(file));
        }
        if self.files_moving(chunk) >= files as usize {
            return None;
        }
        let file = self.queues[chunk].untouched.pop_front()?;
        self.open(file, share, shared_out);
        Some(self.start(file))
    }

    fn files_moving(&self, chunk: usize) -> usize {
        let mut files: Vec<usize> = self.moving.values().map(|part| part.file).collect();
        files.sort_unstable();
        files.dedup();
        files.iter().filter(|file| self.files[**file].chunk == chunk).count()
    }

    /// Divides an untouched file into parts. Where its size is not known, a first part tells it.
    fn open(&mut self, number: usize, share: Share, shared_out: bool) {
        let parts = match self.files[number].has_ranges {
            true if shared_out => self.parts_of(number, share),
            true => share.parallelism,
            false => 1,
        };
        let least = self.least_part_bytes;
        let file = &mut self.files[number];
        file.is_untouched = false;
        file.parts = parts;
        file.pending = match file.size {
            Some(size) => cut(0..size, parts, least),
            None if share.parallelism > 1 => one(0..least),
            None => one(0..u64::MAX),
        };
        self.queues[file.chunk].begun.push_back(number);
    }

    /// Where files share all connections, a chunk with fewer files than connections has enough parts for all, and as
    /// many again, so that a faster connection takes more.
    fn parts_of(&self, number: usize, share: Share) -> u32 {
        let files = self.queues[self.files[number].chunk].left.files.max(1);
        let wanted = u64::from(share.connections) * 2 / files;
        u32::try_from(wanted).unwrap_or(u32::MAX).clamp(1, 2 * share.connections.max(1))
    }

    fn start(&mut self, number: usize) -> Action {
        let part = self.next_part;
        self.next_part += 1;
        let file = &mut self.files[number];
        let range = file.pending.pop_front().unwrap_or(0..0);
        file.moving += 1;
        let end = (range.end != u64::MAX).then_some(range.end);
        let queue = &mut self.queues[file.chunk];
        queue.parts += 1;
        if file.pending.is_empty() {
            queue.begun.retain(|other| *other != number);
        }
        self.moving.insert(part, Moving { file: number, next: range.start, end });
        Action::Start { part, file: number, first: range.start, end }
    }

    /// Halves the longest rest of a file that may have another part, if both halves are worth a request. A connection
    /// that waited for the other parts of its file would lose its congestion window (RFC 5681, section 4.1).
    fn split_longest(&mut self, chunk: usize, share: Share) -> Option<Vec<Action>> {
        let rest = |part: &Moving| part.end.map_or(0, |end| end - part.next);
        let files = &self.files;
        let may = |part: &Moving| {
            let file = &files[part.file];
            file.chunk == chunk && file.has_ranges && file.moving < share.parallelism
        };
        let (part, moving) = self
            .moving
            .iter_mut()
            .filter(|(_, part)| may(part))
            .max_by_key(|(part, moving)| (rest(moving), **part))?;
        if rest(moving) < 2 * self.least_part_bytes {
            return None;
        }
        let end = moving.end?;
        let middle = end - rest(moving) / 2;
        moving.end = Some(middle);
        let (part, file) = (*part, moving.file);
        self.files[file].pending.push_front(middle..end);
        Some(vec![Action::Limit { part, end: middle }, self.start(file)])
    }

    /// Bytes of a part have come. Returns how many of them belong to it.
    pub fn received(&mut self, part: PartId, bytes: u64) -> u64 {
        let Some(moving) = self.moving.get_mut(&part) else { return 0 };
        let taken = moving.end.map_or(bytes, |end| bytes.min(end - moving.next));
        moving.next += taken;
        let file = &mut self.files[moving.file];
        file.received += taken;
        if file.size.is_some() {
            let left = &mut self.queues[file.chunk].left;
            left.bytes = left.bytes.saturating_sub(taken);
        }
        taken
    }

    /// A part has ended. One that ended before its end counts as failed.
    pub fn ended(&mut self, part: PartId, how: Ended) {
        let Some(moving) = self.moving.remove(&part) else { return };
        let number = moving.file;
        let file = &mut self.files[number];
        file.moving -= 1;
        let queue = &mut self.queues[file.chunk];
        queue.parts -= 1;
        if file.is_over {
            return;
        }
        match moving.end {
            Some(end) if moving.next < end => file.pending.push_front(moving.next..end),
            None if how == Ended::Failed => file.pending.push_front(moving.next..u64::MAX),
            // To its end, wherever that was.
            None => file.size = Some(moving.next),
            Some(_) => {}
        }
        if !file.pending.is_empty() {
            if !queue.begun.contains(&number) {
                queue.begun.push_front(number);
            }
        } else if file.moving == 0 {
            self.over(number);
        }
    }

    /// The size of a file is known now, and whether its server has ranges; without them it comes in one part.
    pub fn learn(&mut self, number: usize, size: u64, has_ranges: bool) {
        let file = &mut self.files[number];
        let queue = &mut self.queues[file.chunk];
        queue.left.bytes = (queue.left.bytes + size).saturating_sub(file.size.unwrap_or(0));
        if file.size.is_none() {
            queue.left.bytes = queue.left.bytes.saturating_sub(file.received);
        }
        let was_known = file.size.replace(size).is_some();
        file.has_ranges = has_ranges;
        if was_known || file.is_untouched {
            return;
        }
        let parts: Vec<&mut Moving> = self.moving.values_mut().filter(|part| part.file == number).collect();
        let asked_to = parts.iter().filter_map(|part| part.end).max();
        for part in parts {
            if !has_ranges || part.end.is_none_or(|end| end > size) {
                part.end = Some(size);
            }
        }
        if let Some(end) = asked_to.filter(|end| has_ranges && *end < size) {
            file.pending = cut(end..size, file.parts, self.least_part_bytes);
            if !queue.begun.contains(&number) {
                queue.begun.push_front(number);
            }
        }
    }

    /// A file begins anew, whole and in one part: it has changed, or its server has no ranges. Its parts must have
    /// ended before.
    pub fn restart(&mut self, number: usize, size: Option<u64>) {
        let file = &mut self.files[number];
        if file.is_over {
            return;
        }
        let queue = &mut self.queues[file.chunk];
        let before = file.size.map_or(0, |size| size.saturating_sub(file.received));
        queue.left.bytes = queue.left.bytes.saturating_sub(before) + size.unwrap_or(0);
        file.size = size;
        file.received = 0;
        file.has_ranges = false;
        file.is_untouched = false;
        file.pending = one(0..size.unwrap_or(u64::MAX));
        queue.untouched.retain(|other| *other != number);
        if !queue.begun.contains(&number) {
            queue.begun.push_front(number);
        }
    }

    /// A file will not come. What is under way of it no longer counts.
    pub fn give_up(&mut self, number: usize) {
        if !self.files[number].is_over {
            self.over(number);
        }
    }

    fn over(&mut self, number: usize) {
        let file = &mut self.files[number];
        let was_untouched = std::mem::replace(&mut file.is_untouched, false);
        let was_begun = !std::mem::take(&mut file.pending).is_empty();
        file.is_over = true;
        let queue = &mut self.queues[file.chunk];
        queue.left.files -= 1;
        queue.left.bytes =
            queue.left.bytes.saturating_sub(file.size.unwrap_or(0).saturating_sub(file.received));
        // Looking for it among all files each time would take the square of their number.
        if was_begun {
            queue.begun.retain(|other| *other != number);
        }
        if was_untouched {
            queue.untouched.retain(|other| *other != number);
        }
    }

    /// Whether a file is whole or given up.
    pub fn is_over(&self, number: usize) -> bool {
        self.files[number].is_over
    }
}

fn one(range: Range<u64>) -> VecDeque<Range<u64>> {
    std::iter::once(range).collect()
}

/// A range in so many parts of nearly the same length, or in fewer where they would be shorter than `least` bytes.
fn cut(range: Range<u64>, parts: u32, least: u64) -> VecDeque<Range<u64>> {
    let length = range.end - range.start;
    let parts = u64::from(parts).min(length / least).max(1);
    let edge = |k: u64| range.start + (u128::from(length) * u128::from(k) / u128::from(parts)) as u64;
    (0..parts).map(|k| edge(k)..edge(k + 1)).collect()
}
