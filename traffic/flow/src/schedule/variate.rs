// SPDX-License-Identifier: Apache-2.0
//! Draws from the distributions of a profile, in whole units (bytes or ns).
//!
//! Means, standard deviations and scales are kept in units of 2^-16 so that a mean of 120.5 bytes is one. Exponential and
//! Pareto variates come by inversion (Devroye, "Non-Uniform Random Variate Generation", 1986, chapter II.2), normal ones
//! by Marsaglia's polar method (chapter V.4.4), all in the integer arithmetic of [`super::fixed_point`]. A uniform number
//! is x / 2^64 with x from 1, so an exponential variate is at most 44 times its mean. A constant takes no draw, a normal
//! variate as many as its method throws away and one, any other value one.

use super::document::{Distribution, Law, ProfileError};
use super::fixed_point::{exp2, log2, natural, FRACTION_BITS};
use super::random::Random;

/// Fraction bits of means, standard deviations and scales.
const PARAMETER_BITS: u32 = 16;
/// 2^64 as a logarithm to base 2 in Q40.
const LOG2_OF_2_64: u64 = 64 << FRACTION_BITS;
/// A point of the polar method is an integer in [-2^31, 2^31) on either axis: the unit circle's square is 2^62.
const CIRCLE_BITS: u32 = 62;

/// What the numbers of a field count, and which of them make sense there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit {
    /// Whole units in one of the document's.
    pub(crate) scale: f64,
    /// Least value, in whole units.
    pub(crate) least: u64,
    /// Greatest value.
    pub(crate) greatest: u64,
    /// Whether an unbounded distribution must say its own `max`.
    pub(crate) wants_max: bool,
    /// Name of the document's unit.
    pub(crate) name: &'static str,
}

impl Unit {
    /// A number of the document in whole units.
    pub(crate) fn whole(&self, value: f64, field: &str) -> Result<u64, ProfileError> {
        let whole = (value * self.scale + 0.5).floor();
        if (self.least as f64..=self.greatest as f64).contains(&whole) {
            return Ok(whole as u64);
        }
        let bound = |units: u64| units as f64 / self.scale;
        Err(ProfileError::new(
            field,
            format!(
                "{value} {} is not between {} and {}",
                self.name,
                bound(self.least),
                bound(self.greatest)
            ),
        ))
    }

    /// A parameter (above 0) in units of 2^-16.
    fn parameter(&self, value: f64, field: &str) -> Result<u64, ProfileError> {
        let scaled = (value * self.scale * f64::from(1_u32 << PARAMETER_BITS) + 0.5).floor();
        if scaled >= 1.0 && value * self.scale <= self.greatest as f64 {
            return Ok(scaled as u64);
        }
        let most = self.greatest as f64 / self.scale;
        Err(ProfileError::new(field, format!("{value} {} is not above 0 and at most {most}", self.name)))
    }
}

/// Gives values of one distribution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sampler {
    method: Method,
    least: u64,
    greatest: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Method {
    Constant,
    Uniform,
    /// Mean in 2^-16 units.
    Exponential(u64),
    /// Mean and standard deviation in 2^-16 units.
    Normal(u64, u64),
    /// Shape in 2^-32, scale in 2^-16 units.
    Pareto(u64, u64),
    /// Values with the weights of all up to and including each.
    Empirical(Vec<(u64, u64)>),
}

impl Sampler {
    /// Of a distribution in a field.
    ///
    /// # Errors
    /// [`ProfileError`] naming field and parameter.
    pub(crate) fn new(distribution: &Distribution, unit: &Unit, field: &str) -> Result<Self, ProfileError> {
        let at = |name: &str| format!("{field}.{name}");
        let (method, least, greatest) = match &distribution.0 {
            Law::Constant { value } => {
                let value = unit.whole(*value, field)?;
                (Method::Constant, value, value)
            }
            Law::Uniform { min, max } => {
                (Method::Uniform, unit.whole(*min, &at("min"))?, unit.whole(*max, &at("max"))?)
            }
            Law::Exponential { mean, min, max } => {
                let (least, greatest) = bounds(*min, *max, unit, field)?;
                (Method::Exponential(unit.parameter(*mean, &at("mean"))?), least, greatest)
            }
            Law::Normal { mean, standard_deviation, min, max } => {
                let (least, greatest) = bounds(*min, *max, unit, field)?;
                let deviation = unit.parameter(*standard_deviation, &at("standard_deviation"))?;
                (Method::Normal(unit.parameter(*mean, &at("mean"))?, deviation), least, greatest)
            }
            Law::Pareto { shape, scale, max } => {
                if !(0.1..=100.0).contains(shape) {
                    return Err(ProfileError::new(
                        &at("shape"),
                        format!("{shape} is not between 0.1 and 100"),
                    ));
                }
                let least = unit.whole(*scale, &at("scale"))?;
                let method = Method::Pareto(
                    (shape * f64::from(1_u32 << 16) * f64::from(1_u32 << 16) + 0.5).floor() as u64,
                    unit.parameter(*scale, &at("scale"))?,
                );
                (method, least, unit.whole(*max, &at("max"))?)
            }
            Law::Empirical { values, weights } => empirical(values, weights.as_deref(), unit, field)?,
        };
        if least > greatest {
            return Err(ProfileError::new(field, "its least value is above its greatest"));
        }
        Ok(Self { method, least, greatest })
    }

    /// Greatest value that it can give.
    pub(crate) fn greatest(&self) -> u64 {
        self.greatest
    }

    /// The next value.
    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        let value = match &self.method {
            Method::Constant => self.least,
            Method::Uniform => self.least + random.below(self.greatest - self.least + 1),
            Method::Exponential(mean) => exponential(*mean, random),
            Method::Normal(mean, deviation) => normal(*mean, *deviation, random),
            Method::Pareto(shape, scale) => pareto(*shape, *scale, random),
            Method::Empirical(values) => {
                let total = values.last().map_or(1, |(_, weight)| *weight);
                let place = random.below(total);
                values[values.partition_point(|(_, weight)| *weight <= place)].0
            }
        };
        value.clamp(self.least, self.greatest)
    }
}

fn bounds(min: Option<f64>, max: Option<f64>, unit: &Unit, field: &str) -> Result<(u64, u64), ProfileError> {
    if max.is_none() && unit.wants_max {
        return Err(ProfileError::new(field, "it needs a max: the greatest message must be known"));
    }
    let whole = |value: Option<f64>, name: &str, otherwise: u64| {
        value.map_or(Ok(otherwise), |value| unit.whole(value, &format!("{field}.{name}")))
    };
    Ok((whole(min, "min", unit.least)?, whole(max, "max", unit.greatest)?))
}

fn empirical(
    values: &[f64],
    weights: Option<&[u64]>,
    unit: &Unit,
    field: &str,
) -> Result<(Method, u64, u64), ProfileError> {
    let refuse = |what: &str| Err(ProfileError::new(field, what));
    let ones = vec![1; values.len()];
    let weights = weights.unwrap_or(&ones);
    if values.is_empty() || weights.len() != values.len() {
        return refuse("it needs at least one value, and as many weights as values");
    }
    let mut total: u64 = 0;
    let mut table = Vec::with_capacity(values.len());
    for (value, weight) in values.iter().zip(weights) {
        total = match total.checked_add(*weight) {
            Some(total) if total <= 1 << 53 => total,
            _ => return refuse("its weights add up to more than 2^53"),
        };
        table.push((unit.whole(*value, &format!("{field}.values"))?, total));
    }
    if total == 0 {
        return refuse("its weights are all 0");
    }
    let possible =
        || table.iter().zip(weights).filter(|(_, weight)| **weight > 0).map(|((value, _), _)| *value);
    let (least, greatest) = (possible().min().unwrap_or(0), possible().max().unwrap_or(0));
    Ok((Method::Empirical(table), least, greatest))
}

/// -log2 of a uniform number, Q40.
fn minus_log2(random: &mut Random) -> u64 {
    LOG2_OF_2_64 - log2(random.next().max(1))
}

fn exponential(mean: u64, random: &mut Random) -> u64 {
    let variate = natural(minus_log2(random));
    rounded(u128::from(variate) * u128::from(mean), FRACTION_BITS + PARAMETER_BITS)
}

fn pareto(shape: u64, scale: u64, random: &mut Random) -> u64 {
    // U^(-1/shape) = 2^(-log2 U / shape)
    let exponent = (u128::from(minus_log2(random)) << 32) / u128::from(shape);
    let whole = (exponent >> FRACTION_BITS) as u32;
    let power = exp2((exponent & ((1 << FRACTION_BITS) - 1)) as u64);
    match (CIRCLE_BITS + PARAMETER_BITS).checked_sub(whole) {
        Some(shift) if shift > 0 => rounded(u128::from(scale) * u128::from(power), shift),
        // At least 2^62 units: beyond any bound.
        _ => u64::MAX,
    }
}

fn normal(mean: u64, deviation: u64, random: &mut Random) -> u64 {
    loop {
        let word = random.next();
        let axis = |half: u64| i128::from(half as u32) - (1 << 31);
        let (x, y) = (axis(word >> 32), axis(word));
        let square = (x * x + y * y) as u64;
        if square == 0 || square >> CIRCLE_BITS != 0 {
            continue;
        }
        // z = x sqrt(-2 ln s / s), with s = square / 2^62.
        let minus_ln = natural((u64::from(CIRCLE_BITS) << FRACTION_BITS) - log2(square));
        let ratio = (u128::from(2 * minus_ln) << CIRCLE_BITS) / u128::from(square);
        let root = (ratio << 18).isqrt() as i128; // Q29
        let z = x * root; // Q60
        let value = (i128::from(mean) << 20) + (((z >> 20) * i128::from(deviation)) >> 20);
        // mean and value are now in 2^-36 units.
        return rounded(value.max(0) as u128, PARAMETER_BITS + 20);
    }
}

/// `value` / 2^`bits`, rounded to the nearest.
fn rounded(value: u128, bits: u32) -> u64 {
    u64::try_from((value + (1 << (bits - 1))) >> bits).unwrap_or(u64::MAX)
}
