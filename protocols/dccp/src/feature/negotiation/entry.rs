// SPDX-License-Identifier: Apache-2.0
//! One feature at one location: its value, what this end wants, where the exchange stands (RFC 4340 section 6.6.2).

use crate::feature::Feature;

/// Most entries of a preference list that this end keeps.
const MAX_PREFERENCES: usize = 16;

/// Where a feature stands (section 6.6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Both ends think the same.
    Stable,
    /// A Change was sent, no answer yet.
    Changing,
    /// The request changed while CHANGING; the new Change was not sent yet.
    Unstable,
}

/// Confirm that still has to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The value (and, for server-priority features, this end's list).
    Value,
    /// Empty: the value was invalid.
    Empty,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) value: u64,
    pub(super) standing: Standing,
    /// A Change should be sent although none is under way (from STABLE), see [`Standing::Unstable`].
    pub(super) change_pending: bool,
    pub(super) mandatory: bool,
    /// Own list, server-priority features.
    pub(super) list: [u8; MAX_PREFERENCES],
    pub(super) list_len: usize,
    /// Own value, non-negotiable features.
    pub(super) number: u64,
    /// Another value was told before it, and nothing is confirmed yet.
    pub(super) retold: bool,
    pub(super) answer: Option<Answer>,
    /// The peer answered a Change with an empty Confirm.
    pub(super) is_refused: bool,
}

impl Entry {
    pub(super) fn list(&self) -> &[u8] {
        &self.list[..self.list_len]
    }

    pub(super) fn set_list(&mut self, list: &[u8]) {
        self.list_len = list.len().min(MAX_PREFERENCES);
        self.list[..self.list_len].copy_from_slice(&list[..self.list_len]);
    }

    /// The request of this end changed.
    pub(super) fn ask(&mut self) {
        //= rfc4340#6.6.5
        //# However, an endpoint that changes its preference list while in the CHANGING state MUST transition to the
        //# UNSTABLE state.
        match self.standing {
            Standing::Stable => self.change_pending = true,
            Standing::Changing => self.standing = Standing::Unstable,
            Standing::Unstable => {}
        }
    }

    pub(super) fn settle(&mut self) {
        self.standing = Standing::Stable;
        self.change_pending = false;
        self.retold = false;
    }
}

/// First value and what this end accepts of a feature that nobody set.
pub(super) fn first_entry(feature: Feature, local: bool) -> Entry {
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
        change_pending: false,
        mandatory: false,
        list: [0; MAX_PREFERENCES],
        list_len: 0,
        number: feature.first_value(),
        retold: false,
        answer: None,
        is_refused: false,
    };
    entry.set_list(list);
    entry
}
