// SPDX-License-Identifier: Apache-2.0
//! One part of one file: ask, hold the answer to what was asked, write, and ask again where it broke off.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::io::ErrorKind;
use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{header, HeaderValue, Request, Version};
use http_body_util::Empty;
use netjoule_scheduler::scheduler::Scheduler;

use crate::fault::{Fault, Trouble};
use crate::job::{Job, Writer, MEMORY};
use crate::network::connection::Answer;
use crate::network::options::Options;
use crate::network::origin::Origin;
use crate::network::pool::{Lease, Pool};
use crate::network::response::{judge, Asked, Coming};
use crate::storage::Storage;

/// Redirects of one file, at most.
const MOST_MOVES: u32 = 10;

/// Longest wait that a server may ask for, and how often it may.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
const MOST_BUSY: u32 = 8;

/// First and longest pause before the same is asked for again.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// More of an answer that is of no use is not read for the connection's sake, bytes.
const DRAINED_BYTES: usize = 64 << 10;

/// Bytes that are made at once, as many as a read of a socket brings.
const MADE_BYTES: usize = 64 << 10;

/// What all parts of a transfer share.
pub(crate) struct Transfer {
    /// The files, in the scheduler's order.
    pub(crate) jobs: Vec<Job>,
    /// Where bytes go.
    pub(crate) storage: Storage,
    /// What comes next.
    pub(crate) scheduler: RefCell<Scheduler>,
    /// How connections are made.
    pub(crate) options: Rc<Options>,
    /// Connections by server.
    pub(crate) pools: RefCell<BTreeMap<Origin, Rc<Pool>>>,
    /// Requests at once on one connection.
    pub(crate) streams: u32,
    /// Connections, at most, now.
    pub(crate) most_connections: Cell<u32>,
    /// Size of each write.
    pub(crate) block_bytes: usize,
    /// Silence after which a connection is given up.
    pub(crate) silence: Duration,
    /// Bytes of files so far.
    pub(crate) bytes: Cell<u64>,
    /// Requests that were made again.
    pub(crate) retries: Cell<u64>,
}

/// A part under way.
#[derive(Debug)]
pub(crate) struct Part {
    /// The scheduler's name for it.
    pub(crate) id: u64,
    /// Which file.
    pub(crate) file: usize,
    /// Its first byte.
    pub(crate) first: u64,
    /// The byte that is to come next.
    pub(crate) next: u64,
    /// Behind the last one; the end of the file when not known.
    pub(crate) end: Option<u64>,
}

impl Transfer {
    fn pool(&self, origin: Origin) -> Rc<Pool> {
        let mut pools = self.pools.borrow_mut();
        let new = |origin: &Origin| {
            let most = self.most_connections.get();
            Rc::new(Pool::new(origin.clone(), self.options.clone(), self.streams, most))
        };
        pools.entry(origin.clone()).or_insert_with(|| new(&origin)).clone()
    }

    /// A request is made again.
    pub(crate) fn again(&self) {
        self.retries.set(self.retries.get() + 1);
    }
}

/// Counts a part of its file while it is under way, however it ends.
struct UnderWay<'a>(&'a Job);

impl<'a> UnderWay<'a> {
    fn new(job: &'a Job) -> Self {
        job.parts.set(job.parts.get() + 1);
        Self(job)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.parts.set(self.0.parts.get() - 1);
    }
}

/// All of a part, with as many requests as that takes.
pub(crate) async fn part(transfer: Rc<Transfer>, mut part: Part) -> Result<(), Trouble> {
    let job = &transfer.jobs[part.file];
    let _under_way = UnderWay::new(job);
    if job.item.url.scheme() == MEMORY {
        return make(&transfer, job, &mut part).await;
    }
    let mut effort = Effort::new(job.restarts.get());
    loop {
        let before = part.next;
        let trouble = match attempt(&transfer, job, &mut part).await {
            Ok(true) => return Ok(()),
            Ok(false) => {
                effort.came(part.next > before);
                continue;
            }
            Err(trouble) => trouble,
        };
        effort.came(part.next > before);
        let pause = match trouble {
            Trouble::Moved(url) => {
                effort.moves += 1;
                if effort.moves > MOST_MOVES {
                    let words =
                        format!("{} is somewhere else each time: {MOST_MOVES} redirects", job.item.url);
                    return Err(Trouble::Final(Fault::new("http_status", words)));
                }
                job.url.replace(url);
                continue;
            }
            Trouble::Unanswered(words) | Trouble::Broken(words) => {
                effort.pause(words, transfer.options.patience)?
            }
            Trouble::Busy(wait, words) => effort.wait(wait, words, transfer.bytes.get())?,
            other => return Err(other),
        };
        transfer.again();
        tokio::time::sleep(pause).await;
    }
}

/// How much was tried since something came.
struct Effort {
    /// How often the file began anew before.
    restarts: u32,
    since: Instant,
    failures: u32,
    busy: u32,
    /// Bytes of all files when the server was busy last.
    bytes: u64,
    moves: u32,
}

impl Effort {
    fn new(restarts: u32) -> Self {
        Self { restarts, since: Instant::now(), failures: 0, busy: 0, bytes: 0, moves: 0 }
    }

    fn came(&mut self, something: bool) {
        if something {
            *self = Self { moves: self.moves, ..Self::new(self.restarts) };
        }
    }

    /// The pause before the next attempt, each twice as long.
    fn pause(&mut self, words: String, patience: Duration) -> Result<Duration, Trouble> {
        if self.failures == 0 {
            // Before that it may have waited for a connection.
            self.since = Instant::now();
        } else if self.since.elapsed() > patience {
            return Err(Trouble::Final(Fault::new("connection", words)));
        }
        let pause =
            FIRST_PAUSE.saturating_mul(1 << (self.restarts + self.failures).min(8)).min(LONGEST_PAUSE);
        self.failures += 1;
        Ok(pause)
    }

    /// What the server asks for, within limits. One that sends other bytes meanwhile has no room for this request yet,
    /// and is asked again as long as it does.
    fn wait(&mut self, asked: Option<Duration>, words: String, bytes: u64) -> Result<Duration, Trouble> {
        let before = std::mem::replace(&mut self.bytes, bytes);
        let others_came = self.busy > 0 && bytes > before;
        self.busy = if others_came { self.busy.min(3) } else { self.busy } + 1;
        let wait = asked.unwrap_or_else(|| FIRST_PAUSE.saturating_mul(1 << self.busy.min(8)));
        if self.busy > MOST_BUSY || wait > LONGEST_WAIT {
            return Err(Trouble::Final(Fault::new("busy", format!("{words}: try again later"))));
        }
        // Time that the server asked for is not time in which nothing came.
        self.since = Instant::now() + wait;
        Ok(wait)
    }
}

/// One request. True when the part is over, false when the server sent less than was asked for.
async fn attempt(transfer: &Transfer, job: &Job, part: &mut Part) -> Result<bool, Trouble> {
    let asked = asked(job, part)?;
    let (mut lease, mut answer) = ask(transfer, &asked).await?;
    if answer.head.version == Version::HTTP_10 || is_closing(&answer) {
        lease.connection.retire();
    }
    let coming = match judge(&asked, &answer.head).and_then(|coming| Ok((job.learn(&coming)?, coming))) {
        Ok((is_new, coming)) => {
            told(transfer, job, part, &coming, is_new);
            coming
        }
        Err(trouble) => {
            drain(transfer, &mut lease, &mut answer).await;
            return Err(trouble);
        }
    };
    let mut writer = Writer::new(transfer.block_bytes, part.next);
    let came = receive(transfer, job, part, &mut answer, &mut writer).await;
    // What was counted must be there, whatever ended the answer.
    writer.flush(job, &transfer.storage).map_err(|error| no_room(transfer, job, &error))?;
    let is_limited = came?;
    if is_limited {
        return Ok(true);
    }
    lease.is_over();
    if coming.end.or(part.end).is_some_and(|end| part.next < end.min(part.end.unwrap_or(end))) {
        return Err(Trouble::Broken(format!("{} ended early", asked.url)));
    }
    if coming.end.is_none() && part.end.is_none() {
        job.size.set(Some(part.next));
    }
    Ok(part.end.is_none_or(|end| part.next >= end))
}

/// What to ask for: all of a file as such, less as a range.
fn asked(job: &Job, part: &Part) -> Result<Asked, Trouble> {
    let url = job.url.borrow().clone();
    let (size, etag) = (job.size.get(), job.etag.borrow().clone());
    let end = part.end.or(size);
    let is_whole = part.next == 0 && (end.is_none() || end == size);
    if part.next > part.first && (etag.is_none() || end.is_none()) {
        let why = "broke off, and without a length and a strong ETag it cannot be gone on with";
        return Err(Trouble::Restart(Fault::new("connection", format!("{url} {why}"))));
    }
    let range = end.filter(|_| !is_whole).map(|end| part.next..end);
    let (is_promised, is_first) = (job.item.size.is_some(), part.next == 0 && job.is_first());
    Ok(Asked { range, size, is_promised, etag, is_first, url })
}

/// The answer and the connection that it comes over. One that was open already may have been closed by the server just
/// then: the request is made again on another one.
async fn ask(transfer: &Transfer, asked: &Asked) -> Result<(Lease, Answer), Trouble> {
    let unknown = || Trouble::Final(Fault::new("usage", format!("{} is no URL of http or https", asked.url)));
    let origin = Origin::of(&asked.url).ok_or_else(unknown)?;
    let pool = transfer.pool(origin.clone());
    loop {
        let lease = pool.lease().await?;
        let request = request(asked, &origin, pool.server.borrow().http_version != Some("1.1"));
        match in_time(transfer, lease.connection.ask(request)).await {
            Ok(answer) => {
                let software = answer.head.headers.get(header::SERVER).and_then(|value| value.to_str().ok());
                if let Some(software) = software {
                    pool.server.borrow_mut().software = Some(software.to_owned());
                }
                return Ok((lease, answer));
            }
            Err(why) => {
                lease.connection.retire();
                if lease.connection.speaks_otherwise.get() {
                    return Err(origin.speaks_otherwise());
                }
                if lease.connection.answered.get() == 0 {
                    return Err(Trouble::Unanswered(format!("{} does not answer: {why}", asked.url)));
                }
                transfer.again();
            }
        }
    }
}

fn request(asked: &Asked, origin: &Origin, is_absolute: bool) -> Request<Empty<Bytes>> {
    let target = &asked.url[url::Position::BeforePath..url::Position::AfterQuery];
    let uri = if is_absolute { format!("{origin}{target}") } else { target.to_owned() };
    let mut request = Request::get(uri)
        .header(header::USER_AGENT, concat!("netjoule-transfer/", env!("CARGO_PKG_VERSION")))
        .header(header::ACCEPT, "*/*")
        // Compressed, it would be another file.
        .header(header::ACCEPT_ENCODING, "identity");
    if !is_absolute {
        request = request.header(header::HOST, origin.authority());
    }
    if let Some(range) = &asked.range {
        request = request.header(header::RANGE, bytes_of(range));
        if let Some(etag) = asked.etag.as_ref().and_then(|etag| HeaderValue::from_str(etag).ok()) {
            request = request.header(header::IF_RANGE, etag);
        }
    }
    request.body(Empty::new()).expect("a URL's own parts are a request")
}

fn bytes_of(range: &Range<u64>) -> String {
    format!("bytes={}-{}", range.start, range.end - 1)
}

fn is_closing(answer: &Answer) -> bool {
    let value = answer.head.headers.get(header::CONNECTION).and_then(|value| value.to_str().ok());
    value.is_some_and(|value| value.split(',').any(|word| word.trim().eq_ignore_ascii_case("close")))
}

/// Tell the scheduler what the answer says.
fn told(transfer: &Transfer, job: &Job, part: &mut Part, coming: &Coming, is_new: bool) {
    let ranges = coming.ranges && job.may_be_divided(&transfer.storage);
    let Some(size) = job.size.get().filter(|_| is_new || !ranges) else { return };
    transfer.scheduler.borrow_mut().learn(part.file, size, ranges);
    if !is_new {
        return;
    }
    part.end = match part.end {
        Some(end) if ranges => Some(end.min(size)),
        _ => Some(size),
    };
}

/// The bytes of an answer. True when another part has taken the rest.
async fn receive(
    transfer: &Transfer,
    job: &Job,
    part: &mut Part,
    answer: &mut Answer,
    writer: &mut Writer,
) -> Result<bool, Trouble> {
    loop {
        let chunk = in_time(transfer, answer.chunk()).await;
        let Some(bytes) = chunk.map_err(|why| Trouble::Broken(format!("{}: {why}", job.url.borrow())))?
        else {
            return Ok(false);
        };
        if keep(transfer, job, part, &bytes, writer)? {
            return Ok(true);
        }
    }
}

/// Check, write and count bytes that have come. True when another part has taken the rest.
fn keep(
    transfer: &Transfer,
    job: &Job,
    part: &mut Part,
    bytes: &[u8],
    writer: &mut Writer,
) -> Result<bool, Trouble> {
    let taken = transfer.scheduler.borrow_mut().received(part.id, bytes.len() as u64);
    let mine = &bytes[..taken as usize];
    job.check(part.next, mine).map_err(Trouble::Final)?;
    writer.put(job, &transfer.storage, mine).map_err(|error| no_room(transfer, job, &error))?;
    part.next += taken;
    transfer.bytes.set(transfer.bytes.get() + taken);
    if mine.len() < bytes.len() && job.size.get() == Some(part.next) {
        let words =
            format!("{} is longer than the {} bytes that it should have", job.url.borrow(), part.next);
        return Err(Trouble::Final(Fault::new("length", words)));
    }
    Ok(mine.len() < bytes.len())
}

/// A part that nobody is asked for: its bytes are made, and then are as if they had come.
async fn make(transfer: &Transfer, job: &Job, part: &mut Part) -> Result<(), Trouble> {
    let end = part.end.or(job.size.get()).unwrap_or(part.next);
    let mut writer = Writer::new(transfer.block_bytes, part.next);
    let mut room = vec![0; MADE_BYTES];
    while part.next < end {
        let bytes = &mut room[..(end - part.next).min(MADE_BYTES as u64) as usize];
        if let Some(signed) = job.item.signed {
            signed.put(part.next, bytes);
        }
        if keep(transfer, job, part, bytes, &mut writer)? {
            break;
        }
        tokio::task::yield_now().await;
    }
    writer.flush(job, &transfer.storage).map_err(|error| no_room(transfer, job, &error))
}

/// Read what is of no use, if it is little: that is cheaper than another connection.
async fn drain(transfer: &Transfer, lease: &mut Lease, answer: &mut Answer) {
    let mut room = DRAINED_BYTES;
    while let Ok(chunk) = in_time(transfer, answer.chunk()).await {
        let Some(bytes) = chunk else { return lease.is_over() };
        let Some(left) = room.checked_sub(bytes.len()) else { return };
        room = left;
    }
}

async fn in_time<T>(transfer: &Transfer, work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let silence = transfer.silence;
    let timed = tokio::time::timeout(silence, work).await;
    timed.unwrap_or_else(|_| Err(format!("nothing came for {} s", silence.as_secs_f64())))
}

fn no_room(transfer: &Transfer, job: &Job, error: &std::io::Error) -> Trouble {
    let place = match &transfer.storage {
        Storage::Folder(folder) => format!("{} in {}", job.item.name, folder.display()),
        Storage::Ring(_) | Storage::Nowhere => "the ring in memory".to_owned(),
    };
    let fault = |what: &str| Fault::new("storage", format!("writing {place}: {error}{what}"));
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::OutOfMemory => {
            Trouble::Fatal(fault(": make room and start again"))
        }
        ErrorKind::ReadOnlyFilesystem => Trouble::Fatal(fault(": name another folder with --out")),
        ErrorKind::ResourceBusy => Trouble::Final(fault(": wait for it, or name another folder with --out")),
        _ => Trouble::Final(fault("")),
    }
}
