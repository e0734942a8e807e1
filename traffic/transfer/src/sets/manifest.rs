// SPDX-License-Identifier: Apache-2.0
//! Which files there are: `manifest.json` of a data set, or one that somebody wrote for a download.

use std::path::Path;

use netjoule_measure::failure::{Code, Failure, Outcome};
use serde::{Deserialize, Serialize};

use crate::sets::signature::Signed;

/// Version of the file's shape.
const SCHEMA_VERSION: u32 = 1;

/// The files of a set, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    schema_version: u32,
    /// Name of the data set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dataset: Option<String>,
    /// Of the signatures in the files, which then all have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seed: Option<u64>,
    /// The files.
    pub(crate) files: Vec<Entry>,
}

/// One file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// Path below the folder, with `/`.
    pub(crate) name: String,
    /// Length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size_bytes: Option<u64>,
    /// SHA-256 in hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sha256: Option<String>,
    /// Where it is; below `--from` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
}

impl Manifest {
    /// Of a data set.
    pub(crate) fn signed(dataset: &str, seed: u64, files: Vec<Entry>) -> Self {
        Self { schema_version: SCHEMA_VERSION, dataset: Some(dataset.into()), seed: Some(seed), files }
    }

    /// From a file.
    pub(crate) fn read(path: &Path) -> Outcome<Self> {
        let wrong = |why: String| Failure::new(Code::Usage, format!("manifest {}: {why}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let manifest: Self = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        manifest.check().map_err(wrong)?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), String> {
        if self.schema_version != SCHEMA_VERSION {
            let version = self.schema_version;
            return Err(format!("has schema_version {version}; this program reads {SCHEMA_VERSION}"));
        }
        if self.files.is_empty() {
            return Err("names no file".to_owned());
        }
        for file in &self.files {
            let name = &file.name;
            if !is_inside(name) {
                return Err(format!("{name:?} is no name of a file below the folder"));
            }
            if self.seed.is_some() && file.size_bytes.is_none() {
                return Err(format!("{name} has no size_bytes, which files of a data set have"));
            }
            let is_hash = |text: &String| text.len() == 64 && text.bytes().all(|c| c.is_ascii_hexdigit());
            if !file.sha256.as_ref().is_none_or(is_hash) {
                return Err(format!("{name}: sha256 is not 64 hexadecimal digits"));
            }
        }
        Ok(())
    }

    /// What the bytes of file `number` are held to.
    pub(crate) fn signature(&self, number: usize) -> Option<Signed> {
        let size = self.files.get(number)?.size_bytes?;
        Some(Signed { seed: self.seed?, number: number as u64, size })
    }
}

/// Longest part of a name, bytes: file systems take 255, and what is under way has an ending of its own.
const LONGEST_PART: usize = 255 - ".part.json.new".len();

/// Whether `name` is a relative path that stays below its folder, the only one of its file, and not too long.
pub(crate) fn is_inside(name: &str) -> bool {
    let is_name = |part: &str| !["", ".", ".."].contains(&part) && part.len() <= LONGEST_PART;
    name.split('/').all(is_name) && !name.contains('\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(files: &str) -> Result<(), String> {
        let text = format!(r#"{{"schema_version":1,"files":[{files}]}}"#);
        serde_json::from_str::<Manifest>(&text).map_err(|error| error.to_string())?.check()
    }

    #[test]
    fn names_stay_below_the_folder() {
        for name in ["a", "a/b.bin", "..a/b"] {
            assert!(is_inside(name), "{name}");
        }
        let long = "a".repeat(LONGEST_PART + 1);
        for name in ["", "/a", "../a", "a/../../b", ".", "a/", "a//b", "a/./b", "a\0", &long] {
            assert!(!is_inside(name), "{name}");
        }
    }

    #[test]
    fn what_no_manifest_says_is_refused() {
        assert_eq!(read(r#"{"name":"a"}"#), Ok(()));
        for bad in ["", r#"{"name":"../a"}"#, r#"{"name":"a","sha256":"12"}"#, r#"{"name":"a","size":1}"#] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
