// SPDX-License-Identifier: Apache-2.0
//! The kernel's `struct tcp_info` (include/uapi/linux/tcp.h), read by field offset.

use std::os::fd::RawFd;

use netjoule_transport::kernel_structure::{Field, KernelStructure};
use netjoule_transport::Congestion;

/// Longest structure that is read, in bytes.
const LENGTH_BYTES: usize = 256;

/// Offset of `tcpi_options`.
const OPTIONS_OFFSET: usize = 5;

/// The fields that go into the report.
const FIELDS: [Field; 19] = [
    ("retransmits_pending", 2, 1),
    ("rto_us", 8, 4),
    ("snd_mss_bytes", 16, 4),
    ("rcv_mss_bytes", 20, 4),
    ("unacked_segments", 24, 4),
    ("lost_segments", 32, 4),
    ("path_mtu_bytes", 60, 4),
    ("rtt_us", 68, 4),
    ("rtt_variation_us", 72, 4),
    ("congestion_window_segments", 80, 4),
    ("total_retransmissions", 100, 4),
    ("bytes_acked", 120, 8),
    ("bytes_received", 128, 8),
    ("segments_out", 136, 4),
    ("segments_in", 140, 4),
    ("min_rtt_us", 148, 4),
    ("data_segments_in", 152, 4),
    ("data_segments_out", 156, 4),
    ("bytes_sent", 200, 8),
];

/// `TCP_INFINITE_SSTHRESH` (include/net/tcp.h): the slow-start threshold was never set.
const NO_THRESHOLD: u64 = 0x7fff_ffff;

/// What the kernel says about a connection; `None` when it does not answer.
pub(crate) fn read(fd: RawFd) -> Option<KernelStructure> {
    KernelStructure::read(fd, (libc::IPPROTO_TCP, libc::TCP_INFO), LENGTH_BYTES, &FIELDS)
}

/// Congestion control at this moment. Windows are counted in segments and told in bytes of the sending MSS; in flight
/// is what `tcp_packets_in_flight` (include/net/tcp.h) counts.
pub(crate) fn congestion(info: &KernelStructure) -> Congestion {
    let word = |offset| info.number(offset, 4);
    let segment_bytes = word(16);
    let bytes = |segments: Option<u64>| Some(segments?.saturating_mul(segment_bytes?));
    let in_flight = || {
        let gone = word(28)? + word(32)?;
        Some((word(24)? + word(36)?).saturating_sub(gone))
    };
    let ms = |microseconds: Option<u64>| microseconds.map(|us| us as f64 * 1e-3);
    // All ones: no pacing rate is set.
    let pacing_rate = info.number(104, 8).filter(|rate| *rate != u64::MAX);
    Congestion {
        window_bytes: bytes(word(80)),
        slow_start_threshold_bytes: bytes(word(76).filter(|segments| *segments < NO_THRESHOLD)),
        pacing_rate_mbps: pacing_rate.map(|rate| rate as f64 * 8e-6),
        in_flight_bytes: bytes(in_flight()),
        smoothed_rtt_ms: ms(word(68).filter(|rtt_us| *rtt_us > 0)),
        rtt_variation_ms: ms(word(72)),
        packets_lost: None,
        packets_retransmitted: word(100),
        loss_events: None,
    }
}

/// Options in use (`tcpi_options`); bit 0 is the time stamp.
pub(crate) fn options(info: &KernelStructure) -> u64 {
    info.number(OPTIONS_OFFSET, 1).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_beyond_an_older_kernels_structure_are_left_out() {
        let mut bytes = vec![0; 160];
        bytes[68..72].copy_from_slice(&1234_u32.to_ne_bytes());
        let info = KernelStructure { fields: &FIELDS, bytes };
        assert_eq!(info.field("rtt_us"), Some(1234));
        assert_eq!(info.field("bytes_sent"), None);
        assert!(!info.values().contains_key("bytes_sent"));
    }

    /// Offsets of `congestion` against the C library's structure.
    #[test]
    fn congestion_is_read_in_bytes_and_milliseconds() {
        let mut info = KernelStructure { fields: &FIELDS, bytes: vec![0; 160] };
        let mut put = |offset: usize, value: u32| {
            info.bytes[offset..offset + 4].copy_from_slice(&value.to_ne_bytes());
        };
        put(std::mem::offset_of!(libc::tcp_info, tcpi_snd_mss), 1_000);
        put(std::mem::offset_of!(libc::tcp_info, tcpi_unacked), 9);
        put(std::mem::offset_of!(libc::tcp_info, tcpi_sacked), 3);
        put(std::mem::offset_of!(libc::tcp_info, tcpi_lost), 2);
        put(std::mem::offset_of!(libc::tcp_info, tcpi_retrans), 1);
        put(std::mem::offset_of!(libc::tcp_info, tcpi_rtt), 1_500);
        put(std::mem::offset_of!(libc::tcp_info, tcpi_rttvar), 250);
        put(std::mem::offset_of!(libc::tcp_info, tcpi_snd_ssthresh), 0x7fff_ffff);
        put(std::mem::offset_of!(libc::tcp_info, tcpi_snd_cwnd), 10);
        put(std::mem::offset_of!(libc::tcp_info, tcpi_total_retrans), 4);
        let expected = Congestion {
            window_bytes: Some(10_000),
            slow_start_threshold_bytes: None,
            pacing_rate_mbps: Some(0.0),
            in_flight_bytes: Some(5_000),
            smoothed_rtt_ms: Some(1.5),
            rtt_variation_ms: Some(0.25),
            packets_lost: None,
            packets_retransmitted: Some(4),
            loss_events: None,
        };
        assert_eq!(congestion(&info), expected);
        info.bytes[104..112].fill(0xff);
        info.bytes[76..80].copy_from_slice(&7_u32.to_ne_bytes());
        let told = congestion(&info);
        assert_eq!((told.pacing_rate_mbps, told.slow_start_threshold_bytes), (None, Some(7_000)));
        info.bytes.truncate(100);
        assert_eq!(congestion(&info).packets_retransmitted, None);
    }

    #[test]
    fn offsets_agree_with_the_c_library_where_it_has_the_field() {
        let offset = |name: &str| FIELDS.iter().find(|(field, ..)| *field == name).unwrap().1;
        assert_eq!(offset("rto_us"), std::mem::offset_of!(libc::tcp_info, tcpi_rto));
        assert_eq!(offset("snd_mss_bytes"), std::mem::offset_of!(libc::tcp_info, tcpi_snd_mss));
        assert_eq!(offset("lost_segments"), std::mem::offset_of!(libc::tcp_info, tcpi_lost));
        assert_eq!(offset("path_mtu_bytes"), std::mem::offset_of!(libc::tcp_info, tcpi_pmtu));
        assert_eq!(offset("rtt_us"), std::mem::offset_of!(libc::tcp_info, tcpi_rtt));
        assert_eq!(offset("congestion_window_segments"), std::mem::offset_of!(libc::tcp_info, tcpi_snd_cwnd));
        assert_eq!(offset("total_retransmissions"), std::mem::offset_of!(libc::tcp_info, tcpi_total_retrans));
    }
}
