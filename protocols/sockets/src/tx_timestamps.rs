// SPDX-License-Identifier: Apache-2.0
//! When datagrams left this host: transmit time stamps from the socket's error queue
//! (Documentation/networking/timestamping.rst, `SOF_TIMESTAMPING_TX_SOFTWARE`).
//!
//! The kernel numbers the calls that send (`OPT_ID`) and stamps each when its device takes it; a GSO train is one call. One
//! more socket buffer and a part of a call per message are the price, so it is only done when asked for.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, RawFd};

use socket2::Socket;

use crate::ancillary::{Ancillary, STAMPING, STAMPING_BEFORE_5_1};
use crate::socket::{set_option, unsent_bytes};
use crate::timestamps::{ClockReading, TimestampClock};
use crate::{Result, TransportError};

/// Stamps read per call.
const BATCH: usize = 32;
/// Room for the control messages of one stamp: three times, an extended error and an address.
const CONTROL_WORDS: usize = 32;
/// After this many calls the error queue is read, so that it never fills the socket's buffer.
const CALLS_PER_READ: usize = 64;
/// Calls whose stamps may be outstanding, and stamps that may wait to be taken.
const MOST_WAITING: usize = 1 << 16;

/// A datagram, or a train of them, on its way out of the sending host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// When it was handed over, `CLOCK_MONOTONIC` ns.
    pub sent_ns: i64,
    /// When the device took it, by the kernel's stamp, `CLOCK_MONOTONIC` ns. Not before `sent_ns`, unless a launch time was
    /// not kept.
    pub left_ns: i64,
    /// When it was to leave, for one with a launch time ([`crate::launch_times::LaunchTimes`]).
    pub launch_ns: Option<i64>,
}

/// Asks for transmit stamps and joins them with the messages that they belong to.
pub struct TxTimestamps {
    clock: TimestampClock,
    calls: Calls,
    calls_since_read: usize,
    told: VecDeque<Departure>,
    missing: u64,
    controls: Vec<[u64; CONTROL_WORDS]>,
    headers: Vec<libc::mmsghdr>,
}

impl std::fmt::Debug for TxTimestamps {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("TxTimestamps").field("missing", &self.missing).finish_non_exhaustive()
    }
}

impl TxTimestamps {
    /// Ask the kernel for stamps of everything that `socket` sends from now on.
    pub fn ask(socket: &Socket) -> Result<Self> {
        number_from_zero(socket.as_raw_fd()).map_err(TransportError::io("ask for transmit time stamps"))?;
        let mut controls = vec![[0_u64; CONTROL_WORDS]; BATCH];
        let headers = controls
            .iter_mut()
            .map(|control| {
                // SAFETY: all-zero bytes are a valid msghdr; a stamp comes without any of the packet's bytes.
                let mut header: libc::mmsghdr = unsafe { mem::zeroed() };
                header.msg_hdr.msg_control = control.as_mut_ptr().cast();
                header
            })
            .collect();
        Ok(Self {
            clock: TimestampClock::new(ClockReading::take()),
            calls: Calls::default(),
            calls_since_read: 0,
            told: VecDeque::new(),
            missing: 0,
            controls,
            headers,
        })
    }

    /// One hand-over has sent all of `calls`, which the kernel counts one by one also within a `sendmmsg`.
    ///
    /// They have to come together: some may have left, and a stamp that is read before its call is known is lost.
    pub fn sent(&mut self, socket: &Socket, calls: impl IntoIterator<Item = Call>) -> io::Result<()> {
        for call in calls {
            self.missing += self.calls.push(call);
            self.calls_since_read += 1;
        }
        if self.calls_since_read >= CALLS_PER_READ {
            self.read(socket.as_raw_fd())?;
        }
        Ok(())
    }

    /// A call is about to send: begin the numbers anew where that is wanted and everything before has left. Just after a call
    /// it never has, but over a device that takes packets at once.
    pub fn before_sending(&mut self, socket: &Socket) -> io::Result<()> {
        self.number_anew(socket)
    }

    /// Read the stamps that are there: while there are any, the socket counts as ready for whoever polls it.
    pub fn collect(&mut self, socket: &Socket) -> io::Result<()> {
        self.read(socket.as_raw_fd())?;
        self.number_anew(socket)
    }

    /// A call has failed, or one within a `sendmmsg` that was cut short. Whether the kernel counted it depends on its version (6.8), so the numbers begin anew. That has to
    /// wait until everything has left: a packet on its way keeps its old number. What is sent until then goes without stamps.
    pub fn refused(&mut self, socket: &Socket) -> io::Result<()> {
        self.calls.numbers_are_unsure = true;
        self.number_anew(socket)
    }

    /// Begin the numbers anew where that is wanted and nothing is on its way.
    fn number_anew(&mut self, socket: &Socket) -> io::Result<()> {
        let fd = socket.as_raw_fd();
        if !self.calls.numbers_are_unsure || unsent_bytes(fd) != Some(0) {
            return Ok(());
        }
        // A packet that has left has been stamped.
        self.read(fd)?;
        self.missing += self.calls.forget();
        number_from_zero(fd)
    }

    /// Give everything that has been stamped to `sink`.
    pub fn take(&mut self, socket: &Socket, sink: &mut dyn FnMut(Departure)) -> io::Result<()> {
        self.read(socket.as_raw_fd())?;
        self.number_anew(socket)?;
        self.told.drain(..).for_each(sink);
        Ok(())
    }

    /// Calls without a stamp: it was lost, could not be told from others, is outstanding, or nobody took it in time.
    pub fn missing(&self) -> u64 {
        self.missing + self.calls.outstanding()
    }

    /// Read the whole error queue.
    fn read(&mut self, fd: RawFd) -> io::Result<()> {
        self.calls_since_read = 0;
        loop {
            for header in &mut self.headers {
                header.msg_hdr.msg_controllen = size_of::<[u64; CONTROL_WORDS]>() as _;
            }
            // SAFETY: every header points at a control buffer that self owns and that never moves.
            let count = unsafe {
                let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
                libc::recvmmsg(fd, self.headers.as_mut_ptr(), BATCH as _, flags as _, std::ptr::null_mut())
            };
            if count < 0 {
                let error = io::Error::last_os_error();
                return if error.kind() == io::ErrorKind::WouldBlock { Ok(()) } else { Err(error) };
            }
            self.clock.look(ClockReading::take());
            debug_assert_eq!(self.controls.len(), self.headers.len());
            for index in 0..count as usize {
                // SAFETY: the kernel filled this control buffer up to msg_controllen.
                let entry = unsafe { Ancillary::of(&self.headers[index].msg_hdr) };
                if let (Some(stamp_ns), Some(call)) = (entry.stamp_ns, entry.departed) {
                    self.join(stamp_ns, call);
                }
            }
            if (count as usize) < BATCH {
                return Ok(());
            }
        }
    }

    fn join(&mut self, stamp_ns: i64, call: u32) {
        let Some(call) = self.calls.take(call) else { return };
        match self.clock.monotonic_ns(Some(stamp_ns)) {
            Some(stamped_ns) if self.told.len() < MOST_WAITING => {
                let left_ns = call.left_ns(stamped_ns, self.clock.error_ns());
                let Call { sent_ns, launch_ns } = call;
                self.told.push_back(Departure { sent_ns, left_ns, launch_ns });
            }
            _ => self.missing += 1,
        }
    }
}

/// Switch stamping off and on, which sets the kernel's count of calls to zero.
fn number_from_zero(fd: RawFd) -> io::Result<()> {
    let wanted = libc::SOF_TIMESTAMPING_TX_SOFTWARE
        | libc::SOF_TIMESTAMPING_SOFTWARE
        | libc::SOF_TIMESTAMPING_OPT_ID
        | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    let set = |name| {
        set_option(fd, libc::SOL_SOCKET, name, 0)?;
        set_option(fd, libc::SOL_SOCKET, name, wanted as libc::c_int)
    };
    set(STAMPING).or_else(|_| set(STAMPING_BEFORE_5_1))
}

/// A call that sent something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// When it was handed over, `CLOCK_MONOTONIC` ns.
    pub sent_ns: i64,
    /// When it is to leave, if it has a launch time.
    pub launch_ns: Option<i64>,
}

impl Call {
    /// When it left, by a stamp that is wrong by up to `error_ns`. Nothing leaves before it is sent: a stamp that says so is
    /// off by the clocks' noise. A launch may be early, but not within that noise.
    fn left_ns(self, stamped_ns: i64, error_ns: i64) -> i64 {
        match self.launch_ns {
            Some(launch_ns) if stamped_ns < launch_ns.saturating_sub(error_ns) => stamped_ns,
            Some(launch_ns) => stamped_ns.max(launch_ns),
            None => stamped_ns.max(self.sent_ns),
        }
    }
}

/// The calls whose stamps are outstanding. Pure.
#[derive(Debug, Default)]
struct Calls {
    /// Number of the first in `made`.
    first: u32,
    /// `None`: its stamp has come.
    made: VecDeque<Option<Call>>,
    /// A call has failed since: those after it have numbers that nobody knows.
    numbers_are_unsure: bool,
}

impl Calls {
    /// The next call; how many were given up: one to make room, or this one, when its number is not known.
    fn push(&mut self, call: Call) -> u64 {
        if self.numbers_are_unsure {
            return 1;
        }
        self.made.push_back(Some(call));
        if self.made.len() <= MOST_WAITING {
            return 0;
        }
        self.first = self.first.wrapping_add(1);
        self.made.pop_front().flatten().map_or(0, |_| 1)
    }

    /// Call `number`; `None` when it is not outstanding.
    fn take(&mut self, number: u32) -> Option<Call> {
        let index = number.wrapping_sub(self.first) as usize;
        let call = self.made.get_mut(index)?.take();
        while self.made.front().is_some_and(Option::is_none) {
            self.made.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        call
    }

    fn outstanding(&self) -> u64 {
        self.made.iter().flatten().count() as u64
    }

    /// The next call is number 0; how many were outstanding.
    fn forget(&mut self) -> u64 {
        let outstanding = self.outstanding();
        *self = Self::default();
        outstanding
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::send_segmented;
    use crate::send_batch::SendBatch;
    use crate::socket;
    use crate::timestamps::now_ns;
    use proptest::prelude::*;
    use std::net::SocketAddr;

    fn connected(address: &str) -> (Socket, Socket) {
        let address: SocketAddr = address.parse().unwrap();
        let [near, far] = [(); 2].map(|()| socket::datagram(address).unwrap());
        near.connect(&far.local_addr().unwrap()).unwrap();
        (near, far)
    }

    #[test]
    fn every_datagram_and_every_train_over_loopback_is_stamped_while_it_is_sent() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let (near, _far) = connected(address);
            let mut departures = TxTimestamps::ask(&near).unwrap();
            let (mut sending, mut told) = (Vec::new(), Vec::new());
            for number in 0..3 * CALLS_PER_READ {
                let before_ns = now_ns();
                if number % 3 == 0 {
                    send_segmented(near.as_raw_fd(), &[1; 200], 50).unwrap();
                } else {
                    near.send(&[1; 50]).unwrap();
                }
                sending.push((before_ns, now_ns()));
                departures.sent(&near, [made_at(before_ns)]).unwrap();
            }
            departures.take(&near, &mut |departure| told.push(departure)).unwrap();
            assert_eq!((told.len(), departures.missing()), (sending.len(), 0), "{address}");
            for (departure, (before_ns, after_ns)) in told.iter().zip(&sending) {
                assert_eq!(departure.sent_ns, *before_ns);
                // Over loopback the device has the packet before the call returns. 2 us: noise of the clocks.
                assert!(
                    (*before_ns..=after_ns + 2_000).contains(&departure.left_ns),
                    "{address}: {departure:?}"
                );
            }
        }
    }

    #[test]
    fn no_stamp_is_lost_of_batches_that_leave_within_the_call() {
        let (near, _far) = connected("127.0.0.1:0");
        let mut departures = TxTimestamps::ask(&near).unwrap();
        let (mut batch, mut told) = (SendBatch::new(BATCH), 0);
        // No multiple of a batch: the queue is due to be read within one.
        near.send(&[1; 50]).unwrap();
        departures.sent(&near, [made_at(now_ns())]).unwrap();
        for _ in 0..20 {
            let sent_ns = now_ns();
            let taken = batch.send(near.as_raw_fd(), &[1; 50 * BATCH], 50).unwrap();
            departures.sent(&near, (0..taken).map(|_| made_at(sent_ns))).unwrap();
        }
        departures.take(&near, &mut |_| told += 1).unwrap();
        assert_eq!((told, departures.missing()), (1 + 20 * BATCH, 0));
    }

    #[test]
    fn after_a_refused_call_the_numbers_begin_anew() {
        let (near, _far) = connected("127.0.0.1:0");
        let mut departures = TxTimestamps::ask(&near).unwrap();
        let mut told = Vec::new();
        for sent_ns in [10, 20] {
            departures.before_sending(&near).unwrap();
            near.send(&[1; 50]).unwrap();
            departures.sent(&near, [made_at(sent_ns)]).unwrap();
            assert!(near.send(&vec![1; 100_000]).is_err(), "larger than any datagram");
            departures.refused(&near).unwrap();
        }
        departures.before_sending(&near).unwrap();
        near.send(&[1; 50]).unwrap();
        departures.sent(&near, [made_at(30)]).unwrap();
        departures.take(&near, &mut |departure| told.push(departure.sent_ns)).unwrap();
        assert_eq!(told, [10, 20, 30]);
    }

    #[test]
    fn after_a_refused_call_nothing_is_joined_until_everything_has_left() {
        let mut calls = Calls::default();
        for sent_ns in [10, 20, 30] {
            assert_eq!(calls.push(made_at(sent_ns)), 0);
        }
        // 0 has left, 1 and 2 are in the device's queue when a call fails.
        assert_eq!(calls.take(0), Some(made_at(10)));
        calls.numbers_are_unsure = true;
        assert_eq!([40, 50].map(|sent_ns| calls.push(made_at(sent_ns))), [1, 1], "they count as missing");
        // Old ones keep their numbers; those after the failure have 3 and 4, or 4 and 5.
        assert_eq!([1, 3, 4, 5].map(|number| calls.take(number)), [Some(made_at(20)), None, None, None]);
        assert_eq!(calls.forget(), 1);
        assert_eq!(calls.push(made_at(60)), 0);
        assert_eq!(calls.take(0), Some(made_at(60)));
    }

    /// A socket that has something unsent, as a UDP socket over loopback never has: nobody reads at its other end.
    #[test]
    fn after_a_refusal_numbers_begin_anew_with_the_first_call_that_finds_nothing_on_its_way() {
        let (near, _far) = connected("127.0.0.1:0");
        let mut departures = TxTimestamps::ask(&near).unwrap();
        let (full, _unread) = Socket::pair(socket2::Domain::UNIX, socket2::Type::DGRAM, None).unwrap();
        full.send(&[1; 50]).unwrap();
        departures.refused(&full).unwrap();
        departures.before_sending(&full).unwrap();
        departures.sent(&full, [made_at(10)]).unwrap();
        assert_eq!((departures.calls.numbers_are_unsure, departures.missing()), (true, 1));
        // The first one has nothing on its way.
        departures.before_sending(&near).unwrap();
        near.send(&[1; 50]).unwrap();
        departures.sent(&near, [made_at(20)]).unwrap();
        let mut told = Vec::new();
        departures.take(&near, &mut |departure| told.push(departure.sent_ns)).unwrap();
        assert_eq!((told, departures.calls.numbers_are_unsure, departures.missing()), (vec![20], false, 1));
    }

    fn made_at(sent_ns: i64) -> Call {
        Call { sent_ns, launch_ns: None }
    }

    proptest! {
        /// Stamps come in any order, some never: each is joined with its own call, and what is missing is counted.
        #[test]
        fn stamps_find_their_calls(
            first in prop_oneof![Just(0_u32), Just(u32::MAX - 20)],
            count in 1_u32..200,
            lost in proptest::collection::hash_set(0_u32..200, 0..20),
            swaps in proptest::collection::vec((0_usize..200, 0_usize..200), 0..50),
        ) {
            let mut calls = Calls { first, ..Calls::default() };
            for call in 0..count {
                prop_assert_eq!(calls.push(made_at(i64::from(call))), 0);
            }
            let mut stamped: Vec<u32> = (0..count).filter(|call| !lost.contains(call)).collect();
            for (one, other) in swaps {
                if one.max(other) < stamped.len() {
                    stamped.swap(one, other);
                }
            }
            for call in &stamped {
                prop_assert_eq!(calls.take(first.wrapping_add(*call)), Some(made_at(i64::from(*call))));
                prop_assert_eq!(calls.take(first.wrapping_add(*call)), None);
            }
            prop_assert_eq!(calls.outstanding(), u64::from(count) - stamped.len() as u64);
        }
    }

    #[test]
    fn calls_that_never_get_a_stamp_do_not_fill_the_memory() {
        let mut calls = Calls::default();
        let given_up: u64 = (0..MOST_WAITING as i64 + 10).map(|call| calls.push(made_at(call))).sum();
        assert_eq!((given_up, calls.made.len()), (10, MOST_WAITING));
        assert_eq!(calls.take(10), Some(made_at(10)));
    }

    #[test]
    fn a_launch_is_early_when_its_stamp_is_so_by_more_than_the_clocks_noise() {
        let launched = Call { sent_ns: 500, launch_ns: Some(500) };
        let told = |stamped_ns| launched.left_ns(stamped_ns, 20);
        assert_eq!([479, 480, 499, 500, 700].map(told), [479, 500, 500, 500, 700]);
        assert_eq!([479, 500, 700].map(|stamped_ns| made_at(500).left_ns(stamped_ns, 20)), [500, 500, 700]);
    }
}
