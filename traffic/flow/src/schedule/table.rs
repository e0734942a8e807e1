// SPDX-License-Identifier: Apache-2.0
//! A schedule written out: when each message is due and how large it is. Computed before the flow, in bounded memory.

use super::departure::Departure;
use super::digest::Digest;

/// Most messages of a written-out schedule: 10 bytes each, so 200 MB.
pub const MOST_MESSAGES: usize = 20_000_000;

/// Messages between two looks at whatever else there is to do: well under a millisecond's work.
pub(super) const SLICE: usize = 1 << 10;

/// The span over which a burst's rate is taken: what the queues on the way hold, about.
const BURST_NS: u64 = 10_000_000;

/// A schedule is too long to be written out.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error(
    "it has more than {most} messages (the {most}th is due after {due_s:.3} s of {duration_s:.3} s): \
     shorten the flow or send fewer, larger messages"
)]
pub struct TooLong {
    most: usize,
    due_s: f64,
    duration_s: f64,
}

/// Departures in order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Table {
    due_ns: Vec<i64>,
    bytes: Vec<u16>,
    duration_ns: u64,
}

impl Table {
    /// Every departure before `duration_ns`, at most `most`. `meanwhile` is called after each [`SLICE`] of them; its
    /// failure is the outcome.
    pub(super) fn new<E: From<TooLong>>(
        departures: impl Iterator<Item = Departure>,
        duration_ns: u64,
        most: usize,
        meanwhile: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<Self, E> {
        let (mut due_ns, mut bytes) = (Vec::new(), Vec::new());
        for departure in departures.take_while(|departure| departure.due_ns < duration_ns) {
            if due_ns.len() == most {
                let [due_s, duration_s] = [departure.due_ns, duration_ns].map(|ns| ns as f64 * 1e-9);
                return Err(TooLong { most, due_s, duration_s }.into());
            }
            if due_ns.len() % SLICE == SLICE - 1 {
                meanwhile()?;
            }
            due_ns.push(departure.due_ns as i64);
            bytes.push(departure.bytes);
        }
        Ok(Self { due_ns, bytes, duration_ns })
    }

    pub(super) fn count(&self) -> u64 {
        self.due_ns.len() as u64
    }

    /// Beyond the last message: the end of the flow.
    pub(super) fn due_ns(&self, index: u64) -> i64 {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        self.due_ns.get(index).copied().unwrap_or(self.duration_ns as i64)
    }

    pub(super) fn due_by(&self, elapsed_ns: i64) -> u64 {
        self.due_ns.partition_point(|due_ns| *due_ns <= elapsed_ns) as u64
    }

    /// Beyond the last message: a size that no message has.
    pub(super) fn message_bytes(&self, index: u64) -> usize {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        self.bytes.get(index).copied().map_or(0, usize::from)
    }

    /// How many messages from `index` on have the same size, at most `most`.
    pub(super) fn alike(&self, index: u64, most: u64) -> u64 {
        let rest = usize::try_from(index).ok().and_then(|index| self.bytes.get(index..)).unwrap_or_default();
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        rest.iter().take(most).take_while(|bytes| **bytes == rest[0]).count() as u64
    }

    pub(super) fn total_bytes(&self) -> u64 {
        self.bytes.iter().map(|bytes| u64::from(*bytes)).sum()
    }

    pub(super) fn least_and_greatest_bytes(&self) -> (u64, u64) {
        let least = self.bytes.iter().min().copied().unwrap_or(0);
        let greatest = self.bytes.iter().max().copied().unwrap_or(0);
        (least.into(), greatest.into())
    }

    /// Greatest rate over any [`BURST_NS`], in bit/s.
    pub(super) fn burst_rate_bps(&self) -> u64 {
        let (mut oldest, mut within, mut most) = (0, 0_u64, 0_u64);
        for (due_ns, bytes) in self.due_ns.iter().zip(&self.bytes) {
            within += u64::from(*bytes);
            while due_ns - self.due_ns[oldest] >= BURST_NS as i64 {
                within -= u64::from(self.bytes[oldest]);
                oldest += 1;
            }
            most = most.max(within);
        }
        (u128::from(most) * 8_000_000_000 / u128::from(BURST_NS)) as u64
    }

    /// Of the due time (8 bytes) and size (2 bytes) of each message in order, little-endian.
    pub(super) fn digest(&self) -> Digest {
        let entries = self.due_ns.iter().zip(&self.bytes);
        entries.fold(Digest::new("netjoule schedule, table\n"), |digest, (due_ns, bytes)| {
            digest.with(&due_ns.to_le_bytes()).with(&bytes.to_le_bytes())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With nothing else to do.
    fn alone(
        departures: impl Iterator<Item = Departure>,
        duration_ns: u64,
        most: usize,
    ) -> Result<Table, TooLong> {
        Table::new(departures, duration_ns, most, &mut || Ok(()))
    }

    fn table(departures: &[(u64, u16)], duration_ns: u64) -> Table {
        let departures =
            departures.iter().map(|(due_ns, bytes)| Departure { due_ns: *due_ns, bytes: *bytes });
        alone(departures, duration_ns, 5).unwrap()
    }

    #[test]
    fn what_is_due_at_the_end_or_later_is_not_sent() {
        let table = table(&[(0, 20), (10, 30), (10, 30), (20, 40), (30, 50)], 20);
        assert_eq!((table.count(), table.total_bytes()), (3, 80));
        assert_eq!([-1, 0, 9, 10, 99].map(|ns| table.due_by(ns)), [0, 1, 1, 3, 3]);
        assert_eq!([0, 2, 3, u64::MAX].map(|index| table.due_ns(index)), [0, 10, 20, 20]);
        assert_eq!([0, 2, 3].map(|index| table.message_bytes(index)), [20, 30, 0]);
        assert_eq!(table.least_and_greatest_bytes(), (20, 30));
    }

    #[test]
    fn neighbours_of_one_size_are_counted() {
        let table = table(&[(0, 20), (1, 30), (2, 30), (3, 30), (4, 20)], 9);
        assert_eq!(
            [(0, 9), (1, 9), (1, 2), (2, 9), (5, 9)].map(|(index, most)| table.alike(index, most)),
            [1, 3, 2, 2, 0]
        );
    }

    #[test]
    fn a_schedule_beyond_bounds_is_refused_with_the_place() {
        let departures = (0..).map(|second| Departure { due_ns: second * 1_000_000_000, bytes: 64 });
        let error = alone(departures.clone(), 60_000_000_000, 10).unwrap_err();
        assert!(error.to_string().contains("after 10.000 s of 60.000 s"), "{error}");
        assert_eq!(alone(departures, 10_000_000_000, 10).unwrap().count(), 10);
        // Messages that are all due at once would never come to an end.
        let at_once = std::iter::repeat(Departure { due_ns: 0, bytes: 64 });
        assert!(alone(at_once, 1, 10).is_err());
    }

    #[test]
    fn a_long_schedule_is_written_out_in_slices_and_can_be_given_up_between_them() {
        let endless = std::iter::repeat(Departure { due_ns: 0, bytes: 64 });
        let slices = |most: usize, up_to: usize| {
            let mut slices = 0;
            let outcome = Table::new(endless.clone(), 1, most, &mut || {
                slices += 1;
                if slices < up_to {
                    Ok(())
                } else {
                    Err(None)
                }
            });
            (slices, outcome.map_err(|error: Option<TooLong>| error.is_some()))
        };
        assert_eq!(slices(10 * SLICE, 99), (10, Err(true)));
        assert_eq!(slices(10 * SLICE, 3), (3, Err(false)));
    }

    #[test]
    fn a_burst_is_rated_over_its_own_time() {
        let ms = 1_000_000;
        assert_eq!(table(&[(0, 1_000), (500 * ms, 1_000)], 1_000 * ms).burst_rate_bps(), 800_000);
        assert_eq!(
            table(&[(0, 1_000), (5 * ms, 500), (10 * ms, 1_000)], 1_000 * ms).burst_rate_bps(),
            1_200_000
        );
    }

    #[test]
    fn any_change_changes_the_digest() {
        let digests = [
            table(&[(0, 20), (10, 30)], 20),
            table(&[(0, 20), (11, 30)], 20),
            table(&[(0, 20), (10, 31)], 20),
            table(&[(0, 20)], 20),
            table(&[], 20),
        ]
        .map(|table| table.digest().text());
        let different: std::collections::HashSet<_> = digests.iter().collect();
        assert_eq!(different.len(), digests.len());
        // Not of the duration: what is sent is the same.
        assert_eq!(table(&[(0, 20)], 1).digest(), table(&[(0, 20)], 20).digest());
    }
}
