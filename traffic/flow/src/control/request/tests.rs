// SPDX-License-Identifier: Apache-2.0
//! Requests that are taken, and those that are not.

use proptest::prelude::*;

use super::*;
use crate::schedule::ProfileFacts;

const CAPS: Caps = Caps { duration_ns: 10_000_000_000, rate_bps: 1_000_000, unpaced: false, messages: 1_000 };

pub(crate) fn request() -> FlowRequest {
    FlowRequest {
        flow_id: "ab-12".into(),
        command_id: None,
        transport: "udp".into(),
        direction: Direction::Up,
        payload_bytes: 64,
        rate_bps: 1_000_000,
        messages: None,
        omit_ns: 0,
        live: false,
        duration_ns: 10_000_000_000,
        interval_ns: 100_000_000,
        pacing: Mode::Absolute,
        window_us: 0,
        gso: false,
        seed: 7,
        data_address: "127.0.0.1".parse().unwrap(),
        control_apart: false,
        options: Values::new(),
        traces: false,
        profile: None,
    }
}

#[test]
fn requests_beyond_the_caps_are_refused_by_name() {
    assert_eq!(request().check(CAPS), Ok(()));
    let fast = FlowRequest { rate_bps: 1_000_001, ..request() };
    assert!(fast.check(CAPS).unwrap_err().message.contains("--max-rate"));
    let long = FlowRequest { duration_ns: 10_000_000_001, ..request() };
    assert!(long.check(CAPS).unwrap_err().message.contains("--max-duration-s"));
    let fine = FlowRequest { interval_ns: 1, ..request() };
    assert!(fine.check(CAPS).unwrap_err().message.contains("intervals"));
    let shared = FlowRequest { pacing: Mode::SoTxtime, window_us: 50, ..request() };
    assert!(shared.check(CAPS).unwrap_err().message.contains("window"));
    let endless = Caps { duration_ns: u64::MAX, rate_bps: u64::MAX, unpaced: true, messages: u64::MAX };
    let many = FlowRequest { rate_bps: 1 << 50, duration_ns: 1 << 50, interval_ns: 1 << 40, ..request() };
    assert!(many.check(endless).unwrap_err().message.contains("2^40 messages"));
    // Beyond any number that the arithmetic of intervals could hold.
    let daily = FlowRequest { interval_ns: u64::MAX, ..request() };
    assert!(daily.check(CAPS).unwrap_err().message.contains("at most a day"));
    let unpaced = FlowRequest { rate_bps: 0, messages: Some(5), ..request() };
    assert_eq!(unpaced.check(endless), Ok(()));
    assert_eq!((unpaced.constant_schedule().count(), unpaced.offered_rate_mbps()), (5, None));
    let refusal = unpaced.check(CAPS).unwrap_err();
    assert!(refusal.code == Code::Refused && refusal.message.contains("--max-rate"), "{refusal}");
    for contradiction in [
        FlowRequest { window_us: 5, ..unpaced.clone() },
        FlowRequest { pacing: Mode::Spin, ..unpaced.clone() },
        FlowRequest { messages: Some(0), ..unpaced.clone() },
        FlowRequest { messages: Some(5), ..request() },
        FlowRequest { omit_ns: 10_000_000_000, ..request() },
    ] {
        assert_eq!(contradiction.check(endless).unwrap_err().code, Code::Usage, "{contradiction:?}");
    }
    let empty = FlowRequest { payload_bytes: 0, ..request() };
    assert_eq!(empty.check(CAPS).unwrap_err().code, Code::Usage);
}

/// 1000 messages of 64 to 200 bytes in 10 s.
fn profiled() -> FlowRequest {
    let facts = ProfileFacts {
        name: "x".into(),
        shape: "messages".into(),
        seed: 1,
        messages: 1_000,
        bytes: 100_000,
        least_message_bytes: 64,
        greatest_message_bytes: 200,
        last_due_ns: 9_000_000_000,
        burst_rate_bps: 900_000,
    };
    FlowRequest {
        payload_bytes: 200,
        rate_bps: 80_000,
        profile: Some(ProfileRequest { facts, digest: "fnv1a64:0".into(), text_bytes: 0 }),
        ..request()
    }
}

#[test]
fn a_profile_is_told_and_its_figures_must_fit() {
    assert_eq!(profiled().check(CAPS), Ok(()));
    assert_eq!(profiled().schedule_digest(), "fnv1a64:0");
    let line = serde_json::to_string(&profiled()).unwrap();
    assert_eq!(serde_json::from_str::<FlowRequest>(&line).unwrap(), profiled());
    let contradictions: [fn(&mut FlowRequest); 6] = [
        |flow| flow.rate_bps += 1,
        |flow| flow.payload_bytes = 199,
        |flow| flow.direction = Direction::Down,
        |flow| flow.profile.as_mut().unwrap().text_bytes = 1,
        |flow| flow.profile.as_mut().unwrap().facts.least_message_bytes = 15,
        |flow| flow.profile.as_mut().unwrap().facts.messages = u64::MAX,
    ];
    for contradict in contradictions {
        let mut flow = profiled();
        contradict(&mut flow);
        assert_eq!(flow.check(CAPS).unwrap_err().code, Code::Usage, "{flow:?}");
    }
    let mut bursts = profiled();
    bursts.profile.as_mut().unwrap().facts.burst_rate_bps = 1_000_001;
    let refusal = bursts.check(CAPS).unwrap_err();
    assert!(refusal.code == Code::Refused && refusal.message.contains("--max-rate"), "{refusal}");
}

#[test]
fn a_server_writes_out_only_so_many_messages_and_counts_nobody_elses() {
    let mut down = profiled();
    (down.direction, down.profile.as_mut().unwrap().text_bytes) = (Direction::Down, 1);
    assert_eq!(down.check(CAPS), Ok(()));
    let few = Caps { messages: 999, ..CAPS };
    let refusal = down.check(few).unwrap_err();
    assert!(refusal.code == Code::Refused && refusal.message.contains("--max-messages"), "{refusal}");
    assert_eq!(profiled().check(few), Ok(()));
}

proptest! {
    #[test]
    fn a_request_of_any_numbers_is_taken_or_refused_and_one_that_is_taken_stays_within_bounds(
        numbers: [u64; 6], exponents in proptest::collection::vec(0_u32..64, 6), gso: bool,
    ) {
        let number = |index: usize| numbers[index] >> exponents[index];
        let wild = FlowRequest {
            payload_bytes: number(0),
            rate_bps: number(1),
            duration_ns: number(2),
            interval_ns: number(3),
            window_us: number(4),
            seed: number(5),
            gso,
            ..request()
        };
        if wild.check(CAPS).is_ok() {
            prop_assert!(wild.duration_ns <= CAPS.duration_ns && wild.rate_bps <= CAPS.rate_bps);
            prop_assert!(wild.duration_ns / wild.interval_ns <= INTERVALS as u64 / 2);
            prop_assert!(wild.interval_ns <= LONGEST_INTERVAL_NS && wild.payload_bytes > 0);
        }
    }
}
