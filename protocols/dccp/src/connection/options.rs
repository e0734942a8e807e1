// SPDX-License-Identifier: Apache-2.0
//! Options of a sequence-valid packet (step 8 of RFC 4340 section 8.5).

use super::{Connection, State};
use crate::ccid::{Ccid, Violation};
use crate::checksum::crc32c;
use crate::feature::{Feature, Location, Role, Speech};
use crate::options::DccpOption;
use crate::packet::{Packet, PacketType};
use crate::reset::ResetCode;
use crate::seqno::Seq48;

/// A Timestamp to be echoed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Echo {
    /// Value received.
    pub(super) value: u32,
    /// When.
    pub(super) arrived_ns: i64,
    /// On the packet with this number.
    seq: Seq48,
}

/// A sequence-valid packet being processed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival<'p, 'a> {
    pub(super) packet: &'p Packet<'a>,
    pub(super) arrived_ns: i64,
    pub(super) seq: Seq48,
    pub(super) ack: Option<Seq48>,
}

/// What the options said about the packet itself.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Findings {
    /// Feature negotiation options were there.
    features: bool,
    /// The Data Checksum was wrong.
    pub(super) corrupt: bool,
    /// Ack Vectors were there.
    pub(super) ack_vector: bool,
}

impl Connection {
    //= rfc4340#5.8
    //# Options MUST be processed sequentially, starting with the first option in the packet header.
    //= rfc4340#5.8
    //# Unless otherwise specified, multiple occurrences of the same option MUST be processed independently; for some options,
    //# this will mean in practice that the last valid occurrence of an option takes precedence.
    /// Process the options of a valid packet, except those that are the CCIDs'.
    pub(super) fn process_options(&mut self, arrival: &Arrival<'_, '_>) -> Result<Findings, Violation> {
        let mut findings = Findings::default();
        let packet = arrival.packet;
        if packet.option_bytes.is_empty() {
            return Ok(findings);
        }
        let mut mandatory = false;
        if packet.kind == PacketType::Response {
            //= rfc4340#8.1.4
            //# The Init Cookie options on a client packet MUST equal those received on the DCCP-Request indicated by the client
            //# packet's Acknowledgement Number.
            // A second Response's cookies take the place of the first one's.
            self.cookies.clear();
        }
        for option in packet.options() {
            if !option.allowed_on(packet.kind) {
                //= rfc4340#5.8
                //# when the DCCP-Data? column value is N, the corresponding option MUST be ignored when received on a DCCP-Data
                //# packet.
                //= rfc4340#5.8.2
                //# any Mandatory options received on DCCP-Data packets MUST be ignored.
                //= rfc4340#6
                //# any feature negotiation options received on DCCP-Data packets MUST be ignored.
                //= rfc4340#5.8
                //# If an option occurs on an unexpected packet type, it MUST generally be ignored;
                if mandatory {
                    return Err(violation(ResetCode::MandatoryError, &option));
                }
                continue;
            }
            if option == DccpOption::Mandatory {
                if mandatory {
                    // Section 5.8.2: Mandatory Mandatory is an Option Error.
                    return Err(violation(ResetCode::OptionError, &option));
                }
                mandatory = true;
                continue;
            }
            self.process_option(arrival, &option, mandatory, &mut findings)?;
            //= rfc4340#5.8.2
            //# However, the combination "Mandatory Padding" is valid, and MUST behave like two bytes of
            //# Padding.
            mandatory = false;
        }
        if mandatory {
            return Err(violation(ResetCode::OptionError, &DccpOption::Mandatory));
        }
        if findings.features {
            self.features.end_of_packet(arrival.seq);
        }
        Ok(findings)
    }

    fn process_option(
        &mut self,
        arrival: &Arrival<'_, '_>,
        option: &DccpOption<'_>,
        mandatory: bool,
        findings: &mut Findings,
    ) -> Result<(), Violation> {
        if let Some((speech, feature)) = speech(option) {
            findings.features = true;
            return self.features.on_option(speech, feature, mandatory, arrival.seq, arrival.ack);
        }
        //= rfc4340#15
        //# DCCP processors MUST NOT act punitively towards options and features they do not understand.
        //# For example, DCCP processors MUST NOT reset the connection if some field marked Reserved in
        //# this specification is non-zero; if some unknown option is present; or if some feature
        //# negotiation option mentions an unknown feature. Instead, DCCP processors MUST ignore these
        //# events.
        match *option {
            //= rfc4340#5.8
            //# Options with unknown types MUST be ignored.
            _ if mandatory && !self.understands(option) => {
                //= rfc4340#5.8.2
                //# If the endpoint does not understand or process O, however, then it MUST reset the connection using Reset Code 6,
                //# "Mandatory Failure".
                //= rfc4340#15
                //# The Mandatory option is the single exception: if Mandatory precedes some unknown option or feature, the
                //# connection MUST be reset.
                return Err(violation(ResetCode::MandatoryError, option));
            }
            DccpOption::SlowReceiver => self.counters.slow_receiver_received += 1,
            DccpOption::InitCookie(cookie) => {
                let lost = !self.keep_cookie(arrival.packet.kind, cookie);
                if lost && mandatory && self.role == Role::Client {
                    return Err(violation(ResetCode::MandatoryError, option));
                }
            }
            DccpOption::Timestamp(value) => self.keep_timestamp(value, arrival),
            DccpOption::DataChecksum(expected) => {
                //= rfc4340#9.3.1
                //# DCCP B MUST check any received Data Checksum options when Check Data Checksum/B is one, although it MAY check
                //# them even when Check Data Checksum/B is zero.
                //= rfc4340#9.3
                //# A DCCP endpoint receiving a packet with a Data Checksum option either MUST or MAY
                //# check the Data Checksum; the choice depends on the value of the Check Data Checksum
                //# feature described below.
                findings.corrupt |= crc32c(arrival.packet.payload) != expected;
            }
            DccpOption::AckVector { .. } => findings.ack_vector = true,
            DccpOption::DataDropped(_) if arrival.ack.is_some() => {
                self.counters.data_drops_reported += 1;
            }
            _ => {}
        }
        Ok(())
    }

    /// The option means something here: it is known, and if it is a CCID's, that CCID is in force on its half-connection.
    fn understands(&self, option: &DccpOption<'_>) -> bool {
        let tfrc = |location| self.features.value(Feature::Ccid, location) == u64::from(Ccid::Tfrc.number());
        match option {
            DccpOption::Unknown { .. } => false,
            //= rfc4340#10.3
            //# The server MUST treat such options as non-understood.
            DccpOption::RttEstimate(_) => tfrc(Location::Remote),
            DccpOption::LossEventRate(_) | DccpOption::LossIntervals(_) | DccpOption::ReceiveRate(_) => {
                tfrc(Location::Local)
            }
            _ => true,
        }
    }

    /// Client: the Response's Init Cookies, to be echoed. False for one that is ignored.
    fn keep_cookie(&mut self, kind: PacketType, cookie: &[u8]) -> bool {
        //= rfc4340#8.1.4
        //# Any Init Cookie options received on DCCP-Request or DCCP-Data packets, or after the connection has been established
        //# (when the connection's state is >= OPEN), MUST be ignored.
        let wanted = self.role == Role::Client
            && kind == PacketType::Response
            && matches!(self.state, State::Request | State::PartOpen);
        let kept = wanted && self.cookies.len() + cookie.len() + 2 <= super::packets::MAX_COOKIE_BYTES;
        if kept {
            DccpOption::InitCookie(cookie).emit(&mut self.cookies);
        }
        kept
    }

    fn keep_timestamp(&mut self, value: u32, arrival: &Arrival<'_, '_>) {
        // Section 13.3: the one on the packet with the greatest number is enough.
        if self.echo.is_none_or(|echo| echo.seq.is_before(arrival.seq)) {
            self.echo = Some(Echo { value, arrived_ns: arrival.arrived_ns, seq: arrival.seq });
        }
    }
}

/// Feature negotiation options, seen from this end.
fn speech<'a>(option: &DccpOption<'a>) -> Option<(Speech, (u8, &'a [u8]))> {
    Some(match *option {
        DccpOption::ChangeL { feature, value } => (Speech::Change(Location::Remote), (feature, value)),
        DccpOption::ConfirmL { feature, value } => (Speech::Confirm(Location::Remote), (feature, value)),
        DccpOption::ChangeR { feature, value } => (Speech::Change(Location::Local), (feature, value)),
        DccpOption::ConfirmR { feature, value } => (Speech::Confirm(Location::Local), (feature, value)),
        _ => return None,
    })
}

/// Reset for an option: its type and first two bytes of data (section 5.6).
fn violation(code: ResetCode, option: &DccpOption<'_>) -> Violation {
    let mut bytes = Vec::new();
    option.emit(&mut bytes);
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    Violation { code, data: [option.kind(), byte(2), byte(3)] }
}
