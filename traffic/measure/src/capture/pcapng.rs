// SPDX-License-Identifier: Apache-2.0
//! Blocks of a pcapng file with one interface (draft-ietf-opsawg-pcapng). Pure.

use super::libpcap::Drops;
use crate::process::program;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

/// Options of an interface description.
const IF_NAME: u16 = 2;
const IF_TIME_RESOLUTION: u16 = 9;
const IF_FILTER: u16 = 11;
/// Options of interface statistics.
const RECEIVED: u16 = 4;
const DROPPED_BY_INTERFACE: u16 = 5;
const DROPPED_BY_KERNEL: u16 = 7;
/// Option of a section header.
const WRITTEN_BY: u16 = 4;

/// What the file says of its interface.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interface<'a> {
    pub(super) name: &'a str,
    pub(super) filter: &'a str,
    pub(super) link_type: u16,
    pub(super) snap_bytes: u32,
}

/// The blocks before the first packet.
pub(super) fn begin(interface: &Interface<'_>) -> Vec<u8> {
    let mut section = Vec::new();
    section.extend(0x1a2b_3c4d_u32.to_le_bytes());
    section.extend([1_u16, 0].map(u16::to_le_bytes).as_flattened());
    // Length not told.
    section.extend((-1_i64).to_le_bytes());
    option(&mut section, WRITTEN_BY, format!("{} {}", program(), env!("CARGO_PKG_VERSION")).as_bytes());
    end_options(&mut section);

    let mut description = Vec::new();
    description.extend(interface.link_type.to_le_bytes());
    description.extend(0_u16.to_le_bytes());
    description.extend(interface.snap_bytes.to_le_bytes());
    option(&mut description, IF_NAME, interface.name.as_bytes());
    // Nanoseconds.
    option(&mut description, IF_TIME_RESOLUTION, &[9]);
    // 0: a libpcap filter as text.
    option(&mut description, IF_FILTER, &[&[0], interface.filter.as_bytes()].concat());
    end_options(&mut description);

    let mut blocks = block(SECTION_HEADER, &section);
    blocks.extend(block(INTERFACE_DESCRIPTION, &description));
    blocks
}

/// A packet at `time_ns` since 1970, of which `bytes` are kept.
pub(super) fn packet(time_ns: u64, bytes_on_wire: u32, bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(20 + bytes.len() + 3);
    body.extend(0_u32.to_le_bytes());
    body.extend(((time_ns >> 32) as u32).to_le_bytes());
    body.extend((time_ns as u32).to_le_bytes());
    body.extend((bytes.len() as u32).to_le_bytes());
    body.extend(bytes_on_wire.to_le_bytes());
    body.extend_from_slice(bytes);
    pad(&mut body);
    block(ENHANCED_PACKET, &body)
}

/// The block after the last packet: what was dropped.
pub(super) fn end(packets: u64, drops: Drops) -> Vec<u8> {
    let mut body = Vec::new();
    // Interface 0; the time of the statistics is not told.
    body.extend([0; 12]);
    option(&mut body, RECEIVED, &packets.to_le_bytes());
    option(&mut body, DROPPED_BY_INTERFACE, &u64::from(drops.by_interface).to_le_bytes());
    option(&mut body, DROPPED_BY_KERNEL, &u64::from(drops.by_kernel).to_le_bytes());
    end_options(&mut body);
    block(INTERFACE_STATISTICS, &body)
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (12 + body.len() as u32).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &length].concat()
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    // Names and filters of this program are far shorter than 64 KiB.
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend_from_slice(value);
    pad(body);
}

fn end_options(body: &mut Vec<u8>) {
    body.extend([0; 4]);
}

/// Everything begins at a multiple of four bytes.
fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::frames::for_each_frame;
    use pcap_parser::pcapng::Block;
    use pcap_parser::{create_reader, PcapBlockOwned, PcapError};
    use proptest::prelude::*;

    const INTERFACE: Interface<'_> =
        Interface { name: "eth0", filter: "udp and port 7", link_type: 1, snap_bytes: 256 };

    #[test]
    fn drops_are_in_the_file() {
        let drops = Drops { by_kernel: 3, by_interface: 2 };
        let file = [begin(&INTERFACE), packet(5, 9, b"abc"), end(1, drops)].concat();
        let mut reader = create_reader(1 << 16, &file[..]).unwrap();
        let mut told = Vec::new();
        loop {
            match reader.next() {
                Ok((length, block)) => {
                    if let PcapBlockOwned::NG(Block::InterfaceStatistics(statistics)) = block {
                        for option in &statistics.options {
                            told.push((option.code.0, option.value().first().copied()));
                        }
                    }
                    reader.consume(length);
                }
                Err(PcapError::Eof) => break,
                Err(PcapError::Incomplete(_)) => reader.refill().unwrap(),
                Err(error) => panic!("{error}"),
            }
        }
        let wanted = [(RECEIVED, Some(1)), (DROPPED_BY_INTERFACE, Some(2)), (DROPPED_BY_KERNEL, Some(3))];
        assert!(wanted.iter().all(|option| told.contains(option)), "{told:?}");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            packets in proptest::collection::vec(
                (0_u64..1 << 62, proptest::collection::vec(any::<u8>(), 0..100)),
                0..20,
            ),
        ) {
            let mut file = begin(&INTERFACE);
            for (time_ns, bytes) in &packets {
                file.extend(packet(*time_ns, bytes.len() as u32 + 7, bytes));
            }
            file.extend(end(packets.len() as u64, Drops::default()));
            let mut read = Vec::new();
            for_each_frame(&file[..], |frame| {
                read.push((frame.time_ns.unwrap() as u64, frame.bytes.to_vec()));
                frame.link_type == 1
            })
            .unwrap();
            prop_assert_eq!(read, packets);
        }
    }
}
