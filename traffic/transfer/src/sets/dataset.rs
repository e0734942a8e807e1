// SPDX-License-Identifier: Apache-2.0
//! Sets of files by name, from a YAML file or from its text, and their sizes: drawn by a seed, with exactly the mean that
//! is asked for.

use std::path::Path;

use chacha20::rand_core::Rng;
use netjoule_measure::failure::{Code, Failure, Outcome};
use serde::Deserialize;

use crate::sets::manifest::{Entry, Manifest};
use crate::sets::signature;

/// The named sets.
const SETS: &str = include_str!("../../../../protocols/contracts/datasets.json");

/// Streams from here on draw the sizes of groups; those below sign files.
const SIZES_STREAM: u64 = 1 << 63;

#[derive(Deserialize)]
struct Sets {
    datasets: Vec<Dataset>,
}

/// Files of one kind or of several.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Dataset {
    /// Its name.
    pub(crate) name: String,
    /// What it is, for who reads the file.
    #[serde(default)]
    pub(crate) description: String,
    groups: Vec<Group>,
}

/// Files of one kind.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    kind: String,
    files_n: u64,
    mean_bytes: u64,
    min_bytes: u64,
    max_bytes: u64,
}

impl Dataset {
    /// The set called `name`; where that ends in .yaml or .yml the one in this file, where it begins with { the one that
    /// it describes itself.
    pub(crate) fn find(name: &str) -> Outcome<Self> {
        if name.starts_with('{') {
            return Self::of_text(name, "given");
        }
        if name.ends_with(".yaml") || name.ends_with(".yml") {
            return Self::read(Path::new(name));
        }
        let sets = named();
        let names = sets.iter().map(|set| set.name.as_str()).collect::<Vec<_>>().join(", ");
        sets.into_iter().find(|set| set.name == name).ok_or_else(|| {
            let words =
                format!("no data set is called {name}: take one of {names}, or a file that ends in .yaml");
            Failure::new(Code::Usage, words)
        })
    }

    fn read(path: &Path) -> Outcome<Self> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| refused(&name, &error.to_string()))?;
        Self::of_text(&text, &name)
    }

    fn of_text(text: &str, name: &str) -> Outcome<Self> {
        let set: Self = serde_norway::from_str(text).map_err(|error| refused(name, &error.to_string()))?;
        set.check().map_err(|why| refused(name, &why))?;
        Ok(set)
    }

    /// What the schema says of the named sets.
    fn check(&self) -> Result<(), String> {
        let is_word = |text: &str| {
            let letters = text.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-');
            letters && !text.starts_with('-') && (1..=32).contains(&text.len())
        };
        if !is_word(&self.name) || self.groups.is_empty() {
            return Err("needs a name of small letters, digits and -, and at least one group".into());
        }
        for (index, group) in self.groups.iter().enumerate() {
            let kind = &group.kind;
            if !is_word(kind) || self.groups[..index].iter().any(|other| other.kind == *kind) {
                return Err(format!("kind {kind} is no word of small letters, digits and -, or there twice"));
            }
            if !(group.min_bytes..=group.max_bytes).contains(&group.mean_bytes) || group.max_bytes > 1 << 40 {
                return Err(format!("{kind}: mean_bytes must lie from min_bytes to max_bytes, at most 2^40"));
            }
            if !(1..=1_000_000).contains(&group.files_n) {
                return Err(format!("{kind}: files_n must lie from 1 to 1,000,000"));
            }
        }
        Ok(())
    }

    /// Its files with names and sizes as `seed` draws them: `files` of them where given, shared out as the set's own.
    pub(crate) fn manifest(&self, seed: u64, files: Option<u64>) -> Outcome<Manifest> {
        let counts = self.counts(files)?;
        // As many digits as the whole set takes, so that a name does not hang on how many files are taken.
        let own = self.groups.iter().map(|group| group.files_n);
        let digits = own.chain(counts.iter().copied()).max().map_or(1, |most| most.to_string().len());
        let groups = self.groups.iter().zip(&counts).zip(0..);
        let files = groups.flat_map(|((group, count), number)| {
            let sizes = group.sizes(*count, seed, number);
            let named = move |(index, size_bytes)| Entry {
                name: format!("{}-{:0digits$}.bin", group.kind, index + 1),
                size_bytes: Some(size_bytes),
                ..Entry::default()
            };
            sizes.into_iter().enumerate().map(named)
        });
        Ok(Manifest::signed(&self.name, seed, files.collect()))
    }

    /// How many files of each group, of `files` in all: in proportion, at least one of each, largest remainder.
    fn counts(&self, files: Option<u64>) -> Outcome<Vec<u64>> {
        let own: Vec<u64> = self.groups.iter().map(|group| group.files_n).collect();
        let (Some(files), total) = (files, own.iter().sum::<u64>()) else { return Ok(own) };
        if files < own.len() as u64 || files > 1_000_000 {
            let words = format!("--files {files}: {} takes from {} to 1000000 files", self.name, own.len());
            return Code::Usage.fail(words);
        }
        let mut counts: Vec<u64> = own.iter().map(|count| (count * files / total).max(1)).collect();
        // What is left goes to, what is too much comes from, the group that is furthest from its share.
        let lack = |counts: &[u64], group: usize| {
            (own[group] * files) as i128 - i128::from(counts[group]) * i128::from(total)
        };
        while counts.iter().sum::<u64>() < files {
            let group = (0..own.len()).max_by_key(|group| (lack(&counts, *group), own.len() - group));
            let group = group.unwrap_or(0);
            counts[group] += 1;
        }
        while counts.iter().sum::<u64>() > files {
            let many = (0..own.len()).filter(|group| counts[*group] > 1);
            let group = many.min_by_key(|group| lack(&counts, *group)).unwrap_or(0);
            counts[group] -= 1;
        }
        Ok(counts)
    }
}

impl Group {
    /// `count` sizes between the least and the greatest whose sum is `count` times the mean: drawn evenly, then all
    /// moved towards the end that is missed, each by the same part of its way.
    fn sizes(&self, count: u64, seed: u64, number: u64) -> Vec<u64> {
        let mut random = signature::random(seed, SIZES_STREAM + number);
        let span = self.max_bytes - self.min_bytes;
        let draw =
            |_| self.min_bytes + ((u128::from(random.next_u64()) * (u128::from(span) + 1)) >> 64) as u64;
        let mut sizes: Vec<u64> = (0..count).map(draw).collect();
        let wanted = i128::from(self.mean_bytes) * i128::from(count);
        let missing = |sizes: &[u64]| wanted - sizes.iter().map(|size| i128::from(*size)).sum::<i128>();
        let lack = missing(&sizes);
        let target = if lack > 0 { self.max_bytes } else { self.min_bytes };
        let ways: Vec<i128> = sizes.iter().map(|size| i128::from(target) - i128::from(*size)).collect();
        let all: i128 = ways.iter().sum();
        if all != 0 {
            for (size, way) in sizes.iter_mut().zip(ways) {
                *size = (i128::from(*size) + way * lack / all) as u64;
            }
        }
        // The division leaves less than a byte of each file.
        let rest = missing(&sizes);
        let step = rest.signum();
        let may = |size: u64| if step > 0 { size < self.max_bytes } else { size > self.min_bytes };
        let movable = sizes.iter_mut().filter(|size| may(**size));
        for size in movable.take(rest.unsigned_abs() as usize) {
            *size = (i128::from(*size) + step) as u64;
        }
        sizes
    }
}

fn refused(name: &str, why: &str) -> Failure {
    Failure::new(Code::Usage, format!("data set {name}: {why}"))
}

/// The named sets.
pub(crate) fn named() -> Vec<Dataset> {
    serde_json::from_str::<Sets>(SETS).expect("datasets.json fits its schema").datasets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_set_has_its_exact_mean_within_its_bounds_whatever_the_seed() {
        for set in named() {
            set.check().unwrap();
            for seed in [0, 1, 42, u64::MAX] {
                for group in &set.groups {
                    let sizes = group.sizes(group.files_n, seed, 0);
                    assert_eq!(sizes.iter().sum::<u64>(), group.mean_bytes * group.files_n, "{}", set.name);
                    let is_within = |size: &u64| (group.min_bytes..=group.max_bytes).contains(size);
                    assert!(sizes.iter().all(is_within), "{}", set.name);
                }
            }
        }
    }

    #[test]
    fn sizes_differ_by_seed_and_are_the_same_for_one() {
        let set = Dataset::find("html-1").unwrap();
        let sizes =
            |seed| set.manifest(seed, None).unwrap().files.iter().map(|f| f.size_bytes).collect::<Vec<_>>();
        assert_eq!(sizes(7), sizes(7));
        assert_ne!(sizes(7), sizes(8));
        assert_eq!(sizes(7).len(), 1_500);
    }

    #[test]
    fn fewer_files_keep_the_shares_of_the_groups_and_one_of_each() {
        let set = Dataset::find("mixed-2").unwrap();
        for (files, counts) in [(521, [500, 20, 1]), (1564, [1500, 60, 4]), (3, [1, 1, 1]), (4, [2, 1, 1])] {
            assert_eq!(set.counts(Some(files)).unwrap(), counts, "{files}");
        }
        assert_eq!(set.counts(Some(2)).unwrap_err().code, Code::Usage);
    }

    #[test]
    fn a_set_of_ones_own_may_be_given_as_text() {
        let set = |least: u64| {
            let group =
                format!(r#""kind":"a","files_n":3,"min_bytes":{least},"mean_bytes":20,"max_bytes":90"#);
            Dataset::find(&format!(r#"{{"name":"own","groups":[{{{group}}}]}}"#))
        };
        let sizes: u64 =
            set(10).unwrap().manifest(1, None).unwrap().files.iter().filter_map(|f| f.size_bytes).sum();
        assert_eq!(sizes, 60);
        assert!(set(30).unwrap_err().message.contains("mean_bytes"));
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_names() {
        let failure = Dataset::find("html-9").unwrap_err();
        assert!(failure.code == Code::Usage && failure.message.contains("mixed-2"), "{failure}");
    }
}
