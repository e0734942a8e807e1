// SPDX-License-Identifier: Apache-2.0
//! What may be chosen about UDP.

use netjoule_transport::options::{Domain, OptionSpec};

/// Option: have the kernel stamp every message on its way out.
pub(crate) const TX_TIMESTAMPS: &str = "tx_timestamps";

/// What may be chosen.
pub(crate) const OPTIONS: [OptionSpec; 1] = [OptionSpec {
    name: TX_TIMESTAMPS,
    about:
        "the kernel stamps every message on its way out, see departure_delay_us; costs the sender CPU time",
    domain: Domain::Flag,
    default: None,
    seldom: false,
}];
