// SPDX-License-Identifier: Apache-2.0
//! A receiver that stands still for seconds (SIGSTOP): what is lost is counted, the books balance, memory stays bounded,
//! and a stream's sender is held up instead.

use std::time::{Duration, Instant};

use crate::harness::{assert_honest, signal, Client, Server};
use crate::rubbish::resident_kb;

/// How long it stands still: several times what any buffer on the way holds at the rate of the flow.
const STANDSTILL: Duration = Duration::from_secs(2);
/// More than any queue of the engine's own could be, were it bounded by less than what waits for the receiver.
const MOST_GROWTH_KB: u64 = 16 << 10;

/// Reads the client's intervals for so long, so that its output never fills.
fn read_intervals(client: &mut Client, time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        client.expect("interval");
    }
}

struct Standstill {
    report: serde_json::Value,
    sender_growth_kb: u64,
    receiver_growth_kb: u64,
}

/// A flow to the server, whose process stands still in the middle.
fn stand_still(transport: &str, rate: &str) -> Standstill {
    let mut server = Server::start("127.0.0.1", &[]);
    let args = [
        "--transport",
        transport,
        "--to",
        &server.control,
        "-b",
        rate,
        "-l",
        "1400",
        "-t",
        "5",
        "-i",
        "0.05",
    ];
    let mut client = Client::start(&args);
    let receiver = server.expect("flow_started")["process"].as_u64().unwrap() as u32;
    let sender = client.child.id();
    client.expect("started");
    read_intervals(&mut client, Duration::from_millis(500));
    let (sender_kb, receiver_kb) = (resident_kb(sender), resident_kb(receiver));
    signal(receiver, libc::SIGSTOP);
    // A stream's sender has nothing to say meanwhile: it sleeps until there is room.
    std::thread::sleep(STANDSTILL);
    let sender_growth_kb = resident_kb(sender).saturating_sub(sender_kb);
    signal(receiver, libc::SIGCONT);
    read_intervals(&mut client, Duration::from_millis(500));
    let receiver_growth_kb = resident_kb(receiver).saturating_sub(receiver_kb);
    let finished = client.finish();
    assert_eq!(finished.code, 0, "{transport}: {}", finished.stderr);
    Standstill { report: finished.report().clone(), sender_growth_kb, receiver_growth_kb }
}

#[test]
fn datagrams_that_find_no_room_are_counted_as_lost() {
    let Standstill { report, sender_growth_kb, receiver_growth_kb } = stand_still("udp", "200M");
    assert_honest(&report);
    let receiver = &report["receiver"];
    let lost = receiver["messages_lost"].as_u64().unwrap();
    assert!(lost > 0, "{receiver}");
    // Nothing else loses anything on loopback.
    assert_eq!(receiver["transport_stats"]["kernel_drops"].as_u64(), Some(lost), "{receiver}");
    assert!(sender_growth_kb.max(receiver_growth_kb) < MOST_GROWTH_KB);
}

#[test]
fn a_streams_sender_is_held_up_and_nothing_is_lost() {
    for transport in ["tcp", "quic"] {
        let Standstill { report, sender_growth_kb, receiver_growth_kb } = stand_still(transport, "200M");
        assert_honest(&report);
        assert_eq!(report["receiver"]["messages_lost"], 0, "{transport}");
        // What could not go meanwhile was not put aside: it is late, or not sent.
        assert!(sender_growth_kb.max(receiver_growth_kb) < MOST_GROWTH_KB, "{transport}");
    }
}
