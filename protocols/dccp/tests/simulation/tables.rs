// SPDX-License-Identifier: Apache-2.0
//! Tables of loss x RTT x CCID, beside what the models predict from each run's own loss-event rate and round-trip time.

use std::fmt::Write as _;
use std::path::PathBuf;

use netjoule_dccp::ccid::Ccid;

use super::equations::{pftk, pftk_with_timeouts, tfrc};
use super::world::{Path, World, S};

pub(crate) const LOSSES: [f64; 6] = [0.001, 0.003, 0.01, 0.03, 0.05, 0.1];
pub(crate) const RTTS_MS: [i64; 3] = [10, 50, 200];
/// Parts of a run after which state is looked at, for averages.
const PARTS: i64 = 200;

/// One cell of a table.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Row {
    pub(crate) loss: f64,
    pub(crate) path_rtt_ms: i64,
    pub(crate) goodput_pps: f64,
    pub(crate) sent_pps: f64,
    /// CCID 2: data packets lost, found by Ack Vectors.
    pub(crate) loss_rate: f64,
    pub(crate) loss_event_rate: f64,
    pub(crate) rtt_s: f64,
    /// CCID 2: mean timeout without back-off, mean Ack Ratio.
    pub(crate) rto_s: f64,
    pub(crate) ack_ratio: f64,
    pub(crate) timeouts: f64,
    /// Loss indications that were timeouts.
    pub(crate) timeout_share: f64,
}

/// Simulated time in which some hundred loss events occur.
fn span_ns(loss: f64, rtt_ms: i64) -> i64 {
    let packets = (250.0 / loss).max(12_000.0);
    ((packets / tfrc(loss, rtt_ms as f64 / 1e3)) as i64 * S).max(60 * S)
}

/// Sums over the parts of a run.
#[derive(Default)]
struct Sums {
    loss_event_rate: f64,
    rtt_us: f64,
    rto_us: f64,
    ack_ratio: f64,
}

/// Run one cell: a fifth of the time to settle, the rest to measure.
pub(crate) fn measure(ccid: Ccid, loss: f64, path_rtt_ms: i64) -> Row {
    let seed = path_rtt_ms as u64 * 1000 + (loss * 1000.0) as u64;
    let mut world = World::saturated(seed, Path { loss, ..Path::clean(path_rtt_ms) }, ccid);
    let span_ns = span_ns(loss, path_rtt_ms);
    world.run_for(span_ns / 5);
    let counts = |world: &World| {
        let client = world.client();
        let of_ccid2 = |name| if ccid == Ccid::TcpLike { client.figure(name) } else { 0.0 };
        [
            world.server().messages as f64,
            client.figure("data_packets_sent"),
            of_ccid2("loss_events"),
            of_ccid2("timeouts"),
            of_ccid2("congestion_events"),
            of_ccid2("packets_lost"),
        ]
    };
    let before = counts(&world);
    let mut sums = Sums::default();
    for _ in 0..PARTS {
        world.run_for(span_ns / PARTS);
        let client = world.client();
        sums.rtt_us += client.figure("rtt_us");
        sums.loss_event_rate += client.figure("loss_event_rate");
        if ccid == Ccid::TcpLike {
            sums.rto_us += client.figure("rto_us");
            sums.ack_ratio += world.server().figure("peer_ack_ratio");
        }
    }
    let after = counts(&world);
    let [messages, sent, events, timeouts, cuts, lost] =
        std::array::from_fn(|index| after[index] - before[index]);
    let (seconds, parts) = ((span_ns / PARTS * PARTS) as f64 / 1e9, PARTS as f64);
    Row {
        loss,
        path_rtt_ms,
        goodput_pps: messages / seconds,
        sent_pps: sent / seconds,
        loss_rate: lost / sent,
        loss_event_rate: if ccid == Ccid::TcpLike { events / sent } else { sums.loss_event_rate / parts },
        rtt_s: sums.rtt_us / parts / 1e6,
        rto_s: sums.rto_us / parts / 1e6,
        ack_ratio: sums.ack_ratio / parts,
        timeouts,
        timeout_share: if events > 0.0 { (events - cuts) / events } else { 0.0 },
    }
}

impl Row {
    pub(crate) fn tfrc_ratio(&self) -> f64 {
        self.goodput_pps / tfrc(self.loss_event_rate, self.rtt_s)
    }

    /// The model as it stands, with one acknowledgement per Ack Ratio packets.
    pub(crate) fn pftk(&self) -> f64 {
        pftk(self.loss_event_rate, self.rtt_s, self.rto_s, self.ack_ratio)
    }

    /// The model for what CCID 2 does. b = 1, because RFC 4341 section 5 lets the window grow by a packet per window of data
    /// acknowledged, however many acknowledgements that takes, where TCP grew per acknowledgement. p is the chance of a packet
    /// to be lost, which the model's p is when losses are independent. And the run's own share of timeouts, because the
    /// model's share is that of a TCP without selective acknowledgements whose losses take all the rest of a round.
    pub(crate) fn pftk_per_packet(&self) -> f64 {
        pftk_with_timeouts(self.loss_rate, self.rtt_s, self.rto_s, 1.0, Some(self.timeout_share))
    }

    pub(crate) fn pftk_ratio(&self) -> f64 {
        self.sent_pps / self.pftk()
    }

    pub(crate) fn per_packet_ratio(&self) -> f64 {
        self.sent_pps / self.pftk_per_packet()
    }
}

/// All cells, two threads.
pub(crate) fn rows(ccid: Ccid) -> Vec<Row> {
    let cells: Vec<(i64, f64)> =
        RTTS_MS.iter().flat_map(|rtt_ms| LOSSES.iter().map(|loss| (*rtt_ms, *loss))).collect();
    let mut rows = vec![Row::default(); cells.len()];
    std::thread::scope(|scope| {
        for (rows, cells) in rows.chunks_mut(9).zip(cells.chunks(9)) {
            scope.spawn(move || {
                for (row, (rtt_ms, loss)) in rows.iter_mut().zip(cells) {
                    *row = measure(ccid, *loss, *rtt_ms);
                }
            });
        }
    });
    rows
}

pub(crate) fn tfrc_table(rows: &[Row]) -> String {
    let mut text = String::from("# CCID 3 against the TFRC equation; packets of 1440 bytes per second\n");
    text += "loss_percent path_rtt_ms goodput_pps predicted_pps ratio loss_event_rate rtt_ms\n";
    for row in rows {
        let predicted = tfrc(row.loss_event_rate, row.rtt_s);
        let _ = writeln!(
            text,
            "{:.1} {} {:.2} {:.2} {:.3} {:.5} {:.2}",
            row.loss * 100.0,
            row.path_rtt_ms,
            row.goodput_pps,
            predicted,
            row.tfrc_ratio(),
            row.loss_event_rate,
            row.rtt_s * 1e3
        );
    }
    text
}

pub(crate) fn pftk_table(rows: &[Row]) -> String {
    let mut text = String::from("# CCID 2 against PFTK; packets of 1440 bytes per second. predicted: full model, b = Ack Ratio, p = loss events;\n");
    text += "# per_packet: b = 1, p = lost packets, the run's own share of timeouts. Ratios are of packets sent.\n";
    text +=
        "loss_percent path_rtt_ms goodput_pps sent_pps predicted_pps ratio per_packet_pps per_packet_ratio ";
    text += "loss_rate loss_event_rate rtt_ms rto_ms ack_ratio timeouts\n";
    for row in rows {
        let _ = write!(text, "{:.1} {} ", row.loss * 100.0, row.path_rtt_ms);
        let _ = write!(
            text,
            "{:.2} {:.2} {:.2} {:.3} ",
            row.goodput_pps,
            row.sent_pps,
            row.pftk(),
            row.pftk_ratio()
        );
        let _ = write!(text, "{:.2} {:.3} ", row.pftk_per_packet(), row.per_packet_ratio());
        let _ = write!(text, "{:.5} {:.5} {:.2} ", row.loss_rate, row.loss_event_rate, row.rtt_s * 1e3);
        let _ = writeln!(text, "{:.1} {:.2} {}", row.rto_s * 1e3, row.ack_ratio, row.timeouts);
    }
    text
}

/// Compare with the reviewed file `name`; UPDATE_GOLDENS=1 writes it anew.
pub(crate) fn assert_golden(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/simulation/goldens").join(name);
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&path, text).expect("the golden can be written");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == text, "{name} differs; UPDATE_GOLDENS=1 writes it anew. Now:\n{text}");
}
