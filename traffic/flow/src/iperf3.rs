// SPDX-License-Identifier: Apache-2.0
//! iperf3's command line: which command it means here, and what does here what a flag of its does there. Pure.

use std::ffi::{OsStr, OsString};

/// iperf3's letters that a value follows.
const WITH_VALUE: &str = "pfiIFABXbtnklPwCMSLOT";

/// What to use instead of iperf3's flags that are no flags here: each with all its names.
const ANSWERS: &[(&[&str], &str)] = &[
    (
        &["-S", "--tos", "--dscp"],
        "the type of service is the host's to set: nft add rule inet filter output ip daddr HOST ip dscp set cs1",
    ),
    (&["-M", "--set-mss"], "the segment size is the route's: ip route change HOST dev DEVICE advmss BYTES"),
    (
        &["-w", "--window"],
        "socket buffers are the host's (sysctl net.ipv4.tcp_wmem, tcp_rmem); what waits in a sender's is bounded \
         with --notsent-lowat-bytes",
    ),
    (&["-A", "--affinity"], "pin the program: write taskset -c CPU before the command"),
    (&["-F", "--file"], "sizes and times come from a profile or a trace, never a file's contents: --profile FILE"),
    (&["-I", "--pidfile"], "its number is in the events: serve --json (flow_started)"),
    (&["-L", "--flowlabel"], "the flow label is the host's: sysctl net.ipv6.auto_flowlabels"),
    (&["-T", "--title", "--extra-data"], "a report is named by its flow_id: keep the title beside it"),
    (&["-X", "--xbind", "--nstreams"], "an SCTP flow has one address and one stream: -P N for more flows"),
    (&["--bind-dev"], "bind to the device's address: -B ADDR"),
    (&["--cport"], "the sender's port is any free one; the server's for the data is serve --data-port N"),
    (&["--connect-timeout", "--rcv-timeout", "--snd-timeout", "--idle-timeout"], "such limits are fixed here: leave it out"),
    (&["--fq-rate", "--pacing-timer"], "the kernel paces by launch times: --pacing so_txtime (needs fq)"),
    (&["--server-bitrate-limit"], "the cap of each flow's payload rate is serve --max-rate RATE"),
    (&["--timestamps"], "times are in the events: --json"),
    (&["--debug"], "what happens inside is told by --json, --traces and --qlog DIR"),
    (&["--repeating-payload"], "the payload follows from a seed: --seed N"),
    (&["--udp-counters-64bit", "--dont-fragment", "--forceflush"], "it is always so here: leave it out"),
    (
        &["--username", "--rsa-public-key-path", "--rsa-private-key-path", "--authorized-users-path", "--time-skew-threshold"],
        "both ends prove a shared secret: --secret env:NAME or file:PATH",
    ),
    (&["-i", "-f", "-V", "-J", "--interval", "--format", "--verbose"], "this belongs to the command that sends: netjoule-traffic send"),
    (&["-v"], "the version is told by --version, or -V without a command"),
    (&["-c", "--client", "-s", "--server"], "a command is either the server's (-s) or a client's (-c HOST)"),
];

/// Which command iperf3's `-s` or `-c HOST` in `words`, those behind the program's name, stands for; `None` where they begin
/// with a command already or hold neither.
pub fn command_of(words: &[OsString]) -> Option<&'static str> {
    if !words.first().is_some_and(|word| is_flag(word)) {
        return None;
    }
    words.iter().filter_map(|word| word.to_str()).find_map(|word| {
        if let Some(name) = word.strip_prefix("--") {
            return match name.split('=').next() {
                Some("server") => Some("serve"),
                Some("client") => Some("send"),
                _ => None,
            };
        }
        let mut letters = word.strip_prefix('-')?.chars().take_while(|letter| !WITH_VALUE.contains(*letter));
        letters.find_map(|letter| match letter {
            's' => Some("serve"),
            'c' => Some("send"),
            _ => None,
        })
    })
}

fn is_flag(word: &OsStr) -> bool {
    word.to_str().is_some_and(|word| word.len() > 1 && word.starts_with('-'))
}

/// What does here what iperf3's `flag` does, in words that can end a sentence; `None`: it is none of iperf3's.
pub fn answer(flag: &str) -> Option<&'static str> {
    let name = flag.split(['=', ' ']).next().unwrap_or(flag);
    ANSWERS.iter().find(|(names, _)| names.contains(&name)).map(|(_, answer)| *answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_and_a_client_are_known_by_their_letters_wherever_they_stand() {
        let of = |line: &str| command_of(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for line in ["-s", "--server", "-1s", "-D -s", "-p 5301 -s", "-sD"] {
            assert_eq!(of(line), Some("serve"), "{line}");
        }
        for line in
            ["-c host", "-chost", "-uc host", "-t 3 -c s", "--client=host", "--client host", "-b 5M -Rc h"]
        {
            assert_eq!(of(line), Some("send"), "{line}");
        }
        for line in ["", "send -c host", "serve -s", "-h", "--version", "-u", "-Cs", "host -c"] {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn every_flag_has_one_answer_that_ends_a_sentence() {
        let names: Vec<&str> = ANSWERS.iter().flat_map(|(names, _)| names.iter().copied()).collect();
        for name in &names {
            assert_eq!(names.iter().filter(|other| *other == name).count(), 1, "{name}");
            assert!(answer(name).is_some_and(|answer| answer.len() > 20 && !answer.ends_with('.')), "{name}");
        }
        assert_eq!((answer("-S 5"), answer("--tos=5")), (answer("-S"), answer("-S")));
        assert_eq!(answer("--speed"), None);
    }
}
