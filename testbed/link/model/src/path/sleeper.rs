// SPDX-License-Identifier: Apache-2.0
//! How does a link serve that sleeps while it has nothing to send? Low-power idle, as in IEEE 802.3az: falling asleep and
//! waking up take their times, in which nothing is sent, and packets may be collected before it wakes.

use super::element::earlier;
use super::router::{Governor, Served};

/// Parameters of the sleep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SleepParams {
    /// Rate while it is awake, Mb/s.
    pub rate_mbps: f64,
    /// To fall asleep, ns; it cannot be broken off.
    pub sleep_ns: u64,
    /// To wake up, ns.
    pub wake_ns: u64,
    /// It wakes for so many packets; 1 = for the first.
    pub collect_packets: usize,
    /// Or when the first has waited so long, ns.
    pub collect_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Awake,
    FallingAsleep {
        until_ns: u64,
    },
    /// `wake_ns`: when the first packet has waited long enough.
    Asleep {
        wake_ns: Option<u64>,
    },
    Waking {
        until_ns: u64,
    },
}

/// Sends a link to sleep and wakes it.
#[derive(Debug)]
pub struct Sleeper {
    params: SleepParams,
    state: State,
    /// When the first packet came for which it has not woken up yet.
    first_ns: Option<u64>,
}

impl Sleeper {
    /// Awake.
    pub fn new(params: SleepParams) -> Self {
        Self { params, state: State::Awake, first_ns: None }
    }

    /// Wakes up if enough packets wait, or notes when the first will have waited long enough.
    fn rouse<P>(&mut self, now_ns: u64, served: &mut Served<P>) {
        let State::Asleep { wake_ns } = self.state else { return };
        let waiting = served.serialiser.waiting();
        if waiting >= self.params.collect_packets || wake_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            served.record.wake(now_ns);
            self.state = State::Waking { until_ns: now_ns + self.params.wake_ns };
            self.first_ns = None;
        } else if let (Some(first_ns), None) = (self.first_ns, wake_ns) {
            self.state = State::Asleep { wake_ns: Some(now_ns.max(first_ns + self.params.collect_ns)) };
        }
    }

    fn next_change_ns(&self) -> Option<u64> {
        match self.state {
            State::Awake => None,
            State::FallingAsleep { until_ns } | State::Waking { until_ns } => Some(until_ns),
            State::Asleep { wake_ns } => wake_ns,
        }
    }

    fn change<P>(&mut self, at_ns: u64, served: &mut Served<P>) {
        match self.state {
            State::Awake => {}
            State::FallingAsleep { .. } => {
                served.record.sleep(at_ns);
                self.state = State::Asleep { wake_ns: None };
                self.rouse(at_ns, served);
            }
            State::Asleep { .. } => self.rouse(at_ns, served),
            State::Waking { .. } => {
                self.state = State::Awake;
                served.serialiser.release(at_ns);
            }
        }
    }
}

impl<P> Governor<P> for Sleeper {
    fn next_ns(&self, served: &Served<P>) -> Option<u64> {
        earlier(self.next_change_ns(), served.serialiser.idle_ns())
    }

    fn act(&mut self, at_ns: u64, served: &mut Served<P>) {
        if self.next_change_ns().is_some_and(|change_ns| change_ns <= at_ns) {
            self.change(at_ns, served);
        }
        if self.state == State::Awake && served.serialiser.is_idle() {
            self.state = State::FallingAsleep { until_ns: at_ns + self.params.sleep_ns };
            served.serialiser.hold(at_ns);
        }
    }

    fn arrived(&mut self, now_ns: u64, _bits: u64, served: &mut Served<P>) {
        if matches!(self.state, State::FallingAsleep { .. } | State::Asleep { .. })
            && served.serialiser.waiting() > 0
        {
            self.first_ns = self.first_ns.or(Some(now_ns));
        }
        self.rouse(now_ns, served);
    }
}

#[cfg(test)]
mod tests {
    use super::super::element::{Element, Parcel};
    use super::super::router::Router;
    use super::super::serialiser::{QueueLimit, Serialiser};
    use super::*;
    use crate::scaling::Record;

    const US: u64 = 1_000;
    const PARAMS: SleepParams = SleepParams {
        rate_mbps: 100.0,
        sleep_ns: 200 * US,
        wake_ns: 30 * US,
        collect_packets: 1,
        collect_ns: 0,
    };

    fn sleeping(params: SleepParams) -> Router<u32> {
        let serialiser = Serialiser::new(params.rate_mbps, QueueLimit::packets(100), 0);
        let record = Record::new(0, params.rate_mbps, params.rate_mbps);
        Router::new(serialiser, record, Box::new(Sleeper::new(params)), 0)
    }

    fn sent(link: &mut Router<u32>, at_us: &[u64]) -> Vec<u64> {
        let mut times = Vec::new();
        let mut sends = at_us.iter().peekable();
        loop {
            let send_ns = sends.peek().map(|at_us| **at_us * US);
            let Some(now_ns) = earlier(send_ns, link.next_event_ns()) else {
                return times;
            };
            link.advance(now_ns);
            times.extend(std::iter::from_fn(|| link.poll()).map(|_| now_ns / US));
            if send_ns == Some(now_ns) {
                sends.next();
                // 100 us at 100 Mb/s.
                link.enqueue(now_ns, Parcel { packet: Some(0), ip_bytes: 1250 }).unwrap();
            }
        }
    }

    #[test]
    fn a_packet_wakes_the_link_and_one_that_comes_while_it_falls_asleep_waits_for_that() {
        let mut link = sleeping(PARAMS);
        // Asleep from 200 on. The first wakes it: 1,000 + 30 + 100; then it falls asleep until 1,330, and only then wakes for
        // the one that came at 1,200.
        assert_eq!(sent(&mut link, &[1_000, 1_200]), [1_130, 1_460]);
        let record = link.record(2_660 * US).unwrap();
        // Asleep from 200 to 1,000 and from 1,660 to 2,660.
        assert!((record.asleep_share - 1_800.0 / 2_660.0).abs() < 1e-12, "{record:?}");
        // Twice asleep and awake again, and asleep at the end.
        assert_eq!((record.mean_rate_mbps, record.switches), (100.0, 5));
    }

    #[test]
    fn packets_are_collected_until_they_are_enough_or_the_first_has_waited_long() {
        let params = SleepParams { collect_packets: 3, collect_ns: 500 * US, ..PARAMS };
        let mut link = sleeping(params);
        assert_eq!(sent(&mut link, &[1_000, 1_010, 1_020]), [1_150, 1_250, 1_350]);
        assert_eq!(sent(&mut link, &[3_000, 3_100]), [3_630, 3_730]);
        // It falls asleep until 3,930; the packet's 500 us count from 3,800 on.
        assert_eq!(sent(&mut link, &[3_800]), [4_430]);
    }
}
