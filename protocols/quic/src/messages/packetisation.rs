// SPDX-License-Identifier: Apache-2.0
//! How many packets of which size did the messages become?

use netjoule_sockets::datagram::UDP_HEADER_BYTES;
use netjoule_transport::{IpVersion, Packetisation};

/// Packets that carry messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DataPackets {
    /// How many.
    pub(crate) packets: u64,
    /// Their UDP payload in bytes.
    pub(crate) bytes: u64,
}

/// What `messages_sent` messages became between two counts.
pub(crate) fn between(
    before: DataPackets,
    now: DataPackets,
    ip_version: IpVersion,
    messages_sent: u64,
) -> Packetisation {
    let headers_bytes = ip_version.header_bytes() + UDP_HEADER_BYTES;
    let packets = now.packets - before.packets;
    let is_known = packets > 0 && messages_sent > 0;
    Packetisation::measured(is_known.then(|| {
        let mean_payload_bytes = (now.bytes - before.bytes) as f64 / packets as f64;
        (packets as f64 / messages_sent as f64, mean_payload_bytes + headers_bytes as f64)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use netjoule_transport::PacketisationSource;

    #[test]
    fn the_packets_before_the_first_message_do_not_count() {
        let before = DataPackets { packets: 3, bytes: 1300 };
        let now = DataPackets { packets: 13, bytes: 1300 + 10 * 1472 };
        let packetisation = between(before, now, IpVersion::V4, 20);
        assert_eq!(packetisation.frames_per_message, Some(0.5));
        assert_eq!(packetisation.mean_ip_packet_bytes, Some(1500.0));
        assert_eq!(packetisation.source, PacketisationSource::Measured);
        assert_eq!(between(before, now, IpVersion::V6, 20).mean_ip_packet_bytes, Some(1520.0));
    }

    #[test]
    fn without_packets_nothing_is_claimed() {
        let none = DataPackets::default();
        assert_eq!(between(none, none, IpVersion::V4, 5).source, PacketisationSource::Unknown);
    }
}
