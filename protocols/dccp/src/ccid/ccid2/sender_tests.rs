// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::packet::{Packet, PacketType, WireSeq};

const MS: i64 = 1_000_000;

struct Rig {
    sender: Sender,
    now_ns: i64,
    next: u64,
    peer_seq: u64,
}

impl Rig {
    fn new() -> Self {
        let mut sender = Sender::new(0, Seq48::new(1), 1440);
        sender.set_initial_rtt(100 * MS);
        Self { sender, now_ns: 0, next: 1, peer_seq: 0 }
    }

    /// Send all that the window allows; gives back how many.
    fn fill(&mut self) -> u64 {
        let first = self.next;
        while self.sender.departure(self.now_ns, 1440) == Departure::Now {
            self.send(Ecn::NotEct);
        }
        self.next - first
    }

    fn send(&mut self, ecn: Ecn) {
        self.sender.on_sent(self.now_ns, Seq48::new(self.next), Some(1440), ecn);
        self.next += 1;
    }

    fn ack(&mut self, ack: u64, options: &[DccpOption<'_>]) {
        let mut bytes = Vec::new();
        options.iter().for_each(|option| option.emit(&mut bytes));
        self.peer_seq += 1;
        let packet = Packet {
            source_port: 1,
            destination_port: 2,
            ccval: 0,
            checksum_coverage: 0,
            checksum: 0,
            kind: PacketType::Ack,
            seq: WireSeq::Long(Seq48::new(self.peer_seq)),
            ack: Some(WireSeq::Long(Seq48::new(ack))),
            service_code: None,
            reset: None,
            option_bytes: &bytes,
            payload: &[],
        };
        self.incoming(&packet, Some(ack));
    }

    fn incoming(&mut self, packet: &Packet<'_>, ack: Option<u64>) {
        let incoming = Incoming {
            arrived_ns: self.now_ns,
            seq: Seq48::new(self.peer_seq),
            ack: ack.map(Seq48::new),
            ecn: Ecn::NotEct,
            packet,
        };
        self.sender.on_incoming(&incoming).unwrap();
    }

    fn ack_vector(&mut self, ack: u64, vector: &[u8]) {
        self.ack(ack, &[DccpOption::AckVector { nonce: false, vector }]);
    }

    fn cwnd(&self) -> u64 {
        self.sender.window.cwnd()
    }

    fn figure(&self, name: &str) -> f64 {
        self.sender.figures().iter().find(|(figure, _)| *figure == name).unwrap().1
    }
}

#[test]
fn the_first_window_leaves_and_then_nothing() {
    let mut rig = Rig::new();
    assert_eq!(rig.fill(), 3);
    assert_eq!(rig.sender.departure(rig.now_ns, 1440), Departure::OnFeedback);
    rig.ack_vector(2, &[1]);
    assert_eq!((rig.cwnd(), rig.fill()), (4, 3));
}

#[test]
fn the_round_trip_is_measured_once_per_window_without_the_delay_of_the_receiver() {
    let mut rig = Rig::new();
    rig.fill();
    rig.now_ns = 180 * MS;
    let delayed = DccpOption::ElapsedTime(10_000);
    rig.ack(1, &[delayed, DccpOption::AckVector { nonce: false, vector: &[0] }]);
    // 7/8 * 100 ms + 1/8 * 80 ms.
    assert_eq!(rig.sender.rtt_ns(), Some(97_500_000));
    rig.now_ns = 500 * MS;
    rig.ack_vector(3, &[2]);
    assert_eq!(rig.sender.rtt_ns(), Some(97_500_000));
}

#[test]
fn timeouts_back_off_and_an_answer_ends_it() {
    let mut rig = Rig::new();
    rig.fill();
    let mut waits = Vec::new();
    for _ in 0..4 {
        let due_ns = rig.sender.next_timeout_ns().unwrap();
        waits.push((due_ns - rig.now_ns) / MS);
        rig.sender.on_timeout(due_ns - 1);
        assert_eq!(rig.sender.departure(rig.now_ns, 1440), Departure::OnFeedback);
        rig.now_ns = due_ns;
        rig.sender.on_timeout(due_ns);
        assert_eq!((rig.cwnd(), rig.fill()), (1, 1));
        assert_eq!(rig.sender.wanted_ack_ratio(), Some(1));
    }
    // 100 ms + max(4 * 50 ms, 250 ms), doubled each time.
    assert_eq!(waits, [350, 700, 1400, 2800]);
    let newest = rig.next - 1;
    rig.ack_vector(newest, &[0]);
    assert_eq!(rig.sender.next_timeout_ns(), None);
    rig.fill();
    assert!(rig.sender.next_timeout_ns().unwrap() - rig.now_ns < 700 * MS);
}

#[test]
fn a_loss_halves_the_window_once_and_an_old_acknowledgement_changes_nothing() {
    let mut rig = Rig::new();
    let mut acked = 0;
    while rig.cwnd() < 32 {
        rig.fill();
        acked += 2;
        rig.ack_vector(acked, &[1]);
    }
    rig.fill();
    // acked + 1 and acked + 3 are missing.
    rig.ack_vector(acked + 7, &[3, 192, 0, 192]);
    assert_eq!((rig.figure("packets_lost"), rig.figure("congestion_events")), (2.0, 1.0));
    let (cwnd, pipe) = (rig.cwnd(), rig.sender.flight.pipe());
    assert!((16..=17).contains(&cwnd), "{cwnd}");
    rig.ack_vector(acked + 7, &[63]);
    rig.ack_vector(acked, &[63]);
    assert_eq!((rig.cwnd(), rig.sender.flight.pipe()), (cwnd, pipe));
}

#[test]
fn a_mark_is_congestion_without_loss() {
    let mut rig = Rig::new();
    rig.fill();
    rig.ack_vector(2, &[64, 0]);
    assert_eq!((rig.cwnd(), rig.figure("packets_marked"), rig.figure("packets_lost")), (1, 1.0, 0.0));
}

#[test]
fn a_receiver_that_guesses_nonces_is_slowed() {
    let mut rig = Rig::new();
    for ecn in [Ecn::Ect1, Ecn::Ect0, Ecn::Ect1] {
        rig.send(ecn);
    }
    rig.ack(2, &[DccpOption::AckVector { nonce: true, vector: &[1] }]);
    assert_eq!((rig.cwnd(), rig.figure("nonce_mismatches")), (4, 0.0));
    rig.ack(3, &[DccpOption::AckVector { nonce: true, vector: &[2] }]);
    assert_eq!((rig.cwnd(), rig.figure("nonce_mismatches")), (2, 1.0));
}

#[test]
fn data_dropped_in_the_receive_buffer_takes_a_packet_each() {
    let mut rig = Rig::new();
    let mut acked = 0;
    while rig.cwnd() < 20 {
        rig.fill();
        acked += 2;
        rig.ack_vector(acked, &[1]);
    }
    rig.fill();
    let (cwnd, first) = (rig.cwnd(), acked + 1);
    let dropped = [DccpOption::AckVector { nonce: false, vector: &[1] }, DccpOption::DataDropped(&[0xa1])];
    rig.ack(first + 1, &dropped);
    assert_eq!(rig.cwnd(), cwnd - 2);
    assert!(rig.sender.window.ssthresh() <= cwnd);
    let corrupt = [DccpOption::AckVector { nonce: false, vector: &[1] }, DccpOption::DataDropped(&[0xb0])];
    rig.ack(first + 3, &corrupt);
    assert_eq!(rig.figure("congestion_events"), 1.0);
}

#[test]
fn a_slow_receiver_stops_growth_for_a_round_trip() {
    let mut rig = Rig::new();
    rig.fill();
    rig.ack(2, &[DccpOption::SlowReceiver, DccpOption::AckVector { nonce: false, vector: &[1] }]);
    assert_eq!((rig.cwnd(), rig.sender.window.ssthresh()), (3, 3));
}

#[test]
fn acknowledgements_are_acknowledged_once_per_window() {
    let mut rig = Rig::new();
    rig.fill();
    assert!(!rig.sender.wants_ack_of_acks());
    rig.ack_vector(2, &[1]);
    let mut carried = 0;
    for round in 0..40 {
        while rig.sender.departure(rig.now_ns, 1440) == Departure::Now {
            carried += u64::from(rig.sender.wants_ack_of_acks());
            rig.send(Ecn::NotEct);
        }
        let newest = rig.next - 1;
        rig.ack_vector(newest, &[(rig.cwnd().min(64) - 1) as u8]);
        assert!(round > 0 || carried == 1);
    }
    assert!((35..=42).contains(&carried), "{carried}");
}

#[test]
fn a_data_packet_of_the_peer_acknowledges_nothing() {
    let mut rig = Rig::new();
    rig.fill();
    let mut bytes = Vec::new();
    DccpOption::AckVector { nonce: false, vector: &[2] }.emit(&mut bytes);
    let packet = Packet {
        source_port: 1,
        destination_port: 2,
        ccval: 0,
        checksum_coverage: 0,
        checksum: 0,
        kind: PacketType::Data,
        seq: WireSeq::Long(Seq48::new(1)),
        ack: None,
        service_code: None,
        reset: None,
        option_bytes: &bytes,
        payload: b"data",
    };
    rig.peer_seq += 1;
    rig.incoming(&packet, None);
    assert_eq!(rig.sender.flight.pipe(), 3);
}
