// SPDX-License-Identifier: Apache-2.0
//! Packets that a capture on "any" holds more than once: on each interface that they passed, and on the loopback as sent and
//! as received. Pure.
//!
//! A packet looks the same from each interface (its checksum apart, which a device may fill in), but a sender may well send
//! the same twice. So looks are counted by interface and direction, and a packet is new where that count exceeds those of all
//! others: what an interface sees twice was there twice.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};

use netjoule_measure::capture::frames::Frame;
use netjoule_measure::capture::network::{self, Transported};

/// Looks at one packet lie within this time, ns: a path through a host takes well under a second.
const WITHIN_NS: i128 = 1_000_000_000;

/// Looks at the packets of the last second.
#[derive(Debug, Default)]
pub(super) struct Views {
    /// By packet: how often each view has seen it, and when it was seen last.
    looks: HashMap<u64, (Vec<(u64, u64)>, i128)>,
    /// In order of time; what was seen again since stands here again, too.
    order: VecDeque<(i128, u64)>,
}

impl Views {
    /// Whether a frame holds a packet that another view of it has told already.
    pub(super) fn has_seen(&mut self, frame: &Frame<'_>, packet: &Transported<'_>) -> bool {
        let (Some(view), Some(time_ns)) = (view_of(frame), frame.time_ns) else { return false };
        self.forget_before(time_ns - WITHIN_NS);
        let name = name_of(packet);
        let (counts, latest_ns) = self.looks.entry(name).or_default();
        *latest_ns = time_ns;
        self.order.push_back((time_ns, name));
        let most = counts.iter().map(|(_, count)| *count).max().unwrap_or(0);
        let place = counts.iter().position(|(known, _)| *known == view).unwrap_or_else(|| {
            counts.push((view, 0));
            counts.len() - 1
        });
        counts[place].1 += 1;
        counts[place].1 <= most
    }

    fn forget_before(&mut self, before_ns: i128) {
        while let Some((time_ns, name)) =
            self.order.front().copied().filter(|(time_ns, _)| *time_ns < before_ns)
        {
            self.order.pop_front();
            if self.looks.get(&name).is_some_and(|(_, latest_ns)| *latest_ns <= time_ns) {
                self.looks.remove(&name);
            }
        }
    }
}

/// Interface and direction as far as a frame of "any" says them; `None`: of another capture.
fn view_of(frame: &Frame<'_>) -> Option<u64> {
    let part = match frame.link_type {
        // Packet type, kind of device and link-layer address.
        113 => frame.bytes.get(..14)?,
        // Interface number, kind of device, packet type and link-layer address.
        276 => frame.bytes.get(4..20)?,
        _ => return None,
    };
    let mut hasher = DefaultHasher::new();
    part.hash(&mut hasher);
    Some(hasher.finish())
}

/// What a packet is known by wherever it is seen.
fn name_of(packet: &Transported<'_>) -> u64 {
    let checksum_at = if [network::UDP, network::DCCP].contains(&packet.protocol) { 6 } else { 16 };
    let (before, rest) = packet.bytes.split_at(checksum_at.min(packet.bytes.len()));
    let mut hasher = DefaultHasher::new();
    (packet.source, packet.destination, packet.protocol, packet.whole_bytes).hash(&mut hasher);
    (before, rest.get(2..)).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use netjoule_measure::capture::network::Fragment;

    /// A look at the packet with this payload through an interface, in or out.
    fn look(views: &mut Views, interface: u8, out: bool, payload: &[u8], time_ns: i128) -> bool {
        let mut bytes = [0; 20];
        (bytes[7], bytes[10]) = (interface, if out { 4 } else { 0 });
        let datagram = [&[0, 1, 0, 2, 0, 9, interface, 7][..], payload].concat();
        let packet = Transported {
            source: "10.0.0.1".parse().unwrap(),
            destination: "10.0.0.2".parse().unwrap(),
            protocol: network::UDP,
            bytes: &datagram,
            whole_bytes: datagram.len(),
            fragment: Fragment::Whole,
        };
        let frame = Frame { number: 1, time_ns: Some(time_ns), link_type: 276, bytes: &bytes };
        views.has_seen(&frame, &packet)
    }

    #[test]
    fn a_packet_that_passes_several_interfaces_counts_once_whatever_its_checksum() {
        let mut views = Views::default();
        assert!(!look(&mut views, 1, false, b"a", 0));
        assert!(look(&mut views, 2, true, b"a", 10) && look(&mut views, 3, false, b"a", 20));
        assert!(!look(&mut views, 1, false, b"b", 30));
    }

    #[test]
    fn what_is_sent_twice_counts_twice() {
        let mut views = Views::default();
        let told: Vec<bool> = [(1, 0), (2, 1), (1, 20), (2, 21), (1, 40), (1, 60), (2, 61), (2, 62)]
            .into_iter()
            .map(|(interface, time_ns)| look(&mut views, interface, false, b"same", time_ns))
            .collect();
        assert_eq!(told, [false, true, false, true, false, false, true, true]);
    }

    #[test]
    fn a_second_later_nothing_is_remembered() {
        let mut views = Views::default();
        assert!(!look(&mut views, 1, false, b"a", 0));
        assert!(!look(&mut views, 2, false, b"a", WITHIN_NS + 1));
        assert_eq!((views.looks.len(), views.order.len()), (1, 1));
    }

    #[test]
    fn other_captures_say_nothing_of_interfaces() {
        let frame = Frame { number: 1, time_ns: Some(0), link_type: 1, bytes: &[0; 60] };
        assert_eq!(view_of(&frame), None);
    }
}
