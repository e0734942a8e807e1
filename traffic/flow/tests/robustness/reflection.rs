// SPDX-License-Identifier: Apache-2.0
//! A server sends data to nobody but the peer of the control connection, and to that one only after it has proved the
//! flow's token; before that, never more than it was sent.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use netjoule_transport::Values;
use serde_json::{json, Value};

use crate::conversation::{hello, request, Conversation};
use crate::harness::Server;

/// What a server said to somebody who asked for a flow.
pub(crate) struct Welcome {
    pub(crate) conversation: Conversation,
    /// Where the flow's data goes.
    pub(crate) data: SocketAddr,
    pub(crate) token: Vec<u8>,
    /// What the transport needs to connect.
    pub(crate) offer: Values,
}

/// Asks for a flow.
pub(crate) fn welcome(server: &Server, changes: &Value) -> Welcome {
    let mut conversation = Conversation::begin(&server.control);
    conversation.say(&hello(&request(changes)));
    let welcome = conversation.hear().unwrap();
    assert_eq!(welcome["type"], "welcome", "{welcome}");
    let port = welcome["data_port"].as_u64().unwrap() as u16;
    let token = welcome["token"].as_str().unwrap();
    let token = (0..token.len()).step_by(2).map(|at| u8::from_str_radix(&token[at..at + 2], 16).unwrap());
    let data = SocketAddr::from(([127, 0, 0, 1], port));
    let offer = serde_json::from_value(welcome["offer"].clone()).unwrap();
    Welcome { conversation, data, token: token.collect(), offer }
}

/// The same; the conversation, where its data goes, its token.
pub(crate) fn welcomed(server: &Server, changes: &Value) -> (Conversation, SocketAddr, Vec<u8>) {
    let Welcome { conversation, data, token, .. } = welcome(server, changes);
    (conversation, data, token)
}

/// A datagram of UDP's handshake: 1 asks, 3 proves.
pub(crate) fn handshake(step: u8, token: &[u8], nonce: &[u8]) -> Vec<u8> {
    [b"NJUD", &[step][..], token, nonce].concat()
}

pub(crate) fn socket(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind((address, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket
}

/// What has arrived; nothing is waited for.
fn waiting(socket: &UdpSocket) -> Option<usize> {
    socket.set_nonblocking(true).unwrap();
    match socket.recv(&mut [0; 2048]) {
        Ok(length) => Some(length),
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn datagrams_from_elsewhere_get_no_answer_even_with_the_token() {
    for direction in ["up", "down"] {
        let server = Server::start("127.0.0.1", &[]);
        let (_conversation, data, token) = welcomed(&server, &json!({ "direction": direction }));
        // The peer of the control connection is 127.0.0.1: this stands for a forged source address.
        let (victim, peer) = (socket("127.0.0.2"), socket("127.0.0.1"));
        let question = handshake(1, &token, &[0; 16]);
        for _ in 0..10 {
            victim.send_to(&question, data).unwrap();
            victim.send_to(&[0; 1200], data).unwrap();
            peer.send_to(&handshake(1, &[9; 16], &[0; 16]), data).unwrap();
        }
        // The right one is asked back. It comes last, so all the others have been judged by then.
        peer.send_to(&question, data).unwrap();
        let mut answer = [0; 2048];
        let length = peer.recv(&mut answer).unwrap();
        assert_eq!((&answer[..5], length), (&b"NJUD\x02"[..], question.len()));
        assert_eq!((waiting(&victim), waiting(&peer)), (None, None));
        // Nor does the nonce that the peer was given open the flow to anybody else.
        let proof = handshake(3, &token, &answer[21..37]);
        victim.send_to(&proof, data).unwrap();
        peer.set_nonblocking(false).unwrap();
        peer.send_to(&proof, data).unwrap();
        let length = peer.recv(&mut answer).unwrap();
        assert_eq!((answer[4], length), (4, proof.len()));
        assert_eq!(waiting(&victim), None);
    }
}

#[test]
fn before_the_proof_a_server_says_no_more_than_it_hears_and_sends_no_data() {
    let server = Server::start("127.0.0.1", &[]);
    let (mut conversation, data, token) =
        welcomed(&server, &json!({ "direction": "down", "rate_bps": 100_000_000 }));
    // An impatient client says go at once; the data waits for the proof all the same.
    conversation.say(&json!({ "type": "go", "offset_ns": 0 }));
    let peer = socket("127.0.0.1");
    let question = handshake(1, &token, &[0; 16]);
    let (mut said, mut heard) = (0, 0);
    for _ in 0..20 {
        said += peer.send_to(&question, data).unwrap();
        let mut answer = [0; 2048];
        let length = peer.recv(&mut answer).unwrap();
        assert!(answer.starts_with(b"NJUD"), "a message before the proof");
        heard += length;
        assert!(heard <= said, "{heard} bytes for {said}");
    }
}

#[test]
fn a_stranger_cannot_take_a_stream_even_with_the_token() {
    let server = Server::start("127.0.0.1", &[]);
    let (_conversation, data, token) = welcomed(&server, &json!({ "transport": "tcp", "direction": "down" }));
    let from_elsewhere = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    from_elsewhere.bind(&SocketAddr::from(([127, 0, 0, 2], 0)).into()).unwrap();
    from_elsewhere.connect(&data.into()).unwrap();
    let mut stranger = TcpStream::from(from_elsewhere);
    let mut peer = TcpStream::connect(data).unwrap();
    for stream in [&mut stranger, &mut peer] {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let _ = stream.write_all(&[b"NJTC", &token[..]].concat());
    }
    let mut said = Vec::new();
    let _ = stranger.read_to_end(&mut said);
    assert_eq!(said, b"");
    let mut accepted = [0; 4];
    peer.read_exact(&mut accepted).unwrap();
    assert_eq!(&accepted, b"NJOK");
}

#[test]
fn the_control_connection_says_less_than_it_hears_until_the_greeting_is_over() {
    let mut variable = std::process::Command::new(crate::harness::BINARY);
    variable.env("SHARED", "correct horse battery staple");
    let server = Server::start_by(variable, "127.0.0.1", &["--secret", "env:SHARED"]);
    let mut stranger = Conversation::begin(&server.control);
    let line = hello(&request(&json!({})));
    stranger.say(&line);
    let challenge = stranger.hear().unwrap();
    assert_eq!(challenge["type"], "challenge");
    assert!(challenge.to_string().len() < line.to_string().len());
}
