// SPDX-License-Identifier: Apache-2.0
//! Files that are given as captures: what they begin with.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::failure::{Code, Failure, Outcome};

/// First bytes of capture files: pcapng, and classic pcap with us or ns in either byte order.
const CAPTURE_MAGIC: [[u8; 4]; 5] = [
    [0x0a, 0x0d, 0x0d, 0x0a],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x4d, 0x3c, 0xb2, 0xa1],
];

/// First bytes of compressed files, with the format's name and what unpacks it.
const COMPRESSED: [(&[u8], &str, &str); 5] = [
    (&[0x1f, 0x8b], "gzip", "gunzip"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd", "unzstd"),
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz", "unxz"),
    (&[0x04, 0x22, 0x4d, 0x18], "lz4", "unlz4"),
    (b"BZh", "bzip2", "bunzip2"),
];

/// Whether a file begins as a capture does.
///
/// # Errors
/// [`Code::Usage`] with the file's name.
pub fn is_capture(path: &Path) -> Outcome<bool> {
    let mut magic = [0; 4];
    let read = opened(path)?.read(&mut magic);
    let length =
        read.map_err(|error| Failure::new(Code::Usage, format!("cannot read {}: {error}", path.display())))?;
    Ok(length == magic.len() && CAPTURE_MAGIC.contains(&magic))
}

/// Refuse a compressed file for that reason.
///
/// # Errors
/// [`Code::Usage`] with the file's name.
pub fn refuse_compressed(path: &Path) -> Outcome<()> {
    let mut magic = [0; 6];
    // What cannot be read is told by who reads it.
    let length = File::open(path).and_then(|mut file| file.read(&mut magic)).unwrap_or(0);
    match COMPRESSED.iter().find(|(begin, ..)| magic[..length].starts_with(begin)) {
        None => Ok(()),
        Some((_, name, program)) => {
            let what = format!("{} is compressed ({name}): unpack it first ({program})", path.display());
            Code::Usage.fail(what)
        }
    }
}

/// The file, opened.
///
/// # Errors
/// [`Code::Usage`] with its name.
pub fn opened(path: &Path) -> Outcome<File> {
    File::open(path)
        .map_err(|error| Failure::new(Code::Usage, format!("cannot open {}: {error}", path.display())))
}
