// SPDX-License-Identifier: Apache-2.0
//! One line for people.

use std::fmt::{self, Display, Formatter};

use super::{ack_state_name, drop_name, option_name, ten_us};
use crate::feature::table::{self, Feature};
use crate::options::loss_intervals::LossIntervals;
use crate::options::{ack_vector, data_dropped, DccpOption};
use crate::packet::{Packet, PacketType};

/// Most bytes of a malformed or unknown option, of a cookie and of a text that are shown.
const SHOWN_BYTES: usize = 32;
const SHOWN_TEXT_BYTES: usize = 200;

/// A packet as one line: type, ports, numbers, what the type adds, options, data. No control characters, whatever the
/// packet holds.
#[derive(Debug, Clone, Copy)]
pub struct Summary<'p, 'a>(pub &'p Packet<'a>);

/// Bytes that are meant as UTF-8 text, safe to print: quoted, control characters escaped, at most 200 bytes.
#[derive(Debug, Clone, Copy)]
pub struct Printable<'a>(pub &'a [u8]);

/// Bytes as hexadecimal digits, at most 32.
struct Hex<'a>(&'a [u8]);

impl Display for Summary<'_, '_> {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let packet = self.0;
        let (from, towards) = (packet.source_port, packet.destination_port);
        write!(to, "{} {from} > {towards} seq {}", packet.kind.name(), packet.seq.digits())?;
        if let Some(ack) = packet.ack {
            write!(to, " ack {}", ack.digits())?;
        }
        if packet.ccval != 0 {
            write!(to, " ccval {}", packet.ccval)?;
        }
        if packet.checksum_coverage != 0 {
            write!(to, " cscov {}", packet.checksum_coverage)?;
        }
        if let Some(code) = packet.service_code {
            write!(to, " service 0x{code:08x}")?;
            let letters = code.to_be_bytes();
            if letters.iter().all(|letter| (0x20..0x7f).contains(letter)) {
                write!(to, " {}", Printable(&letters))?;
            }
        }
        if let Some((code, data)) = packet.reset {
            write!(to, " reset code {}", code.name())?;
            if code.number() > 12 {
                write!(to, " {}", code.number())?;
            }
            if data != [0; 3] {
                write!(to, " data {} {} {}", data[0], data[1], data[2])?;
            }
        }
        options(packet, to)?;
        payload(packet, to)
    }
}

fn payload(packet: &Packet<'_>, to: &mut Formatter<'_>) -> fmt::Result {
    match (packet.kind, packet.payload.len()) {
        (PacketType::Reset, 1..) => write!(to, " {}", Printable(packet.payload)),
        (PacketType::Data | PacketType::DataAck, bytes) => write!(to, " {bytes} bytes"),
        (_, 0) => Ok(()),
        (kind, bytes) if kind.carries_data() => write!(to, " {bytes} bytes"),
        (_, bytes) => write!(to, " {bytes} bytes ignored"),
    }
}

/// Options in square brackets; a run of Padding counts as one.
fn options(packet: &Packet<'_>, to: &mut Formatter<'_>) -> fmt::Result {
    if packet.option_bytes.is_empty() {
        return Ok(());
    }
    let mut iter = packet.options().peekable();
    let mut separator = " [";
    while let Some(option) = iter.next() {
        write!(to, "{separator}{}", option_name(&option))?;
        separator = "; ";
        if option == DccpOption::Padding {
            let more = std::iter::from_fn(|| iter.next_if_eq(&DccpOption::Padding)).count();
            write!(to, " {}", more + 1)?;
        } else {
            option_words(&option, to)?;
        }
    }
    let mut all = packet.options();
    all.by_ref().for_each(drop);
    if !all.rest().is_empty() {
        write!(to, "{separator}malformed {}", Hex(all.rest()))?;
    }
    to.write_str("]")
}

/// What follows an option's name.
fn option_words(option: &DccpOption<'_>, to: &mut Formatter<'_>) -> fmt::Result {
    match *option {
        DccpOption::Padding | DccpOption::Mandatory | DccpOption::SlowReceiver => Ok(()),
        DccpOption::ChangeL { feature, value } | DccpOption::ChangeR { feature, value } => {
            feature_words(feature, value, false, to)
        }
        DccpOption::ConfirmL { feature, value } | DccpOption::ConfirmR { feature, value } => {
            feature_words(feature, value, true, to)
        }
        DccpOption::InitCookie(cookie) => write!(to, " {}", Hex(cookie)),
        DccpOption::NdpCount(number) => write!(to, " {number}"),
        DccpOption::AckVector { nonce, vector } => ack_vector_words(nonce, vector, to),
        DccpOption::DataDropped(vector) => {
            let blocks = data_dropped::blocks(vector).map(|block| (drop_name(block.dropped), block.packets));
            runs(blocks, to)
        }
        DccpOption::Timestamp(number) => write!(to, " {number}"),
        DccpOption::TimestampEcho { echo, elapsed } => write!(to, " {echo} elapsed {} us", ten_us(elapsed)),
        DccpOption::ElapsedTime(u32::MAX) => to.write_str(" over 11.9 h"),
        DccpOption::ElapsedTime(elapsed) => write!(to, " {} us", ten_us(elapsed)),
        DccpOption::DataChecksum(crc) => write!(to, " 0x{crc:08x}"),
        DccpOption::RttEstimate(0) => to.write_str(" none"),
        DccpOption::RttEstimate(0xff_ffff) => to.write_str(" over 16.7 s"),
        DccpOption::RttEstimate(rtt_us) => write!(to, " {rtt_us} us"),
        DccpOption::LossEventRate(u32::MAX) => to.write_str(" no loss"),
        DccpOption::LossEventRate(inverse) => write!(to, " 1/{inverse}"),
        DccpOption::LossIntervals(contents) => loss_interval_words(contents, to),
        DccpOption::ReceiveRate(rate) => write!(to, " {rate} B/s"),
        DccpOption::Unknown { kind, contents: [] } => write!(to, " {kind}"),
        DccpOption::Unknown { kind, contents } => write!(to, " {kind} {}", Hex(contents)),
    }
}

/// Feature and values; of a Confirm's values the first is the agreed one, the others stand in parentheses.
fn feature_words(feature: u8, value: &[u8], confirm: bool, to: &mut Formatter<'_>) -> fmt::Result {
    match Feature::from_number(feature) {
        Some(known) => write!(to, " {}", known.name())?,
        None => write!(to, " feature {feature}")?,
    }
    let Some(values) = table::values(feature, value) else {
        return write!(to, " {}", Hex(value));
    };
    let last = values.len().saturating_sub(1);
    if value.is_empty() {
        return to.write_str(" empty");
    }
    for (index, number) in values.enumerate() {
        let open = if confirm && index == 1 { "(" } else { "" };
        let close = if confirm && index == last && index > 0 { ")" } else { "" };
        write!(to, " {open}{number}{close}")?;
    }
    Ok(())
}

/// Neighbouring cells of one state count as one run.
fn ack_vector_words(nonce: bool, vector: &[u8], to: &mut Formatter<'_>) -> fmt::Result {
    if nonce {
        to.write_str(" nonce 1")?;
    }
    runs(ack_vector::cells(vector).map(|cell| (ack_state_name(cell.state), cell.packets)), to)
}

fn runs(cells: impl Iterator<Item = (&'static str, u8)>, to: &mut Formatter<'_>) -> fmt::Result {
    let mut cells = cells.peekable();
    let mut separator = "";
    while let Some((name, packets)) = cells.next() {
        let mut total = u32::from(packets);
        while let Some((_, more)) = cells.next_if(|(next, _)| *next == name) {
            total += u32::from(more);
        }
        write!(to, "{separator} {name} {total}")?;
        separator = ",";
    }
    Ok(())
}

fn loss_interval_words(contents: &[u8], to: &mut Formatter<'_>) -> fmt::Result {
    let Some(intervals) = LossIntervals::parse(contents) else {
        return write!(to, " {}", Hex(contents));
    };
    write!(to, " skip {}", intervals.skip)?;
    for interval in intervals.iter() {
        write!(
            to,
            ", lossless {} loss {} data {} nonce {}",
            interval.lossless_length,
            interval.loss_length,
            interval.data_length,
            u8::from(interval.nonce_echo)
        )?;
    }
    Ok(())
}

impl Display for Printable<'_> {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(SHOWN_TEXT_BYTES)];
        let text = String::from_utf8_lossy(shown);
        let dots = if shown.len() < self.0.len() { "..." } else { "" };
        write!(to, "\"{}{dots}\"", text.escape_debug())
    }
}

impl Display for Hex<'_> {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(SHOWN_BYTES)];
        to.write_str("0x")?;
        for byte in shown {
            write!(to, "{byte:02x}")?;
        }
        to.write_str(if shown.len() < self.0.len() { "..." } else { "" })
    }
}
