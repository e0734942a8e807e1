// SPDX-License-Identifier: Apache-2.0
//! A running relay between namespaces of its own: no name on the host, nothing left behind.
#![allow(dead_code)]

use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use netjoule_link::error::LinkError;
use netjoule_link::netns::Netns;
use serde_json::{json, Value};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_netjoule-link");
const INNER: &str = "NETJOULE_LINK_TEST_INNER";
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs `body` where namespaces may be made: here as root, else in the same test inside
/// `unshare -Urnm`. Says loudly when the kernel allows neither.
pub(crate) fn with_namespaces(test: &str, body: impl FnOnce()) {
    if Netns::create().is_ok() {
        return body();
    }
    let allowed =
        Command::new("unshare").args(["-Urnm", "true"]).status().is_ok_and(|status| status.success());
    if std::env::var_os(INNER).is_some() || !allowed {
        eprintln!(
            "\n*** {test} NOT RUN: this kernel allows no network namespaces here; run as root or allow"
        );
        eprintln!("*** unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1)\n");
        assert!(std::env::var_os("CI").is_none_or(|value| value != "true"), "on CI {test} must run");
        return;
    }
    let exe = std::env::current_exe().unwrap();
    let mut inner = Command::new("unshare");
    inner.args(["-Urnm"]).arg(exe).args(["--exact", test, "--nocapture"]).env(INNER, "1");
    assert!(inner.status().unwrap().success(), "{test} failed inside unshare -Urnm");
}

/// True when TUN devices can be made.
pub(crate) fn tun_opens() -> bool {
    netjoule_link::tun::probe().is_ok()
}

/// A place for a socket that no other test uses.
pub(crate) fn fresh_path(suffix: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name =
        format!("netjoule-link-{}-{}{suffix}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    std::env::temp_dir().join(name)
}

/// A client, a second client and a server namespace, and what the relay is to make there.
pub(crate) struct Bench {
    pub(crate) client: Netns,
    pub(crate) second: Netns,
    pub(crate) server: Netns,
    pub(crate) config: Value,
    pub(crate) stats_socket: PathBuf,
}

impl Bench {
    pub(crate) fn new(io: &str) -> Self {
        let [client, second, server] = [(); 3].map(|()| Netns::create().unwrap());
        let stats_socket = fresh_path(".sock");
        let station = |name: &str, netns: &Netns, host: u8| {
            json!({"name": name, "netns": netns.path(), "ifname": "wlan0",
                   "addresses": [format!("10.77.0.{host}/24"), format!("fd77::{host}/64")]})
        };
        let config = json!({
            "schema_version": 2, "preset": "ideal-216", "seed": 3, "io": io, "stats_socket": stats_socket,
            "stations": [station("client", &client, 2), station("second", &second, 3)],
            "wired": [{"name": "server", "netns": server.path(), "ifname": "eth0",
                       "addresses": ["10.77.0.1/24", "fd77::1/64"]}],
        });
        Self { client, second, server, config, stats_socket }
    }

    /// Starts the relay and waits for its ready line.
    pub(crate) fn start(&self, flags: &[&str]) -> Relay {
        self.start_by(Command::new(BINARY), flags)
    }

    /// The same by a command that runs the binary with the arguments that follow.
    pub(crate) fn start_by(&self, command: Command, flags: &[&str]) -> Relay {
        let mut relay = self.spawn(command, flags);
        relay.ready = relay.line();
        assert_eq!(relay.ready["event"], "ready", "{}", relay.ready);
        relay
    }

    /// Starts the relay on a configuration that it is to refuse: exit code and message.
    pub(crate) fn refuse(&self) -> (i32, String) {
        let mut relay = self.spawn(Command::new(BINARY), &[]);
        let mut message = String::new();
        relay.child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
        (relay.child.wait().unwrap().code().unwrap(), message)
    }

    fn spawn(&self, mut command: Command, flags: &[&str]) -> Relay {
        let file = fresh_path(".json");
        std::fs::write(&file, self.config.to_string()).unwrap();
        let mut child = command
            .args(["run", "--config"])
            .arg(&file)
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Relay { child, stdin, stdout, ready: Value::Null, config_file: file }
    }

    pub(crate) fn subscribe(&self) -> BufReader<UnixStream> {
        let stream = UnixStream::connect(&self.stats_socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        BufReader::new(stream)
    }
}

/// A relay process.
pub(crate) struct Relay {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    pub(crate) ready: Value,
    config_file: PathBuf,
}

impl Relay {
    /// The next line of its standard output.
    pub(crate) fn line(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        if line.is_empty() {
            let mut message = String::new();
            self.child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
            panic!("the relay ended: {message}");
        }
        serde_json::from_str(&line).unwrap()
    }

    /// Closes its standard input and gives its final line.
    pub(crate) fn finish(mut self) -> Value {
        drop(self.stdin.take());
        self.last_words()
    }

    /// Its final line, after something has told it to end.
    pub(crate) fn last_words(mut self) -> Value {
        let last = self.line();
        assert!(self.child.wait().unwrap().success());
        last
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.config_file);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A UDP socket in a namespace.
pub(crate) fn udp(netns: &Netns, address: &str) -> UdpSocket {
    let socket = netns.run(|| UdpSocket::bind(address).map_err(failed)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// A TCP listener in a namespace.
pub(crate) fn listener(netns: &Netns, address: &str) -> TcpListener {
    netns.run(|| TcpListener::bind(address).map_err(failed)).unwrap()
}

/// Names of the interfaces in a namespace.
pub(crate) fn interfaces(netns: &Netns) -> Vec<String> {
    let table = netns.run(|| std::fs::read_to_string("/proc/thread-self/net/dev").map_err(failed)).unwrap();
    table.lines().skip(2).filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
}

pub(crate) fn failed(error: std::io::Error) -> LinkError {
    LinkError::Failed(error.to_string())
}
