// SPDX-License-Identifier: Apache-2.0
//! What is to be said: Change and Confirm options on their way out (RFC 4340 section 6.6.3).

use super::entry::{Answer, Entry, Standing};
use super::Negotiation;
use crate::feature::table::{Rule, ALL};
use crate::feature::{Feature, Location};
use crate::options::DccpOption;
use crate::seqno::Seq48;

/// Which options a packet may carry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write {
    /// The packet has an acknowledgement number: Confirms may stand on it.
    pub(crate) answers: bool,
    /// Keep the Confirms for the next packet too (PARTOPEN: the peer can have lost this one).
    pub(crate) keep_answers: bool,
    /// Say Changes again that have no answer yet.
    pub(crate) repeats: bool,
    /// Room in bytes.
    pub(crate) room_bytes: usize,
}

impl Negotiation {
    /// A Confirm waits to be sent.
    pub(crate) fn has_answers(&self) -> bool {
        self.has_answers
    }

    /// A Change waits for its first sending.
    pub(crate) fn has_new_changes(&self) -> bool {
        self.has_new_changes
    }

    /// A Change was sent and has no answer.
    pub(crate) fn has_open_changes(&self) -> bool {
        self.has_open_changes
    }

    /// Forget Confirms that were repeated so far ([`Write::keep_answers`]).
    pub(crate) fn drop_answers(&mut self) {
        self.unknown.clear();
        for entry in &mut self.entries {
            entry.answer = None;
        }
        self.refresh();
    }

    /// Append options for a packet with number `seq` to `out`, no more than `write.room_bytes`.
    pub(crate) fn put_options(&mut self, seq: Seq48, write: Write, out: &mut Vec<u8>) {
        let limit = out.len() + write.room_bytes;
        if write.answers {
            self.put_answers(write.keep_answers, limit, out);
        }
        let mut new = false;
        for place in 0..self.entries.len() {
            let (feature, location) = (ALL[place / 2], located(place));
            let entry = &mut self.entries[place];
            let is_new = entry.change_pending || entry.standing == Standing::Unstable;
            //= rfc4340#6.6.4
            //# Change options generated within the CHANGING state are retransmissions and MUST have
            //# exactly the same contents as previously transmitted options, allowing tolerance for
            //# reordering.
            let repeats = write.repeats && entry.standing == Standing::Changing;
            if (is_new || repeats) && put_change(feature, location, entry, limit, out) {
                new |= is_new;
                entry.retold |= entry.standing == Standing::Unstable;
                entry.change_pending = false;
                entry.standing = Standing::Changing;
            }
        }
        if new {
            self.fgss = seq;
        }
        self.refresh();
    }

    fn put_answers(&mut self, keep: bool, limit: usize, out: &mut Vec<u8>) {
        self.unknown.retain(|&(location, number)| {
            let sent = confirm(location, number, &[]).emit_within(limit, out);
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
                if feature.rule() == Rule::ServerPriority && !entry.change_pending {
                    value.extend_from_slice(entry.list());
                }
            }
            let option = confirm(located(place), feature.number(), &value);
            if option.emit_within(limit, out) && !keep {
                entry.answer = None;
            }
        }
    }
}

fn located(place: usize) -> Location {
    if place.is_multiple_of(2) {
        Location::Local
    } else {
        Location::Remote
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
    if entry.mandatory && !DccpOption::Mandatory.emit_within(limit, out) {
        return false;
    }
    let fits = option.emit_within(limit, out);
    if !fits {
        out.truncate(before);
    }
    fits
}
