// SPDX-License-Identifier: Apache-2.0
//! The shared secret: who has it is served, who has not is told so before anything was set up for it, and nobody else sees
//! it.

use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use crate::conversation::{hello, request, Conversation};
use crate::harness::{assert_honest, send, Client, Finished, Server, BINARY};

const SECRET: &str = "correct horse battery staple";
const OTHER: &str = "incorrect horse battery staple";
const BY_VARIABLE: [&str; 2] = ["--secret", "env:SHARED"];

/// A file with a secret, for its owner's eyes; it goes when this does.
struct SecretFile(PathBuf);

impl SecretFile {
    fn new(name: &str, secret: &str) -> Self {
        let path = std::env::temp_dir().join(format!("netjoule-{}-{name}", std::process::id()));
        let options = std::fs::File::options().write(true).create(true).truncate(true).mode(0o600).clone();
        std::io::Write::write_all(&mut options.open(&path).unwrap(), format!("{secret}\n").as_bytes())
            .unwrap();
        Self(path)
    }

    fn reference(&self) -> String {
        format!("file:{}", self.0.display())
    }
}

impl Drop for SecretFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn with_variable(secret: &str) -> Command {
    let mut command = Command::new(BINARY);
    command.env("SHARED", secret);
    command
}

/// `send` to a server with this secret in the environment.
fn send_with(secret: &str, args: &[&str]) -> Finished {
    Client::start_by(with_variable(secret), &[args, &BY_VARIABLE].concat()).finish()
}

#[track_caller]
fn assert_refused(finished: &Finished, part: &str) {
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    assert!(finished.stderr.contains(part), "{}", finished.stderr);
    assert_eq!(finished.events.last().unwrap()["code"], "refused");
}

#[test]
fn who_has_the_secret_is_served_whether_it_comes_by_file_or_by_variable() {
    let file = SecretFile::new("both", SECRET);
    let by_file = Server::start("127.0.0.1", &["--secret", &file.reference()]);
    let by_variable = Server::start_by(with_variable(SECRET), "127.0.0.1", &BY_VARIABLE);
    for server in [&by_file, &by_variable] {
        let args = ["--to", &server.control, "-b", "1M", "-l", "500", "-t", "0.1"];
        assert_honest(send_with(SECRET, &args).report());
        assert_honest(send(&[&args[..], &["--secret", &file.reference()]].concat()).report());
    }
}

#[test]
fn a_wrong_or_missing_secret_is_refused_in_words_and_the_server_serves_on() {
    let server = Server::start_by(with_variable(SECRET), "127.0.0.1", &BY_VARIABLE);
    let args = ["--to", &server.control, "-b", "1M", "-l", "500", "-t", "0.1"];
    assert_refused(&send_with(OTHER, &args), "another shared secret");
    assert_refused(&send(&args), "asks for its shared secret");
    assert_honest(send_with(SECRET, &args).report());
    let open = Server::start("127.0.0.1", &[]);
    assert_refused(&send_with(SECRET, &["--to", &open.control, "-t", "0.1"]), "asked for none");
}

/// Processes whose parent is this one (fourth field of stat in proc(5), after a name in brackets).
fn children(process: u32) -> usize {
    let stats = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let stat = std::fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()
    });
    stats.filter(|parent| *parent == process).count()
}

#[test]
fn nothing_is_set_up_for_who_has_not_proved_the_secret() {
    let mut server = Server::start_by(with_variable(SECRET), "127.0.0.1", &BY_VARIABLE);
    let descriptors = || std::fs::read_dir(format!("/proc/{}/fd", server.child.id())).unwrap().count();
    let before = descriptors();
    let mut stranger = Conversation::begin(&server.control);
    stranger.say(&hello(&request(&json!({}))));
    let challenge = stranger.hear().unwrap();
    assert_eq!(challenge["type"], "challenge", "{challenge}");
    assert_eq!((descriptors(), children(server.child.id())), (before + 1, 0));
    stranger.say(&json!({ "type": "proof", "proof": "00".repeat(32) }));
    let (code, message) = stranger.refusal();
    assert_eq!(code, "refused");
    assert!(message.contains("another shared secret"), "{message}");
    drop(stranger);
    assert_honest(send_with(SECRET, &["--to", &server.control, "-b", "1M", "-t", "0.1"]).report());
    // Its own flow is the only one that the server ever began.
    assert!(server.expect("flow_started")["flow_id"] != request(&json!({}))["flow_id"]);
}

#[test]
fn the_secret_is_in_no_argument_and_in_no_word() {
    let file = SecretFile::new("words", SECRET);
    let reference = file.reference();
    let server = Server::start("127.0.0.1", &["--secret", &reference]);
    let client = Client::start(&["--to", &server.control, "-t", "0.2", "--secret", &reference]);
    for process in [server.child.id(), client.child.id()] {
        let arguments = std::fs::read(format!("/proc/{process}/cmdline")).unwrap();
        assert!(!String::from_utf8_lossy(&arguments).contains("horse"));
    }
    let finished = client.finish();
    assert_honest(finished.report());
    let words = format!("{:?} {}", finished.events, finished.stderr);
    assert!(!words.contains("horse"));
}

#[test]
fn what_is_no_secret_is_refused_by_name_at_both_ends_and_a_literal_is_not_repeated() {
    let short = SecretFile::new("short", "hunter2");
    let open = SecretFile::new("open", SECRET);
    std::fs::set_permissions(&open.0, std::fs::Permissions::from_mode(0o604)).unwrap();
    for (reference, code, part) in [
        (short.reference(), 2, short.0.to_str().unwrap()),
        (open.reference(), 2, open.0.to_str().unwrap()),
        ("file:/nonexistent/secret".into(), 3, "/nonexistent/secret"),
        ("env:NOT_SET".into(), 3, "NOT_SET"),
        ("hunter2-horse".into(), 2, "never the secret itself"),
    ] {
        for verb in [&["serve", "--port", "0"][..], &["send", "--to", "127.0.0.1:1", "-l", "100"]] {
            let output = Command::new(BINARY).args(verb).args(["--secret", &reference]).output().unwrap();
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(code), "{words}");
            assert!(
                words.contains(part) && !words.contains("hunter2") && !words.contains("horse"),
                "{words}"
            );
        }
    }
}
