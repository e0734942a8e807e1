// SPDX-License-Identifier: Apache-2.0
//! How many files this process may have open, and how many control connections that leaves room for.

use netjoule_measure::failure::{Code, Failure, Outcome};
use netjoule_measure::host;

/// As many as a server could ever use.
const WANTED: u64 = 16_384;
/// What a server has open beside its connections: standard streams, signals, timers, the listener, and a margin.
const OTHER: u64 = 32;
/// Control connections that may wait at once, where the limit allows.
pub(crate) const MOST_CONNECTIONS: usize = 4_096;
/// Below this a server would refuse clients that mean no harm.
pub(crate) const ENOUGH_CONNECTIONS: usize = 1_024;
const LEAST_CONNECTIONS: u64 = 8;

/// Raise the limit on open files as far as an ordinary process may; what it is then.
pub(crate) fn raise_limit() -> Outcome<u64> {
    host::raise_file_limit(WANTED).map_err(Failure::system("ask for the limit on open files"))
}

/// Connections that may wait under a limit of `files`, `flows` running beside them.
///
/// # Errors
/// [`Code::HostLacks`] when there is no room for a server.
pub(crate) fn connections(files: u64, flows: u64) -> Outcome<usize> {
    match files.saturating_sub(OTHER + flows) {
        left if left < LEAST_CONNECTIONS => Code::HostLacks.fail(format!(
            "this process may open only {files} files, too few for a server; raise the limit (ulimit -n)"
        )),
        left => Ok(left.min(MOST_CONNECTIONS as u64) as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_as_far_as_it_goes() {
        let raised = raise_limit().unwrap();
        assert_eq!(raise_limit().unwrap(), raised);
        assert!(raised >= 64);
    }

    #[test]
    fn connections_get_what_is_left_and_a_hopeless_limit_is_told() {
        assert_eq!(connections(16_384, 1), Ok(MOST_CONNECTIONS));
        assert_eq!(connections(1_024, 1), Ok(1_024 - 33));
        assert_eq!(connections(48, 4), Ok(12));
        let refused = connections(32, 1).unwrap_err();
        assert_eq!(refused.code, Code::HostLacks);
        assert!(refused.message.contains("ulimit -n"));
    }
}
