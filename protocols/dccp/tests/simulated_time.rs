// SPDX-License-Identifier: Apache-2.0
//! DCCP under time: everything in simulated time with seeds, so every run gives the same numbers.

mod simulation;

use netjoule_dccp::ccid::Ccid;
use simulation::equations::jain;
use simulation::tables::{assert_golden, pftk_table, rows, tfrc_table};
use simulation::world::{App, Path, World, MESSAGE_BYTES, MS, S};

const BOTH: [Ccid; 2] = [Ccid::TcpLike, Ccid::Tfrc];

#[test]
fn ccid_3_follows_the_tfrc_equation() {
    let rows = rows(Ccid::Tfrc);
    assert_golden("ccid3.txt", &tfrc_table(&rows));
    for row in rows {
        assert!((row.tfrc_ratio() - 1.0).abs() <= 0.15, "{:.3}: {row:?}", row.tfrc_ratio());
    }
}

/// The full model with b = Ack Ratio does not describe CCID 2 as RFC 4341 has it (ratios from 1.0 to 2.9, in the golden);
/// what is held to 20 % is the model for a window that grows per packet acknowledged.
#[test]
fn ccid_2_follows_pftk_for_a_window_that_grows_per_packet() {
    let rows = rows(Ccid::TcpLike);
    assert_golden("ccid2.txt", &pftk_table(&rows));
    for row in rows {
        let ratio = row.per_packet_ratio();
        assert!((ratio - 1.0).abs() <= 0.20, "{ratio:.3}: {row:?}");
    }
}

/// Two flows of a kind over a bottleneck of 10 Mb/s with a queue of about one bandwidth-delay product.
fn shares(ccid: Ccid, second_starts_ns: i64) -> Vec<f64> {
    let path = Path { rate_mbps: Some(10.0), queue_packets: 40, jitter_ns: 5_000_000, ..Path::clean(50) };
    let mut world = World::new(3, path);
    world.add_flow(ccid, App::Saturating, App::Silent);
    world.run_for(second_starts_ns);
    world.add_flow(ccid, App::Saturating, App::Silent);
    world.run_for(30 * S);
    let before: Vec<u64> = world.flows.iter().map(|flow| flow.server.bytes).collect();
    world.run_for(300 * S);
    let after = world.flows.iter().map(|flow| flow.server.bytes);
    after.zip(before).map(|(after, before)| (after - before) as f64 * 8e-6 / 300.0).collect()
}

#[test]
fn two_flows_of_a_kind_share_fairly() {
    let mut text =
        String::from("# Two flows over 10 Mb/s, 50 ms\nccid second_starts_s first_mbps second_mbps jain\n");
    let mut worst = 1.0f64;
    for ccid in BOTH {
        for start_ns in [37 * MS, 20 * S] {
            let shares = shares(ccid, start_ns);
            let index = jain(&shares);
            worst = worst.min(index);
            let start_s = start_ns as f64 / 1e9;
            text += &format!("{} {start_s} {:.3} {:.3} {index:.4}\n", ccid.number(), shares[0], shares[1]);
            assert!(shares.iter().sum::<f64>() > 0.85 * 10.0 * MESSAGE_BYTES as f64 / 1484.0, "{text}");
        }
    }
    assert_golden("fairness.txt", &text);
    assert!(worst >= 0.95, "{text}");
}

#[test]
fn slow_start_grows_by_half_a_window_each_round_trip() {
    let mut world = World::saturated(1, Path::clean(100), Ccid::TcpLike);
    world.run_for(S);
    let mut before = world.client().figure("cwnd_packets");
    for _ in 0..5 {
        world.run_for(100 * MS);
        let cwnd = world.client().figure("cwnd_packets");
        assert!((1.3..=1.7).contains(&(cwnd / before)), "{before} to {cwnd}");
        before = cwnd;
    }
}

#[test]
fn the_window_opens_far_beyond_the_first_sequence_window() {
    let mut world = World::saturated(1, Path { rate_mbps: Some(200.0), ..Path::clean(50) }, Ccid::TcpLike);
    world.run_for(3 * S);
    let before = world.server().bytes;
    world.run_for(S);
    let mbps = (world.server().bytes - before) as f64 * 8e-6;
    assert!(mbps > 0.95 * 200.0 * MESSAGE_BYTES as f64 / 1484.0, "{mbps}");
    assert!(world.client().figure("sequence_window_packets") >= 2.0 * world.client().figure("cwnd_packets"));
    assert_eq!(world.client().figure("packets_lost"), 0.0);
    // Few acknowledgements for a large window.
    let per_ack = world.client().figure("data_packets_sent") / world.client().figure("acks_received");
    assert!(per_ack > 4.0, "{per_ack}");
}

/// A round trip of 20 us is far shorter than the time between two acknowledgements, and than what a receiver takes to
/// get to its buffer.
#[test]
fn no_acknowledgement_is_rejected_at_three_million_packets_per_second() {
    const GAP_NS: i64 = 333;
    for read_every_ns in [0, MS, 3 * MS] {
        let mut world = World::new(1, Path { rtt_ns: 20_000, ..Path::clean(0) });
        world.read_every_ns = read_every_ns;
        world.add_flow(Ccid::Tfrc, App::Every(GAP_NS), App::Silent);
        world.run_for(120 * MS);
        let before = world.client().figure("data_packets_sent");
        world.run_for(20 * MS);
        let packets = world.client().figure("data_packets_sent") - before;
        let offered = (20 * MS / GAP_NS) as f64;
        let invalid = [world.client(), world.server()].map(|end| end.figure("packets_sequence_invalid"));
        assert_eq!(invalid, [0.0; 2], "read each {read_every_ns} ns: {:?}", world.client());
        assert!(packets > 0.99 * offered, "read each {read_every_ns} ns: {packets} of {offered}");
        assert!(world.client().figure("feedback_received") > 10.0);
        assert_eq!(world.client().figure("syncs_sent"), 0.0);
    }
}

/// A path of microseconds to a receive buffer that is emptied at 800,000 packets per second: what waits there is the only
/// queue, and the sender has to see it grow before it overflows.
#[test]
fn ccid_3_fills_a_receiver_without_flooding_its_buffer() {
    for buffer_packets in [500, 5_000] {
        let mut world = World::new(1, Path { rtt_ns: 20_000, ..Path::clean(0) });
        (world.read_every_ns, world.read_packets, world.buffer_packets) = (40_000, 32, buffer_packets);
        world.add_flow(Ccid::Tfrc, App::Every(667), App::Silent);
        world.run_for(100 * MS);
        let before = world.server().messages;
        world.run_for(200 * MS);
        let share = (world.server().messages - before) as f64 / 160_000.0;
        let lost = world.overflows as f64 / (world.overflows + world.server().messages) as f64;
        println!("{buffer_packets}: {share:.3} {lost:.5}");
        assert!(share > 0.85, "{buffer_packets}: {share} of what the receiver takes");
        assert!(world.overflows > 0 && lost < 0.01, "{buffer_packets}: {lost} found no room");
    }
}

#[test]
fn two_gigabits_per_second_pass() {
    let path = Path { rate_mbps: Some(2_300.0), queue_packets: 2_000, ..Path::clean(5) };
    let mut world = World::saturated(1, path, Ccid::TcpLike);
    world.run_for(S);
    let before = world.server().bytes;
    world.run_for(S);
    let mbps = (world.server().bytes - before) as f64 * 8e-6;
    assert!(mbps > 2_000.0, "{mbps} {:?}", world.client());
}

#[test]
fn a_round_trip_with_losses_costs_one_cut() {
    let path = Path { rate_mbps: Some(10.0), queue_packets: 20, ..Path::clean(100) };
    let mut world = World::saturated(1, path, Ccid::TcpLike);
    let mut cuts = 0.0;
    while cuts == 0.0 {
        world.run_for(10 * MS);
        if world.client().connection.as_ref().is_some_and(|connection| connection.rtt_ns().is_some())
            && world.now_ns > S / 2
        {
            cuts = world.client().figure("congestion_events");
        }
    }
    world.run_for(90 * MS);
    let lost = world.client().figure("packets_lost");
    assert!(lost >= 3.0 && world.client().figure("congestion_events") == 1.0, "{lost}");
    assert_eq!(world.client().figure("timeouts"), 0.0);
}

#[test]
fn an_outage_backs_off_and_ends() {
    let mut world = World::saturated(
        1,
        Path { rate_mbps: Some(10.0), queue_packets: 40, ..Path::clean(50) },
        Ccid::TcpLike,
    );
    world.run_for(10 * S);
    world.outage_ns = world.now_ns..world.now_ns + 5 * S;
    let sent = world.client().figure("data_packets_sent");
    let timeouts = world.client().figure("timeouts");
    world.run_for(5 * S);
    let timeouts = world.client().figure("timeouts") - timeouts;
    assert!((3.0..=6.0).contains(&timeouts), "{timeouts}");
    let probes = world.client().figure("data_packets_sent") - sent;
    assert!(probes < 200.0, "{probes}");
    let before = world.server().bytes;
    world.run_for(30 * S);
    let mbps = (world.server().bytes - before) as f64 * 8e-6 / 30.0;
    assert!(mbps > 7.0, "{mbps}");
}

#[test]
fn lost_acknowledgements_raise_the_ack_ratio() {
    let clean = Path { rate_mbps: Some(10.0), queue_packets: 20, ..Path::clean(50) };
    let mut ratios = [0.0, 0.0];
    let mut acks = [0, 0];
    for (index, loss_back) in [0.0, 0.2].into_iter().enumerate() {
        let mut world = World::saturated(1, Path { loss_back, ..clean }, Ccid::TcpLike);
        world.run_for(60 * S);
        ratios[index] = world.server().figure("peer_ack_ratio");
        acks[index] = world.packets_back;
        assert!(world.server().bytes > 15_000_000, "{}", world.server().bytes);
    }
    assert!(ratios[0] == 2.0 && ratios[1] >= 4.0, "{ratios:?}");
    assert!(acks[1] * 3 < acks[0], "{acks:?}");
}

#[test]
fn an_application_that_sends_little_keeps_a_small_window() {
    let mut world = World::new(1, Path::clean(50));
    world.add_flow(Ccid::TcpLike, App::Every(5 * MS), App::Silent);
    world.run_for(60 * S);
    let cwnd = world.client().figure("cwnd_packets");
    assert!(cwnd <= 25.0, "{cwnd}");
    assert_eq!((world.client().refused, world.client().figure("timeouts")), (0, 0.0));
    assert!(world.server().messages >= 60 * 200 - 40, "{}", world.server().messages);
}

#[test]
fn a_packet_now_and_then_causes_no_timeout() {
    let mut world = World::new(1, Path::clean(50));
    world.add_flow(Ccid::TcpLike, App::Every(S), App::Silent);
    world.run_for(60 * S);
    assert_eq!(world.client().figure("timeouts"), 0.0);
    assert!(world.server().messages >= 58);
}

#[test]
fn data_flows_both_ways_at_once() {
    for ccid in BOTH {
        let path = Path {
            rate_mbps: Some(10.0),
            queue_packets: 60,
            loss: 0.002,
            loss_back: 0.002,
            ..Path::clean(40)
        };
        let mut world = World::new(1, path);
        world.add_flow(ccid, App::Saturating, App::Saturating);
        world.run_for(60 * S);
        let mbps = [world.server().bytes, world.client().bytes].map(|bytes| bytes as f64 * 8e-6 / 60.0);
        assert!(mbps.iter().all(|mbps| *mbps > 4.0), "{ccid:?} {mbps:?}");
    }
}

#[test]
fn the_record_of_the_receiver_stays_small() {
    let mut world = World::saturated(1, Path { loss: 0.01, ..Path::clean(50) }, Ccid::TcpLike);
    for _ in 0..100 {
        world.run_for(S);
        let cells = world.server().figure("ack_vector_cells");
        assert!(cells < 60.0, "{cells}");
    }
}

#[test]
fn a_seed_repeats_to_the_packet() {
    let run = |seed| {
        let mut world = World::saturated(seed, Path { loss: 0.02, ..Path::clean(50) }, Ccid::TcpLike);
        world.run_for(20 * S);
        (world.server().messages, world.packets_back)
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}
