// SPDX-License-Identifier: Apache-2.0
//! Everything one end of a flow waits for: the data path, the control connection, signals, stdin.

mod clocks;
mod events;

use netjoule_transport::{PollFd, State, Transport};

use crate::control::channel::Channel;
use crate::control::{Message, INTERVALS_PER_LINE};
use crate::intervals::Interval;
use crate::stdin_lines::StdinLines;
use netjoule_measure::failure::{Code, Failure, Outcome};
use netjoule_measure::host;
use netjoule_measure::output::Output;
use netjoule_measure::wait::{self, Signals, Waiter};

pub use clocks::COMPARE_EVERY_NS;
pub use events::SessionEvents;

/// How long the peer's closing may take to arrive after it was announced, ns.
const PEER_CLOSE_NS: i64 = 300_000_000;
/// How long the goodbye of a data connection may take, ns. Linux repeats a lost DCCP-Close after 3.2 s and again 6.4 s
/// later (RFC 4340 section 8.3 asks for two round-trip times and a back-off); who left before would leave it unanswered.
const PART_NS: i64 = 10_000_000_000;

/// While the clock is watched, the data path is looked at this often, ns.
const SPIN_LOOK_NS: i64 = 20_000;

/// How much to look at while waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The data path only; for waits well below a millisecond.
    Data,
    /// Everything.
    All,
}

/// One end of a flow with all its descriptors.
pub struct Session<'a> {
    /// The data path.
    pub transport: Box<dyn Transport>,
    /// The control connection; none for the null transport.
    pub channel: Option<Channel>,
    /// What was events.
    pub events: SessionEvents,
    /// Where the transport stands.
    pub state: State,
    /// The peer has somebody watching: it is told intervals as they close.
    pub tells_live: bool,
    signals: &'a Signals,
    /// What steers a held flow; `None`: stdin is ignored.
    pub stdin: Option<StdinLines>,
    waiter: Waiter,
    fds: Vec<PollFd>,
    flow_is_over: bool,
    /// When the clocks are compared next; `None`: this end does not ask. At the end of time while they are compared many
    /// times at once.
    compare_at_ns: Option<i64>,
}

impl<'a> Session<'a> {
    /// Put the parts together.
    pub fn new(
        transport: Box<dyn Transport>,
        channel: Option<Channel>,
        signals: &'a Signals,
        stdin: Option<StdinLines>,
    ) -> Outcome<Self> {
        Ok(Self {
            transport,
            channel,
            events: SessionEvents::default(),
            state: State::Connecting,
            tells_live: false,
            signals,
            stdin,
            waiter: Waiter::paced().map_err(Failure::system("open a timer"))?,
            fds: Vec::new(),
            flow_is_over: false,
            compare_at_ns: None,
        })
    }

    /// Wait until something happens, at most until `until_ns`; then serve the transport and hear what was said.
    pub fn wait(&mut self, until_ns: Option<i64>, scope: Scope) -> Outcome<()> {
        self.wait_from(host::now_ns(), until_ns, scope).map(|_| ())
    }

    /// The same where the time is known; the time afterwards.
    pub fn wait_from(&mut self, now_ns: i64, until_ns: Option<i64>, scope: Scope) -> Outcome<i64> {
        self.wait_towards(now_ns, until_ns, None, scope)
    }

    /// The same, where the wait after this one will end at `then_ns`, as far as can be told.
    pub fn wait_towards(
        &mut self,
        now_ns: i64,
        until_ns: Option<i64>,
        then_ns: Option<i64>,
        scope: Scope,
    ) -> Outcome<i64> {
        self.fds.clear();
        self.transport.poll_fds(&mut self.fds);
        let data_fds = self.fds.len();
        if scope == Scope::All {
            self.add_other_fds();
        }
        let wakeup_ns = self.transport.next_wakeup_ns();
        let until_ns = match (until_ns, wakeup_ns) {
            (Some(until), Some(wakeup)) => Some(until.min(wakeup)),
            (one, other) => one.or(other),
        };
        match (until_ns, then_ns) {
            (Some(until_ns), Some(then_ns)) => self.waiter.wait_paced(&self.fds, until_ns, then_ns, now_ns),
            _ => self.waiter.wait(&self.fds, until_ns, now_ns),
        }
        .map_err(Failure::system("wait"))?;
        if scope == Scope::All {
            self.hear_others(data_fds)?;
        }
        let now_ns = host::now_ns();
        if wakeup_ns.is_some_and(|at| now_ns >= at) || (0..data_fds).any(|index| self.waiter.ready(index)) {
            self.state = self.transport.service(now_ns)?;
            if self.flow_is_over && self.state == State::Open {
                self.transport.receive(now_ns, &mut |_| {})?;
            }
            return Ok(host::now_ns());
        }
        Ok(now_ns)
    }

    /// Watch the clock until `until_ns` and serve the transport meanwhile; the time afterwards.
    pub fn spin_from(&mut self, mut now_ns: i64, until_ns: i64) -> Outcome<i64> {
        while now_ns < until_ns {
            now_ns = wait::spin_until(until_ns.min(now_ns + SPIN_LOOK_NS));
            if now_ns < until_ns {
                now_ns = self.wait_from(now_ns, Some(now_ns), Scope::Data)?;
            }
        }
        Ok(now_ns)
    }

    /// Wait until `done` says so; a [`Code::Timeout`] naming `what` after `limit_ns`, an error when interrupted.
    pub fn wait_for(
        &mut self,
        what: &str,
        limit_ns: i64,
        mut done: impl FnMut(&mut Self) -> Outcome<bool>,
    ) -> Outcome<()> {
        self.wait_for_calmly(what, limit_ns, |session| {
            if session.events.interrupted {
                return Code::Interrupted.fail(format!("interrupted while waiting for {what}"));
            }
            done(session)
        })
    }

    /// The same, but an interruption does not end the wait (the flow is being wound up).
    pub fn wait_for_calmly(
        &mut self,
        what: &str,
        limit_ns: i64,
        mut done: impl FnMut(&mut Self) -> Outcome<bool>,
    ) -> Outcome<()> {
        let deadline_ns = host::now_ns().saturating_add(limit_ns);
        while !done(self)? {
            if host::now_ns() >= deadline_ns {
                let seconds = limit_ns / 1_000_000_000;
                return Code::Timeout.fail(format!("waited {seconds} s in vain for {what}"));
            }
            self.wait((limit_ns < i64::MAX).then_some(deadline_ns), Scope::All)?;
        }
        Ok(())
    }

    /// Say something to the peer.
    pub fn tell(&mut self, message: &Message) -> Outcome<()> {
        self.channel.as_mut().map_or(Ok(()), |channel| channel.send(message))
    }

    /// Print closed intervals, or tell them to a peer that does, and print what that told of its own.
    pub fn show(&mut self, intervals: &[Interval], output: Output) -> Outcome<()> {
        if self.tells_live {
            for some in intervals.chunks(INTERVALS_PER_LINE) {
                self.tell(&Message::Live { intervals: some.to_vec() })?;
            }
        }
        output.events("interval", intervals)?;
        output.events("interval", &std::mem::take(&mut self.events.live))
    }

    /// The books are closed: from now on what still arrives is thrown away, so that it does not keep the socket readable.
    pub fn close_books(&mut self) {
        self.flow_is_over = true;
    }

    /// Serve the data path until `done`, at most for `limit_ns`. Its failures are those of a flow that is over.
    fn serve_data(&mut self, limit_ns: i64, scope: Scope, done: impl Fn(&Self) -> bool) {
        let deadline_ns = host::now_ns().saturating_add(limit_ns);
        while !done(self) && host::now_ns() < deadline_ns {
            if self.wait(Some(deadline_ns), scope).is_err() {
                return;
            }
        }
    }

    /// Give the peer, which is about to close the data connection, a moment to do so.
    pub fn await_close(&mut self) {
        self.close_books();
        self.serve_data(PEER_CLOSE_NS, Scope::Data, |session| {
            session.state != State::Open || session.transport.parted()
        });
    }

    /// After closing the data connection: serve it until both ends know, the time for that has passed, or this process is
    /// told (again) to stop. The control connection ends here: everything has been said.
    pub fn part(&mut self) {
        self.close_books();
        self.channel = None;
        let interrupted = std::mem::take(&mut self.events.interrupted);
        self.serve_data(PART_NS, Scope::All, |session| {
            session.transport.parted() || session.events.interrupted
        });
        self.events.interrupted |= interrupted;
    }

    fn add_other_fds(&mut self) {
        let readable = |fd| PollFd { fd, read: true, write: false };
        self.fds.push(readable(self.signals.fd()));
        if let Some(channel) = &self.channel {
            self.fds.push(readable(channel.fd()));
        }
        self.fds.extend(self.stdin.as_ref().and_then(StdinLines::fd).map(readable));
    }

    fn hear_others(&mut self, data_fds: usize) -> Outcome<()> {
        let mut index = data_fds;
        if self.waiter.ready(index) && self.signals.take() {
            self.events.interrupted = true;
        }
        index += 1;
        if self.channel.is_some() {
            if self.waiter.ready(index) {
                self.hear_channel()?;
            }
            index += 1;
        }
        if let Some(stdin) =
            self.stdin.as_mut().filter(|_| index < self.fds.len() && self.waiter.ready(index))
        {
            stdin.read();
        }
        self.compare_if_due()
    }

    fn hear_channel(&mut self) -> Outcome<()> {
        let Some(channel) = &mut self.channel else { return Ok(()) };
        let messages = channel.receive()?;
        let now_ns = host::now_ns();
        for message in messages {
            self.hear(message, now_ns)?;
        }
        Ok(())
    }
}
