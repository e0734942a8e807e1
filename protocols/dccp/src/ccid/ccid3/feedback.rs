// SPDX-License-Identifier: Apache-2.0
//! What a feedback packet says (RFC 4342 sections 6 and 8).

use crate::options::data_dropped::{blocks, DropCode};
use crate::options::loss_intervals::LossIntervals;
use crate::options::DccpOption;
use crate::packet::{Packet, PacketType};
use crate::seqno::Seq48;

/// Options of a feedback packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Feedback<'a> {
    /// Bytes per second.
    pub(super) receive_rate: u32,
    /// Since the arrival of the acknowledged packet, in 10 us; 0 when not said, as by Linux.
    pub(super) elapsed: u32,
    /// Inverse of p, `u32::MAX`: no loss yet.
    pub(super) loss_event_rate: Option<u32>,
    /// Newest first.
    pub(super) intervals: Option<LossIntervals<'a>>,
    /// The receiver asks not to go faster.
    pub(super) is_slow_receiver: bool,
    /// Data Dropped was among the options.
    pub(super) has_data_dropped: bool,
}

impl<'a> Feedback<'a> {
    /// `None` when it is no feedback packet: RFC 4342 section 6 wants Elapsed Time, Receive Rate and Loss Intervals; Linux
    /// sends Receive Rate and Loss Event Rate, which suffices here.
    pub(super) fn read(packet: &Packet<'a>) -> Option<Self> {
        //= rfc4342#8
        //# The "DCCP-Data?" column indicates that all currently defined CCID 3-
        //# specific options MUST be ignored when they occur on DCCP-Data
        //# packets.
        //= rfc4342#8.3
        //# Receive Rate options MUST NOT be sent on DCCP-Data packets, and any
        //# Receive Rate options on received DCCP-Data packets MUST be ignored.
        //= rfc4342#8.5
        //# Loss Event Rate options MUST NOT be sent on DCCP-Data packets, and
        //# any Loss Event Rate options on received DCCP-Data packets MUST be
        //# ignored.
        //= rfc4342#8.6
        //# Loss Intervals options MUST NOT be sent on DCCP-Data packets, and any
        //# Loss Intervals options on received DCCP-Data packets MUST be ignored.
        //= rfc4342#8.6.1
        //# Therefore, Loss Intervals options MUST NOT
        //# be sent on packets without an Acknowledgement Number, and any Loss
        //# Intervals options received on such packets MUST be ignored.
        if !matches!(packet.kind, PacketType::Ack | PacketType::DataAck) {
            return None;
        }
        let (mut receive_rate, mut elapsed, mut echoed_elapsed) = (None, None, 0);
        let (mut loss_event_rate, mut intervals) = (None, None);
        let (mut is_slow_receiver, mut has_data_dropped) = (false, false);
        for option in packet.options() {
            match option {
                DccpOption::ReceiveRate(rate) => receive_rate = Some(rate),
                DccpOption::ElapsedTime(time) => elapsed = Some(time),
                DccpOption::TimestampEcho { elapsed, .. } => echoed_elapsed = elapsed,
                DccpOption::LossEventRate(inverse) => loss_event_rate = Some(inverse),
                //= rfc4342#8.6.1
                //# In a packet containing
                //# multiple Loss Intervals options, the Skip Lengths of the second and
                //# subsequent options MUST equal zero; such options with nonzero Skip
                //# Lengths MUST be ignored.
                // The first holds the nine intervals that count; further ones are not needed.
                DccpOption::LossIntervals(contents) if intervals.is_none() => {
                    intervals = LossIntervals::parse(contents);
                }
                DccpOption::SlowReceiver => is_slow_receiver = true,
                DccpOption::DataDropped(_) => has_data_dropped = true,
                _ => {}
            }
        }
        if intervals.is_none() && loss_event_rate.is_none() {
            return None;
        }
        Some(Self {
            receive_rate: receive_rate?,
            elapsed: elapsed.unwrap_or(echoed_elapsed),
            loss_event_rate,
            intervals,
            is_slow_receiver,
            has_data_dropped,
        })
    }
}

/// What Data Dropped says about packets after `reported`, the last acknowledgement number before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Dropped {
    /// Packets dropped in the receive buffer (Drop Code 2).
    pub(super) in_buffer: u64,
    /// Greatest packet with a Drop Code that counts as a congestion mark (3 to 7).
    pub(super) as_marked: Option<Seq48>,
}

impl Dropped {
    /// From the options of a packet with acknowledgement number `ack`.
    pub(super) fn read(packet: &Packet<'_>, ack: Seq48, reported: Option<Seq48>) -> Self {
        let vectors = packet.options().filter_map(|option| match option {
            DccpOption::DataDropped(vector) => Some(vector),
            _ => None,
        });
        let mut dropped = Self::default();
        let mut seq = ack;
        for block in vectors.flat_map(blocks) {
            for _ in 0..block.packets {
                if reported.is_some_and(|reported| !reported.is_before(seq)) {
                    return dropped;
                }
                match block.dropped {
                    None | Some(DropCode::ProtocolConstraints | DropCode::ApplicationNotListening) => {}
                    Some(DropCode::ReceiveBuffer) => dropped.in_buffer += 1,
                    Some(_) => dropped.as_marked = dropped.as_marked.or(Some(seq)),
                }
                seq = seq.sub(1);
            }
        }
        dropped
    }
}
