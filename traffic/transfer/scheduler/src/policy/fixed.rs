// SPDX-License-Identifier: Apache-2.0
//! A level that is given.

use crate::level::{Decided, Level, Policy, Seen, Share};
use crate::settings::Settings;

/// Connections while an algorithm does not know the path yet.
const UNTIL_PATH_IS_KNOWN: u32 = 4;

/// `concurrency` files at once, each over `parallelism` connections.
pub(super) struct Fixed {
    share: Share,
    why: &'static str,
}

impl Fixed {
    pub(super) fn of(settings: &Settings) -> Self {
        let connections = settings.concurrency.saturating_mul(settings.parallelism);
        Self { share: Share::new(connections, settings.parallelism), why: "as given" }
    }

    pub(super) fn until_path_is_known(most: u32) -> Self {
        let share = Share::new(UNTIL_PATH_IS_KNOWN.min(most), 1);
        Self { share, why: "until bandwidth and RTT are measured" }
    }
}

impl Policy for Fixed {
    fn decide(&mut self, _seen: &Seen) -> Decided {
        let level = Level { shares: vec![self.share], shared: false };
        Decided { level, again_ns: None, why: self.why.to_owned() }
    }
}
