// SPDX-License-Identifier: Apache-2.0
//! What the fuzz target `payload` asserts about any bytes. Shared by path with the fuzz crate.

use netjoule_traffic::intervals::{End, Interval};
use netjoule_traffic::receiver::any_arrivals::{book, is_whole, Booked, HEADER_BYTES};

const INTERVAL_NS: i64 = 100_000_000;
/// Later than this nothing arrives.
const LONGEST_NS: i64 = 100 * INTERVAL_NS;

/// The first eight bytes are what the sender says it sent, the next eight how far its clock is behind, the next one the
/// message's size less 16. Then arrivals: a byte of 10 ms, a byte of length, the arrival.
pub(crate) fn payload(bytes: &[u8]) {
    let Some((head, mut rest)) = bytes.split_at_checked(17) else { return };
    let number =
        |range: std::ops::Range<usize>| head[range].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    let (sent, ahead_ns) = (number(0..8), number(8..16) as i64);
    let message_bytes = 16 + usize::from(head[16]);
    let mut arrivals = Vec::new();
    let mut at_ns = 0_i64;
    while let [wait, length, more @ ..] = rest {
        at_ns = (at_ns + i64::from(*wait) * 10_000_000).min(LONGEST_NS);
        let (arrival, left) = more.split_at(usize::from(*length).min(more.len()));
        arrivals.push((arrival, at_ns));
        rest = left;
    }
    let booked = book(message_bytes, INTERVAL_NS, ahead_ns, &arrivals, sent);
    balances(&booked, &arrivals, sent, message_bytes);
}

/// Every arrival is counted once, as what it was, and nothing else is.
fn balances(booked: &Booked, arrivals: &[(&[u8], i64)], sent: u64, message_bytes: usize) {
    let counts = &booked.counts;
    assert_eq!(counts.unique + counts.duplicate + booked.foreign, arrivals.len() as u64);
    assert!(counts.unique + counts.lost >= sent && counts.reordered <= counts.unique);
    let whole: Vec<u64> = arrivals
        .iter()
        .filter(|(bytes, _)| is_whole(bytes, message_bytes))
        .map(|(bytes, _)| bytes.len() as u64)
        .collect();
    assert!(booked.foreign >= (arrivals.len() - whole.len()) as u64);
    let intervals = &booked.intervals;
    assert!(intervals.len() as i64 <= LONGEST_NS / INTERVAL_NS + 1, "{} intervals", intervals.len());
    let sum = |of: fn(&Interval) -> u64| intervals.iter().map(of).sum::<u64>();
    assert_eq!(sum(|interval| interval.messages), counts.unique);
    // A message may state a length of its own, up to the flow's.
    let bytes = sum(|interval| interval.bytes);
    assert!(bytes <= whole.iter().sum() && bytes >= counts.unique * HEADER_BYTES as u64);
    if whole.iter().all(|length| *length == message_bytes as u64) {
        assert_eq!(bytes, counts.unique * message_bytes as u64);
    }
    assert_eq!(sum(|interval| interval.messages_duplicate.unwrap_or(0)), counts.duplicate);
    for pair in intervals.windows(2) {
        assert_eq!(pair[0].end_ns, pair[1].start_ns);
    }
    assert!(intervals.iter().all(|interval| interval.end == End::Receiver));
    assert!(booked.jitter_ms.is_none_or(|jitter_ms| jitter_ms.is_finite() && jitter_ms >= 0.0));
}
