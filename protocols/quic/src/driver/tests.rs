// SPDX-License-Identifier: Apache-2.0
//! Two connections in memory: what fits, what is refused, what survives a bad wire.

mod pair;

use netjoule_transport::{BatchOutcome, Stop};

use self::pair::{Fate, Pair, OPTIONS};
use crate::certificate::Identity;
use crate::error::QuicError;
use crate::messages::datagram::{self, Inbox};
use crate::messages::stream::{StreamReceiver, StreamSender};
use crate::token_exchange::{Progress, TokenExchange};

/// One message was offered and accepted.
const ONE: BatchOutcome = BatchOutcome { sent: 1, stop: Stop::None };

/// Sizes of the messages that the server has got.
fn arrived(pair: &mut Pair) -> Vec<usize> {
    let (mut inbox, mut sizes) = (Inbox::default(), Vec::new());
    inbox.take_in(&mut pair.server.quic, 7);
    let given = inbox.give(&mut |arrival| {
        assert_eq!(arrival.arrived_ns, 7);
        sizes.push(arrival.bytes.len());
    });
    assert_eq!(given, sizes.len());
    sizes
}

#[test]
fn the_datagram_limit_of_the_connection_is_the_one_that_was_computed() {
    let mut pair = Pair::established(8);
    let quic = &mut pair.client.quic;
    assert_eq!(quic.dgram_max_writable_len(), Some(1440));
    assert!(datagram::check_size(quic, 1440).is_ok());
    assert!(matches!(
        datagram::check_size(quic, 1441),
        Err(QuicError::MessageTooLarge { payload_bytes: 1441, limit_bytes: 1440 })
    ));
    assert_eq!(datagram::offer(quic, &[0; 1440]).unwrap(), Stop::None);
    assert!(matches!(datagram::offer(quic, &[0; 1441]), Err(QuicError::MessageTooLarge { .. })));
    let mut sizes = Vec::new();
    pair.exchange_over(&mut |_, bytes| {
        sizes.push(bytes);
        Fate::Deliver
    });
    assert_eq!(sizes.iter().filter(|bytes| **bytes > 1440).count(), 1, "one packet carries it: {sizes:?}");
    assert!(sizes.iter().all(|bytes| *bytes <= 1472));
    assert_eq!(arrived(&mut pair), [1440]);
}

#[test]
fn a_full_datagram_queue_says_so_and_takes_again_after_acknowledgements() {
    let mut pair = Pair::established(8);
    let mut accepted = 0;
    let full = loop {
        match datagram::offer(&mut pair.client.quic, &[0; 1000]).unwrap() {
            Stop::None => accepted += 1,
            full => break full,
        }
    };
    assert_eq!(full, Stop::QueueFull);
    assert_eq!(accepted, OPTIONS.datagram_send_queue());
    assert_eq!(accepted, 64);
    pair.exchange();
    assert_eq!(arrived(&mut pair).len(), accepted);
    assert_eq!(datagram::offer(&mut pair.client.quic, &[0; 1000]).unwrap(), Stop::None);
}

#[test]
fn another_certificate_ends_the_handshake_and_both_ends_say_why() {
    let (shown, announced) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let mut pair = Pair::new(&shown, announced.fingerprint(), 8);
    pair.exchange();
    assert!(!pair.client.is_established());
    match pair.client.health() {
        Err(QuicError::WrongCertificate { announced: a, shown: s }) => {
            assert_eq!((a, s), (announced.fingerprint(), shown.fingerprint()));
        }
        other => panic!("{other:?}"),
    }
    let sentence = pair.server.health().unwrap_err().to_string();
    assert!(sentence.contains("did not accept the certificate"), "{sentence}");
}

/// A message of the flow's size: its first three bytes say so ([`netjoule_transport::message`]).
fn message(number: u8) -> [u8; 1000] {
    let mut message = [number; 1000];
    message[..3].fill(0);
    message
}

#[test]
fn a_stream_survives_loss_duplication_and_damage() {
    let mut pair = Pair::established(0);
    greet(&mut pair);
    let (mut sender, mut receiver) = (StreamSender::default(), StreamReceiver::new(1000));
    let (mut offered, mut arrived, mut carried) = (0_u8, Vec::new(), 0_u32);
    while !sender.is_drained() {
        while offered < 200
            && sender.offer(&mut pair.client.quic, &message(offered), 1000, false).unwrap() == ONE
        {
            offered += 1;
        }
        if offered == 200 {
            sender.finish();
        }
        sender.push_pending(&mut pair.client.quic).unwrap();
        let before = carried;
        pair.exchange_over(&mut |_, _| {
            carried += 1;
            match carried % 13 {
                3 => Fate::Drop,
                6 => Fate::Twice,
                9 => Fate::Garble,
                _ => Fate::Deliver,
            }
        });
        receiver.collect(&mut pair.server.quic, &mut |message| arrived.push(message.to_vec())).unwrap();
        sender.watch(&mut pair.client.quic).unwrap();
        if carried == before {
            pair.run_next_timer();
        }
    }
    let expected: Vec<Vec<u8>> = (0..200).map(|number| message(number).to_vec()).collect();
    assert_eq!(arrived, expected);
    assert_eq!(receiver.partial_bytes(), 0);
    assert!(pair.client.quic.stats().retrans > 0);
}

#[test]
fn packets_of_strangers_change_nothing() {
    let mut pair = Pair::established(8);
    for length in [0, 1, 20, 1200, 1472] {
        for first in [0x00, 0x40, 0xc0, 0xff] {
            let mut junk = vec![first; length];
            pair.server.receive(&mut junk);
            pair.client.receive(&mut junk);
        }
    }
    pair.exchange();
    assert!(pair.client.health().is_ok() && pair.server.health().is_ok());
}

#[test]
fn an_established_pair_with_nothing_to_say_sends_nothing_and_sleeps() {
    let mut pair = Pair::established(8);
    greet(&mut pair);
    let mut packets = 0;
    pair.exchange_over(&mut |_, _| {
        packets += 1;
        Fate::Deliver
    });
    assert_eq!(packets, 0);
}

#[test]
fn a_goodbye_is_no_error_and_a_wrong_token_is_one() {
    let mut pair = Pair::established(8);
    pair.client.close();
    pair.exchange();
    assert!(matches!(pair.server.health(), Err(QuicError::Closed { .. })));
    assert!(matches!(pair.client.health(), Err(QuicError::Closed { .. })));

    let mut pair = Pair::established(8);
    pair.server.turn_away();
    pair.exchange();
    assert!(matches!(pair.client.health(), Err(QuicError::ClosedByPeer { .. })));
}

#[test]
fn the_greeting_tells_a_wrong_token() {
    let mut pair = Pair::established(8);
    let (mut client, mut server) = (TokenExchange::client([1; 16]), TokenExchange::server([2; 16]));
    assert_eq!(client.advance(&mut pair.client.quic), Ok(Progress::Underway));
    pair.exchange();
    assert_eq!(server.advance(&mut pair.server.quic), Ok(Progress::Wrong));
}

#[test]
fn a_batch_that_the_window_cuts_is_accepted_up_to_a_message_and_its_rest_follows() {
    let mut pair = Pair::established(0);
    greet(&mut pair);
    let (mut sender, mut receiver) = (StreamSender::default(), StreamReceiver::new(1000));
    let batch: Vec<u8> = (0..100).flat_map(message).collect();
    let first = sender.offer(&mut pair.client.quic, &batch, 1000, false).unwrap();
    assert!(first.sent > 0 && first.sent < 100 && first.stop == Stop::WouldBlock, "{first:?}");
    let mut arrived = Vec::new();
    let mut next = first.sent;
    while arrived.len() < 100 {
        pair.exchange();
        receiver.collect(&mut pair.server.quic, &mut |message| arrived.push(message.to_vec())).unwrap();
        pair.exchange();
        next += sender.offer(&mut pair.client.quic, &batch[next * 1000..], 1000, false).unwrap().sent;
    }
    let expected: Vec<Vec<u8>> = (0..100).map(|number| message(number).to_vec()).collect();
    assert_eq!(arrived, expected);
}

#[test]
fn while_no_packet_can_leave_only_so_much_waits_in_the_stream() {
    let mut pair = Pair::established(0);
    greet(&mut pair);
    let (mut sender, mut receiver) = (StreamSender::default(), StreamReceiver::new(1000));
    let batch: Vec<u8> = (0..100).flat_map(message).collect();
    let mut accepted = 0;
    for _ in 0..50 {
        accepted += sender.offer(&mut pair.client.quic, &batch, 1000, true).unwrap().sent;
        // Acknowledgements open quiche's window again and again.
        pair.exchange();
        receiver.collect(&mut pair.server.quic, &mut |_| {}).unwrap();
        pair.exchange();
    }
    assert_eq!(accepted, (128_usize << 10).div_ceil(1000));
    assert!(sender.offer(&mut pair.client.quic, &batch, 1000, false).unwrap().sent > 0);
}

/// A pair whose second connection resumes the first with early data.
fn resumed(identity: &Identity) -> Pair {
    let mut options = OPTIONS;
    options.choice.early_data = true;
    let mut first = Pair::with(options, identity, identity.fingerprint(), 8);
    first.exchange();
    let session = first.client.quic.session().expect("no ticket came").to_vec();
    let mut second = Pair::with(options, identity, identity.fingerprint(), 8);
    second.client.resume(&session).unwrap();
    second
}

#[test]
fn a_resumed_connection_carries_the_token_before_its_handshake_is_done() {
    let identity = Identity::generate().unwrap();
    let mut pair = resumed(&identity);
    let mut server = TokenExchange::server([1; 16]);
    let flight = first_flight(&mut pair);
    flight.iter().for_each(|packet| pair.server.receive(&mut packet.clone()));
    assert!(!pair.server.is_established() && pair.server.carries_data());
    assert_eq!(server.advance(&mut pair.server.quic), Ok(Progress::Done));
    assert!(!pair.server.is_established());
    pair.exchange();
    assert!(pair.client.is_established() && pair.server.is_established());
    assert!(pair.client.quic.is_resumed() && pair.server.quic.is_resumed());
}

#[test]
fn replayed_early_data_never_finishes_a_handshake() {
    let identity = Identity::generate().unwrap();
    let mut pair = resumed(&identity);
    let flight = first_flight(&mut pair);
    let mut replay = Pair::with(
        {
            let mut options = OPTIONS;
            options.choice.early_data = true;
            options
        },
        &identity,
        identity.fingerprint(),
        8,
    );
    for server in [&mut pair.server, &mut replay.server] {
        let mut token_exchange = TokenExchange::server([1; 16]);
        flight.iter().for_each(|packet| server.receive(&mut packet.clone()));
        assert_eq!(
            token_exchange.advance(&mut server.quic),
            Ok(Progress::Done),
            "the token is right in both"
        );
        assert!(!server.is_established());
    }
    pair.exchange();
    assert!(pair.server.is_established());
    // Who replays cannot answer: nothing that it has makes a Finished message.
    flight.iter().for_each(|packet| replay.server.receive(&mut packet.clone()));
    assert!(!replay.server.is_established());
}

#[test]
fn without_early_data_the_server_gives_no_ticket() {
    let pair = Pair::established(8);
    assert!(pair.client.quic.session().is_none());
}

/// The client's first packets, its token among them.
fn first_flight(pair: &mut Pair) -> Vec<Vec<u8>> {
    let mut flight = Vec::new();
    let mut packet = [0; 2048];
    let mut token_exchange = TokenExchange::client([1; 16]);
    while let Some(transmit) = pair.client.transmit(&mut packet).unwrap() {
        flight.push(packet[..transmit.len].to_vec());
    }
    assert!(pair.client.carries_data() && !pair.client.is_established());
    assert_eq!(token_exchange.advance(&mut pair.client.quic), Ok(Progress::Underway));
    while let Some(transmit) = pair.client.transmit(&mut packet).unwrap() {
        flight.push(packet[..transmit.len].to_vec());
    }
    flight
}

fn greet(pair: &mut Pair) {
    let (mut client, mut server) = (TokenExchange::client([1; 16]), TokenExchange::server([1; 16]));
    assert_eq!(client.advance(&mut pair.client.quic), Ok(Progress::Underway));
    pair.exchange();
    assert_eq!(server.advance(&mut pair.server.quic), Ok(Progress::Done));
    pair.exchange();
    assert_eq!(client.advance(&mut pair.client.quic), Ok(Progress::Done));
    pair.exchange();
}
