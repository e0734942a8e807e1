// SPDX-License-Identifier: Apache-2.0
//! Both ends of UDP flows over loopback.

use super::*;
use netjoule_sockets::timestamps::now_ns;
use netjoule_transport::message::Header;
use netjoule_transport::PacketisationSource;
use netjoule_transport::TOKEN_BYTES;

fn flow(role: Role, gso: bool) -> FlowSpec {
    FlowSpec {
        payload_bytes: 100,
        role,
        token: [3; TOKEN_BYTES],
        gso,
        seed: 0,
        rate_bps: 0,
        options: Values::new(),
        event_log: None,
    }
}

/// Both ends over loopback, opened; time is a counter, nothing sleeps.
fn open_pair(any_port: &str, gso: bool) -> (End, End) {
    let mut server = End::listen(any_port.parse().unwrap(), None, &flow(Role::Receiver, gso)).unwrap();
    let address = server.local_address().unwrap();
    let mut client = End::connect(None, address, &flow(Role::Sender, gso), 0).unwrap();
    for now_ns in (0..).step_by(50_000_000).take(100) {
        let (one, other) = (client.service(now_ns).unwrap(), server.service(now_ns).unwrap());
        if (one, other) == (State::Open, State::Open) {
            return (client, server);
        }
    }
    panic!("the handshake did not finish");
}

fn messages(count: u64) -> Vec<u8> {
    let mut batch = vec![0; 100 * count as usize];
    for (sequence, message) in (0..).zip(batch.chunks_exact_mut(100)) {
        Header { sequence, sent_ns: 1 }.write(message);
    }
    batch
}

fn sequences(end: &mut End) -> Vec<u64> {
    let mut seen = Vec::new();
    end.receive(0, &mut |arrival| {
        assert_eq!(arrival.bytes.len(), 100);
        seen.push(Header::read(arrival.bytes).unwrap().sequence);
    })
    .unwrap();
    seen
}

#[test]
fn messages_cross_in_order_with_and_without_gso_over_both_ip_versions() {
    for any_port in ["127.0.0.1:0", "[::1]:0"] {
        for gso in [false, true] {
            let (mut client, mut server) = open_pair(any_port, gso);
            let outcome = client.send_batch(&mut messages(150), 100, 0).unwrap();
            assert_eq!(outcome, BatchOutcome { sent: 150, stop: Stop::None });
            assert_eq!(sequences(&mut server), (0..150).collect::<Vec<_>>());
            assert!(client.drained());
        }
    }
}

#[test]
fn packets_are_counted_with_and_without_trains() {
    for (any_port, headers) in [("127.0.0.1:0", 28), ("[::1]:0", 48)] {
        for gso in [false, true] {
            let (mut client, _server) = open_pair(any_port, gso);
            assert_eq!(client.packetisation(0).source, PacketisationSource::Unknown);
            client.send_batch(&mut messages(150), 100, 0).unwrap();
            let figures = client.packetisation(150);
            assert_eq!(figures.source, PacketisationSource::Measured);
            assert_eq!(figures.frames_per_message, Some(1.0));
            assert_eq!(figures.mean_ip_packet_bytes, Some(f64::from(100 + headers)));
        }
    }
}

#[test]
fn every_call_is_stamped_on_its_way_out_when_asked() {
    for (gso, calls) in [(false, 150), (true, 3)] {
        let mut server =
            End::listen("127.0.0.1:0".parse().unwrap(), None, &flow(Role::Receiver, gso)).unwrap();
        let mut stamped = flow(Role::Sender, gso);
        stamped.options.insert(TX_TIMESTAMPS.into(), true.into());
        let mut client = End::connect(None, server.local_address().unwrap(), &stamped, 0).unwrap();
        for now_ns in (0..).step_by(50_000_000).take(100) {
            client.service(now_ns).unwrap();
            server.service(now_ns).unwrap();
        }
        let sent_ns = now_ns();
        client.send_batch(&mut messages(150), 100, sent_ns).unwrap();
        let mut told = Vec::new();
        client.departures(&mut |departure| told.push(departure)).unwrap();
        assert_eq!(told.len(), calls);
        assert!(told.iter().all(|departure| departure.sent_ns == sent_ns));
        assert!(told.windows(2).all(|pair| pair[0].left_ns <= pair[1].left_ns), "{told:?}");
        assert_eq!(client.path_statistics()["departures_not_stamped"], 0);
    }
}

#[test]
fn a_batch_crosses_whole_however_many_calls_it_takes() {
    let (mut client, mut server) = open_pair("127.0.0.1:0", false);
    client.way = SendMethod::batched(7);
    let outcome = client.send_batch(&mut messages(150), 100, 0).unwrap();
    assert_eq!(outcome, BatchOutcome { sent: 150, stop: Stop::None });
    assert_eq!(sequences(&mut server), (0..150).collect::<Vec<_>>());
    assert_eq!(client.path_statistics()["send_call"], "sendmmsg");
}

#[test]
fn the_receiver_of_a_fast_flow_rests_and_loses_nothing() {
    let (mut client, mut server) = open_pair("127.0.0.1:0", false);
    server.rest = ReceiveCoalescing::of(&FlowSpec { rate_bps: 100_000 * 800, ..flow(Role::Receiver, false) });
    assert_eq!(server.path_statistics()["receive_rest_us"], 320.0);
    assert!(client.path_statistics().get("receive_rest_us").is_none());
    let watches = |end: &End| {
        let mut fds = Vec::new();
        end.poll_fds(&mut fds);
        !fds.is_empty()
    };
    assert!(watches(&server));
    client.send_batch(&mut messages(40), 100, 0).unwrap();
    assert_eq!(sequences(&mut server).len(), 40);
    let until_ns = server.next_wakeup_ns().unwrap();
    assert!(!watches(&server));
    client.send_batch(&mut messages(7), 100, 0).unwrap();
    let mut seen = 0;
    assert_eq!(server.receive(until_ns - 1, &mut |_| seen += 1).unwrap(), 0);
    assert_eq!(server.receive(until_ns, &mut |_| seen += 1).unwrap(), 7);
    assert_eq!(server.receive(2 * until_ns, &mut |_| seen += 1).unwrap(), 0);
    assert_eq!((seen, server.next_wakeup_ns(), watches(&server)), (7, None, true));
}

#[test]
fn strangers_are_not_heard_after_opening() {
    let (_client, mut server) = open_pair("127.0.0.1:0", false);
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.send_to(&messages(1), server.local_address().unwrap()).unwrap();
    assert_eq!(sequences(&mut server), Vec::<u64>::new());
}

#[test]
fn connecting_to_a_closed_port_is_refused() {
    let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut client = End::connect(None, closed, &flow(Role::Sender, false), 0).unwrap();
    let outcome = (0..).step_by(50_000_000).take(20).find_map(|now_ns| client.service(now_ns).err());
    assert!(matches!(outcome, Some(TransportError::Refused(_))), "{outcome:?}");
}

/// A socket whose network device is slower than the load, as a UDP socket over loopback never is.
fn stuck_pair() -> (End, Socket) {
    let (mut client, _) = open_pair("127.0.0.1:0", false);
    let (near, far) = Socket::pair(socket2::Domain::UNIX, socket2::Type::DGRAM, None).unwrap();
    client.socket = near;
    (client, far)
}

fn waits_for_room(end: &End) -> bool {
    let mut fds = Vec::new();
    end.poll_fds(&mut fds);
    fds.iter().any(|fd| fd.write)
}

#[test]
fn a_full_socket_holds_messages_back_and_says_when_there_is_room() {
    for batched in [false, true] {
        let (mut client, far) = stuck_pair();
        if batched {
            client.way = SendMethod::batched(7);
        }
        let outcome = (0..10_000).map(|_| client.send_batch(&mut messages(20), 100, 5).unwrap());
        let outcome =
            outcome.into_iter().find(|outcome| outcome.stop != Stop::None).expect("it is never full");
        assert!(outcome.stop == Stop::QueueFull && outcome.sent < 20, "{outcome:?}");
        assert_eq!(client.send(&messages(1), 5).unwrap(), Stop::QueueFull);
        assert!(waits_for_room(&client));
        assert_eq!(client.path_statistics()["refused_no_buffer"], 2);
        while far.recv_with_flags(&mut [std::mem::MaybeUninit::uninit(); 200], libc::MSG_DONTWAIT).is_ok() {}
        client.service(6).unwrap();
        assert!(!waits_for_room(&client), "the socket is writable: waiting for that would spin");
        assert_eq!(client.send(&messages(1), 7).unwrap(), Stop::None);
    }
}
