// SPDX-License-Identifier: Apache-2.0
//! Runs the real binary: servers that end with the test, clients with their events, and the report's contract.

// Each test file is its own crate and uses a part of this.
#![allow(dead_code)]

pub(crate) mod network;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, RawFd};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use serde_json::Value;
use socket2::{Domain, Socket, Type};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_netjoule-traffic");

/// Every transport with two ends that all hosts have.
pub(crate) const TRANSPORTS: [&str; 5] = ["udp", "tcp", "dccp", "quic", "quic-datagram"];

/// Every transport with two ends that this host has.
pub(crate) fn transports() -> Vec<&'static str> {
    let more = ["sctp"].into_iter().filter(|name| {
        netjoule_traffic::registry::protocol(name).is_ok_and(|protocol| protocol.missing().is_none())
    });
    TRANSPORTS.into_iter().chain(more).collect()
}

/// Says loudly that `test` has not run. On CI (CI=true in the environment) it fails then, where the kernel has what it
/// takes and this environment alone forbids it.
#[track_caller]
pub(crate) fn not_run(test: &str, why: &str, kernel_could: bool) {
    eprintln!("\n*** {test} NOT RUN: {why}\n");
    let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!(is_ci && kernel_could), "on CI {test} must run: {why}");
}

/// Whether this host has an IPv6 loopback; without one only the IPv4 half of a test can run.
pub(crate) fn has_ipv6() -> bool {
    TcpListener::bind("[::1]:0").is_ok()
}

/// A TCP port where nobody listens, and nobody else can while the socket lives.
pub(crate) fn closed_port() -> (Socket, String) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap().to_string();
    (socket, address)
}

/// A `serve` of one's own on a free port. Dropping it ends its stdin, and with it the process.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) control: String,
    stdout: BufReader<ChildStdout>,
}

impl Server {
    pub(crate) fn start(bind: &str, more: &[&str]) -> Self {
        Self::start_by(Command::new(BINARY), bind, more)
    }

    /// The same by a command that runs the binary with the arguments that follow.
    pub(crate) fn start_by(mut command: Command, bind: &str, more: &[&str]) -> Self {
        let mut child = command
            .args(["serve", "--bind", bind, "--port", "0", "--json", "--exit-with-stdin"])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let listening = next_event(&mut stdout).expect("the server says where it listens");
        assert_eq!(listening["event"], "listening");
        let control = listening["control"].as_str().unwrap().to_owned();
        Self { child, control, stdout }
    }

    /// The next event of this name; others are skipped.
    pub(crate) fn expect(&mut self, name: &str) -> Value {
        self.expect_any(&[name])
    }

    /// The next event of one of these names.
    pub(crate) fn expect_any(&mut self, names: &[&str]) -> Value {
        expect(&mut self.stdout, names)
    }

    /// Ask it to end by closing its stdin; its exit status.
    pub(crate) fn end(&mut self) -> ExitStatus {
        drop(self.child.stdin.take());
        self.child.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// What a finished client left.
pub(crate) struct Finished {
    pub(crate) code: i32,
    pub(crate) events: Vec<Value>,
    pub(crate) stderr: String,
}

impl Finished {
    /// The report; a test that has none fails with what the client said instead.
    pub(crate) fn report(&self) -> &Value {
        match self.events.last() {
            Some(report) if report["event"] == "report" => report,
            other => panic!("no report but {other:?}; {}", self.stderr),
        }
    }
}

/// A running `send`.
pub(crate) struct Client {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Client {
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_by(Command::new(BINARY), args)
    }

    /// The same by a command that runs the binary with the arguments that follow.
    pub(crate) fn start_by(mut command: Command, args: &[&str]) -> Self {
        let mut child = command
            .arg("send")
            .args(args)
            // Short flows: more than an interval or two of them.
            .args(if args.contains(&"-i") { &[][..] } else { &["-i", "0.1"] })
            .arg("--json")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin, stdout }
    }

    pub(crate) fn expect(&mut self, name: &str) -> Value {
        expect(&mut self.stdout, &[name])
    }

    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Wait for its end; the events not yet taken and its words on stderr.
    pub(crate) fn finish(mut self) -> Finished {
        let events = std::iter::from_fn(|| next_event(&mut self.stdout)).collect();
        drop(self.stdin.take());
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        Finished { code, events, stderr }
    }
}

/// Run `send` to its end.
pub(crate) fn send(args: &[&str]) -> Finished {
    Client::start(args).finish()
}

/// Ask a child to stop the way a shell does.
pub(crate) fn terminate(child: &Child) {
    signal(child.id(), libc::SIGTERM);
}

/// Send a signal to a child that has not been waited for, or to one of its own: the number is still its own.
pub(crate) fn signal(process: u32, number: i32) {
    // SAFETY: a plain system call.
    unsafe { libc::kill(process as i32, number) };
}

/// The next line of a process. One that says nothing for two minutes fails the test, which would wait for ever.
fn next_event(stdout: &mut BufReader<ChildStdout>) -> Option<Value> {
    if stdout.buffer().is_empty() {
        assert!(
            becomes_readable(stdout.get_ref().as_raw_fd(), 120_000),
            "a process said nothing for two minutes"
        );
    }
    let mut line = String::new();
    let length = stdout.read_line(&mut line).unwrap();
    (length > 0).then(|| serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}")))
}

fn becomes_readable(fd: RawFd, within_ms: i32) -> bool {
    let mut watched = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one descriptor that stays open.
    unsafe { libc::poll(&mut watched, 1, within_ms) == 1 }
}

fn expect(stdout: &mut BufReader<ChildStdout>, names: &[&str]) -> Value {
    loop {
        match next_event(stdout) {
            Some(event) if names.iter().any(|name| event["event"] == *name) => return event,
            Some(_) => {}
            None => panic!("the process ended before {names:?}"),
        }
    }
}

/// Hold a report to its schema and to the definitions of its numbers.
pub(crate) fn assert_honest(report: &Value) {
    let mut report = report.clone();
    report.as_object_mut().unwrap().remove("event");
    assert_fits("flow_report", &report);
    assert_eq!(report["reconciles"], true, "{report}");
    let number = |value: &Value| value.as_u64().unwrap();
    let sender = &report["sender"];
    assert_eq!(
        number(&sender["messages_scheduled"]),
        number(&sender["messages_sent"]) + number(&sender["messages_not_sent"])
    );
    assert_contiguous(&report, "sender");
    if !report["receiver"].is_null() {
        let receiver = &report["receiver"];
        assert_eq!(
            number(&sender["messages_sent"]),
            number(&receiver["messages_received_unique"]) + number(&receiver["messages_lost"])
        );
        assert_contiguous(&report, "receiver");
    }
}

/// Hold a document to its contract.
pub(crate) fn assert_fits(contract: &str, document: &Value) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../protocols/contracts/schemas");
    let text = std::fs::read_to_string(format!("{folder}/{contract}.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let defects: Vec<_> =
        validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path)).collect();
    assert!(defects.is_empty(), "{defects:?}");
}

fn assert_contiguous(report: &Value, end: &str) {
    let all = report["intervals"].as_array().unwrap();
    let intervals: Vec<_> = all.iter().filter(|interval| interval["end"] == end).collect();
    let length_ns = (report["interval_s"].as_f64().unwrap() * 1e9).round() as i64;
    let ns = |interval: &Value, field: &str| interval[field].as_i64().unwrap();
    let lengths: Vec<i64> = intervals.iter().map(|one| ns(one, "end_ns") - ns(one, "start_ns")).collect();
    let (last_ns, whole) = lengths.split_last().unwrap();
    assert!(whole.iter().all(|one_ns| *one_ns == length_ns), "{end}: {lengths:?}");
    // The last ends with the flow.
    assert!((length_ns / 100..=length_ns).contains(last_ns), "{end}: {lengths:?}");
    for pair in intervals.windows(2) {
        assert_eq!(ns(pair[0], "end_ns"), ns(pair[1], "start_ns"));
    }
    let (first, last) = (intervals[0], intervals[intervals.len() - 1]);
    let half = &report[end];
    if let (Some(first_ns), Some(last_ns)) =
        (half["first_packet_ns"].as_i64(), half["last_packet_ns"].as_i64())
    {
        assert!(ns(first, "start_ns") <= first_ns && last_ns <= ns(last, "end_ns"), "{end}: {report}");
    }
}
