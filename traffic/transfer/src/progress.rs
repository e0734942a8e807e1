// SPDX-License-Identifier: Apache-2.0
//! What a person sees while files come: bytes, rate, time left and, with a meter, watts. Only on a terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

const KNOWN: &str = "{bar:24} {bytes}/{total_bytes}  {msg}";
const UNKNOWN: &str = "{spinner} {bytes}  {msg}";

/// The bar.
pub(crate) struct Progress(ProgressBar);

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

    /// So much has come of so much, at this rate; watts where a meter tells them.
    pub(crate) fn show(&self, bytes: u64, of: Option<u64>, rate_bytes_per_s: f64, power_w: Option<f64>) {
        let style = ProgressStyle::with_template(if of.is_some() { KNOWN } else { UNKNOWN });
        self.0.set_style(style.expect("the templates are well formed"));
        if let Some(of) = of {
            self.0.set_length(of);
        }
        let mut words = format!("{:.1} Mb/s", rate_bytes_per_s * 8e-6);
        if let Some(left) = of.map(|of| of.saturating_sub(bytes)).filter(|_| rate_bytes_per_s > 0.0) {
            let left = Duration::from_secs_f64((left as f64 / rate_bytes_per_s).min(1e9));
            words += &format!("  {} left", indicatif::HumanDuration(left));
        }
        if let Some(power_w) = power_w {
            words += &format!("  {power_w:.2} W");
        }
        self.0.set_message(words);
        self.0.set_position(bytes);
    }

    /// Take it away.
    pub(crate) fn end(&self) {
        self.0.finish_and_clear();
    }
}
