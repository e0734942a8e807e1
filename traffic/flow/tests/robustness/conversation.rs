// SPDX-License-Identifier: Apache-2.0
//! A client of the control protocol that says whatever it is told to.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{json, Value};

/// Only so that a failing test ends: nothing here is as slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// One control connection.
pub(crate) struct Conversation {
    stream: BufReader<TcpStream>,
}

impl Conversation {
    pub(crate) fn begin(control: &str) -> Self {
        let stream = TcpStream::connect(control).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    /// Say these bytes. The server may have hung up already.
    pub(crate) fn say_bytes(&mut self, bytes: &[u8]) {
        let _ = self.stream.get_mut().write_all(bytes);
    }

    pub(crate) fn say(&mut self, message: &Value) {
        self.say_bytes(format!("{message}\n").as_bytes());
    }

    /// No more will be said.
    pub(crate) fn fall_silent(&self) {
        let _ = self.stream.get_ref().shutdown(std::net::Shutdown::Write);
    }

    /// The next line; `None` when the server has hung up.
    pub(crate) fn hear(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// The server's refusal: its code and its sentence, the last thing that it says.
    #[track_caller]
    pub(crate) fn refusal(&mut self) -> (String, String) {
        let answer = self.hear().expect("an answer");
        assert_eq!(answer["type"], "failure", "{answer}");
        assert_eq!(self.hear(), None);
        let text = |name: &str| answer[name].as_str().unwrap().to_owned();
        (text("code"), text("message"))
    }
}

/// A request like those that `send` makes, with changes.
pub(crate) fn request(changes: &Value) -> Value {
    let mut flow = json!({
        "flow_id": "00112233445566778899aabbccddeeff",
        "transport": "udp",
        "direction": "up",
        "payload_bytes": 100,
        "rate_bps": 1_000_000,
        "duration_ns": 300_000_000,
        "interval_ns": 100_000_000,
        "window_us": 0,
        "gso": false,
        "seed": 1,
        "data_address": "127.0.0.1",
        "control_apart": false,
    });
    for (name, value) in changes.as_object().unwrap() {
        flow[name] = value.clone();
    }
    flow
}

/// The first line that asks for this flow.
pub(crate) fn hello(flow: &Value) -> Value {
    json!({
        "type": "hello",
        "protocol": "netjoule",
        "version": netjoule_traffic::control::VERSION,
        "generator": { "name": "a test", "version": "0" },
        "boot_id": "not this one",
        "nonce": "00".repeat(16),
        "flow": flow,
    })
}
