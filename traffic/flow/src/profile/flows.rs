// SPDX-License-Identifier: Apache-2.0
//! Which flows are in a capture, and when did each send how much? Sizes and times; payload is never looked at.
//!
//! A flow is one direction between two ports over UDP, TCP or DCCP (RFC 4340). What counts as a message: the payload of a
//! datagram (of a fragmented one its first fragment tells the length), the payload of a DCCP-Data or DCCP-DataAck
//! packet, and what is new in a TCP segment, so that a retransmission is not sent twice. A sender's capture shows what it
//! left to its network device to segment as one message; `--cut` cuts it again.

use std::collections::HashMap;
use std::fmt;
use std::io::Read;
use std::net::SocketAddr;

use crate::profile::views::Views;
use netjoule_measure::capture::frames::{self, Frame};
use netjoule_measure::capture::network::{self, Fragment, NotIp, Transported};

/// IP protocol number of TCP.
const TCP: u8 = 6;
/// DCCP packet types that carry data (RFC 4340 section 5.1).
const DCCP_DATA: u8 = 2;
const DCCP_DATA_ACK: u8 = 4;
/// TCP's flag of a packet that opens a connection; it takes one sequence number (RFC 9293 section 3.4).
const SYN: u8 = 0x02;

/// Most messages that are kept of one capture.
pub(super) const MOST_MESSAGES: usize = 20_000_000;

/// One direction between two ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Ends {
    pub(super) protocol: u8,
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
}

impl Ends {
    pub(super) fn protocol_name(&self) -> &'static str {
        match self.protocol {
            TCP => "TCP",
            network::UDP => "UDP",
            _ => "DCCP",
        }
    }
}

impl fmt::Display for Ends {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} > {}", self.protocol_name(), self.source, self.destination)
    }
}

/// What one flow sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flow {
    pub(super) ends: Ends,
    /// Time of capture (UTC, ns) and payload bytes of each message, in order.
    pub(super) messages: Vec<(i128, u32)>,
    /// TCP segments with nothing new.
    pub(super) repeated: u64,
    /// TCP: the sequence number that comes next.
    next_sequence: Option<u32>,
    /// TCP: the one that the connection began with.
    first_sequence: Option<u32>,
}

impl Flow {
    pub(super) fn seen(ends: Ends, messages: Vec<(i128, u32)>) -> Self {
        Self { ends, messages, repeated: 0, next_sequence: None, first_sequence: None }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.messages.iter().map(|(_, bytes)| u64::from(*bytes)).sum()
    }
}

/// The flows of a capture.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// The one with the most bytes first; of equal ones the one seen first.
    pub(super) flows: Vec<Flow>,
    /// Frames read.
    pub(super) frames: u64,
    /// What is wrong with the file, as a clause; what came before it is in `flows`.
    pub(super) damage: Option<String>,
    /// Frames of packets that another frame holds, too.
    pub(super) seen_twice: u64,
    /// A kind of frames in which packets cannot be found.
    pub(super) unknown_link: Option<NotIp>,
}

impl Flows {
    /// Read a capture.
    pub(super) fn read(file: impl Read + Send) -> Self {
        let mut flows = Self::default();
        let (mut places, mut views) = (HashMap::new(), Views::default());
        let mut messages = 0;
        let mut damage = None;
        let read = frames::for_each_frame(file, |frame| {
            flows.frames = frame.number;
            let taken = flows.take(frame, &mut places, &mut views);
            messages += usize::from(taken == Ok(true));
            damage = match taken {
                Err(what) => Some(what.to_owned()),
                Ok(_) if messages > MOST_MESSAGES => Some(format!("has more than {MOST_MESSAGES} messages")),
                Ok(_) => None,
            };
            damage.is_none()
        });
        flows.damage = damage.or_else(|| read.err().map(|error| error.to_string()));
        flows.flows.retain(|flow| !flow.messages.is_empty());
        flows.flows.sort_by_key(|flow| std::cmp::Reverse(flow.bytes()));
        flows
    }

    /// Book a frame; whether it held a message.
    fn take(
        &mut self,
        frame: &Frame<'_>,
        places: &mut HashMap<Ends, usize>,
        views: &mut Views,
    ) -> Result<bool, &'static str> {
        let found = network::find(frame);
        if let Err(unknown @ NotIp::LinkType(_)) = found {
            self.unknown_link.get_or_insert(unknown);
        }
        let Some((ends, packet)) = found.ok().and_then(|packet| Some((ends(&packet)?, packet))) else {
            return Ok(false);
        };
        let Some(time_ns) = frame.time_ns else { return Err("does not say when its frames were captured") };
        if views.has_seen(frame, &packet) {
            self.seen_twice += 1;
            return Ok(false);
        }
        let place = *places.entry(ends).or_insert_with(|| {
            self.flows.push(Flow::seen(ends, Vec::new()));
            self.flows.len() - 1
        });
        let flow = &mut self.flows[place];
        let bytes = flow.payload_bytes(&packet);
        if bytes > 0 {
            // Frames of several interfaces can be a little out of order.
            let time_ns = flow.messages.last().map_or(time_ns, |(last_ns, _)| time_ns.max(*last_ns));
            flow.messages.push((time_ns, bytes));
        }
        Ok(bytes > 0)
    }
}

impl Flow {
    /// Payload bytes of a packet that were not seen before.
    fn payload_bytes(&mut self, packet: &Transported<'_>) -> u32 {
        let bytes = packet.bytes;
        let whole = u32::try_from(packet.whole_bytes).unwrap_or(u32::MAX);
        let word = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        match packet.protocol {
            network::UDP => udp_payload_bytes(bytes, whole),
            network::DCCP => dccp_payload_bytes(bytes, whole),
            _ => match (word(4), bytes.get(12), bytes.get(13)) {
                (Some(sequence), Some(offset), Some(flags)) => {
                    let payload = whole.saturating_sub(u32::from(offset >> 4) * 4);
                    if flags & SYN == 0 {
                        return self.new_bytes(sequence, payload);
                    }
                    self.begin(sequence);
                    self.new_bytes(sequence.wrapping_add(1), payload)
                }
                _ => 0,
            },
        }
    }

    /// A connection opens with this sequence number: another one than the last on these ports, unless it is the same SYN sent
    /// again (RFC 9293 section 3.4.1).
    fn begin(&mut self, sequence: u32) {
        if self.first_sequence != Some(sequence) {
            self.first_sequence = Some(sequence);
            self.next_sequence = None;
        }
    }

    /// How much of a segment is new. Sequence numbers are compared as RFC 9293 section 3.4 does, modulo 2^32.
    fn new_bytes(&mut self, sequence: u32, payload: u32) -> u32 {
        let end = sequence.wrapping_add(payload);
        let ahead = end.wrapping_sub(self.next_sequence.unwrap_or(sequence)) as i32;
        if self.next_sequence.is_none() || ahead > 0 {
            self.next_sequence = Some(end);
        }
        let new = payload.min(ahead.max(0) as u32);
        self.repeated += u64::from(payload > 0 && new == 0);
        new
    }
}

/// The ports stand in the same place in all three protocols.
fn ends(packet: &Transported<'_>) -> Option<Ends> {
    let known = [network::UDP, network::DCCP, TCP].contains(&packet.protocol);
    let ports = packet.bytes.get(..4).filter(|_| known && packet.fragment != Fragment::Later)?;
    let port = |at: usize| u16::from_be_bytes([ports[at], ports[at + 1]]);
    Some(Ends {
        protocol: packet.protocol,
        source: SocketAddr::new(packet.source, port(0)),
        destination: SocketAddr::new(packet.destination, port(2)),
    })
}

/// By UDP's own length, which is that of the whole datagram also in a first fragment (RFC 768); 0 in a jumbogram.
fn udp_payload_bytes(bytes: &[u8], whole: u32) -> u32 {
    let stated = bytes.get(4..6).map_or(0, |field| u32::from(u16::from_be_bytes([field[0], field[1]])));
    (if stated == 0 { whole } else { stated }).saturating_sub(8)
}

/// What follows the header, whose length is in its fifth byte, of packets that carry data (RFC 4340 section 5.1).
fn dccp_payload_bytes(bytes: &[u8], whole: u32) -> u32 {
    match (bytes.get(4), bytes.get(8).map(|byte| byte >> 1 & 0xf)) {
        (Some(offset), Some(DCCP_DATA | DCCP_DATA_ACK)) => whole.saturating_sub(u32::from(*offset) * 4),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> Flow {
        let address = "127.0.0.1:1".parse().unwrap();
        Flow::seen(Ends { protocol: TCP, source: address, destination: address }, Vec::new())
    }

    #[test]
    fn a_segment_counts_once_also_where_numbers_wrap() {
        let mut flow = flow();
        let near_the_end = u32::MAX - 99;
        assert_eq!(flow.new_bytes(near_the_end, 0), 0);
        assert_eq!(flow.new_bytes(near_the_end, 100), 100);
        assert_eq!(flow.new_bytes(0, 50), 50);
        // Sent again, whole and in part; then with something new behind it.
        assert_eq!(flow.new_bytes(near_the_end, 100), 0);
        assert_eq!(flow.new_bytes(0, 50), 0);
        assert_eq!(flow.new_bytes(0, 80), 30);
        // A gap is the capture's loss, not the flow's.
        assert_eq!(flow.new_bytes(1_000, 10), 10);
        assert_eq!(flow.repeated, 2);
    }

    #[test]
    fn a_connection_on_the_ports_of_another_begins_anew() {
        let mut flow = flow();
        let mut sent = |sequence: u32, flags: u8, payload: usize| {
            let mut bytes = vec![0; 20 + payload];
            bytes[4..8].copy_from_slice(&sequence.to_be_bytes());
            (bytes[12], bytes[13]) = (5 << 4, flags);
            let address = "127.0.0.1".parse().unwrap();
            flow.payload_bytes(&Transported {
                source: address,
                destination: address,
                protocol: TCP,
                whole_bytes: bytes.len(),
                bytes: &bytes,
                fragment: Fragment::Whole,
            })
        };
        assert_eq!((sent(4_000_000_000, SYN, 0), sent(4_000_000_001, 0, 100)), (0, 100));
        // A SYN that comes late again begins nothing.
        assert_eq!((sent(4_000_000_000, SYN, 0), sent(4_000_000_001, 0, 100)), (0, 0));
        // The next connection's numbers lie behind those of the first.
        assert_eq!((sent(3_000_000_000, SYN, 0), sent(3_000_000_001, 0, 70)), (0, 70));
        assert_eq!(sent(3_000_000_001, 0, 70), 0, "sent again");
        assert_eq!(flow.repeated, 2);
    }

    #[test]
    fn lengths_are_those_of_the_headers() {
        assert_eq!(udp_payload_bytes(&[0, 1, 0, 2, 5, 0, 0, 0], 1_000), 0x500 - 8);
        assert_eq!(udp_payload_bytes(&[0, 1, 0, 2, 0, 0, 0, 0], 70_000), 69_992);
        assert_eq!(udp_payload_bytes(&[0, 1, 0, 2], 20), 12);
        let dccp = |kind: u8| [0, 1, 0, 2, 4, 0, 0, 0, kind << 1 | 1];
        assert_eq!([0, 2, 3, 4].map(|kind| dccp_payload_bytes(&dccp(kind), 116)), [0, 100, 0, 100]);
    }
}
