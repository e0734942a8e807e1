// SPDX-License-Identifier: Apache-2.0
//! Values, preference lists and the exchange of Change and Confirm options (RFC 4340 section 6.6).

use super::table::{Feature, Rule, ALL, MAX_SEQUENCE_WINDOW};
use super::{Location, Role, Speech};
use crate::ccid::Violation;
use crate::options::DccpOption;
use crate::reset::ResetCode;
use crate::seqno::Seq48;

/// Most entries of a preference list that this end keeps.
const MAX_PREFERENCES: usize = 16;

/// Where a feature stands (section 6.6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Both ends think the same.
    Stable,
    /// A Change was sent, no answer yet.
    Changing,
    /// The wish changed while CHANGING; the new Change was not sent yet.
    Unstable,
}

/// Confirm that still has to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// The value (and, for server-priority features, this end's list).
    Value,
    /// Empty: the value was invalid.
    Empty,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    value: u64,
    standing: Standing,
    /// A Change should be sent although none is under way (from STABLE), see [`Standing::Unstable`].
    wish: bool,
    mandatory: bool,
    /// Own list, server-priority features.
    list: [u8; MAX_PREFERENCES],
    list_len: usize,
    /// Own value, non-negotiable features.
    number: u64,
    answer: Option<Answer>,
}

impl Entry {
    fn list(&self) -> &[u8] {
        &self.list[..self.list_len]
    }

    fn set_list(&mut self, list: &[u8]) {
        self.list_len = list.len().min(MAX_PREFERENCES);
        self.list[..self.list_len].copy_from_slice(&list[..self.list_len]);
    }

    /// The wish of this end changed.
    fn ask(&mut self) {
        //= rfc4340#6.6.5
        //# However, an endpoint that changes its preference list while in the CHANGING state MUST transition to the
        //# UNSTABLE state.
        match self.standing {
            Standing::Stable => self.wish = true,
            Standing::Changing => self.standing = Standing::Unstable,
            Standing::Unstable => {}
        }
    }

    fn settle(&mut self) {
        self.standing = Standing::Stable;
        self.wish = false;
    }
}

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
pub struct Negotiation {
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
    pub fn new(role: Role, iss: Seq48) -> Self {
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
    pub fn set_first_received(&mut self, isr: Seq48) {
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
    pub fn value(&self, feature: Feature, location: Location) -> u64 {
        self.entry(feature, location).value
    }

    /// Both ends agree, as far as this end knows, and nothing is wished.
    pub fn is_settled(&self, feature: Feature, location: Location) -> bool {
        let entry = self.entry(feature, location);
        entry.standing == Standing::Stable && !entry.wish
    }

    /// Values may have changed since the last call.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// What this end would accept, best first, without asking for it (server-priority features).
    pub fn accept(&mut self, feature: Feature, location: Location, list: &[u8]) {
        self.entry_mut(feature, location).set_list(list);
    }

    /// Ask for one of `list`, best first (server-priority features), with the next packet that may carry it.
    pub fn ask(&mut self, feature: Feature, location: Location, list: &[u8], mandatory: bool) {
        let entry = self.entry_mut(feature, location);
        entry.set_list(list);
        entry.mandatory = mandatory;
        entry.ask();
        self.refresh();
    }

    /// Tell the peer the value of a non-negotiable feature located here.
    pub fn tell(&mut self, feature: Feature, number: u64) {
        //= rfc4340#6.3.2
        //# Change R and Confirm L options MUST NOT be sent for non-negotiable features; see Section 6.6.8.
        // Only ever wished for as located here; the one Confirm L is the empty one that section 6.6.8 asks for.
        let entry = self.entry_mut(feature, Location::Local);
        let known = match entry.standing {
            Standing::Stable if !entry.wish => entry.value,
            _ => entry.number,
        };
        if known != number {
            entry.number = number;
            entry.ask();
            self.refresh();
        }
    }

    /// The value that a non-negotiable feature has or is about to have.
    pub fn told(&self, feature: Feature) -> u64 {
        let entry = self.entry(feature, Location::Local);
        match entry.standing {
            Standing::Stable if !entry.wish => entry.value,
            _ => entry.number,
        }
    }

    /// Put a value in force without negotiation: what an Init Cookie says was agreed.
    pub fn restore(&mut self, feature: Feature, location: Location, value: u64) {
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
    pub fn on_option(
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
    pub fn end_of_packet(&mut self, seq: Seq48) {
        //= rfc4340#6.6.4
        //# Endpoints MUST ignore feature negotiation options that do not arrive in strictly-increasing order by Sequence
        //# Number.
        self.fgsr = self.fgsr.latest(seq);
    }

    /// Keep FGSR and FGSS within Wmax of GSR and GSS, so that numbers that have wrapped are not taken for old (erratum 974).
    pub fn clamp(&mut self, gsr: Seq48, gss: Seq48) {
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
            self.entry_mut(feature, location).settle();
            self.changed = true;
            return Ok(());
        }
        let confirmed = match feature.rule() {
            Rule::NonNegotiable => {
                feature.read_number(received.value).filter(|&number| number == entry.number)
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

    /// A Confirm waits to be sent.
    pub fn has_answers(&self) -> bool {
        self.has_answers
    }

    /// A Change waits for its first sending.
    pub fn has_new_changes(&self) -> bool {
        self.has_new_changes
    }

    /// A Change was sent and has no answer.
    pub fn has_open_changes(&self) -> bool {
        self.has_open_changes
    }

    /// After every change of an entry.
    fn refresh(&mut self) {
        let any = |test: fn(&Entry) -> bool| self.entries.iter().any(test);
        self.has_answers = !self.unknown.is_empty() || any(|entry| entry.answer.is_some());
        self.has_new_changes = any(|entry| entry.wish || entry.standing == Standing::Unstable);
        self.has_open_changes = any(|entry| entry.standing == Standing::Changing);
    }

    /// Forget Confirms that were repeated so far ([`Write::keep_answers`]).
    pub fn drop_answers(&mut self) {
        self.unknown.clear();
        for entry in &mut self.entries {
            entry.answer = None;
        }
        self.refresh();
    }

    /// Append options for a packet with number `seq` to `out`, no more than `write.room_bytes`. Says whether it
    /// wrote any.
    pub fn put_options(&mut self, seq: Seq48, write: Write, out: &mut Vec<u8>) -> bool {
        let limit = out.len() + write.room_bytes;
        let before = out.len();
        if write.answers {
            self.put_answers(write.keep_answers, limit, out);
        }
        let mut new = false;
        for place in 0..self.entries.len() {
            let (feature, location) = (ALL[place / 2], located(place));
            let entry = &mut self.entries[place];
            let is_new = entry.wish || entry.standing == Standing::Unstable;
            //= rfc4340#6.6.4
            //# Change options generated within the CHANGING state are retransmissions and MUST have
            //# exactly the same contents as previously transmitted options, allowing tolerance for
            //# reordering.
            let repeats = write.repeats && entry.standing == Standing::Changing;
            if (is_new || repeats) && put_change(feature, location, entry, limit, out) {
                new |= is_new;
                entry.wish = false;
                entry.standing = Standing::Changing;
            }
        }
        if new {
            self.fgss = seq;
        }
        self.refresh();
        out.len() > before
    }

    fn put_answers(&mut self, keep: bool, limit: usize, out: &mut Vec<u8>) {
        self.unknown.retain(|&(location, number)| {
            let sent = put_limited(&confirm(location, number, &[]), limit, out);
            keep || !sent
        });
        for place in 0..self.entries.len() {
            let entry = &mut self.entries[place];
            let Some(answer) = entry.answer else { continue };
            let feature = ALL[place / 2];
            let mut value = Vec::new();
            if answer == Answer::Value {
                feature.write_number(entry.value, &mut value);
                // A list that changed since the value was chosen would contradict it.
                if feature.rule() == Rule::ServerPriority && !entry.wish {
                    value.extend_from_slice(entry.list());
                }
            }
            let option = confirm(located(place), feature.number(), &value);
            if put_limited(&option, limit, out) && !keep {
                entry.answer = None;
            }
        }
    }
}

/// Which options a packet may carry.
#[derive(Debug, Clone, Copy)]
pub struct Write {
    /// The packet has an acknowledgement number: Confirms may stand on it.
    pub answers: bool,
    /// Keep the Confirms for the next packet too (PARTOPEN: the peer can have lost this one).
    pub keep_answers: bool,
    /// Say Changes again that have no answer yet.
    pub repeats: bool,
    /// Room in bytes.
    pub room_bytes: usize,
}

fn place(feature: Feature, location: Location) -> usize {
    2 * feature.index() + usize::from(location == Location::Remote)
}

fn located(place: usize) -> Location {
    if place.is_multiple_of(2) {
        Location::Local
    } else {
        Location::Remote
    }
}

/// First value and what this end accepts of a feature that nobody set: see the table in [`super`].
fn first_entry(feature: Feature, local: bool) -> Entry {
    const COVERAGES: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
    let list: &[u8] = match (feature, local) {
        (Feature::Ccid, _) => &[2],
        // This end never sends short sequence numbers, but reads them.
        (Feature::AllowShortSeqnos | Feature::EcnIncapable, true) => &[0],
        (Feature::MinChecksumCoverage, _) => &COVERAGES,
        (Feature::AllowShortSeqnos | Feature::EcnIncapable, false) => &[0, 1],
        // What the peer asks for is done.
        _ => &[1, 0],
    };
    let mut entry = Entry {
        value: feature.first_value(),
        standing: Standing::Stable,
        wish: false,
        mandatory: false,
        list: [0; MAX_PREFERENCES],
        list_len: 0,
        number: feature.first_value(),
        answer: None,
    };
    entry.set_list(list);
    entry
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

fn confirm(location: Location, feature: u8, value: &[u8]) -> DccpOption<'_> {
    match location {
        Location::Local => DccpOption::ConfirmL { feature, value },
        Location::Remote => DccpOption::ConfirmR { feature, value },
    }
}

fn put_change(feature: Feature, location: Location, entry: &Entry, limit: usize, out: &mut Vec<u8>) -> bool {
    let mut value = Vec::new();
    match feature.rule() {
        Rule::NonNegotiable => feature.write_number(entry.number, &mut value),
        Rule::ServerPriority => value.extend_from_slice(entry.list()),
    }
    let (feature, value) = (feature.number(), value.as_slice());
    let option = match location {
        Location::Local => DccpOption::ChangeL { feature, value },
        Location::Remote => DccpOption::ChangeR { feature, value },
    };
    let before = out.len();
    if entry.mandatory && !put_limited(&DccpOption::Mandatory, limit, out) {
        return false;
    }
    let fits = put_limited(&option, limit, out);
    if !fits {
        out.truncate(before);
    }
    fits
}

fn put_limited(option: &DccpOption<'_>, limit: usize, out: &mut Vec<u8>) -> bool {
    let fits = out.len() + option.wire_bytes() <= limit;
    if fits {
        option.emit(out);
    }
    fits
}
