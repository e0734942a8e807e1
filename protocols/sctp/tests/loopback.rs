// SPDX-License-Identifier: Apache-2.0
//! Flows over the loopback device, where the kernel has SCTP; a test says so where it has not.

use std::net::SocketAddr;

use netjoule_sctp::Sctp;
use netjoule_transport::message::Header;
use netjoule_transport::{FlowSpec, Protocol, Role, State, Stop, Transport, TransportError, Values};
use serde_json::{json, Value};

fn has_sctp() -> bool {
    let missing = Sctp.missing();
    if let Some(reason) = &missing {
        assert!(reason.contains("SCTP"), "{reason}");
        eprintln!("not tested: {reason}");
    }
    missing.is_none()
}

fn flow(role: Role, token: u8, bytes: usize, chosen: &Value) -> FlowSpec {
    let Value::Object(chosen) = chosen else { panic!("not an object") };
    FlowSpec {
        payload_bytes: bytes,
        role,
        token: [token; 16],
        gso: false,
        seed: 0,
        rate_bps: 0,
        options: Sctp.options(chosen).unwrap(),
        event_log: None,
    }
}

type Ends = (Box<dyn Transport>, Box<dyn Transport>);

fn ends(address: &str, client_role: Role, tokens: [u8; 2], bytes: usize, chosen: &Value) -> Ends {
    let any = SocketAddr::new(address.parse().unwrap(), 0);
    let server_role = if client_role == Role::Sender { Role::Receiver } else { Role::Sender };
    let server = Sctp.listen(any, None, &flow(server_role, tokens[1], bytes, chosen)).unwrap();
    let remote = server.local_address().unwrap();
    let client =
        Sctp.connect(None, remote, &flow(client_role, tokens[0], bytes, chosen), &Values::new(), 0).unwrap();
    (client, server)
}

fn open((client, server): &mut Ends) -> Result<(), TransportError> {
    for _ in 0..1_000_000 {
        if (client.service(0)?, server.service(0)?) == (State::Open, State::Open) {
            return Ok(());
        }
        std::thread::yield_now();
    }
    panic!("the pair does not open");
}

/// Sends `count` messages and reads until all have arrived and been acknowledged.
fn run(sender: &mut dyn Transport, receiver: &mut dyn Transport, bytes: usize, count: u64) -> Vec<u64> {
    let mut message = vec![0x5a; bytes];
    let (mut sent, mut sequences) = (0, Vec::new());
    for _ in 0..10_000_000 {
        while sent < count {
            Header { sequence: sent, sent_ns: 0 }.write(&mut message);
            if sender.send(&message, 0).unwrap() != Stop::None {
                break;
            }
            sent += 1;
        }
        receiver
            .receive(0, &mut |arrival| {
                assert_eq!(arrival.bytes.len(), bytes);
                assert!(arrival.bytes[16..].iter().all(|byte| *byte == 0x5a));
                sequences.push(Header::read(arrival.bytes).unwrap().sequence);
            })
            .unwrap();
        if sequences.len() as u64 == count && sender.drained() {
            return sequences;
        }
        std::thread::yield_now();
    }
    panic!("{} of {count} arrived", sequences.len());
}

#[test]
fn messages_keep_their_borders_in_both_directions_over_both_ip_versions() {
    if !has_sctp() {
        return;
    }
    for address in ["127.0.0.1", "::1"] {
        for client_role in [Role::Sender, Role::Receiver] {
            for bytes in [16, 1440, 60_000] {
                let mut pair = ends(address, client_role, [1, 1], bytes, &json!({}));
                open(&mut pair).unwrap();
                let (client, server) = (&mut *pair.0, &mut *pair.1);
                let (sender, receiver) =
                    if client_role == Role::Sender { (client, server) } else { (server, client) };
                let count = if bytes > 10_000 { 30 } else { 300 };
                assert_eq!(run(sender, receiver, bytes, count), (0..count).collect::<Vec<_>>());
                let figures = sender.packetisation(count);
                assert!(figures.mean_ip_packet_bytes.unwrap() > 48.0, "{figures:?}");
                if bytes == 1440 {
                    assert!(figures.frames_per_message.unwrap() <= 1.1, "{figures:?}");
                }
            }
        }
    }
}

#[test]
fn the_kernel_has_what_was_chosen() {
    if !has_sctp() {
        return;
    }
    for chosen in [
        json!({ "nodelay": true, "ordered": true }),
        json!({ "nodelay": false, "ordered": false, "lifetime_ms": 60_000 }),
        json!({ "ordered": false, "max_retransmissions": 3 }),
    ] {
        let mut pair = ends("127.0.0.1", Role::Sender, [1, 1], 100, &chosen);
        open(&mut pair).unwrap();
        let mut sequences = run(&mut *pair.0, &mut *pair.1, 100, 50);
        sequences.sort_unstable();
        assert_eq!(sequences, (0..50).collect::<Vec<_>>());
        let values = pair.0.path_statistics();
        for (name, value) in chosen.as_object().unwrap() {
            assert_eq!(&values[name], value, "{name}: {values:?}");
        }
        let unordered = values["unordered_data_chunks_sent"].as_u64().unwrap();
        assert_eq!(unordered > 0, chosen["ordered"] == false, "{values:?}");
        assert_eq!(values["messages_given_up"], 0);
    }
}

#[test]
fn a_wrong_token_is_turned_away_and_the_right_one_still_gets_in() {
    if !has_sctp() {
        return;
    }
    let mut pair = ends("127.0.0.1", Role::Sender, [2, 1], 100, &json!({}));
    assert!(matches!(open(&mut pair), Err(TransportError::Refused(_) | TransportError::Lost(_))));
    let remote = pair.1.local_address().unwrap();
    let right = flow(Role::Sender, 1, 100, &json!({}));
    pair.0 = Sctp.connect(None, remote, &right, &Values::new(), 0).unwrap();
    open(&mut pair).unwrap();
}

#[test]
fn a_full_send_buffer_asks_to_be_woken_and_closing_is_seen() {
    if !has_sctp() {
        return;
    }
    let mut pair = ends("127.0.0.1", Role::Sender, [1, 1], 1000, &json!({}));
    open(&mut pair).unwrap();
    while pair.0.send(&[0; 1000], 0).unwrap() == Stop::None {}
    let mut fds = Vec::new();
    pair.0.poll_fds(&mut fds);
    assert!(fds.iter().any(|fd| fd.write));
    assert!(!pair.0.drained());
    for _ in 0..1_000_000 {
        pair.1.receive(0, &mut |_| ()).unwrap();
        if pair.0.drained() {
            break;
        }
    }
    assert!(pair.0.drained());
    pair.0.close(0);
    for _ in 0..1_000_000 {
        pair.1.receive(0, &mut |_| ()).unwrap();
        if pair.1.service(0).unwrap() == State::Closed {
            return;
        }
        std::thread::yield_now();
    }
    panic!("the goodbye was not heard");
}

#[test]
fn a_host_without_sctp_is_told_what_is_missing() {
    if Sctp.missing().is_some() {
        let any = "127.0.0.1:0".parse().unwrap();
        let refusal = Sctp.listen(any, None, &flow(Role::Receiver, 1, 100, &json!({}))).err().unwrap();
        assert!(matches!(refusal, TransportError::HostLacks(_)), "{refusal:?}");
    }
}
