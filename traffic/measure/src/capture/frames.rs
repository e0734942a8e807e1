// SPDX-License-Identifier: Apache-2.0
//! Frames of a capture file: classic pcap (both byte orders, us and ns) and pcapng.

use std::io::Read;

use pcap_parser::pcapng::{Block, InterfaceDescriptionBlock};
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{create_reader, PcapBlockOwned, PcapError, PcapHeader};

/// Bytes of the file held at a time, and the most when a block is larger. Frames of Linux captures have at most 256 KiB.
const BUFFER_BYTES: usize = 1 << 17;
const MAX_BUFFER_BYTES: usize = 1 << 22;
/// Most interfaces of a section.
const MAX_INTERFACES: usize = 4096;

const NS_PER_S: i128 = 1_000_000_000;

/// A frame as captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Counted from 1.
    pub number: u64,
    /// Nanoseconds since 1970 in UTC; `None` when the file does not say.
    pub time_ns: Option<i128>,
    /// What stands in front of the IP header (a LINKTYPE_ value).
    pub link_type: u16,
    /// The bytes that were captured.
    pub bytes: &'a [u8],
}

/// Why reading ended before the end of the file. The text is a clause for a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// Nothing in it.
    #[error("is empty, not a capture file")]
    Empty,
    /// Neither format.
    #[error("is neither a pcap nor a pcapng file")]
    NotACapture,
    /// Ends within a block.
    #[error("is cut off in the block after frame {0}")]
    Truncated(u64),
    /// A block makes no sense.
    #[error("makes no sense after frame {0}")]
    Malformed(u64),
    /// A block is larger than the buffer may grow.
    #[error("has a block of more than 4 MiB after frame {0}")]
    TooLarge(u64),
    /// A section has too many interfaces.
    #[error("describes more than 4096 interfaces after frame {0}")]
    TooManyInterfaces(u64),
    /// The operating system does not give the bytes.
    #[error("cannot be read after frame {0}")]
    Unreadable(u64),
}

/// What a file says about the frames of one of its interfaces.
#[derive(Debug, Clone, Copy)]
struct Interface {
    link_type: u16,
    snap_bytes: usize,
    clock: Clock,
}

/// Unit and offset of an interface's time stamps.
#[derive(Debug, Clone, Copy)]
struct Clock {
    /// pcapng's if_tsresol: a power of ten, or of two when the highest bit is set.
    resolution: u8,
    offset_s: i64,
}

/// Hands every frame to `visit`, in order, until it returns false.
pub fn for_each_frame(
    file: impl Read + Send,
    mut visit: impl FnMut(&Frame<'_>) -> bool,
) -> Result<(), CaptureError> {
    let mut reader = create_reader(BUFFER_BYTES, file).map_err(|error| match error {
        PcapError::Eof => CaptureError::Empty,
        PcapError::ReadError => CaptureError::Unreadable(0),
        _ => CaptureError::NotACapture,
    })?;
    let mut interfaces = Vec::new();
    let mut number = 0;
    loop {
        let consumed = match reader.next() {
            Ok((bytes, block)) => {
                if let Some(frame) = frame(&block, number + 1, &mut interfaces)? {
                    number += 1;
                    if !visit(&frame) {
                        return Ok(());
                    }
                }
                bytes
            }
            Err(PcapError::Eof) => return Ok(()),
            Err(PcapError::Incomplete(_) | PcapError::BufferTooSmall) => 0,
            Err(PcapError::UnexpectedEof) => return Err(CaptureError::Truncated(number)),
            Err(_) => return Err(CaptureError::Malformed(number)),
        };
        if consumed == 0 {
            read_more(reader.as_mut(), number)?;
        }
        reader.consume(consumed);
    }
}

/// Have more bytes of the file in the buffer, or know that there are none.
fn read_more(reader: &mut dyn PcapReaderIterator, number: u64) -> Result<(), CaptureError> {
    let before = reader.data().len();
    reader.refill().map_err(|_| CaptureError::Unreadable(number))?;
    if reader.data().len() > before || reader.reader_exhausted() {
        return Ok(());
    }
    // The buffer is full of one unfinished block.
    let larger = before.saturating_mul(2).min(MAX_BUFFER_BYTES);
    if larger <= before || !reader.grow(larger) {
        return Err(CaptureError::TooLarge(number));
    }
    Ok(())
}

/// The frame in a block, if it holds one; interfaces are kept for later blocks.
fn frame<'a>(
    block: &'a PcapBlockOwned<'a>,
    number: u64,
    interfaces: &mut Vec<Interface>,
) -> Result<Option<Frame<'a>>, CaptureError> {
    let frame = match block {
        PcapBlockOwned::LegacyHeader(header) => {
            *interfaces = vec![Interface::classic(header)];
            None
        }
        PcapBlockOwned::Legacy(block) => interfaces.first().map(|interface| {
            let units = u64::from(block.ts_usec);
            let time_ns = i128::from(block.ts_sec) * NS_PER_S + interface.clock.ns(units);
            interface.frame(number, Some(time_ns), block.data)
        }),
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            interfaces.clear();
            None
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
            if interfaces.len() >= MAX_INTERFACES {
                return Err(CaptureError::TooManyInterfaces(number - 1));
            }
            interfaces.push(Interface::described(description));
            None
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(block)) => {
            // A frame of an interface that was not described cannot be understood.
            let interface =
                interfaces.get(block.if_id as usize).ok_or(CaptureError::Malformed(number - 1))?;
            let units = u64::from(block.ts_high) << 32 | u64::from(block.ts_low);
            let time_ns = i128::from(interface.clock.offset_s) * NS_PER_S + interface.clock.ns(units);
            Some(interface.frame(number, Some(time_ns), block.packet_data()))
        }
        PcapBlockOwned::NG(Block::SimplePacket(block)) => {
            let interface = interfaces.first().ok_or(CaptureError::Malformed(number - 1))?;
            let data = block.packet_data();
            Some(interface.frame(number, None, &data[..data.len().min(interface.snap_bytes)]))
        }
        PcapBlockOwned::NG(_) => None,
    };
    Ok(frame)
}

impl Interface {
    fn classic(header: &PcapHeader) -> Self {
        Self {
            // The upper bits tell of a frame check sequence, which the IP length leaves out anyway.
            link_type: header.network.0 as u16,
            snap_bytes: usize::MAX,
            clock: Clock { resolution: if header.is_nanosecond_precision() { 9 } else { 6 }, offset_s: 0 },
        }
    }

    fn described(description: &InterfaceDescriptionBlock<'_>) -> Self {
        Self {
            link_type: description.linktype.0 as u16,
            snap_bytes: match description.snaplen {
                0 => usize::MAX,
                bytes => bytes as usize,
            },
            clock: Clock { resolution: description.if_tsresol, offset_s: description.if_tsoffset },
        }
    }

    const fn frame<'a>(&self, number: u64, time_ns: Option<i128>, bytes: &'a [u8]) -> Frame<'a> {
        Frame { number, time_ns, link_type: self.link_type, bytes }
    }
}

impl Clock {
    /// Nanoseconds in so many units.
    fn ns(self, units: u64) -> i128 {
        let units = i128::from(units);
        let exponent = u32::from(self.resolution & 0x7f);
        if self.resolution & 0x80 != 0 {
            // At most 2^64 units times 2^30: no overflow.
            (units * NS_PER_S) >> exponent
        } else if exponent <= 9 {
            units * 10_i128.pow(9 - exponent)
        } else {
            10_i128.checked_pow(exponent - 9).map_or(0, |divisor| units / divisor)
        }
    }
}
