// SPDX-License-Identifier: Apache-2.0
//! Schedules as a whole: held to the shared vectors, to themselves, and to the statistics of their distributions.

use proptest::prelude::*;

use super::document::Document;
use super::*;

const SECOND: u64 = 1_000_000_000;

#[derive(serde::Deserialize)]
struct Vectors {
    cases: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    profile: Document,
    seed: u64,
    duration_ns: u64,
    messages: u64,
    bytes: u64,
    last_due_ns: i64,
    digest: String,
    first: Vec<(i64, usize)>,
}

fn vectors() -> Vec<Case> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../protocols/contracts/vectors/schedules.json");
    serde_json::from_str::<Vectors>(&std::fs::read_to_string(path).unwrap()).unwrap().cases
}

#[test]
fn shared_vectors_hold() {
    let cases = vectors();
    assert!(cases.len() >= 20);
    for case in cases {
        let profile = Profile::new(case.profile).unwrap();
        let schedule = Schedule::of_profile(&profile, case.seed, case.duration_ns).unwrap();
        let facts = schedule.facts(&profile, case.seed);
        let name = format!("{} {}", facts.name, case.seed);
        assert_eq!((facts.messages, facts.bytes), (case.messages, case.bytes), "{name}");
        assert_eq!(facts.last_due_ns, case.last_due_ns, "{name}");
        let first: Vec<_> = (0..case.first.len() as u64)
            .map(|index| (schedule.due_ns(index), schedule.message_bytes(index)))
            .collect();
        assert_eq!(first, case.first, "{name}");
        assert_eq!(schedule.digest(), case.digest, "{name}");
        assert!(facts.greatest_message_bytes <= profile.greatest_message_bytes(), "{name}");
    }
}

/// The profile of `shape`, for example `"messages": {...}`.
fn profile(shape: &str) -> Profile {
    let text = format!(r#"{{"schema_version":1,"name":"x",{shape}}}"#);
    Profile::new(serde_json::from_str(&text).unwrap()).unwrap()
}

fn messages(size: &str, gap: &str) -> Profile {
    profile(&format!(r#""messages":{{"size_bytes":{size},"inter_departure_s":{gap}}}"#))
}

#[test]
fn a_constant_profile_has_the_due_times_of_the_constant_rate() {
    // 300 bytes every 20 ms are 120 kb/s.
    let constant = Schedule::new(120_000, 300, 60 * SECOND);
    let table = Schedule::of_profile(&messages("300", "0.02"), 1, 60 * SECOND).unwrap();
    assert_eq!((table.count(), table.total_bytes()), (constant.count(), constant.total_bytes()));
    for index in 0..constant.count() {
        assert_eq!(table.due_ns(index), constant.due_ns(index));
        assert_eq!(table.message_bytes(index), constant.message_bytes(index));
    }
}

#[test]
fn purposes_do_not_disturb_each_other() {
    let schedule = |size, seed| {
        let gaps = r#"{"distribution":"exponential","mean":0.01}"#;
        Schedule::of_profile(&messages(size, gaps), seed, 10 * SECOND).unwrap()
    };
    let due = |schedule: &Schedule| (0..schedule.count()).map(|k| schedule.due_ns(k)).collect::<Vec<_>>();
    let (one_size, many) =
        (schedule("300", 7), schedule(r#"{"distribution":"uniform","min":64,"max":1440}"#, 7));
    assert_eq!(due(&one_size), due(&many));
    assert_ne!(one_size.digest(), many.digest());
    assert_ne!(one_size.digest(), schedule("300", 8).digest());
    assert_eq!(one_size.digest(), schedule("300", 7).digest());
}

#[test]
fn constant_rates_are_named_by_what_decides_them() {
    let digest = Schedule::new(65_000, 300, SECOND).digest();
    assert_eq!(digest, Schedule::new(65_000, 300, SECOND).digest());
    for other in [(65_001, 300, SECOND), (65_000, 301, SECOND), (65_000, 300, SECOND + 1)] {
        assert_ne!(Schedule::new(other.0, other.1, other.2).digest(), digest);
    }
}

/// Mean and standard deviation of what a distribution of inter-departure times gives, in s.
fn gap_moments(law: &str) -> (f64, f64, usize) {
    let schedule = Schedule::of_profile(&messages("64", law), 11, 2_000 * SECOND).unwrap();
    let gaps: Vec<f64> = (1..schedule.count())
        .map(|index| (schedule.due_ns(index) - schedule.due_ns(index - 1)) as f64 * 1e-9)
        .collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    (mean, variance.sqrt(), gaps.len())
}

#[test]
fn means_and_spreads_are_those_of_the_distributions() {
    // The seed is fixed, so the bounds (5 standard errors of the mean) are never missed by chance.
    let pareto_mean = |shape: f64, scale: f64, max: f64| {
        // The density up to the bound, and its whole tail at the bound.
        let tail = (scale / max).powf(shape);
        shape / (shape - 1.0) * scale * (1.0 - (scale / max).powf(shape - 1.0)) + tail * max
    };
    for (law, mean, deviation) in [
        (r#"{"distribution":"exponential","mean":0.02}"#, 0.02, Some(0.02)),
        (r#"{"distribution":"uniform","min":0.01,"max":0.03}"#, 0.02, Some(0.02 / 12_f64.sqrt())),
        (r#"{"distribution":"normal","mean":0.02,"standard_deviation":0.003}"#, 0.02, Some(0.003)),
        (r#"{"distribution":"pareto","shape":2.5,"scale":0.01,"max":1}"#, pareto_mean(2.5, 0.01, 1.0), None),
        (r#"{"distribution":"empirical","values":[0.01,0.04],"weights":[3,1]}"#, 0.0175, Some(0.0129904)),
    ] {
        let (found, spread, count) = gap_moments(law);
        assert!(count > 50_000, "{law}: {count}");
        assert!((found - mean).abs() < 5.0 * spread / (count as f64).sqrt(), "{law}: {found} is not {mean}");
        if let Some(deviation) = deviation {
            assert!((spread / deviation - 1.0).abs() < 0.02, "{law}: {spread} is not {deviation}");
        }
    }
}

#[test]
fn an_exponential_gap_has_no_memory_and_a_normal_one_its_quantiles() {
    let share = |law: &str, beyond: f64| {
        let schedule = Schedule::of_profile(&messages("64", law), 5, 2_000 * SECOND).unwrap();
        let gaps = (1..schedule.count()).map(|index| schedule.due_ns(index) - schedule.due_ns(index - 1));
        gaps.filter(|gap| *gap as f64 * 1e-9 > beyond).count() as f64 / (schedule.count() - 1) as f64
    };
    let close = |found: f64, wanted: f64| assert!((found - wanted).abs() < 0.01, "{found} is not {wanted}");
    let exponential = r#"{"distribution":"exponential","mean":0.02}"#;
    close(share(exponential, 0.02), (-1_f64).exp());
    close(share(exponential, 0.06), (-3_f64).exp());
    let normal = r#"{"distribution":"normal","mean":0.02,"standard_deviation":0.005}"#;
    close(share(normal, 0.02), 0.5);
    close(share(normal, 0.025), 0.158_655);
    close(share(normal, 0.0298), 0.025);
    let pareto = r#"{"distribution":"pareto","shape":1.5,"scale":0.01,"max":10}"#;
    close(share(pareto, 0.02), 0.5_f64.powf(1.5));
}

#[test]
fn talk_spurts_have_their_mean_rate() {
    let talk = profile(
        r#""talk_spurts":{"on_s":{"distribution":"exponential","mean":1.2},"off_s":{"distribution":"exponential","mean":1.8},"size_bytes":300,"inter_departure_s":0.02}"#,
    );
    let duration_ns = 40_000 * SECOND;
    let schedule = Schedule::of_profile(&talk, 3, duration_ns).unwrap();
    let rate_bps = schedule.facts(&talk, 3).mean_rate_bps(duration_ns) as f64;
    // A spurt of an exponential length has 1 / (1 - e^(-gap / mean)) messages on average.
    let per_spurt = 1.0 / (1.0 - (-0.02_f64 / 1.2).exp());
    let expected = per_spurt * 300.0 * 8.0 / 3.0;
    // About 13,000 spurts with a spread of the cycle and of the count of about 1 each: 5 standard errors.
    assert!((rate_bps / expected - 1.0).abs() < 0.06, "{rate_bps} is not {expected}");
}

#[test]
fn a_video_keeps_its_bit_rate_whatever_the_buffer() {
    // 500 kB for 4 s of video are 1 Mb/s; what was fetched ahead is the greatest buffer at most.
    let video = profile(
        r#""video_chunks":{"chunk_bytes":500000,"chunk_s":4,"message_bytes":1400,"download_mbps":10,"start_buffer_s":4,"greatest_buffer_s":30}"#,
    );
    let duration_ns = 400 * SECOND;
    let facts = Schedule::of_profile(&video, 1, duration_ns).unwrap().facts(&video, 1);
    let played = 400.0 * 1e6 / 8.0;
    let ahead = facts.bytes as f64 - played;
    assert!(ahead > 20.0 * 1e6 / 8.0 && ahead < 31.0 * 1e6 / 8.0, "{ahead}");
    assert!((facts.burst_rate_bps as f64 / 10e6 - 1.0).abs() < 0.15, "{}", facts.burst_rate_bps);
}

#[test]
fn what_would_never_end_is_refused_in_bounded_memory() {
    let at_once = messages("64", "0");
    let error = Schedule::of_profile(&at_once, 1, SECOND).unwrap_err().to_string();
    assert!(error.contains("20000000 messages") && error.contains("shorten the flow"), "{error}");
}

prop_compose! {
    fn law()(
        which in 0..6,
        low in 0.0..0.05_f64,
        more in 0.0..0.2_f64,
        shape in 0.2..5.0_f64,
    ) -> String {
        let high = low + more;
        match which {
            0 => format!("{low}"),
            1 => format!(r#"{{"distribution":"uniform","min":{low},"max":{high}}}"#),
            2 => format!(r#"{{"distribution":"exponential","mean":{},"min":{low},"max":{high}}}"#, more + 1e-6),
            3 => format!(
                r#"{{"distribution":"normal","mean":{},"standard_deviation":{}}}"#,
                low + 1e-6,
                more + 1e-6
            ),
            4 => format!(r#"{{"distribution":"pareto","shape":{shape},"scale":{},"max":{}}}"#, low + 1e-6, high + 1.0),
            _ => format!(r#"{{"distribution":"empirical","values":[{low},{high}],"weights":[1,{}]}}"#, (shape * 10.0) as u32),
        }
    }
}

prop_compose! {
    fn sizes()(which in 0..4, least in 16_u32..900, more in 0_u32..600, shape in 0.2..5.0_f64) -> String {
        let greatest = least + more;
        match which {
            0 => format!("{least}"),
            1 => format!(r#"{{"distribution":"uniform","min":{least},"max":{greatest}}}"#),
            2 => format!(r#"{{"distribution":"exponential","mean":{least},"max":{greatest}}}"#),
            _ => format!(r#"{{"distribution":"pareto","shape":{shape},"scale":{least},"max":{greatest}}}"#),
        }
    }
}

proptest! {
    #[test]
    fn due_times_never_go_back_and_agree_with_due_counts(
        (gaps, on, off) in (law(), law(), law()),
        sizes in sizes(),
        talk: bool,
        seed: u64,
        duration_ns in 1..5 * SECOND,
    ) {
        let fields = format!(r#""size_bytes":{sizes},"inter_departure_s":{gaps}"#);
        let profile = profile(&match talk {
            true => format!(r#""talk_spurts":{{"on_s":{on},"off_s":{off},{fields}}}"#),
            false => format!(r#""messages":{{{fields}}}"#),
        });
        // Gaps of nothing at all are another test's.
        let table = Table::new(profile.departures(seed), duration_ns, 50_000, &mut || Ok::<_, TooLong>(()));
        prop_assume!(table.is_ok());
        let schedule = Schedule(Form::Table(Arc::new(table.unwrap())));
        prop_assert!(schedule.count() >= 1 && schedule.due_ns(0) == 0);
        let greatest = profile.greatest_message_bytes() as usize;
        for index in 0..schedule.count() {
            let due_ns = schedule.due_ns(index);
            prop_assert!(schedule.due_ns(index + 1) >= due_ns && due_ns < duration_ns as i64);
            prop_assert!(schedule.due_by(due_ns) > index);
            prop_assert!(due_ns == 0 || schedule.due_by(due_ns - 1) <= index);
            let bytes = schedule.message_bytes(index);
            prop_assert!((16..=greatest).contains(&bytes), "{}", bytes);
            let alike = schedule.alike(index, 9);
            prop_assert!((1..=9).contains(&alike) && schedule.message_bytes(index + alike - 1) == bytes);
        }
        prop_assert_eq!(schedule.due_by(i64::MAX), schedule.count());
        prop_assert_eq!(schedule.due_by(-1), 0);
        prop_assert_eq!(
            schedule.total_bytes(),
            (0..schedule.count()).map(|index| schedule.message_bytes(index) as u64).sum::<u64>()
        );
    }
}
