// SPDX-License-Identifier: Apache-2.0
//! Rates, sizes and durations as people write them. Pure; held to `protocols/contracts/vectors/units.json`.
//!
//! A quantity is a decimal number, an optional prefix, an optional unit, with nothing between them. Prefixes k, M, G, T,
//! in either case, are as iperf3 reads them: of a rate 10^3, 10^6, 10^9, 10^12, of a size 2^10, 2^20, 2^30, 2^40; Ki, Mi,
//! Gi are 2^10, 2^20, 2^30 of both. Units: a rate is in bit/s, written with `b` or nothing, or
//! in byte/s, written with `B`; a size is in bytes (`B` or nothing); a duration is in seconds (`s` or nothing), `ms`,
//! `us`, `min` or `h`, without prefixes. Everything else is refused, and so is what is not a whole number of bit/s,
//! bytes or nanoseconds: a silently rounded rate would be another experiment.

/// Largest value that JSON integers carry exactly everywhere, 2^53 - 1.
pub const LARGEST: u64 = (1 << 53) - 1;

/// Why a text is not a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// Nothing there, or no decimal number in front.
    #[error("starts with no decimal number (write e.g. 30M)")]
    Number,
    /// Letters that are no prefix and unit of this kind.
    #[error("has an unknown unit (prefixes K M G T Ki Mi Gi; b bit, B byte; durations s ms us min h)")]
    Unit,
    /// Not a whole number of base units.
    #[error("is not a whole number of base units (bit/s, bytes, ns)")]
    NotWhole,
    /// Zero.
    #[error("is zero")]
    Zero,
    /// More than 2^53 - 1 base units.
    #[error("is too large")]
    TooLarge,
}

impl UnitError {
    /// Name of the case in the shared vectors.
    pub fn code(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Unit => "unit",
            Self::NotWhole => "not_whole",
            Self::Zero => "zero",
            Self::TooLarge => "too_large",
        }
    }
}

/// A rate in bit/s.
pub fn rate_bps(text: &str) -> Result<u64, UnitError> {
    let (number, suffix) = split(text)?;
    let (scale, unit) = prefix(suffix, 1_000);
    let per_unit = match unit {
        "" | "b" => 1,
        "B" => 8,
        _ => return Err(UnitError::Unit),
    };
    number.times(scale * per_unit)
}

/// A size in bytes.
pub fn size_bytes(text: &str) -> Result<u64, UnitError> {
    let (number, suffix) = split(text)?;
    match prefix(suffix, 1_024) {
        (scale, "" | "B") => number.times(scale),
        _ => Err(UnitError::Unit),
    }
}

/// A duration in nanoseconds.
pub fn duration_ns(text: &str) -> Result<u64, UnitError> {
    let (number, suffix) = split(text)?;
    let scale = match suffix {
        "" | "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "us" => 1_000,
        "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return Err(UnitError::Unit),
    };
    number.times(scale)
}

/// A decimal number: `digits` / 10^`decimals`.
#[derive(Debug, Clone, Copy)]
struct Decimal {
    digits: u128,
    decimals: u32,
}

impl Decimal {
    /// The number times `scale` when that is a whole number in 1..=[`LARGEST`].
    fn times(self, scale: u128) -> Result<u64, UnitError> {
        let scaled = self.digits.checked_mul(scale).ok_or(UnitError::TooLarge)?;
        let divisor = 10_u128.pow(self.decimals);
        if scaled % divisor != 0 {
            return Err(UnitError::NotWhole);
        }
        match scaled / divisor {
            0 => Err(UnitError::Zero),
            value if value > u128::from(LARGEST) => Err(UnitError::TooLarge),
            value => Ok(value as u64),
        }
    }
}

/// The number in front and the letters behind it.
fn split(text: &str) -> Result<(Decimal, &str), UnitError> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return Err(UnitError::Number),
        None => (number, ""),
    };
    if whole.is_empty() || fraction.contains('.') {
        return Err(UnitError::Number);
    }
    // 18 digits on either side cannot overflow a u128 together with any scale that is checked later.
    if whole.len() > 18 || fraction.len() > 18 {
        return Err(UnitError::TooLarge);
    }
    let digits = format!("{whole}{fraction}").parse().map_err(|_| UnitError::Number)?;
    Ok((Decimal { digits, decimals: fraction.len() as u32 }, suffix))
}

/// Scale of the prefix, where a plain one is a power of `base`, and what follows it.
fn prefix(suffix: &str, base: u128) -> (u128, &str) {
    const BINARY: [(&str, u32); 3] = [("Ki", 1), ("Mi", 2), ("Gi", 3)];
    const PLAIN: [([char; 2], u32); 4] = [(['k', 'K'], 1), (['m', 'M'], 2), (['g', 'G'], 3), (['t', 'T'], 4)];
    let binary =
        BINARY.iter().find_map(|(prefix, power)| Some((1_024, *power, suffix.strip_prefix(prefix)?)));
    let plain =
        || PLAIN.iter().find_map(|(prefix, power)| Some((base, *power, suffix.strip_prefix(prefix)?)));
    binary.or_else(plain).map_or((1, suffix), |(base, power, unit)| (base.pow(power), unit))
}

/// In what people read rates (`-f`): k, m, g, t bits or K, M, G, T bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format(char);

impl Default for Format {
    fn default() -> Self {
        Self('m')
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

impl std::str::FromStr for Format {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let letter = text.chars().next().filter(|letter| text.len() == 1 && "kmgtKMGT".contains(*letter));
        letter.map(Self).ok_or("is no unit: k, m, g or t for bits, K, M, G or T for bytes per second")
    }
}

impl Format {
    /// A rate with its unit.
    pub fn rate(self, mbps: f64) -> String {
        let (prefix, scale) = match self.0.to_ascii_lowercase() {
            'k' => ("k", 1e3),
            'g' => ("G", 1e-3),
            't' => ("T", 1e-6),
            _ => ("M", 1.0),
        };
        match self.0.is_ascii_uppercase() {
            true => format!("{:.4} {prefix}B/s", mbps * scale / 8.0),
            false => format!("{:.4} {prefix}b/s", mbps * scale),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(serde::Deserialize)]
    struct Vectors {
        cases: Vec<Case>,
    }

    #[derive(serde::Deserialize)]
    struct Case {
        text: String,
        kind: String,
        value: Option<u64>,
        error: Option<String>,
    }

    fn parse(kind: &str, text: &str) -> Result<u64, UnitError> {
        match kind {
            "rate" => rate_bps(text),
            "size" => size_bytes(text),
            "duration" => duration_ns(text),
            other => panic!("unknown kind {other}"),
        }
    }

    #[test]
    fn shared_vectors_hold() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../protocols/contracts/vectors/units.json");
        let vectors: Vectors = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert!(vectors.cases.len() > 40);
        for case in vectors.cases {
            let got = parse(&case.kind, &case.text);
            assert_eq!(got.ok(), case.value, "{} {:?}", case.kind, case.text);
            assert_eq!(
                got.err().map(UnitError::code),
                case.error.as_deref(),
                "{} {:?}",
                case.kind,
                case.text
            );
        }
    }

    proptest! {
        #[test]
        fn whole_numbers_are_themselves(value in 1..=LARGEST) {
            prop_assert_eq!(rate_bps(&value.to_string()), Ok(value));
            prop_assert_eq!(size_bytes(&format!("{value}B")), Ok(value));
        }

        #[test]
        fn any_text_is_answered(text in ".{0,40}") {
            for kind in ["rate", "size", "duration"] {
                let _ = parse(kind, &text);
            }
        }
    }
}
