// SPDX-License-Identifier: Apache-2.0
//! A small engine for tests: waits for descriptors and timers as the real one does, with a deadline.

// Each test file is its own crate and uses a part of this.
#![allow(dead_code)]

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{BorrowedFd, RawFd};

use netjoule_transport::message::Header;
use netjoule_transport::{
    FlowSpec, PollFd, Protocol, Result, Role, State, Stop, Transport, TransportError, Values,
};
use nix::poll::{ppoll, PollFd as NixPollFd, PollFlags};
use nix::sys::time::TimeSpec;
use nix::time::{clock_gettime, ClockId};

/// Longer than anything here takes; only a test that hangs meets it.
const PATIENCE_NS: i64 = 20_000_000_000;

pub(crate) fn now_ns() -> i64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap();
    now.tv_sec() * 1_000_000_000 + now.tv_nsec()
}

/// Sleeps until one of `ends` wants service, or until `deadline_ns`.
pub(crate) fn wait(ends: &[&dyn Transport], deadline_ns: i64) {
    let mut wanted: Vec<PollFd> = Vec::new();
    ends.iter().for_each(|end| end.poll_fds(&mut wanted));
    let wakeup_ns = ends.iter().filter_map(|end| end.next_wakeup_ns()).min().unwrap_or(i64::MAX);
    let mut fds: Vec<NixPollFd<'_>> = wanted
        .iter()
        .map(|poll| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::POLLIN, poll.read);
            flags.set(PollFlags::POLLOUT, poll.write);
            // SAFETY: the transports own the descriptors and outlive this call.
            NixPollFd::new(unsafe { BorrowedFd::borrow_raw(poll.fd) }, flags)
        })
        .collect();
    let sleep_ns = (wakeup_ns.min(deadline_ns) - now_ns()).max(0);
    let timeout = TimeSpec::new(sleep_ns / 1_000_000_000, sleep_ns % 1_000_000_000);
    ppoll(&mut fds, Some(timeout), None).unwrap();
}

/// Whether something waits to be read, now.
pub(crate) fn is_readable(fd: RawFd) -> bool {
    // SAFETY: the caller's transport owns the descriptor and outlives this call.
    let mut fds = [NixPollFd::new(unsafe { BorrowedFd::borrow_raw(fd) }, PollFlags::POLLIN)];
    ppoll(&mut fds, Some(TimeSpec::new(0, 0)), None).unwrap() > 0
}

pub(crate) fn flow(role: Role, payload_bytes: usize) -> FlowSpec {
    FlowSpec {
        payload_bytes,
        role,
        token: *b"0123456789abcdef",
        gso: false,
        seed: 7,
        rate_bps: 0,
        options: Values::new(),
        event_log: None,
    }
}

pub(crate) fn opposite(role: Role) -> Role {
    match role {
        Role::Sender => Role::Receiver,
        Role::Receiver => Role::Sender,
    }
}

/// A client and a server end, not yet open.
pub(crate) fn ends(
    protocol: &dyn Protocol,
    address: &str,
    client_flow: &FlowSpec,
    server_flow: &FlowSpec,
) -> (Box<dyn Transport>, Box<dyn Transport>) {
    let ip: IpAddr = address.parse().unwrap();
    let server = protocol.listen(SocketAddr::new(ip, 0), Some(ip), server_flow).unwrap();
    let remote = server.local_address().unwrap();
    let client = protocol.connect(Some(ip), remote, client_flow, &server.offer(), now_ns()).unwrap();
    (client, server)
}

/// Services both until both are open, or one fails.
pub(crate) fn open(client: &mut dyn Transport, server: &mut dyn Transport) -> Result<()> {
    let deadline_ns = now_ns() + PATIENCE_NS;
    loop {
        let states = [server.service(now_ns())?, client.service(now_ns())?];
        if states == [State::Open, State::Open] {
            return Ok(());
        }
        if now_ns() > deadline_ns {
            return Err(TransportError::Lost("the test ran out of patience".to_owned()));
        }
        wait(&[&*client, &*server], deadline_ns);
    }
}

/// What a test flow did.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) sent: u64,
    pub(crate) refused: u64,
    pub(crate) sequences: Vec<u64>,
    pub(crate) damaged: u64,
}

/// Sends `count` messages as fast as the transport takes them and receives until all of them are in
/// or, where they can be lost, until nothing more comes.
pub(crate) fn run(
    sender: &mut dyn Transport,
    receiver: &mut dyn Transport,
    bytes: usize,
    count: u64,
) -> Tally {
    let mut tally = Tally::default();
    let mut message = vec![0x5a; bytes];
    let deadline_ns = now_ns() + PATIENCE_NS;
    let mut finished = false;
    loop {
        while tally.sent + tally.refused < count {
            Header { sequence: tally.sent, sent_ns: now_ns() }.write(&mut message);
            match sender.send(&message, now_ns()).unwrap() {
                Stop::None => tally.sent += 1,
                Stop::Refused => {
                    tally.refused += 1;
                    break;
                }
                Stop::WouldBlock | Stop::QueueFull => break,
            }
        }
        sender.flush(now_ns()).unwrap();
        if !finished && tally.sent + tally.refused == count {
            sender.finish(now_ns()).unwrap();
            finished = true;
        }
        take_in(receiver, bytes, &mut tally);
        receiver.service(now_ns()).unwrap();
        sender.service(now_ns()).unwrap();
        if finished && sender.drained() && tally.sequences.len() as u64 == tally.sent {
            return tally;
        }
        assert!(now_ns() < deadline_ns, "out of patience: {tally:?}");
        let soon_ns = if finished { deadline_ns } else { now_ns() + 1_000_000 };
        wait(&[&*sender, &*receiver], soon_ns);
    }
}

fn take_in(receiver: &mut dyn Transport, bytes: usize, tally: &mut Tally) {
    let now = now_ns();
    loop {
        let count = receiver
            .receive(now, &mut |arrival| {
                let header = Header::read(arrival.bytes).expect("a header");
                tally.sequences.push(header.sequence);
                let intact = arrival.bytes.len() == bytes && arrival.bytes[16..].iter().all(|b| *b == 0x5a);
                tally.damaged += u64::from(!intact);
            })
            .unwrap();
        if count == 0 {
            return;
        }
    }
}
