// SPDX-License-Identifier: Apache-2.0
//! The flow's packets in a pcapng file, as this host's network stack sees them: only those between the flow's two
//! addresses and ports, whole or cut behind their headers, with what was dropped on the way told by the kernel.
//!
//! A thread of its own writes, so that the flow never waits for the file. Its CPU time counts as this process's, and the
//! kernel copies each packet once more: capturing adds to the energy that is measured meanwhile.

pub mod file;
mod filter;
pub mod frames;
mod headers;
mod libpcap;
pub mod network;
mod pcapng;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

use serde::{Deserialize, Serialize};

use crate::failure::{Code, Failure, Outcome};
use filter::Flow;
use libpcap::{Device, Drops, Packet};
use pcapng::Interface;

/// Bytes kept of a packet: more than any that a network card joins.
const WHOLE_BYTES: u32 = 1 << 18;
/// How long the thread sleeps when nothing comes, ms.
const IDLE_MS: i32 = 200;
/// Waits after the flow's end, at most: a peer that goes on sending must not keep the file open.
const LAST_ROUNDS: u32 = 20;

/// What became of a capture, for the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureSummary {
    /// The file.
    pub file: String,
    /// Network interface of this host.
    pub interface: String,
    /// What was let through, in libpcap's words.
    pub filter: String,
    /// Packets are cut behind their transport header.
    pub headers_only: bool,
    /// Packets written.
    pub packets: u64,
    /// Their bytes as they were on the interface.
    pub bytes: u64,
    /// Packets that matched and that the kernel dropped, because the thread did not read fast enough.
    pub dropped_by_kernel: u64,
    /// Packets that the interface dropped, of whatever flow.
    pub dropped_by_interface: u64,
    /// Why the file is not whole; then the counts are of what was handed to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// A capture that runs.
#[derive(Debug)]
pub struct Capture {
    summary: CaptureSummary,
    should_end: Arc<AtomicBool>,
    thread: Option<JoinHandle<(Written, io::Result<()>)>>,
}

#[derive(Debug, Default)]
struct Written {
    packets: u64,
    bytes: u64,
    drops: Drops,
}

impl Capture {
    /// Capture the packets between `local` and `peer` that have `ip_protocol` in their IP header, from now on.
    ///
    /// # Errors
    /// [`Code::HostLacks`] without libpcap or the privilege, [`Code::System`] when the file cannot be made.
    pub fn start(
        path: &Path,
        local: SocketAddr,
        peer: SocketAddr,
        ip_protocol: u8,
        headers_only: bool,
    ) -> Outcome<Self> {
        let interface = filter::interface_towards(local.ip(), peer.ip()).ok_or_else(|| {
            Failure::new(Code::HostLacks, format!("no network interface here has the address {}", local.ip()))
        })?;
        let filter = Flow { local, peer, ip_protocol }.filter();
        let snap_bytes = if headers_only { headers::snap_bytes(ip_protocol) } else { WHOLE_BYTES };
        let device = Device::open(&interface, &filter, snap_bytes).map_err(|reason| {
            Failure::new(Code::HostLacks, format!("cannot capture on {interface}: {reason}"))
        })?;
        if headers_only && !headers::knows(device.link_type()) {
            return Code::HostLacks.fail(format!(
                "the headers on {interface} are of a kind that --capture-headers does not know"
            ));
        }
        let cannot_write = |error: io::Error| {
            Failure::new(Code::System, format!("cannot write {}: {error}", path.display()))
        };
        let about =
            Interface { name: &interface, filter: &filter, link_type: device.link_type(), snap_bytes };
        let mut file = BufWriter::new(File::create(path).map_err(cannot_write)?);
        file.write_all(&pcapng::begin(&about)).map_err(cannot_write)?;
        let should_end = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&should_end);
        let thread = std::thread::Builder::new()
            .name("capture".into())
            .spawn(move || {
                let mut written = Written::default();
                let outcome = write(device, file, headers_only, &told, &mut written);
                (written, outcome)
            })
            .map_err(Failure::system("start the capture's thread"))?;
        let summary = CaptureSummary {
            file: path.display().to_string(),
            interface,
            filter,
            headers_only,
            packets: 0,
            bytes: 0,
            dropped_by_kernel: 0,
            dropped_by_interface: 0,
            failure: None,
        };
        Ok(Self { summary, should_end, thread: Some(thread) })
    }

    /// End it: what has arrived until now is written. What went wrong stands in the summary: the flow is over, and its
    /// report does not depend on it.
    pub fn end(mut self) -> CaptureSummary {
        let (written, outcome) = self.join();
        let mut summary = self.summary.clone();
        let words = |error| format!("the capture {} is not whole: {error}", summary.file);
        summary.failure = outcome.err().map(words);
        (summary.packets, summary.bytes) = (written.packets, written.bytes);
        summary.dropped_by_kernel = written.drops.by_kernel.into();
        summary.dropped_by_interface = written.drops.by_interface.into();
        summary
    }

    fn join(&mut self) -> (Written, io::Result<()>) {
        self.should_end.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return (Written::default(), Ok(())) };
        let panicked = |_| (Written::default(), Err(io::Error::other("its thread panicked")));
        thread.join().unwrap_or_else(panicked)
    }
}

/// A flow that failed leaves a file that can be read all the same.
impl Drop for Capture {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

fn write(
    mut device: Device,
    mut file: BufWriter<File>,
    headers_only: bool,
    should_end: &AtomicBool,
    written: &mut Written,
) -> io::Result<()> {
    let (link_type, mut rounds_left) = (device.link_type(), LAST_ROUNDS);
    loop {
        let ends = should_end.load(Ordering::Relaxed);
        rounds_left -= u32::from(ends);
        let before = written.packets;
        device.wait(IDLE_MS)?;
        while let Some(packet) = device.next()? {
            write_packet(&mut file, link_type, &packet, headers_only)?;
            written.packets += 1;
            written.bytes += u64::from(packet.bytes_on_wire);
        }
        // The kernel hands packets over late: there are no more once a whole wait has brought none.
        if ends && (written.packets == before || rounds_left == 0) {
            break;
        }
    }
    written.drops = device.drops();
    file.write_all(&pcapng::end(written.packets, written.drops))?;
    file.flush()
}

fn write_packet(
    file: &mut impl Write,
    link_type: u16,
    packet: &Packet<'_>,
    headers_only: bool,
) -> io::Result<()> {
    let kept = match headers_only {
        true => headers::header_bytes(link_type, packet.bytes).min(packet.bytes.len()),
        false => packet.bytes.len(),
    };
    file.write_all(&pcapng::packet(packet.time_ns, packet.bytes_on_wire, &packet.bytes[..kept]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::frames::for_each_frame;
    use std::net::UdpSocket;

    /// Over loopback where this user may capture; elsewhere the refusal must be a sentence with the way out.
    #[test]
    fn a_flow_is_captured_alone_and_header_only_leaves_no_payload() {
        let [near, far, stranger] = [(); 3].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let (local, peer) = (near.local_addr().unwrap(), far.local_addr().unwrap());
        for headers_only in [false, true] {
            let path =
                std::env::temp_dir().join(format!("netjoule-{}-{headers_only}.pcapng", std::process::id()));
            let capture = match Capture::start(&path, local, peer, 17, headers_only) {
                Ok(capture) => capture,
                Err(failure) => {
                    assert_eq!(failure.code, Code::HostLacks, "{failure}");
                    assert!(
                        failure.message.contains("CAP_NET_RAW") || failure.message.contains("libpcap"),
                        "{failure}"
                    );
                    return;
                }
            };
            for _ in 0..20 {
                near.send_to(&[0xab; 100], peer).unwrap();
                far.send_to(&[0xab; 100], local).unwrap();
                stranger.send_to(&[0xab; 100], peer).unwrap();
            }
            let summary = capture.end();
            assert_eq!(summary.failure, None);
            let mut lengths = Vec::new();
            for_each_frame(File::open(&path).unwrap(), |frame| {
                lengths.push(frame.bytes.len());
                assert!(!headers_only || !frame.bytes.windows(8).any(|bytes| bytes == [0xab; 8]));
                true
            })
            .unwrap();
            std::fs::remove_file(&path).unwrap();
            assert_eq!((summary.packets, summary.dropped_by_kernel), (40, 0), "{summary:?}");
            // Ethernet, IPv4 and UDP headers in front of 100 bytes.
            assert_eq!(lengths, [if headers_only { 42 } else { 142 }; 40]);
            assert_eq!(summary.bytes, 40 * 142);
        }
    }
}
