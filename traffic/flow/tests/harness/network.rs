// SPDX-License-Identifier: Apache-2.0
//! Network namespaces for tests: one of a test's own, and a second one at the other end of a cable. Nothing of it is
//! visible on the host, and all of it ends with the test.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::{not_run, BINARY};

const INNER: &str = "NETJOULE_TRAFFIC_TEST_INNER";

/// Address of the far end of a [`Cable`].
pub(crate) const FAR: &str = "10.78.0.2";

/// Runs `body` in a network namespace of its own, in a process that runs this test alone (`test` is its name). Says
/// loudly when the kernel allows none, and fails then on CI unless the kernel has none.
pub(crate) fn in_own_network(test: &str, body: impl FnOnce()) {
    if std::env::var_os(INNER).is_some() {
        run("ip link set lo up");
        return body();
    }
    let ways: [&[&str]; 2] = [&["-n"], &["-Urn"]];
    let allowed = |way: &&&[&str]| {
        let probe = Command::new("unshare").args(**way).args(["ip", "link", "set", "lo", "up"]).output();
        probe.is_ok_and(|output| output.status.success())
    };
    let Some(way) = ways.iter().find(allowed) else {
        let why =
            "no network namespaces are allowed here; run as root or allow unprivileged user namespaces \
                   (sysctl kernel.unprivileged_userns_clone=1)";
        return not_run(test, why, Path::new("/proc/self/ns/net").exists());
    };
    let mut inner = Command::new("unshare");
    inner.args(*way).arg(std::env::current_exe().unwrap()).args(["--exact", test, "--nocapture"]);
    let output = inner.env(INNER, "1").output().unwrap();
    let words = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{test} in its own network:\n{}", String::from_utf8_lossy(&words));
}

/// Runs one command with its words.
#[track_caller]
pub(crate) fn run(command: &str) {
    let mut words = command.split_whitespace();
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A second host at the end of a cable (a veth pair): near here, far there. It goes when this does.
pub(crate) struct Cable {
    /// Keeps the far namespace.
    holder: Child,
}

impl Cable {
    pub(crate) fn new() -> Self {
        let mut holder = Command::new("unshare")
            .args(["-n", "sh", "-c", "echo; exec sleep 100000"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // It has entered its namespace when it speaks.
        let stdout = holder.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut String::new()).unwrap();
        let cable = Self { holder };
        run(&format!("ip link add near type veth peer name far netns {}", cable.holder.id()));
        run("ip address add 10.78.0.1/24 dev near");
        run("ip link set near up");
        cable.run_far("ip link set lo up");
        cable.run_far(&format!("ip address add {FAR}/24 dev far"));
        cable.run_far("ip link set far up");
        cable
    }

    fn enter(&self) -> String {
        format!("nsenter --net=/proc/{}/ns/net --", self.holder.id())
    }

    /// The binary, to be run at the far end.
    pub(crate) fn far(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.args([&format!("--net=/proc/{}/ns/net", self.holder.id()), "--", BINARY]);
        command
    }

    pub(crate) fn run_far(&self, command: &str) {
        run(&format!("{} {command}", self.enter()));
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
