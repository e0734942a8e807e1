// SPDX-License-Identifier: Apache-2.0
//! The DCCP packet in the contents of an IP packet, and the verdict on its checksum.

use std::borrow::Cow;

use netjoule_dccp::encapsulation::{self, UdpChecksum, UDP_HEADER_BYTES};
use netjoule_dccp::{checksum, Packet};

use netjoule_measure::capture::network::{Fragment, Transported};

/// What carries the DCCP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encapsulation {
    /// IP protocol 33.
    Ip,
    /// UDP (RFC 6773), between these ports.
    Udp {
        /// UDP source port.
        source: u16,
        /// UDP destination port.
        destination: u16,
    },
}

/// What the checksum says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Right.
    Ok,
    /// Wrong: a receiver drops the packet.
    Bad,
    /// Cannot be told.
    Unchecked,
}

/// A verdict and what there is to add to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// A note, or nothing.
    pub note: Cow<'static, str>,
}

/// A DCCP packet's bytes, found but not yet taken apart.
#[derive(Debug, Clone)]
pub struct Seen<'a> {
    /// What carries it.
    pub encapsulation: Encapsulation,
    /// The packet, with zeros for what the capture cut off; or why there is none, as a clause.
    pub contents: Result<(Cow<'a, [u8]>, Judgement), String>,
}

impl Verdict {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Bad => "bad",
            Self::Unchecked => "unchecked",
        }
    }
}

impl Judgement {
    fn new(verdict: Verdict, note: impl Into<Cow<'static, str>>) -> Self {
        Self { verdict, note: note.into() }
    }
}

impl<'a> Seen<'a> {
    /// Look for it. What is returned parses as a packet when it is not an error.
    pub fn new(transported: &Transported<'a>, encapsulation: Encapsulation) -> Self {
        Self { encapsulation, contents: contents(transported, encapsulation) }
    }
}

fn contents<'a>(
    transported: &Transported<'a>,
    encapsulation: Encapsulation,
) -> Result<(Cow<'a, [u8]>, Judgement), String> {
    if transported.fragment == Fragment::Later {
        return Err("a fragment without the header".to_owned());
    }
    let complete = transported.fragment == Fragment::Whole;
    let captured = transported.bytes.len();
    // With zeros in the place of what is missing, lengths and coverage are what they were.
    let bytes = padded(transported.bytes, if complete { transported.whole_bytes } else { captured });
    let (bytes, captured, judgement) = match encapsulation {
        Encapsulation::Ip => {
            let judgement = judge(transported, &bytes, complete);
            (bytes, captured, judgement)
        }
        Encapsulation::Udp { .. } => {
            let judgement = judge_udp(transported, &bytes, complete);
            let length = datagram_bytes(&bytes, complete)?;
            (within(bytes, length), captured.saturating_sub(UDP_HEADER_BYTES), judgement)
        }
    };
    let header_bytes = bytes.get(4).map_or(0, |words| usize::from(*words) * 4);
    if captured < bytes.len() && captured < header_bytes.max(12) {
        return Err("cut off by the capture before its header ends".to_owned());
    }
    if let Err(error) = Packet::parse(&bytes) {
        // A first fragment may hold less than what the checksum covers.
        if complete || !matches!(error, netjoule_dccp::packet::ParseError::Coverage(_)) {
            return Err(error.to_string());
        }
        return Err("a fragment that holds less than the checksum covers".to_owned());
    }
    Ok((bytes, judgement))
}

/// The whole of raw IP's packet, or its covered part, against DCCP's checksum.
fn judge(transported: &Transported<'_>, bytes: &[u8], complete: bool) -> Judgement {
    if !complete {
        return Judgement::new(Verdict::Unchecked, "first fragment");
    }
    let Some(covered) = checksum::covered_bytes(bytes) else {
        return Judgement::new(Verdict::Unchecked, "");
    };
    if covered > transported.bytes.len() {
        return Judgement::new(Verdict::Unchecked, "cut off by the capture");
    }
    let right = checksum::verify(transported.source, transported.destination, bytes);
    let note = if covered < bytes.len() {
        format!("covers {covered} of {} bytes", bytes.len()).into()
    } else {
        Cow::Borrowed("")
    };
    Judgement::new(if right { Verdict::Ok } else { Verdict::Bad }, note)
}

/// UDP's checksum: DCCP's own is to be ignored (RFC 6773 section 3.3).
fn judge_udp(transported: &Transported<'_>, bytes: &[u8], complete: bool) -> Judgement {
    if !complete {
        return Judgement::new(Verdict::Unchecked, "first fragment");
    }
    let Ok(packet) = encapsulation::contents(bytes) else {
        return Judgement::new(Verdict::Unchecked, "");
    };
    let datagram = &bytes[..UDP_HEADER_BYTES + packet.len()];
    let cut = transported.bytes.len() < datagram.len();
    match encapsulation::udp_checksum(transported.source, transported.destination, datagram) {
        UdpChecksum::Zero => Judgement::new(Verdict::Bad, "UDP checksum is zero"),
        _ if cut => Judgement::new(Verdict::Unchecked, "cut off by the capture"),
        UdpChecksum::Valid => Judgement::new(Verdict::Ok, "UDP"),
        UdpChecksum::Unfinished => Judgement::new(Verdict::Unchecked, "UDP, left to the network device"),
        UdpChecksum::Wrong => Judgement::new(Verdict::Bad, "UDP"),
    }
}

/// Length of the DCCP packet in a datagram.
fn datagram_bytes(bytes: &[u8], complete: bool) -> Result<usize, String> {
    match encapsulation::contents(bytes) {
        Ok(packet) => Ok(packet.len()),
        // The rest is in the other fragments.
        Err(encapsulation::DropReason::Length { udp_length, .. })
            if !complete && udp_length > bytes.len() =>
        {
            Ok(bytes.len().saturating_sub(UDP_HEADER_BYTES))
        }
        Err(reason) => Err(reason.to_string()),
    }
}

/// `length` bytes behind the UDP header.
fn within(bytes: Cow<'_, [u8]>, length: usize) -> Cow<'_, [u8]> {
    let range = UDP_HEADER_BYTES..UDP_HEADER_BYTES + length;
    match bytes {
        Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[range]),
        Cow::Owned(bytes) => Cow::Owned(bytes[range].to_vec()),
    }
}

/// `bytes` with zeros up to `length`.
fn padded(bytes: &[u8], length: usize) -> Cow<'_, [u8]> {
    if bytes.len() >= length {
        return Cow::Borrowed(bytes);
    }
    let mut owned = bytes.to_vec();
    owned.resize(length, 0);
    Cow::Owned(owned)
}
