// SPDX-License-Identifier: Apache-2.0
//! Is a parameter in its range? If not, one sentence says so.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// A parameter that the model cannot take; the text is one clear sentence without its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParameterError(pub String);

/// The value, if it is in its range.
///
/// # Errors
/// [`ParameterError`] with name, value and range.
pub fn within<T: PartialOrd + Display>(
    what: &str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<T, ParameterError> {
    if range.contains(&value) {
        return Ok(value);
    }
    Err(ParameterError(format!("{what} is {value}; it must be {} to {}", range.start(), range.end())))
}
