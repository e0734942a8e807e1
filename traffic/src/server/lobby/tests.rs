// SPDX-License-Identifier: Apache-2.0
//! The lobby over real connections; its time is a number.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use socket2::Socket;

use super::*;
use crate::control::greeting::{tests::hello, Call};

fn lobby(most: usize) -> (Lobby, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (Lobby::open(listener, most, None).unwrap(), address)
}

/// What a client says first.
fn first_line() -> String {
    control::encode(Call::new(hello(), [3; 16], None).hello())
}

/// A connection from this address of the loopback network.
fn connect_from(from: &str, to: SocketAddr) -> TcpStream {
    let socket = Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&format!("{from}:0").parse::<SocketAddr>().unwrap().into()).unwrap();
    socket.connect(&to.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

fn connect(to: SocketAddr) -> TcpStream {
    connect_from("127.0.0.1", to)
}

/// Everybody is looked after, spoken or not.
fn serve(lobby: &mut Lobby, now_ns: i64) {
    lobby.serve(now_ns, &|_| true);
}

/// Looks after everybody until it is so; a connection of this host arrives in no time, but not in none.
fn serve_until(lobby: &mut Lobby, now_ns: i64, is_so: impl Fn(&Lobby) -> bool) {
    while !is_so(lobby) {
        serve(lobby, now_ns);
        std::thread::yield_now();
    }
}

fn ready(lobby: &Lobby) -> usize {
    lobby.visitors.iter().filter(|visitor| matches!(visitor.stage, Stage::Ready(_))).count()
}

/// Code of the refusal that the server sent before it closed.
fn refusal(stream: TcpStream) -> String {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    answer["code"].as_str().unwrap().to_owned()
}

#[test]
fn who_speaks_comes_in_past_those_who_are_silent() {
    let (mut lobby, address) = lobby(100);
    let silent: Vec<_> = (0..50).map(|_| connect(address)).collect();
    let mut client = connect(address);
    client.write_all(first_line().as_bytes()).unwrap();
    serve_until(&mut lobby, 0, |lobby| ready(lobby) == 1);
    assert!(lobby.take(|_, _| false).is_none());
    let entry = lobby.take(|_, _| true).unwrap();
    assert_eq!(entry.guest.hello.flow.flow_id, "ab-12");
    assert_eq!(entry.peer, "127.0.0.1".parse::<IpAddr>().unwrap());
    assert_eq!(lobby.visitors.len(), silent.len());
}

#[test]
fn the_silent_and_the_slow_are_told_and_dropped_when_their_time_is_up() {
    let (mut lobby, address) = lobby(100);
    let (silent, mut slow) = (connect(address), connect(address));
    serve_until(&mut lobby, 0, |lobby| lobby.visitors.len() == 2);
    // A byte now and then buys no time.
    for second in 1..5 {
        slow.write_all(b"x").unwrap();
        serve(&mut lobby, second * 1_000_000_000);
    }
    assert_eq!(lobby.next_deadline_ns(0), Some(GREETING_NS));
    serve(&mut lobby, GREETING_NS - 1);
    assert!(lobby.visitors.iter().all(|visitor| matches!(visitor.stage, Stage::Greeting(_))));
    serve(&mut lobby, GREETING_NS);
    serve(&mut lobby, GREETING_NS + LEAVING_NS);
    assert_eq!(lobby.visitors.len(), 0);
    assert_eq!((refusal(silent), refusal(slow)), ("timeout".into(), "timeout".into()));
}

#[test]
fn who_is_ready_waits_a_moment_for_a_place_and_then_hears_that_none_is_free() {
    let (mut lobby, address) = lobby(100);
    let mut client = connect(address);
    client.write_all(first_line().as_bytes()).unwrap();
    serve_until(&mut lobby, 7, |lobby| ready(lobby) == 1);
    // Nothing is ready but who is called so: a waiting client is asked for nothing.
    lobby.serve(7 + PATIENCE_NS - 1, &|_| false);
    assert_eq!(ready(&lobby), 1);
    lobby.serve(7 + PATIENCE_NS, &|_| false);
    assert_eq!(ready(&lobby), 0);
    assert_eq!(refusal(client), "busy");
}

#[test]
fn a_host_that_crowds_the_lobby_only_pushes_its_own_out() {
    let (mut lobby, address) = lobby(4);
    let lonely = connect_from("127.0.0.2", address);
    let mut crowd = Vec::new();
    for count in 2..=4 {
        crowd.push(connect(address));
        serve_until(&mut lobby, 0, |lobby| lobby.visitors.len() == count);
    }
    for _ in 0..20 {
        crowd.push(connect(address));
        let newest = crowd.last().unwrap().local_addr().unwrap();
        serve_until(&mut lobby, 0, |lobby| {
            lobby.visitors.last().unwrap().stream.peer_addr().unwrap() == newest
        });
    }
    assert_eq!(lobby.visitors.len(), 4);
    let lonely_address = lonely.local_addr().unwrap();
    assert!(lobby.visitors.iter().any(|visitor| visitor.stream.peer_addr().unwrap() == lonely_address));
    assert_eq!(refusal(crowd.remove(0)), "busy");
}

#[test]
fn half_greetings_are_kept_up_to_a_bound() {
    let (mut lobby, address) = lobby(1_000);
    let half = vec![b'x'; 60_000];
    let clients: Vec<_> = (0..KEPT_BYTES / half.len() + 20)
        .map(|count| {
            let mut client = connect(address);
            client.write_all(&half).unwrap();
            serve_until(&mut lobby, 0, |lobby| lobby.visitors.len() > count);
            client
        })
        .collect();
    let kept = |lobby: &Lobby| lobby.visitors.iter().map(Visitor::held_bytes).sum::<usize>();
    let turned_away = |lobby: &Lobby| {
        lobby.visitors.iter().filter(|visitor| matches!(visitor.stage, Stage::Leaving(_))).count()
    };
    serve_until(&mut lobby, 0, |lobby| turned_away(lobby) > 0);
    for _ in 0..10 {
        serve(&mut lobby, 0);
        assert!(kept(&lobby) <= KEPT_BYTES);
    }
    assert_eq!(lobby.visitors.len(), clients.len());
}

#[test]
fn whole_greetings_are_kept_up_to_the_same_bound() {
    let (mut lobby, address) = lobby(1_000);
    let mut long = hello();
    long.boot_id = "x".repeat(60_000);
    let line = control::encode(Call::new(long, [3; 16], None).hello());
    let clients: Vec<_> = (0..KEPT_BYTES / line.len() + 20)
        .map(|count| {
            let mut client = connect(address);
            client.write_all(line.as_bytes()).unwrap();
            serve_until(&mut lobby, 0, |lobby| lobby.visitors.len() > count);
            client
        })
        .collect();
    let is_reading = |visitor: &Visitor| matches!(visitor.stage, Stage::Greeting(_));
    serve_until(&mut lobby, 0, |lobby| !lobby.visitors.iter().any(is_reading));
    let kept_bytes = |visitor: &Visitor| match &visitor.stage {
        Stage::Ready(guest) => guest.hello.boot_id.len(),
        _ => 0,
    };
    assert!(lobby.visitors.iter().map(kept_bytes).sum::<usize>() <= KEPT_BYTES);
    assert!(ready(&lobby) > 100 && ready(&lobby) < clients.len());
}

#[test]
fn a_refusal_is_read_even_by_who_is_still_talking() {
    let (mut lobby, address) = lobby(10);
    let mut client = connect(address);
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    serve_until(&mut lobby, 0, |lobby| {
        lobby.visitors.iter().any(|visitor| matches!(visitor.stage, Stage::Leaving(_)))
    });
    client.write_all(&[b'x'; 30_000]).unwrap();
    for _ in 0..10 {
        serve(&mut lobby, 0);
    }
    assert_eq!(refusal(client), "protocol");
}

#[test]
fn a_closed_lobby_has_nobody_and_nothing_to_wait_for() {
    let (mut lobby, address) = lobby(10);
    let _client = connect(address);
    serve_until(&mut lobby, 0, |lobby| lobby.visitors.len() == 1);
    lobby.close();
    let mut fds = Vec::new();
    lobby.poll_fds(0, &mut fds);
    serve(&mut lobby, 0);
    assert!(fds.is_empty() && lobby.next_deadline_ns(0).is_none());
    assert!(TcpStream::connect(address).is_err());
}
