// SPDX-License-Identifier: Apache-2.0
//! How is a TUN device made? Raw IP, no packet information, gone when its descriptor closes.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use crate::error::LinkError;

const DEVICE: &str = "/dev/net/tun";

/// Tries to open the TUN device file.
///
/// # Errors
/// The kernel's.
pub fn probe() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(DEVICE)
}

/// Makes TUN interface `ifname` in the namespace of the calling thread.
///
/// # Errors
/// [`LinkError::Host`] when TUN is closed, [`LinkError::Usage`] when the name is taken.
pub fn open(ifname: &str) -> Result<File, LinkError> {
    let file = probe().map_err(|error| {
        LinkError::Host(format!("cannot open {DEVICE}: {error}; use io packet, or chmod 0666 {DEVICE}"))
    })?;
    let mut request: libc::ifreq = zeroed_request(ifname);
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one ifreq, which outlives the call.
    let outcome = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request) };
    if outcome == 0 {
        return Ok(file);
    }
    let error = io::Error::last_os_error();
    Err(match error.raw_os_error() {
        Some(libc::EBUSY | libc::EINVAL | libc::EEXIST) => {
            LinkError::Usage(format!("interface {ifname} exists already; choose another ifname"))
        }
        Some(libc::EPERM) => LinkError::Host(format!(
            "cannot make TUN interface {ifname}: {error}; run as root, or inside `unshare -Urnm`"
        )),
        _ => LinkError::Failed(format!("cannot make TUN interface {ifname}: {error}")),
    })
}

/// An ifreq with only its name set. `ifname` has at most 15 bytes (config.rs checks it).
pub(crate) fn zeroed_request(ifname: &str) -> libc::ifreq {
    // SAFETY: all-zero bytes are a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(ifname.bytes().take(15)) {
        *to = from as libc::c_char;
    }
    request
}
