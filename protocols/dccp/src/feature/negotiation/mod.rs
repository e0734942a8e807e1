// SPDX-License-Identifier: Apache-2.0
//! Values, preference lists and the exchange of Change and Confirm options (RFC 4340 section 6.6): what is received here, what is
//! said in `outgoing`, one feature's state in `entry`.

mod entry;
mod outgoing;

use super::table::{Feature, Rule, ALL, MAX_SEQUENCE_WINDOW};
use super::{Location, Role, Speech};
use crate::ccid::Violation;
use crate::reset::ResetCode;
use crate::seqno::Seq48;
use entry::{first_entry, Answer, Entry, Standing};
pub(crate) use outgoing::Write;

/// What a received option was about, for Reset codes 5 and 6.
#[derive(Debug, Clone, Copy)]
struct Received<'a> {
    speech: Speech,
    number: u8,
    value: &'a [u8],
    mandatory: bool,
}

impl Received<'_> {
    fn violation(&self, code: ResetCode) -> Violation {
        let first = self.value.first().copied().unwrap_or(0);
        Violation { code, data: [self.speech.received_type(), self.number, first] }
    }
}

/// All features of one end of one connection.
#[derive(Debug, Clone)]
pub(crate) struct Negotiation {
    role: Role,
    entries: [Entry; 2 * ALL.len()],
    /// Empty Confirms for features that are not understood: option's location here, number.
    unknown: Vec<(Location, u8)>,
    fgsr: Seq48,
    fgss: Seq48,
    changed: bool,
    /// Kept up to date by [`Self::refresh`]: they are asked for with every packet.
    has_answers: bool,
    has_new_changes: bool,
    has_open_changes: bool,
}

/// Most unknown features that are remembered for an empty Confirm until the next packet.
const MAX_UNKNOWN: usize = 16;

impl Negotiation {
    /// All features at their first values. `iss`: first sequence number of this end. FGSR starts when the peer's
    /// first number is known: [`Self::set_first_received`].
    pub(crate) fn new(role: Role, iss: Seq48) -> Self {
        let entries = std::array::from_fn(|place| first_entry(ALL[place / 2], place % 2 == 0));
        Self {
            role,
            entries,
            unknown: Vec::new(),
            fgsr: Seq48::new(0),
            //= rfc4340#6.6.4
            //# FGSS is initialized to ISS.
            fgss: iss,
            changed: false,
            has_answers: false,
            has_new_changes: false,
            has_open_changes: false,
        }
    }

    /// The peer's first sequence number.
    pub(crate) fn set_first_received(&mut self, isr: Seq48) {
        //= rfc4340#6.6.4
        //# This value is initialized to ISR - 1.
        self.fgsr = isr.sub(1);
    }

    fn entry(&self, feature: Feature, location: Location) -> &Entry {
        &self.entries[place(feature, location)]
    }

    fn entry_mut(&mut self, feature: Feature, location: Location) -> &mut Entry {
        &mut self.entries[place(feature, location)]
    }

    /// Value in force.
    pub(crate) fn value(&self, feature: Feature, location: Location) -> u64 {
        self.entry(feature, location).value
    }

    /// Both ends agree, as far as this end knows, and nothing more is requested.
    pub(crate) fn is_settled(&self, feature: Feature, location: Location) -> bool {
        let entry = self.entry(feature, location);
        entry.standing == Standing::Stable && !entry.change_pending
    }

    /// Values may have changed since the last call.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// What this end would accept, best first, without asking for it (server-priority features).
    pub(crate) fn accept(&mut self, feature: Feature, location: Location, list: &[u8]) {
        self.entry_mut(feature, location).set_list(list);
    }

    /// Ask for one of `list`, best first (server-priority features), with the next packet that may carry it. A peer that did
    /// not understand the feature once is not asked again: Linux answers a late Change R with an empty Confirm R, which is
    /// none, and the Change would be repeated for as long as the connection lives.
    pub(crate) fn ask(&mut self, feature: Feature, location: Location, list: &[u8], mandatory: bool) {
        let entry = self.entry_mut(feature, location);
        if entry.is_refused {
            return;
        }
        entry.set_list(list);
        entry.mandatory = mandatory;
        entry.ask();
        self.refresh();
    }

    /// Tell the peer the value of a non-negotiable feature located here.
    pub(crate) fn tell(&mut self, feature: Feature, number: u64) {
        //= rfc4340#6.3.2
        //# Change R and Confirm L options MUST NOT be sent for non-negotiable features; see Section 6.6.8.
        // Only ever requested as located here; the one Confirm L is the empty one that section 6.6.8 asks for.
        let entry = self.entry_mut(feature, Location::Local);
        let known = match entry.standing {
            Standing::Stable if !entry.change_pending => entry.value,
            _ => entry.number,
        };
        if known != number {
            entry.number = number;
            entry.ask();
            self.refresh();
        }
    }

    /// The value that a non-negotiable feature has or is about to have.
    pub(crate) fn told(&self, feature: Feature) -> u64 {
        let entry = self.entry(feature, Location::Local);
        match entry.standing {
            Standing::Stable if !entry.change_pending => entry.value,
            _ => entry.number,
        }
    }

    /// Put a value in force without negotiation: what an Init Cookie says was agreed.
    pub(crate) fn restore(&mut self, feature: Feature, location: Location, value: u64) {
        let entry = self.entry_mut(feature, location);
        entry.value = value;
        entry.settle();
        self.changed = true;
        self.refresh();
    }

    /// Take one option of a packet with sequence number `seq` and acknowledgement number `ack` (not of a Data packet). After
    /// the last one of the packet: [`Self::end_of_packet`].
    ///
    /// # Errors
    ///
    /// The connection must be reset.
    pub(crate) fn on_option(
        &mut self,
        speech: Speech,
        option: (u8, &[u8]),
        mandatory: bool,
        seq: Seq48,
        ack: Option<Seq48>,
    ) -> Result<(), Violation> {
        let outcome = self.take_option(speech, option, mandatory, seq, ack);
        self.refresh();
        outcome
    }

    fn take_option(
        &mut self,
        speech: Speech,
        option: (u8, &[u8]),
        mandatory: bool,
        seq: Seq48,
        ack: Option<Seq48>,
    ) -> Result<(), Violation> {
        let received = Received { speech, number: option.0, value: option.1, mandatory };
        let Some(feature) = Feature::from_number(option.0) else {
            return self.on_unknown(&received, seq);
        };
        //= rfc4340#6.6.4
        //# If a packet's Sequence Number is less than or equal to FGSR, then its Change options MUST be ignored.
        if !self.fgsr.is_before(seq) {
            return Ok(());
        }
        match speech {
            Speech::Change(location) => self.on_change(feature, location, &received),
            Speech::Confirm(location) => {
                //= rfc4340#6.6.4
                //# If a packet's Sequence Number is less than or equal to FGSR, if it has no Acknowledgement Number, OR if
                //# its Acknowledgement Number is less than FGSS, then its Confirm options MUST be ignored.
                if ack.is_some_and(|ack| !ack.is_before(self.fgss)) {
                    self.on_confirm(feature, location, &received)
                } else {
                    Ok(())
                }
            }
        }
    }

    /// A packet with feature negotiation options was processed to its end.
    pub(crate) fn end_of_packet(&mut self, seq: Seq48) {
        //= rfc4340#6.6.4
        //# Endpoints MUST ignore feature negotiation options that do not arrive in strictly-increasing order by Sequence
        //# Number.
        self.fgsr = self.fgsr.latest(seq);
    }

    /// Keep FGSR and FGSS within Wmax of GSR and GSS, so that numbers that have wrapped are not taken for old (erratum 974).
    pub(crate) fn clamp(&mut self, gsr: Seq48, gss: Seq48) {
        self.fgsr = clamp(self.fgsr, gsr);
        self.fgss = clamp(self.fgss, gss);
    }

    fn on_unknown(&mut self, received: &Received<'_>, seq: Seq48) -> Result<(), Violation> {
        let Speech::Change(location) = received.speech else {
            //= rfc4340#6.6.7
            //# Nevertheless, endpoints MUST ignore any such options they receive.
            return Ok(());
        };
        if received.mandatory {
            //= rfc4340#6.6.7
            //# However, if the Change option was Mandatory, the connection MUST be reset; see Section 6.6.9.
            return Err(received.violation(ResetCode::MandatoryError));
        }
        //= rfc4340#6.6.7
        //# Endpoints MUST respond to unknown Change options with Empty Confirm options (that is, Confirm options containing
        //# no data), which inform the CHANGING endpoint that the feature was not understood.
        let entry = (location, received.number);
        let in_order = self.fgsr.is_before(seq);
        if in_order && self.unknown.len() < MAX_UNKNOWN && !self.unknown.contains(&entry) {
            self.unknown.push(entry);
        }
        Ok(())
    }

    fn on_change(
        &mut self,
        feature: Feature,
        location: Location,
        received: &Received<'_>,
    ) -> Result<(), Violation> {
        if self.entry(feature, location).standing == Standing::Unstable {
            return Ok(());
        }
        let outcome = match feature.rule() {
            Rule::ServerPriority => self.reconcile_change(feature, location, received)?,
            Rule::NonNegotiable if location == Location::Local => None,
            //= rfc4340#6.3.2
            //# The feature remote MUST accept any valid value, responding with a Confirm R option containing the new value,
            Rule::NonNegotiable => feature.read_number(received.value),
        };
        let entry = self.entry_mut(feature, location);
        match outcome {
            Some(value) => {
                //= rfc4340#6.6.6
                //# The CHANGING endpoint MUST examine the received Change's preference list, reconcile that with its own
                //# preference list (as expressed in its generated Change options), and generate the corresponding Confirm
                //# option.
                entry.value = value;
                //= rfc4340#6.2
                //# Confirm options MUST NOT be generated except in response to Change options.
                //= rfc4340#6.6.3
                //# Confirm options are never retransmitted, but the Confirm-sending endpoint MUST
                //# generate a Confirm option after every non-reordered Change.
                entry.answer = Some(Answer::Value);
                entry.settle();
                self.changed = true;
                Ok(())
            }
            //= rfc4340#6.6.9
            //# the Change option's value was invalid, and the receiver would normally have sent an empty Confirm option in
            //# response;
            None if received.mandatory => Err(received.violation(ResetCode::MandatoryError)),
            None => {
                //= rfc4340#6.6.8
                //# An endpoint receiving an invalid Change option MUST respond with the corresponding empty Confirm option.
                //= rfc4340#15
                //# A DCCP MUST respond with an empty Confirm option if it is assigned an unacceptable
                //# value for some non-negotiable feature.
                entry.answer = Some(Answer::Empty);
                Ok(())
            }
        }
    }

    /// New value for a Change of a server-priority feature; `None`: invalid.
    fn reconcile_change(
        &self,
        feature: Feature,
        location: Location,
        received: &Received<'_>,
    ) -> Result<Option<u64>, Violation> {
        if received.value.is_empty() {
            return Ok(None);
        }
        let entry = self.entry(feature, location);
        match self.reconcile(entry.list(), received.value) {
            Some(value) => Ok(Some(u64::from(value))),
            //= rfc4340#6.6.9
            //# for server-priority features, there was no shared entry in the two endpoints' preference lists.
            None if received.mandatory => Err(received.violation(ResetCode::MandatoryError)),
            //= rfc4340#6.3.1
            //# If there is no shared entry, the feature's value MUST NOT change, and the Confirm option will confirm the
            //# feature's previous value (unless the Change option was Mandatory; see Section 6.6.9).
            None => Ok(Some(entry.value)),
        }
    }

    //= rfc4340#6.3.1
    //# To reconcile the preference lists, select the first entry in the server's list that also occurs in the client's list.
    fn reconcile(&self, own: &[u8], peers: &[u8]) -> Option<u8> {
        let (server, client) = match self.role {
            Role::Server => (own, peers),
            Role::Client => (peers, own),
        };
        //= rfc4340#15
        //# DCCP processors MUST anticipate the possibility of unknown feature values, which might occur
        //# as part of a negotiation for a known feature.
        server.iter().copied().find(|value| client.contains(value))
    }

    fn on_confirm(
        &mut self,
        feature: Feature,
        location: Location,
        received: &Received<'_>,
    ) -> Result<(), Violation> {
        let entry = self.entry(feature, location);
        if entry.standing != Standing::Changing {
            return Ok(());
        }
        if received.value.is_empty() {
            //= rfc4340#6.6.7
            //# The CHANGING endpoint SHOULD reset the connection (with Reset Code 5, "Option Error") if it receives an empty
            //# Confirm option for such a feature.
            if feature.is_required() {
                return Err(received.violation(ResetCode::OptionError));
            }
            //= rfc4340#6.6.7
            //# On receiving an empty Confirm option for some feature, the CHANGING endpoint MUST transition back to the
            //# STABLE state, leaving the feature's value unchanged.
            let entry = self.entry_mut(feature, location);
            entry.settle();
            entry.is_refused = true;
            self.changed = true;
            return Ok(());
        }
        let confirmed = match feature.rule() {
            Rule::NonNegotiable => {
                let number = feature.read_number(received.value);
                if entry.retold && number.is_some_and(|number| number != entry.number) {
                    // The answer to an earlier Change, given late: FGSS does not tell when the packet with the newest Change
                    // was lost and one after it arrived. The newest Change is sent until it is answered.
                    return Ok(());
                }
                number.filter(|&number| number == entry.number)
            }
            Rule::ServerPriority => self.confirmed_value(entry, received.value),
        };
        //= rfc4340#6.6.8
        //# An endpoint receiving an invalid Confirm option MUST reset the connection, with Reset Code 5, "Option Error".
        let value = confirmed.ok_or_else(|| received.violation(ResetCode::OptionError))?;
        //= rfc4340#6.6.1
        //# The Change-sending endpoint MUST wait to receive a corresponding Confirm option before changing its stored
        //# feature value.
        let entry = self.entry_mut(feature, location);
        entry.value = value;
        entry.settle();
        self.changed = true;
        Ok(())
    }

    /// Value of a Confirm of a server-priority feature, if it is the right one. A peer may leave its list out.
    fn confirmed_value(&self, entry: &Entry, value: &[u8]) -> Option<u64> {
        let (&selected, list) = value.split_first()?;
        let previous = u64::from(selected) == entry.value;
        let right = if list.is_empty() {
            previous || entry.list().contains(&selected)
        } else {
            match self.reconcile(entry.list(), list) {
                Some(expected) => expected == selected,
                None => previous,
            }
        };
        right.then_some(u64::from(selected))
    }

    /// After every change of an entry.
    fn refresh(&mut self) {
        let any = |test: fn(&Entry) -> bool| self.entries.iter().any(test);
        self.has_answers = !self.unknown.is_empty() || any(|entry| entry.answer.is_some());
        self.has_new_changes = any(|entry| entry.change_pending || entry.standing == Standing::Unstable);
        self.has_open_changes = any(|entry| entry.standing == Standing::Changing);
    }
}

fn place(feature: Feature, location: Location) -> usize {
    2 * feature.index() + usize::from(location == Location::Remote)
}

fn clamp(remembered: Seq48, present: Seq48) -> Seq48 {
    let behind = remembered.distance_to(present);
    //= rfc4340#6.6.4
    //# These constraints MUST be enforced even when GSR and GSS wrap, as they might in a long connection.
    if behind > MAX_SEQUENCE_WINDOW as i64 {
        present.sub(MAX_SEQUENCE_WINDOW)
    } else {
        remembered
    }
}
