// SPDX-License-Identifier: Apache-2.0
//! `netjoule-transfer dataset`: writes the files of a set. They are sparse and hold nothing but their signatures, so
//! that on tmpfs a GB takes 4 MB of memory, before and after a server sends it.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use netjoule_measure::failure::{Failure, Outcome};
use netjoule_measure::output;
use nix::sys::stat::futimens;
use nix::sys::time::TimeSpec;

use crate::cli::DatasetArgs;
use crate::sets::dataset::{self, Dataset};
use crate::sets::manifest::Manifest;
use crate::sets::signature::Signed;
use crate::storage::{digest_of, hexadecimal};

/// Time of change of all files, s since 1970: the same in each run, and old enough for a strong ETag (Apache's are weak
/// within a second of a change).
const CHANGED_S: i64 = 1_600_000_000;

/// Writes a set, or says which there are or which files one has.
pub(crate) fn run(args: &DatasetArgs) -> Outcome<()> {
    let Some(name) = &args.name else { return list() };
    let mut manifest = Dataset::find(name)?.manifest(args.seed, args.files)?;
    let Some(folder) = &args.out else { return output::write(&text(&manifest)) };
    let result = write_all(&mut manifest, folder, args.sha256);
    result.map_err(Failure::system(format!("writing the data set to {}", folder.display())))?;
    let bytes: u64 = manifest.files.iter().filter_map(|file| file.size_bytes).sum();
    output::write(&format!("{} files, {bytes} bytes in {}", manifest.files.len(), folder.display()))
}

fn list() -> Outcome<()> {
    dataset::named().iter().try_for_each(|set| output::write(&format!("{:<8} {}", set.name, set.description)))
}

fn text(manifest: &Manifest) -> String {
    serde_json::to_string_pretty(manifest).expect("a manifest always serialises")
}

fn write_all(manifest: &mut Manifest, folder: &Path, with_hash: bool) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for number in 0..manifest.files.len() {
        let Some(signed) = manifest.signature(number) else { continue };
        let entry = &mut manifest.files[number];
        let path = folder.join(&entry.name);
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
        write_one(&file, signed)?;
        if with_hash {
            entry.sha256 = Some(hexadecimal(digest_of(&file)?.as_ref()));
        }
    }
    std::fs::write(folder.join("manifest.json"), text(manifest) + "\n")
}

fn write_one(file: &File, signed: Signed) -> std::io::Result<()> {
    file.set_len(signed.size)?;
    for (start, bytes) in signed.within(0..signed.size) {
        file.write_all_at(&bytes, start)?;
    }
    let changed = TimeSpec::new(CHANGED_S, 0);
    Ok(futimens(file.as_raw_fd(), &changed, &changed)?)
}
