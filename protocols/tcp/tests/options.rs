// SPDX-License-Identifier: Apache-2.0
//! What a user chose shows in what the kernel says of the socket, and in what arrives.

use std::net::SocketAddr;
use std::time::Duration;

use netjoule_sockets::timestamps::now_ns;
use netjoule_tcp::{MPTCP, TCP};
use netjoule_transport::message::Header;
use netjoule_transport::{FlowSpec, Protocol, Role, State, Stop, Transport, TransportError, Values};
use serde_json::{json, Value};

const MESSAGE_BYTES: usize = 1000;

fn flow(protocol: &dyn Protocol, role: Role, gso: bool, chosen: &Value) -> FlowSpec {
    let Value::Object(chosen) = chosen else { panic!("not an object") };
    FlowSpec {
        payload_bytes: MESSAGE_BYTES,
        role,
        token: [7; 16],
        gso,
        seed: 0,
        rate_bps: 0,
        options: protocol.options(chosen).unwrap(),
        event_log: None,
    }
}

struct Pair {
    client: Box<dyn Transport>,
    server: Box<dyn Transport>,
}

impl Pair {
    /// Client and server of one flow from client to server; `protocols` may differ.
    fn open(protocols: [&dyn Protocol; 2], gso: bool, chosen: &Value) -> Self {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let [of_client, of_server] = protocols;
        let server_flow = flow(of_server, Role::Receiver, gso, &json!({}));
        let server = of_server.listen(any, None, &server_flow).unwrap();
        let remote = server.local_address().unwrap();
        let client_flow = flow(of_client, Role::Sender, gso, chosen);
        let client = of_client.connect(None, remote, &client_flow, &Values::new(), 0).unwrap();
        let mut pair = Self { client, server };
        for _ in 0..1_000_000 {
            let states = (pair.client.service(0).unwrap(), pair.server.service(0).unwrap());
            if states == (State::Open, State::Open) {
                return pair;
            }
            std::thread::yield_now();
        }
        panic!("the pair does not open");
    }

    fn receive(&mut self) -> Vec<u64> {
        let mut sequences = Vec::new();
        let book = &mut |arrival: netjoule_transport::Arrival<'_>| {
            assert!(arrival.bytes[16..].iter().all(|byte| *byte == 0x5a), "filler was changed");
            sequences.push(Header::read(arrival.bytes).unwrap().sequence);
        };
        self.server.receive(0, book).unwrap();
        sequences
    }

    /// Sends `count` messages in batches of `batch` and reads until all have arrived and the kernel is done with them.
    fn run(&mut self, count: u64, batch: u64) -> Vec<u64> {
        let (mut sent, mut sequences) = (0, Vec::new());
        while sent < count {
            let mut bytes = vec![0x5a; MESSAGE_BYTES * batch.min(count - sent) as usize];
            for (sequence, message) in (sent..).zip(bytes.chunks_mut(MESSAGE_BYTES)) {
                Header { sequence, sent_ns: 0 }.write(message);
            }
            let outcome = self.client.send_batch(&mut bytes, MESSAGE_BYTES, 0).unwrap();
            sent += outcome.sent as u64;
            if outcome.stop == Stop::WouldBlock {
                self.client.service(0).unwrap();
            }
            sequences.extend(self.receive());
        }
        self.client.finish(0).unwrap();
        for _ in 0..1_000_000 {
            if self.client.drained() && sequences.len() as u64 == count {
                return sequences;
            }
            self.client.service(0).unwrap();
            sequences.extend(self.receive());
            std::thread::yield_now();
        }
        panic!("{} of {count} arrived", sequences.len());
    }
}

fn allowed_congestion_controls() -> Vec<String> {
    let path = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
    std::fs::read_to_string(path).unwrap().split_whitespace().map(str::to_owned).collect()
}

#[test]
fn the_sender_runs_the_congestion_control_that_was_chosen() {
    for name in allowed_congestion_controls() {
        let mut pair = Pair::open([&TCP, &TCP], false, &json!({ "congestion_control": name }));
        assert_eq!(pair.run(50, 1), (0..50).collect::<Vec<_>>());
        assert_eq!(pair.client.path_statistics()["congestion_control"], name);
    }
}

#[test]
fn a_congestion_control_that_is_not_loaded_is_refused_by_the_sending_end_only() {
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let chosen = json!({ "congestion_control": "no-such-one" });
    let sender = flow(&TCP, Role::Sender, false, &chosen);
    let receiver = flow(&TCP, Role::Receiver, false, &chosen);
    for refusal in [
        TCP.listen(any, None, &sender).err().unwrap(),
        TCP.connect(None, any, &sender, &Values::new(), 0).err().unwrap(),
    ] {
        assert!(matches!(refusal, TransportError::HostLacks(_)), "{refusal:?}");
        assert!(
            allowed_congestion_controls().iter().all(|name| refusal.to_string().contains(name)),
            "{refusal}"
        );
    }
    assert!(TCP.listen(any, None, &receiver).is_ok());
}

#[test]
fn nodelay_is_what_was_chosen() {
    for nodelay in [true, false] {
        let mut pair = Pair::open([&TCP, &TCP], false, &json!({ "nodelay": nodelay }));
        assert_eq!(pair.client.path_statistics()["nodelay"], nodelay);
    }
}

/// Messages that a stream takes before it is full, when nobody reads.
fn messages_until_full(chosen: &Value) -> (u64, Value) {
    let mut pair = Pair::open([&TCP, &TCP], false, chosen);
    let mut count = 0;
    while pair.client.send(&[0; MESSAGE_BYTES], 0).unwrap() == Stop::None {
        count += 1;
    }
    (count, pair.client.path_statistics()["not_sent_low_water_bytes"].clone())
}

#[test]
fn a_low_water_mark_makes_the_stream_full_sooner() {
    let (few, low) = messages_until_full(&json!({ "notsent_lowat_bytes": 4096 }));
    let (many, none) = messages_until_full(&json!({ "notsent_lowat_bytes": 0 }));
    assert_eq!((low, none), (json!(4096), json!(0)));
    assert!(few < many, "{few} and {many} messages");
}

#[test]
fn with_joining_messages_that_are_due_together_share_segments() {
    for (gso, frames_per_message) in [(false, 1.0), (true, 0.25)] {
        let mut pair = Pair::open([&TCP, &TCP], gso, &json!({}));
        assert_eq!(pair.run(8, 4), (0..8).collect::<Vec<_>>());
        let packetisation = pair.client.packetisation(8);
        assert_eq!(packetisation.frames_per_message, Some(frames_per_message), "{packetisation:?}");
    }
}

#[test]
fn zero_copy_changes_no_byte_and_the_kernel_says_that_loopback_copied() {
    for (gso, batch) in [(false, 1), (true, 32)] {
        let mut pair = Pair::open([&TCP, &TCP], gso, &json!({ "zerocopy": true }));
        assert_eq!(pair.run(2000, batch), (0..2000).collect::<Vec<_>>());
        let values = pair.client.path_statistics();
        let calls = values["zerocopy_calls"].as_u64().unwrap();
        assert!(calls > 0, "{values:?}");
        assert_eq!(values["zerocopy_calls_completed"], calls);
        assert_eq!(values["zerocopy_calls_copied_anyway"], calls);
    }
    let mut without = Pair::open([&TCP, &TCP], false, &json!({}));
    assert!(!without.client.path_statistics().contains_key("zerocopy_calls"));
}

/// Whether the kernel has MPTCP; a test of it says so when it has not.
fn has_mptcp() -> bool {
    let missing = MPTCP.missing();
    if let Some(reason) = &missing {
        assert!(reason.contains("MPTCP"), "{reason}");
        eprintln!("not tested: {reason}");
    }
    missing.is_none()
}

#[test]
fn mptcp_is_mptcp_at_both_ends_and_counts_its_bytes() {
    if !has_mptcp() {
        return;
    }
    let mut pair = Pair::open([&MPTCP, &MPTCP], false, &json!({}));
    assert_eq!(pair.run(500, 1), (0..500).collect::<Vec<_>>());
    for end in [&mut pair.client, &mut pair.server] {
        let values = end.path_statistics();
        assert_eq!(values["mptcp_fell_back_to_tcp"], false, "{values:?}");
        assert_eq!(values["mptcp_additional_subflows"], 0, "{values:?}");
    }
    let figures = pair.client.packetisation(500);
    assert!(figures.mean_ip_packet_bytes.unwrap() > 1000.0, "{figures:?}");
}

#[test]
fn nothing_arrives_before_it_was_sent() {
    let (pause, count) = (Duration::from_millis(1), 40);
    for protocol in [&TCP as &dyn Protocol, &MPTCP] {
        if protocol.name() == "mptcp" && !has_mptcp() {
            continue;
        }
        let mut pair = Pair::open([protocol, protocol], false, &json!({}));
        // Several times, because the kernel switches stamping on a moment after it was asked.
        for round in 0..10 {
            // They wait together, and are read at once.
            for sequence in round * count..(round + 1) * count {
                let mut message = [0x5a; MESSAGE_BYTES];
                Header { sequence, sent_ns: now_ns() }.write(&mut message);
                assert_eq!(pair.client.send(&message, 0).unwrap(), Stop::None);
                std::thread::sleep(pause);
            }
            let mut transits_ns = Vec::new();
            pair.server
                .receive(0, &mut |arrival: netjoule_transport::Arrival<'_>| {
                    transits_ns.push(arrival.arrived_ns - Header::read(arrival.bytes).unwrap().sent_ns);
                })
                .unwrap();
            assert_eq!(transits_ns.len() as u64, count, "{}", protocol.name());
            assert!(transits_ns.iter().all(|ns| *ns >= -1_000_000), "{}: {transits_ns:?}", protocol.name());
        }
    }
}

#[test]
fn a_peer_without_mptcp_makes_it_fall_back_and_the_report_says_so() {
    if !has_mptcp() {
        return;
    }
    let mut client = Pair::open([&MPTCP, &TCP], false, &json!({}));
    assert_eq!(client.run(100, 1), (0..100).collect::<Vec<_>>());
    assert_eq!(client.client.path_statistics()["mptcp_fell_back_to_tcp"], true);
    assert!(!client.server.path_statistics().contains_key("mptcp_fell_back_to_tcp"));
    let mut server = Pair::open([&TCP, &MPTCP], false, &json!({}));
    assert_eq!(server.run(100, 1), (0..100).collect::<Vec<_>>());
    assert_eq!(server.server.path_statistics()["mptcp_fell_back_to_tcp"], true);
}

#[test]
fn mptcp_takes_tcps_choices() {
    if !has_mptcp() {
        return;
    }
    for name in allowed_congestion_controls() {
        let chosen = json!({ "congestion_control": name, "nodelay": false });
        let mut pair = Pair::open([&MPTCP, &MPTCP], false, &chosen);
        let values = pair.client.path_statistics();
        assert_eq!((&values["congestion_control"], &values["nodelay"]), (&json!(name), &json!(false)));
    }
}
