// SPDX-License-Identifier: Apache-2.0
//! What happened on a connection so far.

use crate::ccid::Figure;
use crate::packet::PacketType;

/// Counters, see [`Self::figures`] for their names.
#[derive(Debug, Default, Clone)]
pub(crate) struct Counters {
    pub(crate) data_packets_sent: u64,
    pub(crate) data_packets_received: u64,
    pub(crate) acks_sent: u64,
    pub(crate) acks_received: u64,
    pub(crate) syncs_sent: u64,
    pub(crate) syncs_received: u64,
    pub(crate) sync_acks_sent: u64,
    pub(crate) sync_acks_received: u64,
    pub(crate) resets_sent: u64,
    pub(crate) resets_received: u64,
    pub(crate) handshake_packets_sent: u64,
    pub(crate) packets_invalid: u64,
    pub(crate) packets_sequence_invalid: u64,
    pub(crate) checksum_errors: u64,
    pub(crate) data_checksum_errors: u64,
    pub(crate) data_refused: u64,
    pub(crate) data_not_taken: u64,
    pub(crate) data_drops_reported: u64,
    pub(crate) queue_discarded: u64,
    pub(crate) slow_receiver_received: u64,
    pub(crate) slow_receiver_sent: u64,
    pub(crate) receive_overflows: u64,
    pub(crate) greatest_receive_lag_ns: i64,
}

impl Counters {
    pub(crate) fn on_sent(&mut self, kind: PacketType) {
        match kind {
            PacketType::Data => self.data_packets_sent += 1,
            PacketType::DataAck => {
                self.data_packets_sent += 1;
                self.acks_sent += 1;
            }
            PacketType::Ack => self.acks_sent += 1,
            PacketType::Sync => self.syncs_sent += 1,
            PacketType::SyncAck => self.sync_acks_sent += 1,
            PacketType::Reset => self.resets_sent += 1,
            PacketType::Request
            | PacketType::Response
            | PacketType::CloseReq
            | PacketType::Close
            | PacketType::Listen => self.handshake_packets_sent += 1,
        }
    }

    pub(crate) fn on_received(&mut self, kind: PacketType) {
        match kind {
            PacketType::Data => self.data_packets_received += 1,
            PacketType::DataAck => {
                self.data_packets_received += 1;
                self.acks_received += 1;
            }
            PacketType::Ack => self.acks_received += 1,
            PacketType::Sync => self.syncs_received += 1,
            PacketType::SyncAck => self.sync_acks_received += 1,
            PacketType::Reset => self.resets_received += 1,
            _ => {}
        }
    }

    pub(crate) fn figures(&self) -> Vec<Figure> {
        let counts = [
            ("data_packets_sent", self.data_packets_sent),
            ("data_packets_received", self.data_packets_received),
            ("acks_sent", self.acks_sent),
            ("acks_received", self.acks_received),
            ("syncs_sent", self.syncs_sent),
            ("syncs_received", self.syncs_received),
            ("sync_acks_sent", self.sync_acks_sent),
            ("sync_acks_received", self.sync_acks_received),
            ("resets_sent", self.resets_sent),
            ("resets_received", self.resets_received),
            ("handshake_packets_sent", self.handshake_packets_sent),
            ("packets_invalid", self.packets_invalid),
            ("packets_sequence_invalid", self.packets_sequence_invalid),
            ("checksum_errors", self.checksum_errors),
            ("data_checksum_errors", self.data_checksum_errors),
            ("data_refused", self.data_refused),
            ("data_not_taken", self.data_not_taken),
            ("data_drops_reported", self.data_drops_reported),
            ("queue_discarded", self.queue_discarded),
            ("slow_receiver_received", self.slow_receiver_received),
            ("slow_receiver_sent", self.slow_receiver_sent),
            ("receive_overflows", self.receive_overflows),
        ];
        let lag = ("greatest_receive_lag_us", self.greatest_receive_lag_ns as f64 / 1e3);
        counts.into_iter().map(|(name, count)| (name, count as f64)).chain([lag]).collect()
    }
}
