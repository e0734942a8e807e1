// SPDX-License-Identifier: Apache-2.0
//! Some seconds at 10,000 messages a second: neither end grows. The same over 20 minutes is `make soak`.

use crate::common::{assert_honest, Client, Server};
use crate::rubbish::resident_kb;

/// Intervals of a second before memory is looked at, as the first two minutes of the long run are.
const WARM_UP: usize = 5;
const SECONDS: usize = 20;
/// 10,000 messages of 64 bytes a second.
const RATE: &str = "5120000";
const MOST_GROWTH_KB: u64 = 1_000;

#[test]
fn flows_at_10_kpps_leave_both_ends_as_big_as_they_were() {
    let mut server = Server::start("127.0.0.1", &[]);
    let seconds = SECONDS.to_string();
    let args = ["--to", &server.control, "-b", RATE, "-l", "64", "-t", &seconds, "-i", "0.1"];
    let mut client = Client::start(&args);
    let receiver = server.expect("flow_started")["process"].as_u64().unwrap() as u32;
    let processes = [client.child.id(), receiver, server.child.id()];
    let mut sizes_kb: Vec<[u64; 3]> = Vec::new();
    // Not to the very end: then the report is put together.
    for interval in 0..10 * (SECONDS - 1) {
        client.expect("interval");
        if interval >= 10 * WARM_UP {
            sizes_kb.push(processes.map(resident_kb));
        }
    }
    for (index, name) in ["sender", "receiver", "doorkeeper"].iter().enumerate() {
        let first = sizes_kb[0][index];
        let most = sizes_kb.iter().map(|sizes| sizes[index]).max().unwrap();
        assert!(most - first < MOST_GROWTH_KB, "{name} grew from {first} to {most} KB");
    }
    let finished = client.finish();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_honest(finished.report());
    assert_eq!(finished.report()["sender"]["messages_scheduled"], 10_000 * SECONDS);
}
