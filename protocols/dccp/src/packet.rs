// SPDX-License-Identifier: Apache-2.0
//! The generic header (RFC 4340 section 5, RFC 5596 section 2.2.1): parse and emit.

use crate::options::OptionIter;
use crate::reset::ResetCode;
use crate::seqno::Seq48;

pub use crate::packet_type::PacketType;

/// Longest header, options included: Data Offset is eight bits of 32-bit words.
pub const MAX_HEADER_BYTES: usize = 255 * 4;

/// Longest fixed header (Response and Reset), without options.
const MAX_FIXED_BYTES: usize = 28;

/// What is wrong with bytes that are no DCCP packet. The text is a clause for a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Shorter than the shortest header.
    #[error("{0} bytes are shorter than the 12-byte generic header")]
    TooShort(usize),
    /// Packet type 11 to 15.
    #[error("packet type {0} is reserved")]
    ReservedType(u8),
    /// Data Offset below the type's header, or past the end.
    #[error("Data Offset of {data_offset_bytes} bytes does not fit a header of {header_bytes} and a packet of {packet_bytes}")]
    DataOffset {
        /// Data Offset in bytes.
        data_offset_bytes: usize,
        /// Fixed header of this type and form.
        header_bytes: usize,
        /// Whole packet.
        packet_bytes: usize,
    },
    /// Short sequence numbers on a type that must not have them.
    #[error("short sequence numbers (X=0) on a {0:?} packet")]
    ShortForm(PacketType),
    /// Checksum Coverage reaches past the packet.
    #[error("Checksum Coverage {0} reaches past the end of the packet")]
    Coverage(u8),
}

/// Sequence or acknowledgement number as it stands on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireSeq {
    /// X=1.
    Long(Seq48),
    /// X=0: the low 24 bits.
    Short(u32),
}

impl WireSeq {
    /// The 48-bit number: as it stands, or the short one extended next to `reference` (section 7.6).
    pub const fn resolve(self, reference: Seq48) -> Seq48 {
        match self {
            Self::Long(seq) => seq,
            Self::Short(low) => Seq48::extend(low, reference),
        }
    }

    /// The digits on the wire, without extension.
    pub const fn digits(self) -> u64 {
        match self {
            Self::Long(seq) => seq.value(),
            Self::Short(low) => low as u64 & 0xff_ffff,
        }
    }

    const fn is_short(self) -> bool {
        matches!(self, Self::Short(_))
    }
}

/// A parsed packet that borrows its bytes. Making one cannot panic, whatever the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// CCVal: for the sender's CCID (CCID 3: the window counter).
    pub ccval: u8,
    /// CsCov: 0 covers all, n covers (n - 1) * 4 bytes of data.
    pub checksum_coverage: u8,
    /// Checksum field as received; 0 when emitting means "fill in later".
    pub checksum: u16,
    /// Packet type.
    pub kind: PacketType,
    /// Sequence number.
    pub seq: WireSeq,
    /// Acknowledgement number of the types that have one.
    pub ack: Option<WireSeq>,
    /// Service code of Request, Response, Listen.
    pub service_code: Option<u32>,
    /// Code and the three data bytes of Reset.
    pub reset: Option<(ResetCode, [u8; 3])>,
    /// The option area, undivided; [`Self::options`] takes it apart.
    pub option_bytes: &'a [u8],
    /// Application data (of types that carry none: padding to ignore; of Reset: UTF-8 text).
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Take a packet (without IP or UDP header) apart. Does not look at the checksum: see [`crate::checksum`].
    #[inline(always)]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        if bytes.len() < 12 {
            return Err(ParseError::TooShort(bytes.len()));
        }
        //= rfc4340#5.1
        //# Receivers MUST ignore any packets with reserved type.
        //= rfc4340#3.1
        //# In particular, DCCP processors MUST NOT reset a DCCP connection simply because a Reserved
        //# field has non-zero value [RFC3360].
        //= rfc4340#5.1
        //# Senders MUST set this field to all zeroes on generated packets, and receivers MUST ignore its
        //# value.
        let number = bytes[8] >> 1 & 0xf;
        //= rfc4340#5.1
        //# packets with reserved type MUST NOT be processed, and they MUST NOT be acknowledged as
        //# received.
        let kind = PacketType::from_number(number).ok_or(ParseError::ReservedType(number))?;
        let short = bytes[8] & 1 == 0;
        //= rfc4340#5.1
        //# Reset, DCCP-Sync, and DCCP-SyncAck packets MUST set X to one;
        //# endpoints MUST ignore any such packets with X set to zero.
        if short && !kind.may_be_short() {
            return Err(ParseError::ShortForm(kind));
        }
        //= rfc4340#5.1
        //# The receiver MUST ignore packets whose Data Offset is smaller than the minimum-sized
        //# header for the given Type or larger than the DCCP packet itself.
        let (fixed, offset) = (header_bytes(kind, short), usize::from(bytes[4]) * 4);
        if offset < fixed || offset > bytes.len() {
            return Err(ParseError::DataOffset {
                data_offset_bytes: offset,
                header_bytes: fixed,
                packet_bytes: bytes.len(),
            });
        }
        let (header, payload) = bytes.split_at(offset);
        let checksum_coverage = bytes[5] & 0xf;
        //= rfc4340#9.2
        //# The value (CsCov-1)*4 MUST be less than or equal to the length of the application data.
        //# Packets with invalid CsCov values MUST be ignored; in particular, their options MUST NOT be processed.
        if !coverage_fits(checksum_coverage, payload.len()) {
            return Err(ParseError::Coverage(checksum_coverage));
        }
        let (seq, ack) = numbers(header, kind, short);
        let last_word = read_u32(header, fixed - 4);
        Ok(Self {
            source_port: read_u16(header, 0),
            destination_port: read_u16(header, 2),
            ccval: bytes[5] >> 4,
            checksum_coverage,
            checksum: read_u16(header, 6),
            kind,
            seq,
            ack,
            service_code: kind.has_service_code().then_some(last_word),
            reset: (kind == PacketType::Reset).then(|| {
                let [code, data @ ..] = last_word.to_be_bytes();
                (ResetCode::from_number(code), data)
            }),
            option_bytes: &header[fixed..],
            payload,
        })
    }

    /// The options in order. Ends at the first malformed one (section 5.8).
    pub const fn options(&self) -> OptionIter<'a> {
        OptionIter::new(self.option_bytes)
    }

    /// Append the packet to `out`: header, `option_bytes` padded to a whole word, payload; checksum as in
    /// [`Self::checksum`].
    ///
    /// Refuses (returns false, appends nothing) what would not parse as the same packet: headers over 1020 bytes, a missing or
    /// superfluous number, service code or reset code, mixed or forbidden short forms, a coverage past the end.
    /// `emit(parse(x))` is `x` with its reserved bits cleared, hence stable.
    #[inline]
    pub fn emit(&self, out: &mut Vec<u8>) -> bool {
        let short = self.seq.is_short();
        let fixed = header_bytes(self.kind, short);
        let header = fixed + self.option_bytes.len().next_multiple_of(4);
        if header > MAX_HEADER_BYTES || !self.is_consistent() {
            return false;
        }
        //= rfc4340#3.1
        //# Reserved bitfields in DCCP packet headers MUST be set to zero by senders
        let mut bytes = [0; MAX_FIXED_BYTES];
        put_generic(
            &mut bytes,
            (self.source_port, self.destination_port),
            (header / 4) as u8,
            self.ccval << 4 | self.checksum_coverage & 0xf,
        );
        bytes[6..8].copy_from_slice(&self.checksum.to_be_bytes());
        bytes[8] = self.kind.number() << 1 | u8::from(!short);
        put_seq(&mut bytes, 8, self.seq);
        if let Some(ack) = self.ack {
            put_seq(&mut bytes, if short { 12 } else { 16 }, ack);
        }
        if let Some(code) = self.service_code {
            bytes[fixed - 4..fixed].copy_from_slice(&code.to_be_bytes());
        }
        if let Some((code, data)) = self.reset {
            bytes[fixed - 4..fixed].copy_from_slice(&[code.number(), data[0], data[1], data[2]]);
        }
        out.reserve(header + self.payload.len());
        out.extend_from_slice(&bytes[..fixed]);
        out.extend_from_slice(self.option_bytes);
        //= rfc4340#5.8
        //# all options MUST add up to a multiple of 32 bits; Padding options
        //# MUST be added as necessary to fill out option space to a word boundary.
        //= rfc4340#5.8.1
        //# If the length of a packet's other options is not a multiple of 32 bits, then Padding options
        //# are REQUIRED to pad out the options area to the length implied by Data Offset.
        out.extend_from_slice(&[0; 3][..header - fixed - self.option_bytes.len()]);
        out.extend_from_slice(self.payload);
        true
    }

    /// Fields are there exactly when the type has them, and the forms of the numbers agree.
    fn is_consistent(&self) -> bool {
        let short = self.seq.is_short();
        (!short || self.kind.may_be_short())
            && self.ack.is_some() == self.kind.has_ack()
            && self.ack.is_none_or(|ack| ack.is_short() == short)
            && self.service_code.is_some() == self.kind.has_service_code()
            && self.reset.is_some() == (self.kind == PacketType::Reset)
            && self.ccval < 16
            && self.checksum_coverage < 16
            && coverage_fits(self.checksum_coverage, self.payload.len())
    }
}

/// Length in bytes of the fixed header of this type (section 5.1), without options.
pub const fn header_bytes(kind: PacketType, short: bool) -> usize {
    let generic = if short { 12 } else { 16 };
    let ack = if short { 4 } else { 8 };
    match kind {
        //= rfc5596#2.2.1
        //# Data Offset MUST have a value of five or more (i.e., at least 20 bytes).
        PacketType::Request | PacketType::Listen => generic + 4,
        PacketType::Response | PacketType::Reset => generic + ack + 4,
        PacketType::Data => generic,
        _ => generic + ack,
    }
}

/// Whether CsCov's (n - 1) * 4 bytes lie within the application data.
pub(crate) const fn coverage_fits(checksum_coverage: u8, payload_bytes: usize) -> bool {
    checksum_coverage == 0 || (checksum_coverage as usize - 1) * 4 <= payload_bytes
}

/// Sequence and acknowledgement number. `header` holds at least the fixed header of `kind`.
#[inline(always)]
fn numbers(header: &[u8], kind: PacketType, short: bool) -> (WireSeq, Option<WireSeq>) {
    if short {
        let low = |at| WireSeq::Short(read_u32(header, at) & 0xff_ffff);
        (low(8), kind.has_ack().then(|| low(12)))
    } else {
        let long = |at| {
            WireSeq::Long(Seq48::new(
                u64::from(read_u16(header, at)) << 32 | u64::from(read_u32(header, at + 2)),
            ))
        };
        (long(10), kind.has_ack().then(|| long(18)))
    }
}

/// Ports, Data Offset, CCVal and CsCov.
fn put_generic(bytes: &mut [u8], ports: (u16, u16), data_offset_words: u8, ccval_and_coverage: u8) {
    bytes[..2].copy_from_slice(&ports.0.to_be_bytes());
    bytes[2..4].copy_from_slice(&ports.1.to_be_bytes());
    bytes[4] = data_offset_words;
    bytes[5] = ccval_and_coverage;
}

/// A number into its four or eight bytes that start at `at`; what stands before the digits stays.
fn put_seq(bytes: &mut [u8], at: usize, seq: WireSeq) {
    match seq {
        WireSeq::Long(seq) => bytes[at + 2..at + 8].copy_from_slice(&seq.value().to_be_bytes()[2..]),
        WireSeq::Short(low) => bytes[at + 1..at + 4].copy_from_slice(&low.to_be_bytes()[1..]),
    }
}

fn read_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
