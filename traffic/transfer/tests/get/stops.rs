// SPDX-License-Identifier: Apache-2.0
//! Runs that end before their files are whole: killed, told to stop, out of room.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::place::{text, Got, Place};
use crate::server::{content, Reply, Server};

const SIZE: u64 = 3 << 20;

fn slow(pause: Duration) -> Server {
    let body = content(1, 0..SIZE);
    Server::start(move |asked| Reply { pause: Some(pause), ..Reply::file(asked, &body, "\"x\"") })
}

/// Ended by `signal` once something was noted; what the run said.
fn stopped(place: &Place, url: &str, signal: &str) -> Option<i32> {
    let mut command = place.command(&[url, "--algorithm", "fixed"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    while !place.out("a.part.json").exists() {
        assert!(started.elapsed() < Duration::from_secs(20), "nothing was noted");
        std::thread::sleep(Duration::from_millis(20));
    }
    let told = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(told.success());
    child.wait().unwrap().code()
}

#[test]
fn a_killed_run_is_gone_on_with_and_so_is_one_that_was_told_to_stop() {
    for (signal, code) in [("-KILL", None), ("-TERM", Some(1))] {
        let place = Place::new(signal);
        let server = slow(Duration::from_millis(10));
        let url = format!("{}/a", server.url);
        assert_eq!(stopped(&place, &url, signal), code);
        assert_eq!(place.names(), ["a.part", "a.part.json"]);
        let got = place.get(&[&url, "--algorithm", "fixed"]);
        got.is_good();
        assert!(got.report["bytes"].as_u64().unwrap() < SIZE, "it came anew");
        assert_eq!(std::fs::read(place.out("a")).unwrap(), content(1, 0..SIZE));
        assert_eq!(place.names(), ["a"]);
    }
}

#[test]
fn what_was_left_of_another_file_is_not_gone_on_with() {
    let place = Place::new("other");
    let server = slow(Duration::from_millis(10));
    let url = format!("{}/a", server.url);
    stopped(&place, &url, "-KILL");
    let note = std::fs::read_to_string(place.out("a.part.json")).unwrap();
    std::fs::write(place.out("a.part.json"), note.replace("\\\"x\\\"", "\\\"w\\\"")).unwrap();
    place.get(&[&url, "--algorithm", "fixed"]).is_good();
    assert_eq!(std::fs::read(place.out("a")).unwrap(), content(1, 0..SIZE));
}

#[test]
fn the_note_of_a_file_does_not_outlive_its_bytes() {
    let place = Place::new("stale");
    let (server, body) = (slow(Duration::from_millis(10)), content(2, 0..SIZE));
    let other = Server::start(move |_| Reply {
        pause: Some(Duration::from_millis(20)),
        cut: Some(2 << 20),
        body: body.clone(),
        ..Reply::new(200)
    });
    let (url, other) = (format!("{}/a", server.url), format!("{}/a", other.url));
    stopped(&place, &url, "-KILL");
    // Another file under the same name, without an ETag, is killed half-way.
    let mut child = place.command(&[&other, "--algorithm", "fixed"]).stdout(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    while place.out("a.part.json").exists() && started.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(500));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(place.names(), ["a.part"]);
    place.get(&[&url, "--algorithm", "fixed"]).is_good();
    assert_eq!(std::fs::read(place.out("a")).unwrap(), content(1, 0..SIZE));
}

#[test]
fn a_server_that_goes_away_is_given_up_once_for_all_files() {
    let place = Place::new("gone");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    // It answers one request in part, and is gone.
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 1_000];
        assert!(stream.read(&mut request).unwrap() > 0);
        stream.write_all(b"HTTP/1.1 200 x\r\netag: \"x\"\r\ncontent-length: 131072\r\n\r\n").unwrap();
    });
    let started = Instant::now();
    let files: Vec<_> = (0..400).map(|index| serde_json::json!({ "name": format!("f{index}") })).collect();
    let manifest = place.manifest(&files);
    let words = ["--manifest", text(&manifest), "--from", &url, "--retry-s", "1", "--algorithm", "fixed"];
    let got = place.get(&words);
    assert_eq!(got.code, Some(1));
    assert_eq!(got.report["failures"].as_array().unwrap().len(), 400);
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    server.join().unwrap();
}

#[test]
fn a_full_disk_is_one_sentence_and_no_file() {
    let place = Place::new("full");
    let server = slow(Duration::ZERO);
    let inner = place.command(&[&format!("{}/a", server.url)]);
    let words: Vec<&str> = inner.get_args().map(|word| word.to_str().unwrap()).collect();
    let mut command = Command::new("sh");
    // 1 MiB a file; the shell's "ignored" is inherited, so that writing fails as on a full disk.
    let script = r#"trap "" XFSZ; ulimit -f 2048; exec "$0" "$@""#;
    command.args(["-c", script, env!("CARGO_BIN_EXE_netjoule-transfer")]).args(words);
    let got = Got::of(command);
    got.is_bad(3, "storage");
    assert!(!place.names().contains(&"a".to_owned()), "{:?}", place.names());
}

#[test]
fn a_folder_that_cannot_be_is_a_lack_of_this_host() {
    let place = Place::new("folder");
    std::fs::remove_dir(place.0.join("out")).unwrap();
    std::fs::write(place.0.join("out"), "a file").unwrap();
    let output = place.command(&["http://127.0.0.1:9/a"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}

#[test]
fn a_held_run_sends_nothing_before_the_word() {
    let place = Place::new("held");
    let server = Server::start(|asked| Reply::file(asked, b"here", "\"x\""));
    let mut command = place.command(&[&format!("{}/a", server.url), "--hold"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), r#"{"event":"ready"}"#);
    std::thread::sleep(Duration::from_millis(300));
    assert!(server.asked().is_empty());
    writeln!(child.stdin.take().unwrap(), "go").unwrap();
    let report: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(report["files_verified_n"], 1);
    assert!(child.wait().unwrap().success());
    let silent = place.command(&["http://127.0.0.1:9/a", "--hold"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(silent.status.code(), Some(1));
}
