// SPDX-License-Identifier: Apache-2.0
//! Exchanges that are kept, and one to compare.

use super::*;

/// An exchange at `asked_ns` with a server clock that is `ahead(client time)`.
pub(crate) fn exchange(asked_ns: i64, there: i64, back: i64, ahead: impl Fn(i64) -> i64) -> Exchange {
    let (heard_there, answered_there) = (asked_ns + there, asked_ns + there + 5_000);
    Exchange {
        asked_ns,
        arrived_ns: heard_there + ahead(heard_there),
        answered_ns: answered_there + ahead(answered_there),
        heard_ns: answered_there + back,
    }
}

#[test]
fn a_long_flow_keeps_its_first_its_last_and_the_quickest_between() {
    let mut kept = Vec::new();
    for index in 0..10_000 {
        let delay = if index % 4 == 0 { 1_000 } else { 9_000 };
        keep(&mut kept, exchange(index * 1_000_000_000, delay, delay, |_| 0));
        assert!(kept.len() <= MOST_KEPT);
    }
    assert_eq!(kept[0].asked_ns, 0);
    assert_eq!(kept[EXCHANGES - 1].asked_ns, (EXCHANGES as i64 - 1) * 1_000_000_000);
    assert_eq!(kept.last().unwrap().asked_ns, 9_999_000_000_000);
    assert!(kept.windows(2).all(|pair| pair[0].asked_ns < pair[1].asked_ns));
    let quick = kept.iter().filter(|one| one.round_trip_ns() == 2_000).count();
    assert!(quick > kept.len() / 3, "{quick} of {}", kept.len());
}
