// SPDX-License-Identifier: Apache-2.0
//! `netjoule-transfer dataset`: what it writes is small, the same each time, and as its manifest says.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, UNIX_EPOCH};

use serde_json::Value;

fn dataset(words: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_netjoule-transfer")).arg("dataset").args(words).output().unwrap()
}

/// A folder on tmpfs that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new("/dev/shm").join(format!("netjoule-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn manifest(folder: &Folder) -> Value {
    serde_json::from_slice(&std::fs::read(folder.0.join("manifest.json")).unwrap()).unwrap()
}

#[test]
fn thirty_two_gigabytes_take_160_megabytes_of_memory_and_two_seconds() {
    let folder = Folder::new("32gb");
    let started = Instant::now();
    assert!(dataset(&["32gb", "--out", folder.0.to_str().unwrap()]).status.success());
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    let files = std::fs::read_dir(&folder.0).unwrap().map(|file| file.unwrap().metadata().unwrap());
    let (bytes, blocks) =
        files.fold((0, 0), |(bytes, blocks), file| (bytes + file.len(), blocks + file.blocks()));
    assert!(bytes > 32 << 30);
    assert!(blocks * 512 <= 160_000_000, "{} bytes of memory", blocks * 512);
}

#[test]
fn a_seed_gives_the_same_files_and_all_are_old() {
    let folders = [Folder::new("a"), Folder::new("b"), Folder::new("c")];
    for (folder, seed) in folders.iter().zip(["7", "7", "8"]) {
        let words =
            ["image-1", "--files", "5", "--sha256", "--seed", seed, "--out", folder.0.to_str().unwrap()];
        assert!(dataset(&words).status.success());
    }
    let [first, again, other] = folders.each_ref().map(manifest);
    assert_eq!(first, again);
    assert_ne!(first["files"][0]["sha256"], other["files"][0]["sha256"]);
    let sizes = first["files"].as_array().unwrap().iter().map(|file| file["size_bytes"].as_u64().unwrap());
    assert_eq!(sizes.sum::<u64>(), 5 * 655_360);
    let changed = std::fs::metadata(folders[0].0.join("image-001.bin")).unwrap().modified().unwrap();
    assert_eq!(changed.duration_since(UNIX_EPOCH).unwrap().as_secs(), 1_600_000_000);
}

#[test]
fn a_set_of_ones_own_stands_in_a_yaml_file() {
    let folder = Folder::new("yaml");
    let file = folder.0.join("own.yaml");
    let groups = "- {kind: tiny, files_n: 3, mean_bytes: 10, min_bytes: 0, max_bytes: 20}\n";
    std::fs::write(&file, format!("name: own\ngroups:\n{groups}")).unwrap();
    let output = dataset(&[file.to_str().unwrap()]);
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["files"].as_array().unwrap().len(), 3);
    std::fs::write(&file, format!("name: own\ngroups:\n{groups}  colour: red\n")).unwrap();
    let output = dataset(&[file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(String::from_utf8(output.stderr).unwrap().trim().lines().count(), 1);
}

#[test]
fn the_named_sets_fit_their_schema() {
    let contracts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocols/contracts");
    let read = |name: &str| -> Value {
        serde_json::from_slice(&std::fs::read(contracts.join(name)).unwrap()).unwrap()
    };
    let validator = jsonschema::validator_for(&read("schemas/datasets.schema.json")).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&read("datasets.json")).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn what_is_made_in_memory_is_what_a_server_would_serve() {
    let folders = [Folder::new("served"), Folder::new("made")];
    let [served, made] = folders.each_ref().map(|folder| folder.0.to_str().unwrap());
    let set = ["video-1", "--files", "2", "--seed", "7"];
    assert!(dataset(&[&set[..], &["--out", served]].concat()).status.success());
    let get = ["get", "--from", "memory", "--request-bytes", "3K", "--parallelism", "3", "--out", made];
    let level = ["--algorithm", "fixed", "--json", "--dataset"];
    let mut program = Command::new(env!("CARGO_BIN_EXE_netjoule-transfer"));
    let output = program.args(get).args(level).args(set).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["files_verified_n"], &report["connections_opened_n"]), (&2.into(), &0.into()));
    for file in manifest(&folders[0])["files"].as_array().unwrap() {
        let [wanted, found] =
            folders.each_ref().map(|folder| std::fs::read(folder.0.join(file["name"].as_str().unwrap())));
        assert!(wanted.unwrap() == found.unwrap(), "{}", file["name"]);
    }
}
