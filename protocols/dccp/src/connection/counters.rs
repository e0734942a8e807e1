// SPDX-License-Identifier: Apache-2.0
//! What happened on a connection so far.

use crate::ccid::Figure;
use crate::packet::PacketType;

/// The counters and their names in reports, which are the same.
macro_rules! counters {
    ($($name:ident)*) => {
        /// Counters, see [`Self::figures`] for their names.
        #[derive(Debug, Default, Clone)]
        pub(crate) struct Counters {
            $(pub(crate) $name: u64,)*
            pub(crate) greatest_receive_lag_ns: i64,
        }

        impl Counters {
            pub(crate) fn figures(&self) -> Vec<Figure> {
                let lag = ("greatest_receive_lag_us", self.greatest_receive_lag_ns as f64 / 1e3);
                vec![$((stringify!($name), self.$name as f64),)* lag]
            }
        }
    };
}

counters! {
    data_packets_sent data_packets_received acks_sent acks_received syncs_sent syncs_received
    sync_acks_sent sync_acks_received resets_sent resets_received handshake_packets_sent packets_invalid
    packets_sequence_invalid checksum_errors data_checksum_errors data_refused data_not_taken
    data_drops_reported queue_discarded slow_receiver_received slow_receiver_sent receive_overflows
}

impl Counters {
    pub(crate) fn on_sent(&mut self, kind: PacketType) {
        self.data_packets_sent += u64::from(kind.is_data());
        match kind {
            PacketType::Data => {}
            PacketType::DataAck | PacketType::Ack => self.acks_sent += 1,
            PacketType::Sync => self.syncs_sent += 1,
            PacketType::SyncAck => self.sync_acks_sent += 1,
            PacketType::Reset => self.resets_sent += 1,
            _ => self.handshake_packets_sent += 1,
        }
    }

    pub(crate) fn on_received(&mut self, kind: PacketType) {
        self.data_packets_received += u64::from(kind.is_data());
        match kind {
            PacketType::Data => {}
            PacketType::DataAck | PacketType::Ack => self.acks_received += 1,
            PacketType::Sync => self.syncs_received += 1,
            PacketType::SyncAck => self.sync_acks_received += 1,
            PacketType::Reset => self.resets_received += 1,
            _ => {}
        }
    }
}
