// SPDX-License-Identifier: Apache-2.0
//! `netjoule-traffic dissect`: a capture file, one line per DCCP packet.
//!
//! | question | module |
//! | --- | --- |
//! | which frames are in the file? | [`netjoule_measure::capture::frames`] |
//! | which IP packet is in a frame? | [`netjoule_measure::capture::network`] |
//! | which DCCP packet is in it, and is its checksum right? | [`packet`] |
//! | how is it told? | [`report`] |
//!
//! Memory does not grow with the file. A capture taken on a sender that leaves UDP segmentation to its network device
//! shows trains of datagrams as one; that cannot be told from the file.

pub mod packet;
pub mod report;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use netjoule_measure::capture::file::refuse_compressed;
use netjoule_measure::capture::network::Transported;
use netjoule_measure::capture::{frames, network};
use netjoule_measure::failure::{Code, Failure, Outcome};
use netjoule_measure::output::Output;
use packet::{Encapsulation, Seen};
use report::{Reporter, Style};

/// Exit code of a file that is no capture, or ends too early.
const INVALID_DATA: u8 = 4;

/// `dissect`.
#[derive(Debug, Args)]
pub struct DissectArgs {
    /// Capture file (pcap or pcapng)
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// UDP port that carries DCCP (RFC 6773), at either end; may be given several times
    #[arg(long = "udp-port", value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub udp_ports: Vec<u16>,
    /// Print lines of JSON, the totals as the last one
    #[arg(long)]
    pub json: bool,
}

/// Dissect the file to stdout. Returns the exit code: 0, or 4 with a sentence on stderr when the file is damaged.
pub fn run(args: &DissectArgs) -> Outcome<u8> {
    refuse_compressed(&args.file)?;
    let file = open(&args.file)?;
    let style = if args.json { Style::Json } else { Style::Plain };
    let mut stdout = BufWriter::new(io::stdout().lock());
    let damage = dissect(file, &args.udp_ports, style, &mut stdout)
        .and_then(|damage| stdout.flush().map(|()| damage))
        .map_err(|error| Failure::new(Code::Interrupted, format!("stdout was closed: {error}")))?;
    drop(stdout);
    Ok(damage.map_or(0, |damage| {
        Output::Silent.complain(&format!("{}: {damage}", args.file.display()));
        INVALID_DATA
    }))
}

/// Every DCCP packet of a capture to `out`, then the totals. Returns what is wrong with the file, if something is, as a
/// clause; the packets before that are told nevertheless. Errors are those of `out`.
pub fn dissect(
    file: impl io::Read + Send,
    udp_ports: &[u16],
    style: Style,
    out: &mut dyn Write,
) -> io::Result<Option<String>> {
    let mut reporter = Reporter::new(style, out);
    let mut written = Ok(());
    let read = frames::for_each_frame(file, |frame| {
        reporter.frame(frame);
        written = match network::find(frame) {
            Ok(transported) => carried(&transported, udp_ports)
                .map_or(Ok(()), |how| reporter.packet(frame, &transported, &Seen::new(&transported, how))),
            Err(network::NotIp::Other) => Ok(()),
            Err(reason @ network::NotIp::LinkType(_)) => reporter.unreadable(frame, &reason.to_string()),
        };
        written.is_ok()
    });
    written?;
    let damage = read.err().map(|error| error.to_string());
    reporter.totals(damage.as_deref())?;
    Ok(damage)
}

/// How DCCP is carried in this IP packet, if it is.
fn carried(transported: &Transported<'_>, udp_ports: &[u16]) -> Option<Encapsulation> {
    match transported.protocol {
        network::DCCP => Some(Encapsulation::Ip),
        network::UDP => {
            let ports = transported.udp_ports()?;
            (udp_ports.contains(&ports.0) || udp_ports.contains(&ports.1))
                .then_some(Encapsulation::Udp { source: ports.0, destination: ports.1 })
        }
        _ => None,
    }
}

fn open(path: &Path) -> Outcome<File> {
    let usage = |what: String| Failure::new(Code::Usage, format!("{}: {what}", path.display()));
    let file = File::open(path).map_err(|error| usage(format!("cannot be opened: {error}")))?;
    match file.metadata() {
        Ok(metadata) if metadata.is_dir() => Err(usage("is a directory, give a capture file".to_owned())),
        _ => Ok(file),
    }
}

#[cfg(test)]
mod tests;
