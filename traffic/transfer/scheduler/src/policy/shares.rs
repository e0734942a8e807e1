// SPDX-License-Identifier: Apache-2.0
//! How a number of connections is divided.

use crate::level::{Left, Share};
use crate::path::Path;

/// Round robin in the order given: `total` over takers that take at most so many each.
pub(super) fn in_turn(total: u32, most: &[u32]) -> Vec<u32> {
    let mut given = vec![0; most.len()];
    let mut left = total;
    while left > 0 && given.iter().zip(most).any(|(given, most)| given < most) {
        for (given, most) in given.iter_mut().zip(most) {
            if left > 0 && *given < *most {
                *given += 1;
                left -= 1;
            }
        }
    }
    given
}

/// By weights and largest remainders, at least one each; where there is less, one to each of the heaviest.
pub(super) fn by_weight(total: u32, weights: &[f64]) -> Vec<u32> {
    let takers = u32::try_from(weights.len()).unwrap_or(u32::MAX);
    let sum: f64 = weights.iter().sum();
    if total <= takers {
        let mut order: Vec<usize> = (0..weights.len()).collect();
        order.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]).then(a.cmp(b)));
        let mut given = vec![0; weights.len()];
        order.iter().take(total as usize).for_each(|k| given[*k] = 1);
        return given;
    }
    // The same weight where nobody has one.
    let ideal =
        |weight: f64| if sum > 0.0 { weight / sum } else { 1.0 / f64::from(takers) } * f64::from(total);
    let mut given: Vec<u32> = weights.iter().map(|weight| (ideal(*weight).floor() as u32).max(1)).collect();
    loop {
        let sum: u32 = given.iter().sum();
        let behind = |k: usize| ideal(weights[k]) - f64::from(given[k]);
        let all = 0..given.len();
        let chosen = match sum.cmp(&total) {
            std::cmp::Ordering::Equal => return given,
            std::cmp::Ordering::Less => all.max_by(|a, b| behind(*a).total_cmp(&behind(*b)).then(b.cmp(a))),
            std::cmp::Ordering::Greater => {
                all.filter(|k| given[*k] > 1).min_by(|a, b| behind(*a).total_cmp(&behind(*b)).then(a.cmp(b)))
            }
        };
        match chosen {
            Some(k) if sum < total => given[k] += 1,
            Some(k) => given[k] -= 1,
            None => return given,
        }
    }
}

/// Mean size of what is left of a chunk, bytes.
pub(super) fn mean_bytes(left: &Left) -> u64 {
    left.bytes / left.files.max(1)
}

/// Connections of a chunk with the parallelism that its mean size asks for.
pub(super) fn share(connections: u32, path: &Path, mean_bytes: u64) -> Share {
    if connections == 0 {
        return Share::default();
    }
    Share::new(connections, path.parallelism(mean_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_turn_gives_the_first_the_remainder_and_hands_on_what_one_cannot_take() {
        assert_eq!(in_turn(8, &[99, 99, 99]), [3, 3, 2]);
        assert_eq!(in_turn(32, &[99, 99, 99]), [11, 11, 10]);
        assert_eq!(in_turn(7, &[99, 99, 99]), [3, 2, 2]);
        assert_eq!(in_turn(32, &[4, 99, 99]), [4, 14, 14]);
        assert_eq!(in_turn(32, &[4, 5]), [4, 5]);
        assert_eq!(in_turn(5, &[]), Vec::<u32>::new());
    }

    #[test]
    fn by_weight_gives_everybody_one_and_the_rest_by_largest_remainder() {
        assert_eq!(by_weight(10, &[1.0, 1.0, 3.0]), [2, 2, 6]);
        assert_eq!(by_weight(3, &[1.0, 0.0, 99.0]), [1, 1, 1]);
        assert_eq!(by_weight(2, &[1.0, 1.0, 2.0]), [1, 0, 1]);
        assert_eq!(by_weight(8, &[0.0, 0.0]), [4, 4]);
        assert_eq!(by_weight(7, &[1.0, 1.0]), [4, 3]);
        assert_eq!(by_weight(10, &[1.0, 0.01, 0.01]), [8, 1, 1]);
    }
}
