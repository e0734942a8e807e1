// SPDX-License-Identifier: Apache-2.0
//! What every packet does in every state, looked at from inside, with congestion control that never says no.

use std::fmt::Write as _;

use super::{Ccids, Config, Connection, End, SendError, State};
use crate::ccid::{Ccid, Departure, Ecn, Figure, Incoming, ReceivingCcid, SendingCcid, Violation};
use crate::feature::{Feature, Location, Role};
use crate::options::data_dropped::DropCode;
use crate::options::DccpOption;
use crate::packet::{Packet, PacketType, WireSeq};
use crate::reset::ResetCode;
use crate::seqno::Seq48;
use crate::Carriage;

const NOW: i64 = 1_000_000_000_000;
const SECOND: i64 = 1_000_000_000;
const ISS: u64 = 1_000;
const GSS: u64 = 1_002;
const ISR: u64 = 5_000;
const GSR: u64 = 5_002;

/// Lets everything go and says nothing.
#[derive(Debug)]
struct Free;

impl SendingCcid for Free {
    fn ccid(&self) -> Ccid {
        Ccid::Tfrc
    }
    fn departure(&mut self, _: i64, _: usize) -> Departure {
        Departure::Now
    }
    fn ccval(&mut self, _: i64) -> u8 {
        0
    }
    fn data_options(&mut self, _: i64, _: &mut dyn FnMut(DccpOption<'_>)) {}
    fn on_sent(&mut self, _: i64, _: Seq48, _: Option<usize>, _: Ecn) {}
    fn on_queue_empty(&mut self, _: i64) {}
    fn on_incoming(&mut self, _: &Incoming<'_>) -> Result<(), Violation> {
        Ok(())
    }
    fn next_timeout_ns(&self) -> Option<i64> {
        None
    }
    fn on_timeout(&mut self, _: i64) {}
    fn set_initial_rtt(&mut self, _: i64) {}
    fn rtt_ns(&self) -> Option<i64> {
        None
    }
    fn packets_per_rtt(&self) -> u64 {
        1
    }
    fn figures(&self) -> Vec<Figure> {
        Vec::new()
    }
}

impl ReceivingCcid for Free {
    fn ccid(&self) -> Ccid {
        Ccid::Tfrc
    }
    fn on_incoming(&mut self, _: &Incoming<'_>) -> Result<(), Violation> {
        Ok(())
    }
    fn ack_due_ns(&self) -> Option<i64> {
        None
    }
    fn ack_options(&mut self, _: i64, _: Seq48, _: Seq48, _: usize, _: &mut dyn FnMut(DccpOption<'_>)) {}
    fn figures(&self) -> Vec<Figure> {
        Vec::new()
    }
}

const FREE: Ccids = Ccids { sender: |_, _, _, _| Box::new(Free), receiver: |_, _| Box::new(Free) };

fn config() -> Config {
    Config {
        carriage: Carriage::Udp { ip_version: 4 },
        local_port: 1,
        remote_port: 2,
        service_code: 3,
        ecn: true,
        sequence_window: 100,
        ..Config::default()
    }
}

/// A connection in `state` with the numbers above.
fn connection(role: Role, state: State) -> Connection {
    let mut random = || ISS;
    let mut connection = match role {
        Role::Client => Connection::connect_with(config(), NOW - SECOND, &mut random, FREE),
        Role::Server => Connection::respond(config(), NOW - SECOND, Seq48::new(ISS), Seq48::new(ISR), FREE),
    };
    for number in ISS..=GSS {
        assert_eq!(connection.sequence.next(), Seq48::new(number));
    }
    connection.timers.on_handshake_sent(NOW - SECOND);
    connection.timers.back_off(NOW);
    if state != State::Request {
        connection.sequence.set_first_received(Seq48::new(ISR));
        connection.features.set_first_received(Seq48::new(ISR));
        connection.sequence.gsr = Seq48::new(GSR);
        connection.timers.stop();
        for location in [Location::Local, Location::Remote] {
            connection.features.restore(Feature::Ccid, location, 3);
        }
    }
    connection.state = state;
    connection.heard_ns = NOW;
    match state {
        State::Open => connection.sequence.osr = Some(Seq48::new(GSR)),
        State::CloseReq | State::Closing => {
            connection.sequence.osr = Some(Seq48::new(GSR));
            connection.timers.start_close(NOW, SECOND);
        }
        State::PartOpen => connection.timers.start_part_open(NOW),
        State::TimeWait => connection.timers.start_time_wait(NOW),
        _ => {}
    }
    if state.is_established() {
        connection.start_halves(NOW);
        connection.features = crate::feature::Negotiation::new(role, Seq48::new(ISS));
        connection.features.set_first_received(Seq48::new(ISR));
    }
    connection
}

fn packet(kind: PacketType, seq: u64, ack: u64, options: &[u8]) -> Vec<u8> {
    let with_code = matches!(kind, PacketType::Request | PacketType::Response | PacketType::Listen);
    let packet = Packet {
        source_port: 2,
        destination_port: 1,
        ccval: 0,
        checksum_coverage: 0,
        checksum: 0,
        kind,
        seq: WireSeq::Long(Seq48::new(seq)),
        ack: kind.has_ack().then_some(WireSeq::Long(Seq48::new(ack))),
        service_code: with_code.then_some(3),
        reset: (kind == PacketType::Reset).then_some((ResetCode::Aborted, [0; 3])),
        option_bytes: options,
        payload: if kind.is_data() { b"data" } else { b"" },
    };
    let mut out = Vec::new();
    assert!(packet.emit(&mut out));
    out
}

/// Everything that leaves at `now`, described: type, numbers relative to GSS and GSR, Reset code.
fn replies(connection: &mut Connection, now: i64) -> Vec<String> {
    let mut replies = Vec::new();
    loop {
        let mut out = Vec::new();
        if connection.poll_transmit(now, &mut out).is_none() {
            return replies;
        }
        let packet = Packet::parse(&out).expect("own packets can be read");
        let mut text = format!("{:?}", packet.kind);
        if let Some((code, data)) = packet.reset {
            let _ = write!(
                text,
                "({code:?}{})",
                if data[0] > 0 { format!(" {}", data[0]) } else { String::new() }
            );
        }
        if let Some(WireSeq::Long(ack)) = packet.ack {
            let _ = write!(text, "@{}", ack.value());
        }
        replies.push(text);
    }
}

const KINDS: [PacketType; 11] = [
    PacketType::Request,
    PacketType::Response,
    PacketType::Data,
    PacketType::Ack,
    PacketType::DataAck,
    PacketType::CloseReq,
    PacketType::Close,
    PacketType::Reset,
    PacketType::Sync,
    PacketType::SyncAck,
    PacketType::Listen,
];

const PLACES: [(Role, State); 12] = [
    (Role::Client, State::Request),
    (Role::Client, State::PartOpen),
    (Role::Client, State::Open),
    (Role::Client, State::Closing),
    (Role::Client, State::TimeWait),
    (Role::Client, State::Closed),
    (Role::Server, State::Respond),
    (Role::Server, State::Open),
    (Role::Server, State::CloseReq),
    (Role::Server, State::Closing),
    (Role::Server, State::TimeWait),
    (Role::Server, State::Closed),
];

/// One line: what the packet did.
fn outcome(role: Role, state: State, bytes: &[u8]) -> String {
    let mut connection = connection(role, state);
    let data = connection.handle(NOW, Ecn::NotEct, bytes).is_some();
    let after = connection.state();
    let replies = replies(&mut connection, NOW);
    let mut text = String::new();
    if after != state {
        let _ = write!(text, " -> {after:?}");
    }
    if let Some(end) = connection.end() {
        let _ = write!(text, " [{end:?}]");
    }
    if data {
        text.push_str(" delivers");
    }
    for reply in replies {
        let _ = write!(text, " sends {reply}");
    }
    if text.is_empty() {
        text.push_str(" nothing");
    }
    text
}

/// Every state times every type, with valid numbers (GSR + 1, GSS) and with invalid ones.
fn table(seq: u64, ack: u64) -> String {
    let mut table = String::new();
    for (role, state) in PLACES {
        for kind in KINDS {
            let bytes = packet(kind, seq, ack, &[]);
            let outcome = outcome(role, state, &bytes);
            let _ = writeln!(table, "{role:?} {state:?} {kind:?}:{outcome}");
        }
    }
    table
}

#[test]
fn every_state_with_every_valid_packet() {
    let table = table(GSR + 1, GSS);
    assert_eq!(table, include_str!("golden/valid.txt"), "\n{table}");
}

#[test]
fn every_state_with_every_invalid_packet() {
    let table = table(GSR + 100_000, GSS + 100_000);
    assert_eq!(table, include_str!("golden/invalid.txt"), "\n{table}");
}

/// Old numbers: valid for the types that tolerate reordering, not for those that end a connection.
#[test]
fn every_state_with_every_old_packet() {
    let table = table(GSR - 1, GSS);
    assert_eq!(table, include_str!("golden/old.txt"), "\n{table}");
}

#[test]
fn option_errors_reset_the_connection() {
    let cases: [(&[u8], ResetCode, [u8; 3]); 6] = [
        // Unknown option 99 after Mandatory.
        (&[1, 99, 4, 7, 8, 0, 0, 0], ResetCode::MandatoryError, [99, 7, 8]),
        // Mandatory Mandatory; Mandatory at the end.
        (&[1, 1, 0, 0], ResetCode::OptionError, [1, 0, 0]),
        (&[0, 0, 0, 1], ResetCode::OptionError, [1, 0, 0]),
        // Mandatory Change L of an unknown feature.
        (&[1, 32, 4, 77, 5, 0, 0, 0], ResetCode::MandatoryError, [32, 77, 5]),
        // Mandatory Change L(Sequence Window) with a wrong length.
        (&[1, 32, 4, 3, 5, 0, 0, 0], ResetCode::MandatoryError, [32, 3, 5]),
        // Mandatory Change R(ECN Incapable) without a shared value.
        (&[1, 34, 4, 4, 9, 0, 0, 0], ResetCode::MandatoryError, [34, 4, 9]),
    ];
    for (options, code, data) in cases {
        let mut connection = connection(Role::Server, State::Open);
        let bytes = packet(PacketType::Ack, GSR + 1, GSS, options);
        connection.handle(NOW, Ecn::NotEct, &bytes);
        assert_eq!(connection.end(), Some(&End::ResetHere(code)), "{options:?}");
        let mut out = Vec::new();
        connection.poll_transmit(NOW, &mut out);
        let packet = Packet::parse(&out).expect("a Reset");
        assert_eq!(packet.reset, Some((code, data)), "{options:?}");
    }
}

#[test]
fn on_data_packets_such_options_are_ignored() {
    for options in
        [&[1, 99, 4, 7, 8, 0, 0, 0][..], &[1, 1, 0, 0], &[1, 32, 4, 77, 5, 0, 0, 0], &[36, 4, 1, 2]]
    {
        let mut connection = connection(Role::Server, State::Open);
        let bytes = packet(PacketType::Data, GSR + 1, GSS, options);
        assert_eq!(connection.handle(NOW, Ecn::NotEct, &bytes), Some(&b"data"[..]));
        assert_eq!(connection.state(), State::Open);
        assert_eq!(replies(&mut connection, NOW), Vec::<String>::new());
    }
}

#[test]
fn mandatory_padding_is_padding() {
    let mut connection = connection(Role::Server, State::Open);
    let bytes = packet(PacketType::Ack, GSR + 1, GSS, &[1, 0, 0, 0]);
    connection.handle(NOW, Ecn::NotEct, &bytes);
    assert_eq!(connection.state(), State::Open);
}

#[test]
fn short_numbers_count_only_when_agreed() {
    let bytes = {
        let mut long = packet(PacketType::Data, 0, 0, &[]);
        // Byte 8: type and X = 0; then 24 bits of sequence number.
        long.truncate(12);
        long[4] = 3;
        long[8] = 2 << 1;
        long[9..12].copy_from_slice(&((GSR + 1) as u32).to_be_bytes()[1..]);
        long.extend_from_slice(b"data");
        long
    };
    let mut connection = connection(Role::Server, State::Open);
    assert_eq!(connection.handle(NOW, Ecn::NotEct, &bytes), None);
    connection.features.restore(Feature::AllowShortSeqnos, Location::Remote, 1);
    assert_eq!(connection.handle(NOW, Ecn::NotEct, &bytes), Some(&b"data"[..]));
    assert_eq!(connection.sequence.gsr, Seq48::new(GSR + 1));
}

#[test]
fn wrong_data_checksums_drop_the_data_and_say_so() {
    let mut connection = connection(Role::Server, State::Open);
    let right = crate::checksum::crc32c(b"data").to_be_bytes();
    for (sum, delivered) in [(right, true), ([1, 2, 3, 4], false)] {
        let options = [44, 6, sum[0], sum[1], sum[2], sum[3], 0, 0];
        let seq = connection.sequence.gsr.value() + 1;
        let bytes = packet(PacketType::DataAck, seq, GSS, &options);
        assert_eq!(connection.handle(NOW, Ecn::NotEct, &bytes).is_some(), delivered);
    }
    assert_eq!(connection.counters.data_checksum_errors, 1);
    connection.pending.ack = true;
    let mut out = Vec::new();
    connection.poll_transmit(NOW, &mut out);
    let ack = Packet::parse(&out).expect("an Ack");
    let report = ack.options().find(|option| matches!(option, DccpOption::DataDropped(_)));
    assert_eq!(report, Some(DccpOption::DataDropped(&[0xb0])));
}

#[test]
fn what_the_caller_does_not_take_of_a_train_is_reported_by_its_reason() {
    let mut connection = connection(Role::Server, State::Open);
    let train: Vec<u8> = (1..=20).flat_map(|step| packet(PacketType::Data, GSR + step, 0, &[])).collect();
    let (mut seen, length) = (0, train.len() / 20);
    connection.handle_train(NOW, Ecn::NotEct, &train, length, |_| {
        seen += 1;
        match seen {
            1 => Err(DropCode::ApplicationNotListening),
            3.. => Err(DropCode::ReceiveBuffer),
            _ => Ok(()),
        }
    });
    assert_eq!((seen, connection.counters.data_not_taken), (20, 19));
    connection.pending.ack = true;
    let mut out = Vec::new();
    connection.poll_transmit(NOW, &mut out);
    let ack = Packet::parse(&out).expect("an Ack");
    // 18 in the receive buffer, one taken, one that nobody listened to.
    let report = ack.options().find(|option| matches!(option, DccpOption::DataDropped(_)));
    assert_eq!(report, Some(DccpOption::DataDropped(&[0xaf, 0xa1, 0, 0x90])));
    assert_eq!(ack.ack, Some(WireSeq::Long(Seq48::new(GSR + 20))));
}

#[test]
fn packets_behind_one_with_a_round_trip_are_taken_at_once_whether_its_option_is_padded_or_not() {
    // RTT Estimate of one byte (below 256 us) and of two, padded to words.
    for options in [&[][..], &[128, 3, 249, 0], &[128, 4, 1, 4]] {
        let mut connection = connection(Role::Server, State::Open);
        let packets: Vec<_> = (1..=20).map(|step| packet(PacketType::Data, GSR + step, 0, options)).collect();
        connection.handle(NOW, Ecn::NotEct, &packets[0]);
        let taken = connection.take_followers(NOW, Ecn::NotEct, &packets[0], &packets[1..].concat());
        assert_eq!(taken, 19, "{options:?}");
    }
}

#[test]
fn timestamps_are_echoed_once_with_the_time_they_waited() {
    let mut connection = connection(Role::Server, State::Open);
    let bytes = packet(PacketType::Ack, GSR + 1, GSS, &[41, 6, 0, 0, 1, 2, 0, 0]);
    connection.handle(NOW, Ecn::NotEct, &bytes);
    connection.send(NOW, b"x").expect("room");
    let mut out = Vec::new();
    connection.poll_transmit(NOW + 70_000, &mut out);
    let sent = Packet::parse(&out).expect("data");
    let options: Vec<_> = sent.options().filter(|option| *option != DccpOption::Padding).collect();
    assert_eq!(options, [DccpOption::TimestampEcho { echo: 258, elapsed: 7 }]);
    connection.send(NOW, b"x").expect("room");
    out.clear();
    connection.poll_transmit(NOW, &mut out);
    assert!(Packet::parse(&out).expect("data").option_bytes.is_empty());
}

#[test]
fn ndp_count_tells_the_run_of_packets_without_data() {
    let mut connection = connection(Role::Server, State::Open);
    connection.features.restore(Feature::SendNdpCount, Location::Local, 1);
    let mut counts = Vec::new();
    // N data D: the example's rhythm of section 7.7.1.
    for step in "NNDNDDNDDDDNND".chars() {
        let mut out = Vec::new();
        if step == 'N' {
            connection.pending.ack = true;
            connection.poll_transmit(NOW, &mut out);
        } else {
            connection.send_now(NOW, b"d", &mut out);
        }
        let sent = Packet::parse(&out).expect("own packet");
        counts.push(sent.options().find_map(|option| match option {
            DccpOption::NdpCount(count) => Some(count),
            _ => None,
        }));
    }
    let some = |count| Some(count);
    assert_eq!(
        counts,
        [
            None,
            some(1),
            some(2),
            None,
            some(1),
            None,
            None,
            some(1),
            None,
            None,
            None,
            None,
            some(1),
            some(2)
        ]
    );
}

#[test]
fn a_client_without_answer_backs_off_and_gives_up() {
    let mut connection = Connection::connect_with(config(), NOW, &mut || ISS, FREE);
    let mut times = Vec::new();
    let mut now = NOW;
    while connection.state() == State::Request {
        now = connection.next_wakeup_ns().expect("a timer").max(now);
        for reply in replies(&mut connection, now) {
            times.push(((now - NOW) / SECOND, reply));
        }
    }
    let requests: Vec<i64> = times.iter().filter(|(_, kind)| kind == "Request").map(|(at, _)| *at).collect();
    assert_eq!(requests, [0, 1, 3, 7, 15, 31, 63, 127]);
    assert_eq!(times.last(), Some(&(180, "Reset(Aborted)@0".to_owned())));
    assert_eq!(connection.end(), Some(&End::TimedOut));
    assert_eq!(connection.next_wakeup_ns(), None);
}

#[test]
fn a_client_in_part_open_repeats_its_ack_and_gives_up_after_eight_minutes() {
    let mut connection = connection(Role::Client, State::PartOpen);
    let mut acks = 0;
    let mut now = NOW;
    while connection.state() == State::PartOpen {
        now = connection.next_wakeup_ns().expect("a timer").max(now);
        acks += replies(&mut connection, now).iter().filter(|reply| reply.starts_with("Ack")).count();
    }
    assert_eq!((now - NOW) / SECOND, 480);
    assert!((9..=20).contains(&acks), "{acks}");
    assert_eq!(connection.end(), Some(&End::TimedOut));
}

#[test]
fn a_listen_triggers_one_request() {
    let mut connection = Connection::connect_with(config(), NOW, &mut || ISS, FREE);
    assert_eq!(replies(&mut connection, NOW), ["Request"]);
    let listen = packet(PacketType::Listen, 0, 0, &[]);
    connection.handle(NOW + 1, Ecn::NotEct, &listen);
    assert_eq!(replies(&mut connection, NOW + 1), ["Request"]);
    connection.handle(NOW + 2, Ecn::NotEct, &listen);
    assert!(replies(&mut connection, NOW + 2).is_empty());
}

#[test]
fn close_is_repeated_until_the_answer() {
    let mut connection = connection(Role::Client, State::Open);
    connection.close(NOW);
    assert_eq!(replies(&mut connection, NOW), ["Close@5002"]);
    let mut closes = 1;
    let mut now = NOW;
    while connection.state() == State::Closing {
        now = connection.next_wakeup_ns().expect("a timer").max(now);
        closes += replies(&mut connection, now).iter().filter(|reply| reply.starts_with("Close")).count();
    }
    assert!((9..=20).contains(&closes), "{closes}");
    assert_eq!(connection.end(), Some(&End::TimedOut));
}

#[test]
fn queued_messages_leave_before_the_close() {
    let mut connection = connection(Role::Client, State::Open);
    for _ in 0..3 {
        connection.send(NOW, b"message").expect("room");
    }
    connection.close(NOW);
    assert_eq!(connection.send(NOW, b"late"), Err(SendError::NotOpen));
    assert_eq!(replies(&mut connection, NOW), ["Data", "Data", "Data", "Close@5002"]);
}

#[test]
fn sizes_and_refusals() {
    let mut connection = connection(Role::Client, State::Open);
    assert_eq!(connection.max_payload_bytes(), 1440);
    assert_eq!(connection.send(NOW, &[0; 1441]), Err(SendError::TooLarge));
    for _ in 0..64 {
        connection.send(NOW, &[0; 1440]).expect("room");
    }
    assert_eq!(connection.send(NOW, &[0; 1440]), Err(SendError::QueueFull));
    connection.set_mtu_bytes(1000);
    assert_eq!(connection.queued(), 0);
    assert_eq!(connection.max_payload_bytes(), 940);
    let mut out = Vec::new();
    assert!(connection.send_now(NOW, &[0; 941], &mut out).is_none());
    let transmit = connection.send_now(NOW, &[0; 940], &mut out).expect("fits");
    assert_eq!(transmit.bytes, 956);
}

#[test]
fn before_the_queue_is_empty_nothing_overtakes_it() {
    let mut connection = connection(Role::Client, State::Open);
    connection.send(NOW, b"first").expect("room");
    assert!(connection.send_now(NOW, b"second", &mut Vec::new()).is_none());
}

/// The options of the next acknowledgement.
fn acknowledges_slowly(connection: &mut Connection, now_ns: i64) -> bool {
    let mut bytes = Vec::new();
    connection.pending.ack = true;
    connection.poll_transmit(now_ns, &mut bytes).expect("an acknowledgement");
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!(packet.kind, PacketType::Ack);
    packet.options().any(|option| option == DccpOption::SlowReceiver)
}

#[test]
fn who_loses_packets_for_want_of_room_says_that_it_is_slow_for_a_while() {
    let mut end = connection(Role::Server, State::Open);
    end.on_receive_buffer(NOW, 1_000, 0);
    assert!(!acknowledges_slowly(&mut end, NOW));
    end.on_receive_buffer(NOW, 1_000, 7);
    assert!(acknowledges_slowly(&mut end, NOW + 1));
    // The same count again is no further loss.
    end.on_receive_buffer(NOW + SECOND, 1_000, 7);
    assert!(!acknowledges_slowly(&mut end, NOW + SECOND));
    // Nor does a message have to be lost: a long wait is enough.
    end.on_receive_buffer(NOW + SECOND, SECOND / 2, 7);
    assert!(acknowledges_slowly(&mut end, NOW + SECOND));
    let figure = |name: &str| end.figures().iter().find(|(other, _)| *other == name).unwrap().1;
    assert_eq!(figure("slow_receiver_sent"), 2.0);
    assert_eq!((figure("receive_overflows"), figure("greatest_receive_lag_us")), (7.0, 500_000.0));
}
