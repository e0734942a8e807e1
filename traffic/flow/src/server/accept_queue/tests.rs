// SPDX-License-Identifier: Apache-2.0
//! The accept queue over real connections; its time is a number.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use socket2::Socket;

use super::*;
use crate::control::greeting::{tests::hello, Call};

fn accept_queue(most: usize) -> (AcceptQueue, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (AcceptQueue::open(listener, most, None).unwrap(), address)
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
fn serve(accept_queue: &mut AcceptQueue, now_ns: i64) {
    accept_queue.serve(now_ns, &|_| true);
}

/// Looks after everybody until it is so; a connection of this host arrives in no time, but not in none.
fn serve_until(accept_queue: &mut AcceptQueue, now_ns: i64, is_so: impl Fn(&AcceptQueue) -> bool) {
    while !is_so(accept_queue) {
        serve(accept_queue, now_ns);
        std::thread::yield_now();
    }
}

fn ready(accept_queue: &AcceptQueue) -> usize {
    accept_queue.pending.iter().filter(|client| matches!(client.stage, Stage::Ready(_))).count()
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
    let (mut accept_queue, address) = accept_queue(100);
    let silent: Vec<_> = (0..50).map(|_| connect(address)).collect();
    let mut client = connect(address);
    client.write_all(first_line().as_bytes()).unwrap();
    serve_until(&mut accept_queue, 0, |accept_queue| ready(accept_queue) == 1);
    assert!(accept_queue.take(|_, _| false).is_none());
    let entry = accept_queue.take(|_, _| true).unwrap();
    assert_eq!(entry.guest.hello.flow.flow_id, "ab-12");
    assert_eq!(entry.peer, "127.0.0.1".parse::<IpAddr>().unwrap());
    assert_eq!(accept_queue.pending.len(), silent.len());
}

#[test]
fn the_silent_and_the_slow_are_told_and_dropped_when_their_time_is_up() {
    let (mut accept_queue, address) = accept_queue(100);
    let (silent, mut slow) = (connect(address), connect(address));
    serve_until(&mut accept_queue, 0, |accept_queue| accept_queue.pending.len() == 2);
    // A byte now and then buys no time.
    for second in 1..5 {
        slow.write_all(b"x").unwrap();
        serve(&mut accept_queue, second * 1_000_000_000);
    }
    assert_eq!(accept_queue.next_deadline_ns(0), Some(GREETING_NS));
    serve(&mut accept_queue, GREETING_NS - 1);
    assert!(accept_queue.pending.iter().all(|client| matches!(client.stage, Stage::Greeting(_))));
    serve(&mut accept_queue, GREETING_NS);
    serve(&mut accept_queue, GREETING_NS + LEAVING_NS);
    assert_eq!(accept_queue.pending.len(), 0);
    assert_eq!((refusal(silent), refusal(slow)), ("timeout".into(), "timeout".into()));
}

#[test]
fn who_is_ready_waits_a_moment_for_a_place_and_then_hears_that_none_is_free() {
    let (mut accept_queue, address) = accept_queue(100);
    let mut client = connect(address);
    client.write_all(first_line().as_bytes()).unwrap();
    serve_until(&mut accept_queue, 7, |accept_queue| ready(accept_queue) == 1);
    // Nothing is ready but who is called so: a waiting client is asked for nothing.
    accept_queue.serve(7 + PATIENCE_NS - 1, &|_| false);
    assert_eq!(ready(&accept_queue), 1);
    accept_queue.serve(7 + PATIENCE_NS, &|_| false);
    assert_eq!(ready(&accept_queue), 0);
    assert_eq!(refusal(client), "busy");
}

#[test]
fn a_host_that_fills_the_accept_queue_only_pushes_its_own_out() {
    let (mut accept_queue, address) = accept_queue(4);
    let lonely = connect_from("127.0.0.2", address);
    let mut crowd = Vec::new();
    for count in 2..=4 {
        crowd.push(connect(address));
        serve_until(&mut accept_queue, 0, |accept_queue| accept_queue.pending.len() == count);
    }
    for _ in 0..20 {
        crowd.push(connect(address));
        let newest = crowd.last().unwrap().local_addr().unwrap();
        serve_until(&mut accept_queue, 0, |accept_queue| {
            accept_queue.pending.last().unwrap().stream.peer_addr().unwrap() == newest
        });
    }
    assert_eq!(accept_queue.pending.len(), 4);
    let lonely_address = lonely.local_addr().unwrap();
    assert!(accept_queue.pending.iter().any(|client| client.stream.peer_addr().unwrap() == lonely_address));
    assert_eq!(refusal(crowd.remove(0)), "busy");
}

#[test]
fn half_greetings_are_kept_up_to_a_bound() {
    let (mut accept_queue, address) = accept_queue(1_000);
    let half = vec![b'x'; 60_000];
    let clients: Vec<_> = (0..KEPT_BYTES / half.len() + 20)
        .map(|count| {
            let mut client = connect(address);
            client.write_all(&half).unwrap();
            serve_until(&mut accept_queue, 0, |accept_queue| accept_queue.pending.len() > count);
            client
        })
        .collect();
    let kept =
        |accept_queue: &AcceptQueue| accept_queue.pending.iter().map(Pending::held_bytes).sum::<usize>();
    let turned_away = |accept_queue: &AcceptQueue| {
        accept_queue.pending.iter().filter(|client| matches!(client.stage, Stage::Leaving(_))).count()
    };
    serve_until(&mut accept_queue, 0, |accept_queue| turned_away(accept_queue) > 0);
    for _ in 0..10 {
        serve(&mut accept_queue, 0);
        assert!(kept(&accept_queue) <= KEPT_BYTES);
    }
    assert_eq!(accept_queue.pending.len(), clients.len());
}

#[test]
fn whole_greetings_are_kept_up_to_the_same_bound() {
    let (mut accept_queue, address) = accept_queue(1_000);
    let mut long = hello();
    long.boot_id = "x".repeat(60_000);
    let line = control::encode(Call::new(long, [3; 16], None).hello());
    let clients: Vec<_> = (0..KEPT_BYTES / line.len() + 20)
        .map(|count| {
            let mut client = connect(address);
            client.write_all(line.as_bytes()).unwrap();
            serve_until(&mut accept_queue, 0, |accept_queue| accept_queue.pending.len() > count);
            client
        })
        .collect();
    let is_reading = |client: &Pending| matches!(client.stage, Stage::Greeting(_));
    serve_until(&mut accept_queue, 0, |accept_queue| !accept_queue.pending.iter().any(is_reading));
    let kept_bytes = |client: &Pending| match &client.stage {
        Stage::Ready(guest) => guest.hello.boot_id.len(),
        _ => 0,
    };
    assert!(accept_queue.pending.iter().map(kept_bytes).sum::<usize>() <= KEPT_BYTES);
    assert!(ready(&accept_queue) > 100 && ready(&accept_queue) < clients.len());
}

#[test]
fn a_refusal_is_read_even_by_who_is_still_talking() {
    let (mut accept_queue, address) = accept_queue(10);
    let mut client = connect(address);
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    serve_until(&mut accept_queue, 0, |accept_queue| {
        accept_queue.pending.iter().any(|client| matches!(client.stage, Stage::Leaving(_)))
    });
    client.write_all(&[b'x'; 30_000]).unwrap();
    for _ in 0..10 {
        serve(&mut accept_queue, 0);
    }
    assert_eq!(refusal(client), "protocol");
}

#[test]
fn a_closed_accept_queue_has_nobody_and_nothing_to_wait_for() {
    let (mut accept_queue, address) = accept_queue(10);
    let _client = connect(address);
    serve_until(&mut accept_queue, 0, |accept_queue| accept_queue.pending.len() == 1);
    accept_queue.close();
    let mut fds = Vec::new();
    accept_queue.poll_fds(0, &mut fds);
    serve(&mut accept_queue, 0);
    assert!(fds.is_empty() && accept_queue.next_deadline_ns(0).is_none());
    assert!(TcpStream::connect(address).is_err());
}
