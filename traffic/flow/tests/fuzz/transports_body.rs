// SPDX-License-Identifier: Apache-2.0
//! What the fuzz target `transports` asserts about any bytes on a data path before and below its messages. Shared by path
//! with the fuzz crate. DCCP's packets and options have targets of their own (protocols/dccp/fuzz).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use netjoule_dccp_carriers::fuzzing as dccp_fuzzing;
use netjoule_quic::fuzzing as quic_fuzzing;
use netjoule_transport::candidates::Verdict;
use netjoule_transport::deframer::Deframer;
use netjoule_transport::preface;
use netjoule_udp::fuzzing::{is_handshake, Client, Server, DATAGRAM_BYTES};

const TOKEN: [u8; 16] = *b"a token of a flo";
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The first byte chooses who hears the rest.
pub(crate) fn transports(bytes: &[u8]) {
    let Some((choice, said)) = bytes.split_first() else { return };
    match choice % 5 {
        0 => udp_handshake(said),
        1 => stream(said),
        2 => first_bytes(said),
        3 => quic(said),
        _ => dccp_token(said),
    }
}

/// Datagrams, each a byte that chooses one of two senders, a byte of length, the bytes. A server sends nobody more than it
/// got, and believes who repeats what was sent to his address; a client believes who repeats what it was sent.
fn udp_handshake(mut said: &[u8]) {
    let mut server = Server::new(TOKEN, None);
    let mut elsewhere = Server::new(TOKEN, Some(IpAddr::V4(Ipv4Addr::BROADCAST)));
    let mut client = Client::new(TOKEN);
    let (mut handed_out, mut challenges) = (Vec::new(), Vec::new());
    let mut draws = 0_u8;
    while let [who, length, more @ ..] = said {
        let (datagram, rest) = more.split_at(usize::from(*length).min(more.len()));
        said = rest;
        let from = SocketAddr::new(HERE, 1 + u16::from(who & 1));
        draws = draws.wrapping_add(1);
        let (reply, proven) = server.hear(datagram, from, [draws; 16]);
        let is_ours = datagram.len() == DATAGRAM_BYTES && datagram[5..21] == TOKEN && is_handshake(datagram);
        assert!(is_ours || (reply.is_none() && !proven), "{datagram:?}");
        let nonce = if is_ours { datagram[21..].to_vec() } else { Vec::new() };
        assert!(!proven || handed_out.contains(&(from, nonce.clone())), "{from} was believed: {datagram:?}");
        if let Some(reply) = reply {
            assert!(reply.len() <= datagram.len(), "a small question has a big answer");
            handed_out.push((from, reply[21..].to_vec()));
        }
        assert_eq!(elsewhere.hear(datagram, from, [draws; 16]), (None, false));
        let accepted = client.hear(datagram, 0);
        assert!(!accepted || challenges.contains(&nonce), "{datagram:?}");
        challenges.push(nonce);
    }
    assert!(client.say(0).is_some_and(|datagram| datagram.len() == DATAGRAM_BYTES));
}

/// The first byte is the flow's message size less 16, the next one the length of the pieces in which the rest comes: they
/// make no difference, and no message is longer than the flow's.
fn stream(said: &[u8]) {
    let [size, piece, stream @ ..] = said else { return };
    let flow_bytes = 16 + usize::from(*size);
    let cut = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let (mut deframer, mut messages) = (Deframer::new(flow_bytes), Vec::new());
        let outcome: Result<Vec<_>, _> = pieces
            .map(|piece| deframer.feed(piece, &mut |message| messages.push(message.to_vec())))
            .collect();
        let counted = outcome.map(|counts| (counts.iter().sum::<usize>(), deframer.partial_bytes()));
        (messages, counted)
    };
    let whole = cut(&mut std::iter::once(stream));
    assert_eq!(whole, cut(&mut stream.chunks(usize::from(*piece) + 1)));
    let (messages, counted) = whole;
    assert!(messages.iter().all(|message| (16..=flow_bytes).contains(&message.len())));
    if let Ok((count, partial_bytes)) = counted {
        assert_eq!(count, messages.len());
        assert!(partial_bytes < flow_bytes);
        assert_eq!(messages.iter().map(Vec::len).sum::<usize>() + partial_bytes, stream.len());
    }
}

/// What a stranger says first over TCP and SCTP: only the whole preface proves, and it is never waited for in vain.
fn first_bytes(said: &[u8]) {
    let expected = preface::encode(b"NJTC", &TOKEN);
    let right = said.iter().zip(expected).take_while(|(one, other)| *one == other).count();
    for length in 0..=said.len().min(expected.len()) {
        let verdict = preface::judge(&said[..length], &expected);
        let wanted = match length {
            _ if length > right => Verdict::Wrong,
            _ if length == expected.len() => Verdict::Proven,
            _ => Verdict::More,
        };
        assert_eq!(verdict, wanted);
    }
}

/// A stranger's first packet, and as what the two ends say on the stream before there are messages.
fn quic(said: &[u8]) {
    // Only a long header (RFC 9000 section 17.2) is answered.
    assert!(!quic_fuzzing::opens_a_connection(said) || (said.len() > 6 && said[0] & 0x80 == 0x80));
    let token: &[u8] = &said[..said.len().min(TOKEN.len())];
    let proves = (token.len() == TOKEN.len()).then(|| token == TOKEN);
    assert_eq!(quic_fuzzing::proves(token, &TOKEN), proves);
    let answer = &said[..said.len().min(1)];
    assert_eq!(quic_fuzzing::accepts(answer), answer.first().map(|byte| *byte == 1));
}

/// A message about the token, to both ends.
fn dccp_token(said: &[u8]) {
    let is_whole = dccp_fuzzing::is_proof(said) && said.len() == 21 && said[5..] == TOKEN;
    let answer = dccp_fuzzing::answer(said, TOKEN);
    assert!(answer.is_none() || (is_whole && said[4] == 1));
    assert!(answer.is_none_or(|answer| answer.len() <= said.len() && dccp_fuzzing::lets_in(&answer, TOKEN)));
    assert!(!dccp_fuzzing::lets_in(said, TOKEN) || (is_whole && said[4] == 2));
}
