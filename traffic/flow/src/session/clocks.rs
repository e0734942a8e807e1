// SPDX-License-Identifier: Apache-2.0
//! When the clocks of both ends are compared.

use super::{Scope, Session};
use crate::control::channel::UNACKNOWLEDGED;
use crate::control::Message;
use netjoule_measure::clock_offset::{ClockOffset, EXCHANGES};
use netjoule_measure::failure::Outcome;
use netjoule_measure::host;

/// How long the answer to a question for the time may take, ns: as long as the connection may be held up and live on.
const CLOCK_NS: i64 = UNACKNOWLEDGED.as_nanos() as i64;
/// How often the clocks are compared during a flow, ns: two short lines on the control connection.
pub const COMPARE_EVERY_NS: i64 = 10_000_000_000;

impl Session<'_> {
    /// The server's clock against ours, asked for now, [`EXCHANGES`] times; the server is told what came of it. Whether it
    /// answered each time. Only the client asks.
    ///
    /// # Errors
    /// What ends a flow: a lost connection, or a server that gives the flow up. That it did not answer in time is none.
    pub fn compare_clocks(&mut self) -> Outcome<bool> {
        self.compare_at_ns = Some(i64::MAX);
        let mut answered = 0;
        while answered < EXCHANGES && self.compare_once()? {
            answered += 1;
        }
        let newest = self.events.exchanges.len().saturating_sub(answered);
        let told: Vec<_> = self.events.exchanges[newest..].to_vec();
        told.into_iter().try_for_each(|exchange| self.tell(&Message::Compared { exchange }))?;
        Ok(answered == EXCHANGES)
    }

    /// Ask once; whether the server answered in time.
    fn compare_once(&mut self) -> Outcome<bool> {
        let asked_ns = host::now_ns();
        let deadline_ns = asked_ns.saturating_add(CLOCK_NS);
        self.tell(&Message::Clock { asked_ns })?;
        while self.events.exchanges.last().is_none_or(|last| last.asked_ns != asked_ns) {
            if host::now_ns() >= deadline_ns {
                return Ok(false);
            }
            self.wait(Some(deadline_ns), Scope::All)?;
        }
        Ok(true)
    }

    /// From now on compare clocks every [`COMPARE_EVERY_NS`] (only an end that has done so before), or no more.
    pub fn keep_comparing(&mut self, on: bool) {
        let next_ns = if on { host::now_ns().saturating_add(COMPARE_EVERY_NS) } else { i64::MAX };
        self.compare_at_ns = self.compare_at_ns.map(|_| next_ns);
    }

    /// Whether this end compares clocks.
    pub fn compares_clocks(&self) -> bool {
        self.compare_at_ns.is_some()
    }

    /// What all comparisons so far tell; both ends read the same clock where there is none.
    pub fn clock_offset(&self) -> ClockOffset {
        ClockOffset::fit(&self.events.exchanges).unwrap_or(ClockOffset::SAME_CLOCK)
    }

    /// Nothing wakes up for this: it is asked when everything is looked at anyway.
    pub(super) fn compare_if_due(&mut self) -> Outcome<()> {
        let Some(at_ns) = self.compare_at_ns else { return Ok(()) };
        let now_ns = host::now_ns();
        if now_ns < at_ns {
            return Ok(());
        }
        self.compare_at_ns = Some(now_ns.saturating_add(COMPARE_EVERY_NS));
        self.tell(&Message::Clock { asked_ns: now_ns })
    }
}
