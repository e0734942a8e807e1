// SPDX-License-Identifier: Apache-2.0
//! A folder to download into, and the program's run in it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{json, Value};

/// A folder that goes with the test.
pub(crate) struct Place(pub(crate) PathBuf);

impl Place {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("netjoule-get-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("out")).unwrap();
        Self(path)
    }

    pub(crate) fn out(&self, name: &str) -> PathBuf {
        self.0.join("out").join(name)
    }

    /// Names of all that lies there.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.join("out")).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A manifest of such entries.
    pub(crate) fn manifest(&self, files: &[Value]) -> PathBuf {
        let path = self.0.join("manifest.json");
        let text = json!({ "schema_version": 1, "files": files }).to_string();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_netjoule-transfer"));
        command.arg("get").args(words).arg("--json");
        if !words.contains(&"--to") {
            command.arg("--out").arg(self.0.join("out"));
        }
        command
    }

    /// Runs it to its end.
    pub(crate) fn get(&self, words: &[&str]) -> Got {
        Got::of(self.command(words))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What became of a run.
pub(crate) struct Got {
    pub(crate) code: Option<i32>,
    pub(crate) report: Value,
    pub(crate) errors: Vec<String>,
}

impl Got {
    pub(crate) fn of(mut command: Command) -> Self {
        let output = command.output().unwrap();
        let report = serde_json::from_slice(&output.stdout).unwrap_or_default();
        fits_its_schema(&report);
        let errors = String::from_utf8(output.stderr).unwrap();
        Self { code: output.status.code(), report, errors: errors.lines().map(str::to_owned).collect() }
    }

    /// All files came.
    pub(crate) fn is_good(&self) {
        assert_eq!(self.code, Some(0), "{:?}", self.errors);
        assert_eq!(self.report["files_verified_n"], self.report["files_n"]);
    }

    /// One sentence, with this exit code and this code of the failure.
    pub(crate) fn is_bad(&self, exit: i32, code: &str) {
        assert_eq!(self.code, Some(exit), "{:?}", self.errors);
        assert_eq!(self.errors.len(), 1, "{:?}", self.errors);
        assert_eq!(self.report["failures"][0]["code"], code, "{:?}", self.errors);
    }
}

fn fits_its_schema(report: &Value) {
    const SCHEMA: &str = include_str!("../../../../protocols/contracts/schemas/transfer_report.schema.json");
    let validator = jsonschema::validator_for(&serde_json::from_str(SCHEMA).unwrap()).unwrap();
    let errors: Vec<String> = validator.iter_errors(report).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
