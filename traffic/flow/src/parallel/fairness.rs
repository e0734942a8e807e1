// SPDX-License-Identifier: Apache-2.0
//! How evenly several flows share what there is: Jain's index. Pure.

/// Jain's fairness index `(sum x)^2 / (n sum x^2)` (Jain, Chiu, Hawe: DEC-TR-301, 1984): 1 when all shares are equal, 1/n when
/// one flow has everything.
///
/// `None` for fewer than two shares, for shares of nothing at all, and for a share that is negative or no number.
pub fn jain_index(shares: &[f64]) -> Option<f64> {
    let greatest = shares.iter().copied().fold(0.0, f64::max);
    if shares.len() < 2 || greatest <= 0.0 || shares.iter().any(|share| !share.is_finite() || *share < 0.0) {
        return None;
    }
    // In parts of the greatest, so that no square leaves the range of numbers.
    let sum: f64 = shares.iter().map(|share| share / greatest).sum();
    let squares: f64 = shares.iter().map(|share| (share / greatest).powi(2)).sum();
    // Rounding may not make it more than fair.
    Some((sum * sum / (shares.len() as f64 * squares)).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn it_agrees_with_the_shared_vectors() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../protocols/contracts/vectors/fairness.json");
        let document: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        for case in document["cases"].as_array().unwrap() {
            let shares: Vec<f64> =
                case["shares"].as_array().unwrap().iter().map(|share| share.as_f64().unwrap()).collect();
            match (jain_index(&shares), case["jain_index"].as_f64()) {
                (Some(ours), Some(theirs)) => assert!((ours - theirs).abs() < 1e-12, "{case}"),
                (ours, theirs) => assert_eq!(ours, theirs, "{case}"),
            }
        }
    }

    #[test]
    fn what_is_no_share_has_no_index() {
        assert_eq!(jain_index(&[1.0, f64::NAN]), None);
        assert_eq!(jain_index(&[1.0, f64::INFINITY]), None);
        assert_eq!(jain_index(&[1e300, 1e300]), Some(1.0));
    }

    proptest! {
        #[test]
        fn it_lies_between_one_nth_and_one_whatever_the_unit(
            shares in proptest::collection::vec(0.0..1e6_f64, 2..20),
            unit in 1e-6..1e6_f64,
        ) {
            prop_assume!(shares.iter().any(|share| *share > 1e-3));
            let index = jain_index(&shares).unwrap();
            let least = 1.0 / shares.len() as f64;
            prop_assert!(index >= least - 1e-12 && index <= 1.0, "{index}");
            let scaled: Vec<f64> = shares.iter().map(|share| share * unit).collect();
            prop_assert!((jain_index(&scaled).unwrap() - index).abs() < 1e-9);
        }
    }
}
