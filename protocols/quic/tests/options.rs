// SPDX-License-Identifier: Apache-2.0
//! What a user chose, seen at whole flows over real sockets on the loopback device.

mod common;

use std::path::Path;

use common::{ends, flow, now_ns, open, run, Tally};
use netjoule_quic::{QUIC, QUIC_DATAGRAM};
use netjoule_transport::{Kind, Protocol, Role, State, Transport};
use serde_json::{json, Value};

const PROTOCOLS: [&dyn Protocol; 2] = [&QUIC, &QUIC_DATAGRAM];

type Ends = (Box<dyn Transport>, Box<dyn Transport>);

/// An open pair whose client sends, with what was chosen; records go to `log`, if there is one.
fn opened(protocol: &dyn Protocol, bytes: usize, gso: bool, chosen: &Value, log: Option<&Path>) -> Ends {
    let Value::Object(chosen) = chosen else { panic!("not an object") };
    let [client_flow, server_flow] =
        [(Role::Sender, "client"), (Role::Receiver, "server")].map(|(role, end)| {
            let mut flow = flow(role, bytes);
            flow.gso = gso;
            flow.options = protocol.options(chosen).unwrap();
            flow.event_log = log.map(|folder| folder.join(end));
            flow
        });
    let (mut client, mut server) = ends(protocol, "127.0.0.1", &client_flow, &server_flow);
    open(&mut *client, &mut *server).unwrap();
    (client, server)
}

fn assert_whole(tally: &Tally, case: &str) {
    assert_eq!(tally.sequences, (0..tally.sent).collect::<Vec<_>>(), "{case}");
    assert_eq!(tally.damaged, 0, "{case}");
}

#[test]
fn every_congestion_control_delivers_all_and_is_reported() {
    for protocol in PROTOCOLS {
        for name in ["cubic", "reno", "bbr2"] {
            let chosen = json!({ "congestion_control": name });
            let (mut client, mut server) = opened(protocol, 1200, false, &chosen, None);
            let tally = run(&mut *client, &mut *server, 1200, 500);
            assert_whole(&tally, name);
            let values = client.path_statistics();
            assert_eq!(values["congestion_control"], name);
            assert_eq!(values["quiche_pacing"], name == "bbr2");
        }
    }
}

#[test]
fn with_pacing_packets_wait_for_their_time_and_without_it_none_does() {
    for gso in [false, true] {
        for paced in [true, false] {
            let chosen = json!({ "congestion_control": "bbr2", "cc_pacing": paced });
            let (mut client, mut server) = opened(&QUIC, 1200, gso, &chosen, None);
            assert_whole(&run(&mut *client, &mut *server, 1200, 2000), "bbr2");
            let values = client.path_statistics();
            assert_eq!(values["quiche_pacing"], paced);
            if paced {
                assert!(values["packets_held_for_their_time"].as_u64().unwrap() > 0, "{values:?}");
                assert!(values["latest_departure_us"].as_f64().unwrap() >= 0.0, "{values:?}");
            } else {
                assert!(!values.contains_key("packets_held_for_their_time"));
            }
        }
    }
}

#[test]
fn early_data_opens_a_flow_and_both_ends_say_that_it_was_accepted() {
    for protocol in PROTOCOLS {
        let chosen = json!({ "early_data": true });
        let (mut client, mut server) = opened(protocol, 1200, false, &chosen, None);
        assert_whole(&run(&mut *client, &mut *server, 1200, 100), protocol.name());
        for values in [client.path_statistics(), server.path_statistics()] {
            assert_eq!(values["session_resumed"], true, "{values:?}");
            assert_eq!(values["early_data_accepted"], true, "{values:?}");
        }
        let values = client.path_statistics();
        assert!(values["ticket_connection_ms"].as_f64().unwrap() > 0.0);
        assert!(values["opening_ms"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn early_data_proves_no_wrong_token_and_no_wrong_certificate() {
    for (wrong_token, words) in [(true, "token is wrong"), (false, "is not the one announced")] {
        let Value::Object(chosen) = json!({ "early_data": true }) else { panic!("not an object") };
        let with = |role| {
            let mut flow = flow(role, 64);
            flow.options = QUIC.options(&chosen).unwrap();
            flow
        };
        let any = "127.0.0.1:0".parse().unwrap();
        let mut server = QUIC.listen(any, None, &with(Role::Receiver)).unwrap();
        let other = QUIC.listen(any, None, &with(Role::Receiver)).unwrap();
        let mut client_flow = with(Role::Sender);
        if wrong_token {
            client_flow.token = *b"fedcba9876543210";
        }
        let offer = if wrong_token { server.offer() } else { other.offer() };
        let remote = server.local_address().unwrap();
        let mut client = QUIC.connect(None, remote, &client_flow, &offer, now_ns()).unwrap();
        let error = open(&mut *client, &mut *server).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(server.service(now_ns()).unwrap(), State::Connecting);
    }
}

/// The records of a JSON text sequence (RFC 7464).
fn records(path: &Path) -> Vec<Value> {
    let bytes = std::fs::read(path).unwrap();
    let texts = bytes.split(|byte| *byte == 0x1e).filter(|text| !text.is_empty());
    texts.map(|text| serde_json::from_slice(text).unwrap()).collect()
}

#[test]
fn both_ends_record_their_connection_when_asked_and_only_then() {
    let folder = std::env::temp_dir().join(format!("netjoule-quic-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for protocol in PROTOCOLS {
        for early_data in [false, true] {
            let chosen = json!({ "early_data": early_data });
            let (mut client, mut server) = opened(protocol, 600, false, &chosen, Some(&folder));
            run(&mut *client, &mut *server, 600, 50);
            drop((client, server));
            for end in ["client", "server"] {
                let path = folder.join(format!("{end}.sqlog"));
                let records = records(&path);
                let header = &records[0];
                assert_eq!(header["trace"]["vantage_point"]["type"], end, "{header}");
                let named = |name: &str| records[1..].iter().any(|event| event["name"] == name);
                for name in ["quic:packet_sent", "quic:packet_received", "quic:recovery_metrics_updated"] {
                    assert!(named(name), "{} {end} records no {name}", protocol.name());
                }
                std::fs::remove_file(&path).unwrap();
            }
        }
        let (mut client, mut server) = opened(protocol, 600, false, &json!({}), None);
        run(&mut *client, &mut *server, 600, 50);
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_a_stranger_says_is_not_recorded_on_the_disk() {
    let folder = std::env::temp_dir().join(format!("netjoule-quic-stranger-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let any = "127.0.0.1:0".parse().unwrap();
    let mut server_flow = flow(Role::Receiver, 64);
    server_flow.event_log = Some(folder.join("server"));
    let mut server = QUIC.listen(any, None, &server_flow).unwrap();
    let mut wrong = flow(Role::Sender, 64);
    wrong.token = *b"fedcba9876543210";
    let remote = server.local_address().unwrap();
    let mut stranger = QUIC.connect(None, remote, &wrong, &server.offer(), now_ns()).unwrap();
    assert!(open(&mut *stranger, &mut *server).is_err());
    drop(server);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Packets per message of eight messages of 100 bytes that are due together.
fn packets_per_message(protocol: &dyn Protocol, gso: bool) -> f64 {
    let (mut client, mut server) = opened(protocol, 100, gso, &json!({}), None);
    let mut batch = vec![0x5a; 8 * 100];
    for (sequence, message) in (0..).zip(batch.chunks_mut(100)) {
        netjoule_transport::message::Header { sequence, sent_ns: 0 }.write(message);
    }
    assert_eq!(client.send_batch(&mut batch, 100, now_ns()).unwrap().sent, 8);
    client.flush(now_ns()).unwrap();
    let mut arrived = 0;
    while arrived < 8 {
        arrived += server.receive(now_ns(), &mut |_| ()).unwrap();
    }
    client.packetisation(8).frames_per_message.unwrap()
}

#[test]
fn messages_that_are_due_together_share_packets_of_a_stream_only_when_trains_are_asked_for() {
    assert_eq!((QUIC.kind(), QUIC_DATAGRAM.kind()), (Kind::Stream, Kind::Datagram));
    assert_eq!((packets_per_message(&QUIC, false), packets_per_message(&QUIC, true)), (1.0, 0.125));
    let datagrams = [false, true].map(|gso| packets_per_message(&QUIC_DATAGRAM, gso));
    assert_eq!(datagrams, [1.0, 1.0]);
}
