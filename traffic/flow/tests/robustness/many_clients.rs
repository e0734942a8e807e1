// SPDX-License-Identifier: Apache-2.0
//! Many at once: a thousand who connect and say nothing, several flows, a host without descriptors.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use netjoule_transport::candidates::CANDIDATES;
use serde_json::json;

use crate::conversation::{hello, request, Conversation};
use crate::harness::{assert_honest, send, signal, Client, Server, BINARY};
use crate::reflection::welcomed;
use crate::rubbish::most_resident_kb;

const CROWD: usize = 1_000;

/// Lets this process, the crowd, have that many connections.
fn allow_open_files(wanted: u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills and reads a live structure.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_cur = limit.rlim_cur.max(wanted.min(limit.rlim_max));
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
    }
    assert!(limit.rlim_cur >= wanted, "this host lets a process open only {} files", limit.rlim_cur);
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(&server.control).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

#[test]
fn a_flow_runs_past_a_thousand_idle_connections_which_are_dropped_in_time() {
    allow_open_files(CROWD as u64 + 512);
    let server = Server::start("127.0.0.1", &[]);
    let crowd: Vec<_> = (0..CROWD).map(|_| connect(&server)).collect();
    for transport in ["udp", "tcp"] {
        let finished = send(&["--transport", transport, "--to", &server.control, "-b", "1M", "-t", "0.2"]);
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        assert_honest(finished.report());
    }
    // Each is told, and its connection ends; reading would time out otherwise.
    for mut stream in crowd {
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        assert!(said.contains("no complete greeting within 5 s"), "{said:?}");
    }
}

#[test]
fn a_server_with_few_descriptors_says_so_and_lets_newcomers_in_before_the_silent() {
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 48; exec \"$0\" \"$@\"", BINARY]);
    let mut server = Server::start_by(limited, "127.0.0.1", &[]);
    let silent: Vec<_> = (0..100).map(|_| connect(&server)).collect();
    assert_honest(send(&["--to", &server.control, "-b", "1M", "-t", "0.1"]).report());
    drop(silent);
    server.end();
    let mut stderr = String::new();
    server.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert!(stderr.contains("ulimit -n"), "{stderr}");
}

#[test]
fn a_limit_that_leaves_no_room_is_refused_at_once() {
    let output =
        Command::new("sh").args(["-c", "ulimit -n 24; exec \"$0\" serve --port 0", BINARY]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("too few for a server"));
}

#[test]
fn clients_with_long_greetings_who_wait_for_a_place_are_kept_in_bounded_memory() {
    const WAITING: usize = 2_000;
    const MOST_KB: u64 = 64 << 10;
    allow_open_files(WAITING as u64 + 512);
    let server = Server::start("127.0.0.1", &[]);
    let mut first = Client::start(&["--to", &server.control, "-b", "1M", "-t", "0.1", "--hold"]);
    first.expect("ready");
    let mut long = hello(&request(&json!({})));
    long["boot_id"] = "x".repeat(60_000).into();
    let crowd: Vec<_> = (0..WAITING)
        .map(|_| {
            let mut waiting = Conversation::begin(&server.control);
            waiting.say(&long);
            waiting
        })
        .collect();
    // Each is told in the end: no place became free, or its greeting was too long to be kept with all the others.
    for mut waiting in crowd {
        assert_eq!(waiting.refusal().0, "busy");
    }
    // What takes a hundred times its text once it is read is no transport's option.
    let mut deep = hello(&request(&json!({})));
    deep["flow"]["options"] = json!({ "deep": vec![json!({ "": 0 }); 7_500] });
    let mut crowd: Vec<_> = (0..100).map(|_| Conversation::begin(&server.control)).collect();
    crowd.iter_mut().for_each(|waiting| waiting.say(&deep));
    for mut waiting in crowd {
        assert_eq!(waiting.refusal().0, "usage");
    }
    let most_kb = most_resident_kb(server.child.id());
    assert!(most_kb < MOST_KB, "{most_kb} KB");
    first.say("go");
    first.expect("report");
    first.say("end");
    assert_eq!(first.finish().code, 0);
}

#[test]
fn who_holds_a_place_without_a_flow_loses_it_in_time() {
    let mut server = Server::start("127.0.0.1", &["--max-hold-s", "1"]);
    let mut holder = Client::start(&["--to", &server.control, "-t", "0.1", "--hold"]);
    holder.expect("ready");
    let failed = server.expect("flow_failed");
    assert_eq!(failed["code"], "timeout", "{failed}");
    let finished = holder.finish();
    assert_eq!(finished.code, 1);
    assert!(finished.stderr.contains("serve --max-hold-s"), "{}", finished.stderr);
    // Nor after its flow, which was served.
    let mut holder = Client::start(&["--to", &server.control, "-t", "0.1", "--hold"]);
    holder.expect("ready");
    holder.say("go");
    assert_honest(&holder.expect("report"));
    server.expect("flow_finished");
    assert_honest(send(&["--to", &server.control, "-b", "1M", "-t", "0.1"]).report());
}

/// Changes how many files another process may have open; `None`: as many as its hard limit.
fn limit_open_files(process: u32, most: Option<u64>) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills and reads a live structure.
    let outcome = unsafe {
        libc::prlimit(process as i32, libc::RLIMIT_NOFILE, std::ptr::null(), &mut limit);
        limit.rlim_cur = most.unwrap_or(limit.rlim_max);
        libc::prlimit(process as i32, libc::RLIMIT_NOFILE, &limit, std::ptr::null_mut())
    };
    assert_eq!(outcome, 0);
}

#[test]
fn a_server_that_runs_out_of_descriptors_refuses_in_words_and_lives_on() {
    let server = Server::start("127.0.0.1", &[]);
    let process = server.child.id();
    let open = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().count() as u64;
    limit_open_files(process, Some(open + 2));
    let mut crowd: Vec<_> = (0..4).map(|_| Conversation::begin(&server.control)).collect();
    let (code, message) = crowd[3].refusal();
    assert_eq!(code, "busy", "{message}");
    assert!(message.contains("no further file"), "{message}");
    limit_open_files(process, None);
    assert_honest(send(&["--to", &server.control, "-b", "1M", "-t", "0.1"]).report());
}

#[test]
fn as_many_flows_run_at_once_as_the_server_allows_each_with_its_own_books() {
    let server = Server::start("127.0.0.1", &["--max-flows", "3"]);
    let args =
        |transport| ["--transport", transport, "--to", &server.control, "-b", "2M", "-t", "0.5", "--hold"];
    let mut clients: Vec<_> = ["udp", "tcp", "quic"].map(|name| Client::start(&args(name))).into();
    for client in &mut clients {
        client.expect("ready");
    }
    let fourth = send(&["--to", &server.control, "-t", "0.1"]);
    assert_eq!(fourth.code, 1);
    assert!(fourth.stderr.contains("busy"), "{}", fourth.stderr);
    for client in &mut clients {
        client.say("go");
    }
    for client in &mut clients {
        assert_honest(&client.expect("report"));
        client.say("end");
    }
    assert!(clients.into_iter().all(|client| client.finish().code == 0));
}

#[test]
fn one_client_does_not_get_every_place_when_each_has_a_share() {
    let server = Server::start("0.0.0.0", &["--max-flows", "2", "--max-flows-per-peer", "1"]);
    let (_, port) = server.control.rsplit_once(':').unwrap();
    let (here, there) = (format!("127.0.0.1:{port}"), format!("127.0.0.2:{port}"));
    let mut first = Client::start(&["--to", &here, "--bind", "127.0.0.1", "-t", "0.1", "--hold"]);
    first.expect("ready");
    let again = send(&["--to", &here, "--bind", "127.0.0.1", "-t", "0.1"]);
    assert!(again.code == 1 && again.stderr.contains("busy"), "{}", again.stderr);
    let other = send(&["--to", &there, "--bind", "127.0.0.2", "-t", "0.1"]);
    assert_eq!(other.code, 0, "{}", other.stderr);
    first.say("go");
    first.expect("report");
    first.say("end");
    assert_eq!(first.finish().code, 0);
}

#[test]
fn silent_connections_to_a_flows_data_port_make_room_for_its_client() {
    let server = Server::start("127.0.0.1", &[]);
    let (_conversation, data, token) = welcomed(&server, &json!({ "transport": "tcp" }));
    let _silent: Vec<_> = (0..2 * CANDIDATES).map(|_| TcpStream::connect(data).unwrap()).collect();
    let mut client = TcpStream::connect(data).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    client.write_all(&[b"NJTC", &token[..]].concat()).unwrap();
    let mut answer = [0; 4];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"NJOK");
}

#[test]
fn a_flow_whose_process_dies_takes_nobody_along() {
    let mut server = Server::start("127.0.0.1", &["--max-flows", "2"]);
    let mut doomed = Conversation::begin(&server.control);
    doomed.say(&hello(&request(&json!({}))));
    assert_eq!(doomed.hear().unwrap()["type"], "welcome");
    let process = server.expect("flow_started")["process"].as_u64().unwrap() as u32;
    assert_ne!(process, server.child.id());
    let mut other = Client::start(&["--to", &server.control, "-b", "1M", "-t", "0.3", "--hold"]);
    other.expect("ready");
    signal(process, libc::SIGKILL);
    let failed = server.expect("flow_failed");
    assert_eq!(failed["code"], "system");
    assert!(failed["message"].as_str().unwrap().contains("signal 9"), "{failed}");
    assert_eq!(doomed.hear(), None);
    other.say("go");
    assert_honest(&other.expect("report"));
    other.say("end");
    assert_eq!(other.finish().code, 0);
}
