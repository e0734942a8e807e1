// SPDX-License-Identifier: Apache-2.0
//! Some seconds at 10,000 messages a second, and at a load that is never met: neither end grows. The first over 20 minutes
//! is `make soak`.

use crate::harness::{assert_honest, Client, Finished, Server};
use crate::rubbish::resident_kb;

/// Intervals of a second before memory is looked at, as the first two minutes of the long run are.
const WARM_UP: usize = 5;
const SECONDS: usize = 20;
/// 10,000 messages of 64 bytes a second.
const RATE: &str = "5120000";
const MOST_GROWTH_KB: u64 = 1_000;

/// A flow of so many seconds, of which `warm_up` are not looked at: its end, and no process grew.
fn flow_that_does_not_grow(flow: &[&str], warm_up: usize, seconds: usize) -> Finished {
    let mut server = Server::start("127.0.0.1", &["--max-rate", "100G"]);
    let time = seconds.to_string();
    let mut client = Client::start(&[&["--to", &server.control, "-t", &time, "-i", "0.1"], flow].concat());
    let receiver = server.expect("flow_started")["process"].as_u64().unwrap() as u32;
    let processes = [client.child.id(), receiver, server.child.id()];
    let mut sizes_kb: Vec<[u64; 3]> = Vec::new();
    // Not to the very end: then the report is put together.
    for interval in 0..10 * (seconds - 1) {
        client.expect("interval");
        if interval >= 10 * warm_up {
            sizes_kb.push(processes.map(resident_kb));
        }
    }
    for (index, name) in ["sender", "receiver", "server"].iter().enumerate() {
        let first = sizes_kb[0][index];
        let most = sizes_kb.iter().map(|sizes| sizes[index]).max().unwrap();
        assert!(most - first < MOST_GROWTH_KB, "{name} grew from {first} to {most} KB");
    }
    let finished = client.finish();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_honest(finished.report());
    finished
}

#[test]
fn flows_at_10_kpps_leave_both_ends_as_big_as_they_were() {
    let finished = flow_that_does_not_grow(&["-b", RATE, "-l", "64"], WARM_UP, SECONDS);
    assert_eq!(finished.report()["sender"]["messages_scheduled"], 10_000 * SECONDS);
}

#[test]
fn a_sender_that_its_transport_holds_back_all_the_time_does_not_grow() {
    let flow = ["--transport", "tcp", "-b", "100G", "-l", "65536"];
    let finished = flow_that_does_not_grow(&flow, 2, 7);
    let report = finished.report();
    let sent = report["sender"]["messages_sent"].as_u64().unwrap();
    let on_its_own_account = report["pacing_certificate"]["departures"].as_u64().unwrap();
    assert!(sent > 10_000 && on_its_own_account < sent / 10, "{}", report["pacing_certificate"]);
}
