// SPDX-License-Identifier: Apache-2.0
//! Init Cookies (RFC 4340 section 8.1.4): what a server agreed to, sealed, instead of kept.
//!
//! A cookie is 14 bytes of plain contents and 16 bytes of SipHash-2-4 over them, the addresses, ports, service code and the
//! Response's number. With its option header it fits the 60 bytes that a Request of 20 bytes allows.

use std::hash::Hasher;
use std::net::{IpAddr, SocketAddr};

use siphasher::sip128::{Hasher128, SipHasher24};

use crate::connection::Connection;
use crate::feature::{Feature, Location};
use crate::seqno::Seq48;

/// Cookies older than this are refused (one MSL).
const LIFETIME_UNITS: u32 = 12_000_000;
/// Units of time in a cookie: 10 microseconds, like Timestamp options.
const TIME_UNIT_NS: i64 = 10_000;
const CONTENT_BYTES: usize = 14;
const COOKIE_BYTES: usize = CONTENT_BYTES + 16;

/// Boolean features that a client's Request may have changed, one bit each.
const FLAGS: [(Feature, Location); 9] = [
    (Feature::AllowShortSeqnos, Location::Remote),
    (Feature::EcnIncapable, Location::Remote),
    (Feature::SendAckVector, Location::Local),
    (Feature::SendAckVector, Location::Remote),
    (Feature::SendNdpCount, Location::Local),
    (Feature::SendNdpCount, Location::Remote),
    (Feature::SendLossEventRate, Location::Local),
    (Feature::SendRttEstimate, Location::Remote),
    (Feature::CheckDataChecksum, Location::Local),
];
/// Bits 12 and up: CCIDs less 2, two bits each.
const CCID_SHIFT: u32 = 12;

/// Whose cookie it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) peer: SocketAddr,
    pub(super) remote_port: u16,
    pub(super) local_port: u16,
    pub(super) service_code: u32,
}

impl Place {
    fn hash(&self, hasher: &mut SipHasher24) {
        match self.peer.ip() {
            IpAddr::V4(ip) => hasher.write(&ip.to_ipv6_mapped().octets()),
            IpAddr::V6(ip) => hasher.write(&ip.octets()),
        }
        hasher.write(&self.peer.port().to_be_bytes());
        hasher.write(&self.remote_port.to_be_bytes());
        hasher.write(&self.local_port.to_be_bytes());
        hasher.write(&self.service_code.to_be_bytes());
    }
}

/// Key of a listener's cookies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Secret([u8; 16]);

impl Secret {
    pub(super) const fn new(key: [u8; 16]) -> Self {
        Self(key)
    }

    /// Sum over what is sealed, told apart from other uses of the key by `purpose`.
    fn sum(&self, purpose: u8, place: &Place, number: Seq48, contents: &[u8]) -> u128 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(&[purpose]);
        place.hash(&mut hasher);
        hasher.write(&number.value().to_be_bytes());
        hasher.write(contents);
        hasher.finish128().as_u128()
    }

    /// Distance from a Request's number to its Response's: unpredictable from outside, and the Responses to several Requests
    /// of one client follow each other as the Requests do.
    fn offset(&self, place: &Place) -> u64 {
        self.sum(1, place, Seq48::new(0), &[]) as u64
    }

    /// Number of the Response to the Request with number `isr`.
    pub(super) fn response_number(&self, place: &Place, isr: Seq48) -> Seq48 {
        isr.add(self.offset(place))
    }

    /// Number of the Request that the Response with number `iss` answered.
    pub(super) fn request_number(&self, place: &Place, iss: Seq48) -> Seq48 {
        iss.sub(self.offset(place))
    }

    /// Contents of the option.
    pub(super) fn seal(&self, cookie: &Cookie, place: &Place, iss: Seq48) -> Vec<u8> {
        let mut sealed = cookie.contents().to_vec();
        let sum = self.sum(2, place, iss, &sealed);
        sealed.extend_from_slice(&sum.to_be_bytes());
        sealed
    }

    /// A cookie that came back, if it is ours, unchanged, and belongs here.
    pub(super) fn open(&self, sealed: &[u8], place: &Place, iss: Seq48) -> Option<Cookie> {
        if sealed.len() != COOKIE_BYTES {
            return None;
        }
        let (contents, seal) = sealed.split_at(CONTENT_BYTES);
        let sum = self.sum(2, place, iss, contents).to_be_bytes();
        // No early end: time must not tell how much of a guess was right.
        let difference = sum.iter().zip(seal).fold(0, |all, (ours, theirs)| all | (ours ^ theirs));
        if difference != 0 {
            return None;
        }
        Some(Cookie::from_contents(contents.try_into().ok()?))
    }
}

/// What was agreed with a client that no state is kept for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cookie {
    made: u32,
    flags: u16,
    window: u64,
    ack_ratio: u16,
}

fn units(now_ns: i64) -> u32 {
    (now_ns / TIME_UNIT_NS) as u32
}

impl Cookie {
    /// What `connection`, in RESPOND, agreed to.
    pub(super) fn of(connection: &Connection, now_ns: i64) -> Self {
        let value = |feature, location| connection.features().value(feature, location);
        let mut flags = 0;
        for (bit, (feature, location)) in FLAGS.into_iter().enumerate() {
            flags |= u16::from(value(feature, location) == 1) << bit;
        }
        let ccid = |location| (value(Feature::Ccid, location).saturating_sub(2) & 3) as u16;
        flags |= ccid(Location::Local) << CCID_SHIFT;
        flags |= ccid(Location::Remote) << (CCID_SHIFT + 2);
        Self {
            made: units(now_ns),
            flags,
            window: value(Feature::SequenceWindow, Location::Remote),
            ack_ratio: value(Feature::AckRatio, Location::Remote) as u16,
        }
    }

    fn contents(&self) -> [u8; CONTENT_BYTES] {
        let mut contents = [0; CONTENT_BYTES];
        contents[..4].copy_from_slice(&self.made.to_be_bytes());
        contents[4..6].copy_from_slice(&self.flags.to_be_bytes());
        contents[6..12].copy_from_slice(&self.window.to_be_bytes()[2..]);
        contents[12..].copy_from_slice(&self.ack_ratio.to_be_bytes());
        contents
    }

    fn from_contents(contents: [u8; CONTENT_BYTES]) -> Self {
        let number = |range: std::ops::Range<usize>| {
            contents[range].iter().fold(0, |sum, &byte| (sum << 8) | u64::from(byte))
        };
        Self {
            made: number(0..4) as u32,
            flags: number(4..6) as u16,
            window: number(6..12),
            ack_ratio: number(12..14) as u16,
        }
    }

    /// Not expired.
    pub(super) fn is_fresh(&self, now_ns: i64) -> bool {
        units(now_ns).wrapping_sub(self.made) <= LIFETIME_UNITS
    }

    /// Bring `connection`, fresh in RESPOND, to where it was when the cookie was made.
    pub(super) fn restore(&self, connection: &mut Connection, now_ns: i64) {
        let features = connection.features_mut();
        for (bit, (feature, location)) in FLAGS.into_iter().enumerate() {
            features.restore(feature, location, u64::from(self.flags >> bit & 1));
        }
        for (location, shift) in [(Location::Local, 0), (Location::Remote, 2)] {
            let ccid = u64::from(self.flags >> (CCID_SHIFT + shift) & 3) + 2;
            features.restore(Feature::Ccid, location, ccid);
        }
        features.restore(Feature::SequenceWindow, Location::Remote, self.window);
        features.restore(Feature::AckRatio, Location::Remote, u64::from(self.ack_ratio));
        let age_ns = i64::from(units(now_ns).wrapping_sub(self.made)) * TIME_UNIT_NS;
        connection.assume_response_sent(now_ns - age_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place = Place {
        peer: SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 4000),
        remote_port: 5,
        local_port: 6,
        service_code: 7,
    };
    const COOKIE: Cookie =
        Cookie { made: 0xffff_ff00, flags: 0x5123, window: 0x3fff_ffff_ffff, ack_ratio: 0x1234 };

    #[test]
    fn opens_only_unchanged_at_its_place() {
        let secret = Secret::new([7; 16]);
        let iss = Seq48::new(99);
        let sealed = secret.seal(&COOKIE, &PLACE, iss);
        assert_eq!(secret.open(&sealed, &PLACE, iss), Some(COOKIE));
        for byte in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[byte] ^= 1;
            assert_eq!(secret.open(&changed, &PLACE, iss), None);
        }
        let elsewhere = Place { remote_port: 8, ..PLACE };
        assert_eq!(secret.open(&sealed, &elsewhere, iss), None);
        assert_eq!(secret.open(&sealed, &PLACE, iss.add(1)), None);
        assert_eq!(Secret::new([8; 16]).open(&sealed, &PLACE, iss), None);
        assert_eq!(secret.open(&sealed[..20], &PLACE, iss), None);
    }

    #[test]
    fn expires_after_its_lifetime_also_across_the_wrap() {
        let made_ns = i64::from(COOKIE.made) * TIME_UNIT_NS;
        assert!(COOKIE.is_fresh(made_ns));
        assert!(COOKIE.is_fresh(made_ns + 119_000_000_000));
        assert!(!COOKIE.is_fresh(made_ns + 121_000_000_000));
        assert!(!COOKIE.is_fresh(made_ns - 1_000_000));
    }

    #[test]
    fn response_numbers_follow_request_numbers() {
        let secret = Secret::new([7; 16]);
        let first = secret.response_number(&PLACE, Seq48::new(10));
        assert_eq!(secret.response_number(&PLACE, Seq48::new(11)), first.add(1));
        assert_eq!(secret.request_number(&PLACE, first), Seq48::new(10));
    }
}
