// SPDX-License-Identifier: Apache-2.0
//! What a person sees while files come: files, bytes, rate, time left and, with a meter, watts. Only on a terminal, in
//! one line of it, which is cut where the terminal is narrow.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{BinaryBytes, HumanDuration, ProgressBar, ProgressStyle};

const KNOWN: &str = "[{bar:12}] {wide_msg}";
const UNKNOWN: &str = "{wide_msg}";

/// Letters that every terminal has.
const CELLS: &str = "#>-";

/// The bar.
pub(crate) struct Progress(ProgressBar);

/// How far a transfer is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// Files that are verified or given up.
    pub(crate) over_n: usize,
    pub(crate) files_n: usize,
    pub(crate) bytes: u64,
    /// Of all files, where all sizes are known.
    pub(crate) of: Option<u64>,
    pub(crate) rate_bytes_per_s: f64,
    /// Where a meter tells them.
    pub(crate) power_w: Option<f64>,
}

impl Progress {
    /// On stderr, or nowhere.
    pub(crate) fn new(is_wanted: bool) -> Self {
        let is_shown = is_wanted && std::io::stderr().is_terminal();
        Self(if is_shown { ProgressBar::no_length() } else { ProgressBar::hidden() })
    }

    /// Whether anybody sees it.
    pub(crate) fn is_shown(&self) -> bool {
        !self.0.is_hidden()
    }

    /// So far it is.
    pub(crate) fn show(&self, seen: &Seen) {
        let style = ProgressStyle::with_template(if seen.of.is_some() { KNOWN } else { UNKNOWN });
        self.0.set_style(style.expect("the templates are well formed").progress_chars(CELLS));
        if let Some(of) = seen.of {
            self.0.set_length(of);
        }
        self.0.set_message(seen.words());
        self.0.set_position(seen.bytes);
    }

    /// Take it away.
    pub(crate) fn end(&self) {
        self.0.finish_and_clear();
    }
}

impl Seen {
    fn words(&self) -> String {
        let mut words = BinaryBytes(self.bytes).to_string();
        if let Some(of) = self.of {
            words += &format!("/{}", BinaryBytes(of));
        }
        words += &format!("  {:.1} Mb/s", self.rate_bytes_per_s * 8e-6);
        let left = self.of.map(|of| of.saturating_sub(self.bytes)).filter(|_| self.rate_bytes_per_s > 0.0);
        if let Some(left) = left {
            let left = Duration::from_secs_f64((left as f64 / self.rate_bytes_per_s).min(1e9));
            words += &format!("  {} left", HumanDuration(left));
        }
        if let Some(power_w) = self.power_w {
            words += &format!("  {power_w:.2} W");
        }
        if self.files_n > 1 {
            words += &format!("  {} of {} files", self.over_n, self.files_n);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_said() {
        let seen = Seen {
            over_n: 2,
            files_n: 3,
            bytes: 3 << 20,
            of: Some(5 << 20),
            rate_bytes_per_s: 1024.0 * 1024.0,
            power_w: Some(1.5),
        };
        assert_eq!(seen.words(), "3.00 MiB/5.00 MiB  8.4 Mb/s  2 seconds left  1.50 W  2 of 3 files");
        let unknown = Seen { of: None, power_w: None, ..seen };
        assert_eq!(unknown.words(), "3.00 MiB  8.4 Mb/s  2 of 3 files");
        assert_eq!(Seen { files_n: 1, ..unknown }.words(), "3.00 MiB  8.4 Mb/s");
    }
}
