// SPDX-License-Identifier: Apache-2.0
//! How many connections each chunk gets: one file per algorithm.

mod auto;
mod eht;
mod fixed;
mod hat;
mod lowe;
mod probe;
mod shares;

use crate::level::Policy;
use crate::settings::{Algorithm, Settings};

/// The algorithm that the settings name, as the transfer begins.
///
/// Without a path, LowE, HAT and EHT do as [`Algorithm::Fixed`] with four connections until it is measured: their
/// formulae need it.
pub fn of(settings: &Settings) -> Box<dyn Policy> {
    let most = settings.max_connections;
    match (settings.algorithm, settings.path) {
        (Algorithm::Fixed, _) => Box::new(fixed::Fixed::of(settings)),
        (Algorithm::Auto, _) => Box::new(auto::Auto::of(settings)),
        (_, None) => Box::new(fixed::Fixed::until_path_is_known(most)),
        (Algorithm::Lowe | Algorithm::LoweSequential, Some(path)) => Box::new(lowe::Lowe::of(settings, path)),
        (Algorithm::Hat, Some(path)) => Box::new(hat::Hat::new(path, most)),
        (Algorithm::Eht, Some(path)) => Box::new(eht::Eht::of(settings, path)),
    }
}
