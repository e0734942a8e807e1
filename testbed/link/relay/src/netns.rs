// SPDX-License-Identifier: Apache-2.0
//! How is something done inside another network namespace? In a thread that enters it.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

use nix::sched::{setns, unshare, CloneFlags};

use crate::end::NetnsRef;
use crate::error::LinkError;

const HINT: &str = "run as root, or inside `unshare -Urnm`";

/// An open network namespace.
#[derive(Debug)]
pub struct Netns {
    file: File,
    label: String,
}

impl Netns {
    /// Opens a namespace.
    ///
    /// # Errors
    /// [`LinkError::Usage`] when there is none, [`LinkError::Host`] when it may not be opened.
    pub fn open(reference: &NetnsRef) -> Result<Self, LinkError> {
        let path = match reference {
            NetnsRef::Own => "/proc/self/ns/net".into(),
            NetnsRef::Path(path) => path.clone(),
        };
        let label = path.display().to_string();
        match File::open(&path) {
            Ok(file) => Ok(Self { file, label }),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(LinkError::Usage(format!(
                "there is no network namespace {label}; make it before the link starts"
            ))),
            Err(error) => {
                Err(LinkError::Host(format!("cannot open network namespace {label}: {error}; {HINT}")))
            }
        }
    }

    /// A new namespace without a name; it is gone when the last descriptor in it closes.
    ///
    /// # Errors
    /// [`LinkError::Host`] when the kernel refuses.
    pub fn create() -> Result<Self, LinkError> {
        in_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|error| {
                LinkError::Host(format!("cannot make a network namespace: {error}; {HINT}"))
            })?;
            let file = File::open("/proc/thread-self/ns/net").map_err(|error| {
                LinkError::Host(format!("cannot open /proc/thread-self/ns/net: {error}; mount /proc"))
            })?;
            Ok(Self { file, label: "of the relay".to_owned() })
        })
    }

    /// Path or description, for messages.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// A path that a child process can open.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// True when both are the same namespace.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self.file.metadata(), other.file.metadata()) {
            (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
            _ => false,
        }
    }

    /// Runs `work` inside the namespace.
    ///
    /// # Errors
    /// What `work` gives, or [`LinkError::Host`] when the namespace cannot be entered.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> Result<T, LinkError> + Send) -> Result<T, LinkError> {
        in_thread(|| {
            setns(&self.file, CloneFlags::CLONE_NEWNET).map_err(|error| {
                LinkError::Host(format!("cannot enter network namespace {}: {error}; {HINT}", self.label))
            })?;
            work()
        })
    }
}

fn in_thread<T: Send>(work: impl FnOnce() -> Result<T, LinkError> + Send) -> Result<T, LinkError> {
    std::thread::scope(|scope| scope.spawn(work).join())
        .unwrap_or_else(|_| Err(LinkError::Failed("a set-up thread panicked".to_owned())))
}

/// Runs `ip -batch` with these lines in the namespace of the calling thread.
///
/// # Errors
/// [`LinkError::Host`] when `ip` is missing, [`LinkError::Failed`] with its first complaint.
pub fn ip_batch(lines: &[String]) -> Result<(), LinkError> {
    let mut child = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| LinkError::Host(format!("cannot run `ip`: {error}; install iproute2")))?;
    let batch = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    // A child that ends early closes the pipe; its own message says why.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(batch.as_bytes()));
    let output = child
        .wait_with_output()
        .map_err(|error| LinkError::Failed(format!("`ip -batch` could not be waited for: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let first = complaint.lines().next().unwrap_or("no message").to_owned();
    let sentence = format!("`ip` refused to set up an interface: {first}");
    Err(if first.contains("not permitted") {
        LinkError::Host(format!("{sentence}; {HINT}"))
    } else {
        LinkError::Failed(sentence)
    })
}
