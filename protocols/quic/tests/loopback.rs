// SPDX-License-Identifier: Apache-2.0
//! Whole flows over real sockets on the loopback device.

mod common;

use std::os::fd::AsRawFd;

use common::{ends, flow, now_ns, open, opposite, run, wait};
use netjoule_quic::{QUIC, QUIC_DATAGRAM};
use netjoule_transport::message::Header;
use netjoule_transport::{
    Arrival, Kind, PacketisationSource, Protocol, Role, State, Stop, Transport, TransportError,
};

const PROTOCOLS: [&dyn Protocol; 2] = [&QUIC, &QUIC_DATAGRAM];

fn opened(
    protocol: &dyn Protocol,
    address: &str,
    client_role: Role,
    bytes: usize,
) -> (Box<dyn Transport>, Box<dyn Transport>) {
    let (mut client, mut server) =
        ends(protocol, address, &flow(client_role, bytes), &flow(opposite(client_role), bytes));
    open(&mut *client, &mut *server).unwrap();
    (client, server)
}

#[test]
fn messages_arrive_whole_and_in_order_in_both_directions_over_both_ip_versions() {
    for protocol in PROTOCOLS {
        for address in ["127.0.0.1", "::1"] {
            for client_role in [Role::Sender, Role::Receiver] {
                for bytes in [16, 64, 1420] {
                    let (mut client, mut server) = opened(protocol, address, client_role, bytes);
                    let tally = match client_role {
                        Role::Sender => run(&mut *client, &mut *server, bytes, 500),
                        Role::Receiver => run(&mut *server, &mut *client, bytes, 500),
                    };
                    let case = format!("{} {address} {client_role:?} {bytes}", protocol.name());
                    assert_eq!(tally.sent + tally.refused, 500, "{case}");
                    assert_eq!(tally.damaged, 0, "{case}");
                    let expected: Vec<u64> = (0..tally.sent).collect();
                    assert_eq!(tally.sequences, expected, "{case}");
                    if protocol.kind() == Kind::Stream {
                        assert_eq!(tally.refused, 0, "{case}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_message_of_1440_bytes_is_one_packet_of_at_most_1500_bytes_on_ipv4() {
    for protocol in PROTOCOLS {
        let (mut client, mut server) = opened(protocol, "127.0.0.1", Role::Sender, 1440);
        settle(&mut *client, &mut *server);
        let mut frames = 0.0;
        let mut sent = 0;
        // One at a time, so that the window never makes the stream merge messages.
        for _ in 0..50 {
            sent += run_one(&mut *client, &mut *server, sent);
            let packetisation = client.packetisation(sent);
            assert_eq!(packetisation.source, PacketisationSource::Measured);
            frames = packetisation.frames_per_message.unwrap();
            let mean = packetisation.mean_ip_packet_bytes.unwrap();
            assert!(mean > 1440.0 && mean <= 1500.0, "{} {mean}", protocol.name());
        }
        assert_eq!(frames, 1.0, "{}", protocol.name());
    }
}

/// Sends message number `sequence` of 1440 bytes and waits for it.
fn run_one(client: &mut dyn Transport, server: &mut dyn Transport, sequence: u64) -> u64 {
    let mut message = [0; 1440];
    Header { sequence, sent_ns: now_ns() }.write(&mut message);
    client.send(&message, now_ns()).unwrap();
    client.flush(now_ns()).unwrap();
    let mut arrived = 0;
    while arrived == 0 {
        wait(&[&*server], now_ns() + 10_000_000_000);
        arrived = server.receive(now_ns(), &mut |arrival| assert_eq!(arrival.bytes.len(), 1440)).unwrap();
    }
    client.service(now_ns()).unwrap();
    arrived as u64
}

#[test]
fn a_datagram_that_does_not_fit_is_refused_with_the_limit_named() {
    for (address, limit_bytes) in [("127.0.0.1", 1440), ("::1", 1420)] {
        let bytes = limit_bytes + 1;
        let (mut client, mut server) =
            ends(&QUIC_DATAGRAM, address, &flow(Role::Sender, bytes), &flow(Role::Receiver, bytes));
        let error = open(&mut *client, &mut *server).unwrap_err();
        assert!(matches!(error, TransportError::Unsupported(_)), "{error:?}");
        let sentence = error.to_string();
        assert!(sentence.contains(&format!("{bytes} bytes")), "{sentence}");
        assert!(sentence.contains(&format!("{limit_bytes} bytes")), "{sentence}");
    }
}

#[test]
fn another_certificate_than_the_announced_one_is_refused() {
    for protocol in PROTOCOLS {
        let address = "127.0.0.1:0".parse().unwrap();
        let mut server = protocol.listen(address, None, &flow(Role::Receiver, 64)).unwrap();
        let other = protocol.listen(address, None, &flow(Role::Receiver, 64)).unwrap();
        let remote = server.local_address().unwrap();
        let mut client =
            protocol.connect(None, remote, &flow(Role::Sender, 64), &other.offer(), now_ns()).unwrap();
        let error = open(&mut *client, &mut *server).unwrap_err();
        assert!(matches!(error, TransportError::Refused(_)), "{error:?}");
        for offer in [server.offer(), other.offer()] {
            let fingerprint = offer["certificate_sha256"].as_str().unwrap();
            assert!(error.to_string().contains(fingerprint), "{error}");
        }
    }
}

#[test]
fn a_wrong_token_is_turned_away_and_the_right_one_still_gets_in() {
    for protocol in PROTOCOLS {
        let mut wrong = flow(Role::Sender, 64);
        wrong.token = *b"fedcba9876543210";
        let (mut intruder, mut server) = ends(protocol, "127.0.0.1", &wrong, &flow(Role::Receiver, 64));
        let error = open(&mut *intruder, &mut *server).unwrap_err();
        assert!(error.to_string().contains("token is wrong"), "{error}");

        let remote = server.local_address().unwrap();
        let mut client =
            protocol.connect(None, remote, &flow(Role::Sender, 64), &server.offer(), now_ns()).unwrap();
        open(&mut *client, &mut *server).unwrap();
        assert_eq!(run(&mut *client, &mut *server, 64, 20).sequences.len(), 20);
    }
}

#[test]
fn one_that_stalls_in_the_middle_does_not_keep_the_peer_out() {
    for protocol in PROTOCOLS {
        let (mut staller, mut server) =
            ends(protocol, "127.0.0.1", &flow(Role::Sender, 64), &flow(Role::Receiver, 64));
        // It opened a connection and says nothing more.
        assert_eq!(server.service(now_ns()).unwrap(), State::Connecting);
        let remote = server.local_address().unwrap();
        let mut client =
            protocol.connect(None, remote, &flow(Role::Sender, 64), &server.offer(), now_ns()).unwrap();
        open(&mut *client, &mut *server).unwrap();
        assert_ne!(staller.service(now_ns()).unwrap(), State::Open);
        assert_eq!(run(&mut *client, &mut *server, 64, 20).sequences.len(), 20);
    }
}

#[test]
fn junk_at_the_listening_port_changes_nothing_and_is_not_answered() {
    for protocol in PROTOCOLS {
        let any = "127.0.0.1:0".parse().unwrap();
        let mut server = protocol.listen(any, None, &flow(Role::Receiver, 64)).unwrap();
        let remote = server.local_address().unwrap();
        let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for length in [0, 1, 7, 20, 64, 1200, 1472, 9000] {
            for first in [0x00, 0x40, 0x80, 0xc0, 0xc3, 0xff] {
                // Version 1 and connection ids of plausible lengths where it is long enough for them.
                let mut junk = vec![first; length];
                junk.iter_mut().skip(1).zip([0, 0, 0, 1, 8]).for_each(|(byte, value)| *byte = value);
                stranger.send_to(&junk, remote).unwrap();
                assert_eq!(server.service(now_ns()).unwrap(), State::Connecting);
            }
        }
        assert!(!common::is_readable(stranger.as_raw_fd()), "junk was answered");
        let mut client =
            protocol.connect(None, remote, &flow(Role::Sender, 64), &server.offer(), now_ns()).unwrap();
        open(&mut *client, &mut *server).unwrap();
        assert_eq!(run(&mut *client, &mut *server, 64, 20).sequences.len(), 20);
    }
}

#[test]
fn only_the_allowed_address_gets_an_answer() {
    for protocol in PROTOCOLS {
        let (any, allowed) = ("127.0.0.1:0".parse().unwrap(), "127.0.0.2".parse().unwrap());
        let mut server = protocol.listen(any, Some(allowed), &flow(Role::Receiver, 64)).unwrap();
        let (remote, offer) = (server.local_address().unwrap(), server.offer());
        let from = |address: &str| {
            let local = Some(address.parse().unwrap());
            protocol.connect(local, remote, &flow(Role::Sender, 64), &offer, now_ns()).unwrap()
        };
        let mut stranger = from("127.0.0.1");
        assert_eq!(server.service(now_ns()).unwrap(), State::Connecting);
        let mut fds = Vec::new();
        stranger.poll_fds(&mut fds);
        assert!(!common::is_readable(fds[0].fd), "the stranger was answered");
        let mut client = from("127.0.0.2");
        open(&mut *client, &mut *server).unwrap();
        assert_eq!(stranger.service(now_ns()).unwrap(), State::Connecting);
    }
}

#[test]
fn an_open_flow_is_silent_and_wants_no_wake_up_until_it_is_used() {
    for protocol in PROTOCOLS {
        let (mut client, mut server) = opened(protocol, "127.0.0.1", Role::Sender, 64);
        settle(&mut *client, &mut *server);
        let hour_ns = 3600 * 1_000_000_000;
        assert!(client.next_wakeup_ns().unwrap() - now_ns() > hour_ns, "{}", protocol.name());
        assert!(server.next_wakeup_ns().unwrap() - now_ns() > hour_ns, "{}", protocol.name());
        let tally = run(&mut *client, &mut *server, 64, 100);
        assert_eq!(tally.sequences.len() as u64, tally.sent);
        settle(&mut *client, &mut *server);
        assert!(client.next_wakeup_ns().unwrap() - now_ns() > hour_ns, "{} after", protocol.name());
        assert!(server.next_wakeup_ns().unwrap() - now_ns() > hour_ns, "{} after", protocol.name());
    }
}

/// Services until neither end has a timer within the minute and no packet is on its way.
fn settle(client: &mut dyn Transport, server: &mut dyn Transport) {
    let minute_ns = 60 * 1_000_000_000;
    let deadline_ns = now_ns() + minute_ns;
    loop {
        assert_eq!(client.service(now_ns()).unwrap(), State::Open);
        assert_eq!(server.service(now_ns()).unwrap(), State::Open);
        server.receive(now_ns(), &mut |_| ()).unwrap();
        let before: Vec<_> = counts(client).into_iter().chain(counts(server)).collect();
        let next_ns = client.next_wakeup_ns().unwrap().min(server.next_wakeup_ns().unwrap());
        let quiet_ns = now_ns() + 50_000_000;
        wait(&[&*client, &*server], quiet_ns);
        let is_quiet = now_ns() >= quiet_ns && next_ns > now_ns() + minute_ns;
        if is_quiet && before == counts(client).into_iter().chain(counts(server)).collect::<Vec<_>>() {
            return;
        }
        assert!(now_ns() < deadline_ns, "the connection never falls silent");
    }
}

fn counts(end: &mut dyn Transport) -> [u64; 2] {
    let values = end.path_statistics();
    ["packets_sent", "packets_received"].map(|name| values[name].as_u64().unwrap())
}

#[test]
fn closing_is_seen_by_the_other_end_as_closed_and_not_as_an_error() {
    for protocol in PROTOCOLS {
        let (mut client, mut server) = opened(protocol, "127.0.0.1", Role::Sender, 64);
        client.close(now_ns());
        let deadline_ns = now_ns() + 10_000_000_000;
        while server.service(now_ns()).unwrap() != State::Closed {
            assert!(now_ns() < deadline_ns);
            wait(&[&*server], deadline_ns);
        }
    }
}

#[test]
fn a_port_where_nothing_listens_is_refused_at_once() {
    for protocol in PROTOCOLS {
        let server =
            protocol.listen("127.0.0.1:0".parse().unwrap(), None, &flow(Role::Receiver, 64)).unwrap();
        let (remote, offer) = (server.local_address().unwrap(), server.offer());
        drop(server);
        // The answer may come as early as between the first two packets.
        let error = match protocol.connect(None, remote, &flow(Role::Sender, 64), &offer, now_ns()) {
            Ok(mut client) => first_error(&mut *client),
            Err(error) => error,
        };
        assert!(error.to_string().contains("nothing listens"), "{error}");
    }
}

fn first_error(client: &mut dyn Transport) -> TransportError {
    let deadline_ns = now_ns() + 10_000_000_000;
    loop {
        match client.service(now_ns()) {
            Err(error) => return error,
            Ok(state) => assert_eq!(state, State::Connecting),
        }
        assert!(now_ns() < deadline_ns);
        wait(&[&*client], deadline_ns);
    }
}

#[test]
fn an_offer_without_a_fingerprint_is_refused() {
    let remote = "127.0.0.1:9".parse().unwrap();
    let outcome = QUIC.connect(None, remote, &flow(Role::Sender, 64), &Default::default(), now_ns());
    assert!(outcome.err().unwrap().to_string().contains("fingerprint"));
}

#[test]
fn segmentation_offload_changes_no_byte() {
    for protocol in PROTOCOLS {
        for bytes in [64, 1440] {
            let (mut client_flow, mut server_flow) = (flow(Role::Sender, bytes), flow(Role::Receiver, bytes));
            client_flow.gso = true;
            server_flow.gso = true;
            let (mut client, mut server) = ends(protocol, "127.0.0.1", &client_flow, &server_flow);
            open(&mut *client, &mut *server).unwrap();
            let tally = run(&mut *client, &mut *server, bytes, 2000);
            assert_eq!(tally.sequences, (0..tally.sent).collect::<Vec<_>>());
            assert_eq!(tally.damaged, 0);
            let values = client.path_statistics();
            assert!(values["udp_send_calls"].as_u64() < values["udp_packets_sent"].as_u64());
        }
    }
}

/// What congestion control keeps back until the end has not left: it is not lost on the way.
#[test]
fn a_closed_window_makes_the_queue_full_and_what_waits_in_it_can_be_taken_back() {
    let (mut client, mut server) = opened(&QUIC_DATAGRAM, "127.0.0.1", Role::Sender, 1000);
    let mut message = [0x5a; 1000];
    let mut sent = 0;
    // Nobody acknowledges.
    let outcome = loop {
        Header { sequence: sent, sent_ns: now_ns() }.write(&mut message);
        match client.send(&message, now_ns()).unwrap() {
            Stop::None => sent += 1,
            other => break other,
        }
        assert!(sent < 100_000, "the queue is never full");
    };
    assert_eq!(outcome, Stop::QueueFull);
    assert!(!client.drained());
    let held = client.discard_held();
    assert!(held > 0 && held < sent, "{held} of {sent}");
    assert!(client.drained());
    assert_eq!(client.discard_held(), 0);
    let mut arrived = Vec::new();
    let deadline_ns = now_ns() + 10_000_000_000;
    while (arrived.len() as u64) < sent - held {
        wait(&[&*client, &*server], deadline_ns);
        assert!(now_ns() < deadline_ns, "{} of {} arrived", arrived.len(), sent - held);
        server.receive(now_ns(), &mut |arrival| arrived.push(sequence(arrival))).unwrap();
        client.service(now_ns()).unwrap();
    }
    // The last ones were taken back.
    assert_eq!(arrived, (0..sent - held).collect::<Vec<_>>());
}

fn sequence(arrival: Arrival<'_>) -> u64 {
    Header::read(arrival.bytes).unwrap().sequence
}

/// Messages that are read together have their own arrivals, also those that a look at timers read before.
#[test]
fn every_datagram_has_the_time_at_which_it_came() {
    for serviced in [false, true] {
        let (mut client, mut server) = opened(&QUIC_DATAGRAM, "127.0.0.1", Role::Sender, 100);
        // The kernel switches stamping on a moment after it was asked.
        let stamped_apart = (0..1_000).any(|_| {
            let mut sent_ns = [0; 2];
            for (sequence, sent_ns) in (0..).zip(&mut sent_ns) {
                *sent_ns = now_ns();
                let mut message = [0x5a; 100];
                Header { sequence, sent_ns: *sent_ns }.write(&mut message);
                client.send(&message, now_ns()).unwrap();
                client.flush(now_ns()).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            if serviced {
                server.service(now_ns()).unwrap();
            }
            let mut arrived_ns = Vec::new();
            server.receive(now_ns(), &mut |arrival| arrived_ns.push(arrival.arrived_ns)).unwrap();
            client.service(now_ns()).unwrap();
            assert_eq!(arrived_ns.len(), 2);
            // 2 us: noise of the clocks.
            assert!(arrived_ns[0] >= sent_ns[0] - 2_000 && arrived_ns[1] >= sent_ns[1] - 2_000);
            arrived_ns[0] < sent_ns[1]
        });
        assert!(stamped_apart, "serviced before: {serviced}");
        assert!(server.path_statistics()["arrivals_stamped_by_kernel"].as_u64() > Some(1));
    }
}

#[test]
fn statistics_are_finite_numbers_and_count_what_was_sent() {
    let (mut client, mut server) = opened(&QUIC_DATAGRAM, "127.0.0.1", Role::Sender, 200);
    let tally = run(&mut *client, &mut *server, 200, 50);
    let values = client.path_statistics();
    assert_eq!(values["datagram_frames_sent"].as_u64(), Some(tally.sent));
    assert_eq!(server.path_statistics()["datagram_frames_received"].as_u64(), Some(tally.sent));
    assert_eq!(values["congestion_control"], "cubic");
    assert_eq!(values["quiche_pacing"], false);
    assert_eq!(values["max_message_bytes"].as_u64(), Some(1440));
    assert!(values["rtt_ms"].as_f64().unwrap() > 0.0);
    assert!(values
        .values()
        .all(|value| value.as_f64().is_none_or(|number| number.is_finite() && number < 2f64.powi(53))));
}
