// SPDX-License-Identifier: Apache-2.0
//! An interface that goes down in the middle of flows, comes back, or does not.

use std::time::Duration;

use serde_json::Value;

use crate::harness::network::{in_own_network, run, Cable, FAR};
use crate::harness::{assert_honest, send, Client, Finished, Server, TRANSPORTS};

/// Reads this many of a client's intervals of 0.1 s.
fn watch(client: &mut Client, intervals: usize) {
    for _ in 0..intervals {
        client.expect("interval");
    }
}

/// A flow of every transport to the far end, all of them under way.
fn flows<'a>(server: &'a Server, seconds: &'a str) -> Vec<(&'static str, Client)> {
    let (_, port) = server.control.rsplit_once(':').unwrap();
    let to = format!("{FAR}:{port}");
    let start = |transport| {
        Client::start(&["--transport", transport, "--to", &to, "-b", "1M", "-l", "1000", "-t", seconds])
    };
    let mut clients: Vec<_> = TRANSPORTS.iter().map(|transport| (*transport, start(transport))).collect();
    for (_, client) in &mut clients {
        client.expect("started");
    }
    clients
}

/// Every end of a cable, and a server for all flows at the far end.
fn far_server(cable: &Cable) -> Server {
    Server::start_by(cable.far(), FAR, &["--max-flows", "16"])
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap()
}

#[test]
fn flows_outlive_a_short_outage_of_their_interface() {
    in_own_network("outages::flows_outlive_a_short_outage_of_their_interface", || {
        let cable = Cable::new();
        let server = far_server(&cable);
        let mut clients = flows(&server, "8");
        watch(&mut clients[0].1, 5);
        run("ip link set near down");
        watch(&mut clients[0].1, 15);
        run("ip link set near up");
        let back_ns = netjoule_measure::host::now_ns();
        for (transport, client) in clients {
            let finished = client.finish();
            assert_eq!(finished.code, 0, "{transport}: {}", finished.stderr);
            let report = finished.report();
            assert_honest(report);
            assert!(
                number(&report["receiver"]["last_packet_ns"]) > back_ns,
                "{transport}: nothing came afterwards"
            );
            let missing =
                number(&report["sender"]["messages_not_sent"]) + number(&report["receiver"]["messages_lost"]);
            match transport {
                "tcp" | "quic" => assert_eq!(report["receiver"]["messages_lost"], 0),
                _ => assert!(missing > 0, "{transport}: {report}"),
            }
        }
    });
}

#[test]
fn an_outage_at_the_very_end_costs_a_flow_between_two_clocks_nothing() {
    let test = "outages::an_outage_at_the_very_end_costs_a_flow_between_two_clocks_nothing";
    in_own_network(test, || {
        let cable = Cable::new();
        let server = far_server(&cable);
        let (_, port) = server.control.rsplit_once(':').unwrap();
        let to = format!("{FAR}:{port}");
        let clients = [&[][..], &["-R"]].map(|reverse| {
            let args = ["--to", &to, "-b", "1M", "-l", "1000", "-t", "2", "--clock", "exchange"];
            let mut client = Client::start(&[&args[..], reverse].concat());
            client.expect("started");
            client
        });
        let begin_ns = netjoule_measure::host::now_ns();
        std::thread::sleep(Duration::from_secs(1));
        run("ip link set near down");
        // Until long after the messages, when the clocks are to be compared again.
        std::thread::sleep(Duration::from_secs(6));
        run("ip link set near up");
        for client in clients {
            let finished = client.finish();
            assert_eq!(finished.code, 0, "{}", finished.stderr);
            let report = finished.report();
            assert_honest(report);
            assert_eq!(report["clock_offset"]["method"], "control_exchange");
            assert!(
                number(&report["sender"]["end_ns"]) < begin_ns + 6_000_000_000,
                "the flow outlasted the outage"
            );
        }
    });
}

/// A flow that failed has its half kept, and says why in one line.
#[track_caller]
fn assert_partial(transport: &str, finished: &Finished) {
    assert_eq!(finished.code, 1, "{transport}: {}", finished.stderr);
    assert_eq!(finished.stderr.lines().count(), 1, "{transport}: {}", finished.stderr);
    let [.., partial, error] = &finished.events[..] else { panic!("{transport}: {:?}", finished.events) };
    assert_eq!((&partial["event"], &error["event"]), (&"partial_report".into(), &"error".into()));
    assert_eq!(partial["failure"]["message"], error["message"], "{transport}");
    assert_fits_its_contract(partial);
    assert!(number(&partial["sender"]["messages_sent"]) > 0, "{transport}: {partial}");
}

fn schema(name: &str) -> Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../protocols/contracts/schemas");
    serde_json::from_str(&std::fs::read_to_string(format!("{folder}/{name}.schema.json")).unwrap()).unwrap()
}

/// The partial report as a whole, and its halves as those of a whole one.
fn assert_fits_its_contract(partial: &Value) {
    let mut partial = partial.clone();
    partial.as_object_mut().unwrap().remove("event");
    let whole = schema("flow_report");
    let fits = |schema: &Value, value: &Value| {
        let validator = jsonschema::validator_for(schema).unwrap();
        let defects: Vec<_> = validator.iter_errors(value).map(|defect| defect.to_string()).collect();
        assert!(defects.is_empty(), "{defects:?}");
    };
    fits(&schema("partial_flow_report"), &partial);
    for half in ["sender", "receiver"].into_iter().filter(|half| !partial[half].is_null()) {
        fits(&whole["properties"][half], &partial[half]);
    }
    fits(&whole["properties"]["intervals"], &partial["intervals"]);
}

#[test]
fn flows_whose_interface_stays_down_end_in_time_with_what_they_know() {
    in_own_network("outages::flows_whose_interface_stays_down_end_in_time_with_what_they_know", || {
        let cable = Cable::new();
        let mut server = far_server(&cable);
        let mut clients = flows(&server, "2");
        watch(&mut clients[0].1, 5);
        let begin_ns = netjoule_measure::host::now_ns();
        run("ip link set near down");
        // All at once: a client whose output nobody reads comes to a halt.
        let waiting = clients.into_iter().map(|(transport, client)| {
            std::thread::spawn(move || {
                let finished = client.finish();
                (transport, finished, (netjoule_measure::host::now_ns() - begin_ns) / 1_000_000_000)
            })
        });
        let mut ends_s = Vec::new();
        for thread in waiting.collect::<Vec<_>>() {
            let (transport, finished, end_s) = thread.join().unwrap();
            assert_partial(transport, &finished);
            ends_s.push((transport, end_s));
        }
        // A stream waits 30 s for its data to leave; what was said then and is not acknowledged is lost after 20. Without
        // that limit the server's half would be waited for for 90 s.
        assert!(ends_s.iter().all(|(_, end_s)| *end_s < 80), "{ends_s:?}");
        // The server finds out, too, keeps its halves, and serves the next flow.
        for _ in TRANSPORTS {
            let failed = server.expect("flow_failed");
            assert!(number(&failed["receiver"]["messages_received_unique"]) > 0, "{failed}");
        }
        run("ip link set near up");
        let (_, port) = server.control.rsplit_once(':').unwrap();
        let next = send(&["--to", &format!("{FAR}:{port}"), "-b", "1M", "-l", "1000", "-t", "0.2"]);
        assert_eq!(next.code, 0, "{}", next.stderr);
        assert_honest(next.report());
    });
}

#[test]
fn a_receiver_whose_server_is_cut_off_keeps_what_has_come() {
    in_own_network("outages::a_receiver_whose_server_is_cut_off_keeps_what_has_come", || {
        let cable = Cable::new();
        let mut server = far_server(&cable);
        let (_, port) = server.control.rsplit_once(':').unwrap();
        let mut client = Client::start(&["--to", &format!("{FAR}:{port}"), "-b", "1M", "-t", "600", "-R"]);
        client.expect("started");
        watch(&mut client, 3);
        server.child.kill().unwrap();
        server.child.wait().unwrap();
        let finished = client.finish();
        assert_eq!(finished.code, 1, "{}", finished.stderr);
        let [.., partial, _] = &finished.events[..] else { panic!("{:?}", finished.events) };
        assert_eq!(partial["event"], "partial_report");
        assert_fits_its_contract(partial);
        assert!(partial["sender"].is_null());
        assert!(number(&partial["receiver"]["messages_received_unique"]) > 0, "{partial}");
    });
}
