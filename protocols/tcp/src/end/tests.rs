// SPDX-License-Identifier: Apache-2.0
//! Both ends of TCP flows over loopback.

use super::*;
use netjoule_transport::message::Header;
use netjoule_transport::PacketisationSource;
use netjoule_transport::TOKEN_BYTES;

fn flow(role: Role, token: u8) -> FlowSpec {
    FlowSpec {
        payload_bytes: 1000,
        role,
        token: [token; TOKEN_BYTES],
        gso: false,
        seed: 0,
        rate_bps: 0,
        options: Values::new(),
        event_log: None,
    }
}

fn service_both(client: &mut End, server: &mut End) -> (Result<State>, Result<State>) {
    let mut states = (Ok(State::Connecting), Ok(State::Connecting));
    for _ in 0..10_000 {
        states = (client.service(0), server.service(0));
        if !matches!(states, (Ok(State::Connecting), Ok(_)) | (Ok(_), Ok(State::Connecting))) {
            break;
        }
        std::thread::yield_now();
    }
    states
}

#[test]
fn a_stream_keeps_every_message_and_feels_back_pressure() {
    for any_port in ["127.0.0.1:0", "[::1]:0"] {
        let mut server =
            End::listen(Flavour::Tcp, any_port.parse().unwrap(), None, &flow(Role::Receiver, 1)).unwrap();
        let address = server.local_address().unwrap();
        let mut client = End::connect(Flavour::Tcp, None, address, &flow(Role::Sender, 1)).unwrap();
        assert!(matches!(service_both(&mut client, &mut server), (Ok(State::Open), Ok(State::Open))));
        let mut message = vec![0; 1000];
        let mut sent = 0;
        loop {
            Header { sequence: sent, sent_ns: 0 }.write(&mut message);
            match client.send(&message, 0).unwrap() {
                Stop::None => sent += 1,
                Stop::WouldBlock => break,
                Stop::Refused | Stop::QueueFull => {
                    panic!("a stream refuses nothing")
                }
            }
        }
        client.finish(0).unwrap();
        let mut received = 0;
        while received < sent || !client.drained() {
            client.service(0).unwrap();
            server
                .receive(7, &mut |arrival| {
                    assert_eq!(Header::read(arrival.bytes).unwrap().sequence, received);
                    received += 1;
                })
                .unwrap();
        }
        assert_eq!(received, sent);
        let figures = client.packetisation(sent);
        assert_eq!(figures.source, PacketisationSource::Measured);
        assert!(figures.mean_ip_packet_bytes.unwrap() > 1000.0, "{figures:?}");
    }
}

/// Whether the engine would be woken when the socket becomes writable.
fn waits_for_room(end: &End) -> bool {
    let mut fds = Vec::new();
    end.poll_fds(&mut fds);
    fds.iter().any(|fd| fd.write)
}

#[test]
fn a_full_stream_asks_to_be_woken_until_the_next_attempt() {
    let mut server =
        End::listen(Flavour::Tcp, "127.0.0.1:0".parse().unwrap(), None, &flow(Role::Receiver, 1)).unwrap();
    let mut client =
        End::connect(Flavour::Tcp, None, server.local_address().unwrap(), &flow(Role::Sender, 1)).unwrap();
    assert!(matches!(service_both(&mut client, &mut server), (Ok(State::Open), Ok(State::Open))));
    assert!(!waits_for_room(&client));
    let message = vec![0; 1000];
    while client.send(&message, 0).unwrap() == Stop::None {}
    assert!(waits_for_room(&client));
    // Room is made and what was begun is written, so the stream now stands exactly at a message border.
    while client.writer.has_pending() || unacknowledged_bytes(client.socket.as_ref().unwrap()) > 0 {
        server.receive(0, &mut |_| {}).unwrap();
        client.flush(0).unwrap();
    }
    assert!(waits_for_room(&client), "nothing would wake the engine for the message that waits");
    assert_eq!(client.send(&message, 0).unwrap(), Stop::None);
    assert!(!waits_for_room(&client));
}

#[test]
fn a_wrong_token_is_turned_away_and_the_right_one_still_gets_in() {
    let mut server =
        End::listen(Flavour::Tcp, "127.0.0.1:0".parse().unwrap(), None, &flow(Role::Receiver, 1)).unwrap();
    let address = server.local_address().unwrap();
    let mut stranger = End::connect(Flavour::Tcp, None, address, &flow(Role::Sender, 2)).unwrap();
    let (refusal, _) = service_both(&mut stranger, &mut server);
    assert!(matches!(refusal, Err(TransportError::Refused(_) | TransportError::Lost(_))), "{refusal:?}");
    let mut client = End::connect(Flavour::Tcp, None, address, &flow(Role::Sender, 1)).unwrap();
    assert!(matches!(service_both(&mut client, &mut server), (Ok(State::Open), Ok(State::Open))));
}

#[test]
fn a_closed_port_refuses() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut outcome = None;
    match End::connect(Flavour::Tcp, None, closed, &flow(Role::Sender, 1)) {
        Err(error) => outcome = Some(error),
        Ok(mut client) => {
            for _ in 0..10_000 {
                outcome = client.service(0).err();
                if outcome.is_some() {
                    break;
                }
            }
        }
    }
    assert!(matches!(outcome, Some(TransportError::Refused(_))), "{outcome:?}");
}
