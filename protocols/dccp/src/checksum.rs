// SPDX-License-Identifier: Apache-2.0
//! The Internet checksum over pseudo header and covered bytes (RFC 4340 section 9.1) and CRC-32c (section 9.3).

use std::net::IpAddr;

/// DCCP's IP protocol number.
pub const IP_PROTOCOL: u8 = 33;

/// Where the checksum stands in the generic header.
const FIELD: std::ops::Range<usize> = 6..8;

/// Checksum that belongs into the header of `packet` (whose checksum field is taken as zero), sent from `source` to
/// `destination`. Coverage is read from the packet. `None` when the packet is too short or the coverage reaches past
/// its end, or the addresses are of different versions.
pub fn header_checksum(source: IpAddr, destination: IpAddr, packet: &[u8]) -> Option<u16> {
    let covered = covered_bytes(packet)?;
    let mut sum = pseudo_header_sum(source, destination, IP_PROTOCOL, packet.len())?;
    //= rfc4340#9.1
    //# When calculating the checksum, the Checksum field itself is treated as 0.
    sum += ones_sum(&packet[..FIELD.start]) + ones_sum(&packet[FIELD.end..covered]);
    Some(!fold(sum))
}

/// Whether the checksum in the header is right.
pub fn verify(source: IpAddr, destination: IpAddr, packet: &[u8]) -> bool {
    // Compared as a sum, not with the value that a sender would write: 0 and 0xffff are the same number in one's complement.
    let Some(covered) = covered_bytes(packet) else {
        return false;
    };
    pseudo_header_sum(source, destination, IP_PROTOCOL, packet.len())
        .is_some_and(|sum| fold(sum + ones_sum(&packet[..covered])) == 0xffff)
}

/// Write the checksum into the header of `packet`. False, and nothing written, where [`header_checksum`] gives `None`.
pub fn fill(source: IpAddr, destination: IpAddr, packet: &mut [u8]) -> bool {
    let Some(checksum) = header_checksum(source, destination, packet) else {
        return false;
    };
    packet[FIELD].copy_from_slice(&checksum.to_be_bytes());
    true
}

/// How many bytes from the start of `packet` the checksum covers; `None` when that reaches past its end.
pub fn covered_bytes(packet: &[u8]) -> Option<usize> {
    if packet.len() < 12 {
        return None;
    }
    let offset = usize::from(packet[4]) * 4;
    //= rfc4340#5.1
    //# This always includes the DCCP header and options
    let covered = match usize::from(packet[5] & 0xf) {
        0 => packet.len(),
        coverage => offset + (coverage - 1) * 4,
    };
    (offset >= 12 && offset <= packet.len() && covered <= packet.len()).then_some(covered)
}

/// One's complement sum of the pseudo header for `protocol` and an upper-layer packet of `bytes`; `None` when the
/// addresses are of different versions or the length has no room in it.
pub fn pseudo_header_sum(source: IpAddr, destination: IpAddr, protocol: u8, bytes: usize) -> Option<u64> {
    let addresses = match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            // IPv4 holds 16 bits of length, IPv6 32.
            u16::try_from(bytes).ok()?;
            ones_sum(&source.octets()) + ones_sum(&destination.octets())
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            ones_sum(&source.octets()) + ones_sum(&destination.octets())
        }
        _ => return None,
    };
    Some(addresses + u64::from(protocol) + u64::from(u32::try_from(bytes).ok()?))
}

/// Sum of the big-endian 16-bit words of `bytes`, congruent modulo 2^16 - 1; an odd last byte is padded on the right.
pub fn ones_sum(bytes: &[u8]) -> u64 {
    // Summed in the machine's byte order and turned once at the end: one's complement sums do not mind (RFC 1071).
    let mut sum = 0_u64;
    let mut chunks = bytes.chunks_exact(4);
    for chunk in &mut chunks {
        sum += u64::from(u32::from_ne_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]));
    }
    let mut last = [0; 4];
    last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    sum += u64::from(u32::from_ne_bytes(last));
    u64::from(u16::from_be_bytes(fold(sum).to_ne_bytes()))
}

/// Fold carries until 16 bits are left.
pub const fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// CRC-32c of application data as the number that stands in the Data Checksum option, first byte most significant.
///
/// RFC 4340 section 9.3 wants SCTP's algorithm, and SCTP (RFC 3309 appendix) sends the least significant byte of the
/// CRC register first. Hence 0x839206e3 for "123456789", where tables of CRCs give the register, 0xe3069283.
pub fn crc32c(data: &[u8]) -> u32 {
    let register = data
        .iter()
        .fold(u32::MAX, |register, byte| register >> 8 ^ CRC_TABLE[usize::from(register as u8 ^ byte)]);
    (!register).swap_bytes()
}

static CRC_TABLE: [u32; 256] = crc_table();

/// Table of the Castagnoli polynomial, bits reflected.
const fn crc_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut register = index as u32;
        let mut bit = 0;
        while bit < 8 {
            register = register >> 1 ^ if register & 1 == 1 { 0x82f6_3b78 } else { 0 };
            bit += 1;
        }
        table[index] = register;
        index += 1;
    }
    table
}
