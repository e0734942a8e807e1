// SPDX-License-Identifier: Apache-2.0
//! Servers that answer otherwise than one would wish.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::place::{text, Place};
use crate::server::{content, Reply, Server};

const SIZE: u64 = 3 << 20;
const FOUR: [&str; 4] = ["--algorithm", "fixed", "--parallelism", "4"];

/// One file of [`SIZE`], in four ranges where the server has them.
fn four_ranges(
    name: &str,
    manners: impl Fn(&crate::server::Asked) -> Reply + Send + Sync + 'static,
) -> (Place, Server) {
    let place = Place::new(name);
    let server = Server::start(manners);
    let manifest = place.manifest(&[json!({ "name": "a.bin", "size_bytes": SIZE })]);
    let words = ["--manifest", text(&manifest), "--from", &server.url];
    place.get(&[&words[..], &FOUR].concat()).is_good();
    assert_eq!(place.names(), ["a.bin"]);
    (place, server)
}

#[test]
fn ranges_are_put_together() {
    let body = content(1, 0..SIZE);
    let (place, server) = four_ranges("ranges", move |asked| Reply::file(asked, &body, "\"x\""));
    assert_eq!(std::fs::read(place.out("a.bin")).unwrap(), content(1, 0..SIZE));
    assert!(server.asked().iter().filter(|asked| asked.range.is_some()).count() >= 4);
}

#[test]
fn a_server_without_ranges_is_asked_for_the_whole() {
    let body = content(1, 0..SIZE);
    let (place, _) = four_ranges("no-ranges", move |_| Reply { body: body.clone(), ..Reply::new(200) });
    assert_eq!(std::fs::read(place.out("a.bin")).unwrap(), content(1, 0..SIZE));
}

#[test]
fn ranges_of_a_weak_etag_are_not_put_together() {
    let body = content(1, 0..SIZE);
    let (place, server) = four_ranges("weak", move |asked| Reply::file(asked, &body, "W/\"x\""));
    assert_eq!(std::fs::read(place.out("a.bin")).unwrap(), content(1, 0..SIZE));
    assert!(server.asked().iter().any(|asked| asked.range.is_none()));
}

#[test]
fn a_file_that_changes_between_ranges_comes_as_it_is_in_the_end() {
    let bodies = [content(1, 0..SIZE), content(2, 0..SIZE)];
    let (place, server) = four_ranges("changed", move |asked| {
        let version = usize::from(asked.number >= 2);
        Reply::file(asked, &bodies[version], ["\"x\"", "\"y\""][version])
    });
    assert_eq!(std::fs::read(place.out("a.bin")).unwrap(), content(2, 0..SIZE));
    assert!(server.asked().len() > 4);
}

#[test]
fn a_connection_that_was_closed_before_the_first_byte_is_replaced() {
    let place = Place::new("closed");
    let body = content(1, 0..1_000);
    let server = Server::start(move |asked| match asked.on_connection {
        2 => Reply::silent(),
        _ => Reply::file(asked, &body, "\"x\""),
    });
    let urls: Vec<String> = (0..20).map(|index| format!("{}/f{index}", server.url)).collect();
    let got = place.get(&urls.iter().map(String::as_str).collect::<Vec<_>>());
    got.is_good();
    assert_eq!(place.names().len(), 20);
    assert!(got.report["retries_n"].as_u64().unwrap() > 0);
}

#[test]
fn a_server_that_closes_after_100_requests_is_opened_anew() {
    let place = Place::new("hundred");
    let server = Server::start(|asked| {
        let reply = Reply::file(asked, b"0123456789", "\"x\"");
        if asked.on_connection == 99 {
            reply.with("connection", "close")
        } else {
            reply
        }
    });
    let files: Vec<_> =
        (0..250).map(|index| json!({ "name": format!("f{index}"), "size_bytes": 10 })).collect();
    let manifest = place.manifest(&files);
    let got = place.get(&["--manifest", text(&manifest), "--from", &server.url, "--algorithm", "fixed"]);
    got.is_good();
    assert_eq!(got.report["connections_opened_n"], 3);
    assert_eq!(got.report["retries_n"], 0);
}

#[test]
fn a_file_that_is_not_there_does_not_hold_up_the_others() {
    let place = Place::new("missing");
    let server = Server::start(|asked| match asked.path.as_str() {
        "/b" => Reply { body: b"no such page".to_vec(), ..Reply::new(404) },
        "/empty" => Reply::file(asked, b"", "\"x\""),
        _ => Reply::file(asked, b"something", "\"x\""),
    });
    let urls: Vec<String> =
        ["a", "b", "c", "empty"].iter().map(|name| format!("{}/{name}", server.url)).collect();
    let got = place.get(&urls.iter().map(String::as_str).collect::<Vec<_>>());
    got.is_bad(1, "http_status");
    assert_eq!(place.names(), ["a", "c", "empty"]);
    assert_eq!(std::fs::read(place.out("empty")).unwrap(), b"");
}

#[test]
fn an_empty_file_of_unknown_length_is_no_range() {
    let place = Place::new("empty");
    let server = Server::start(|asked| Reply::file(asked, b"", "\"x\""));
    place.get(&[&[&*format!("{}/a", server.url)], &FOUR[..]].concat()).is_good();
    assert_eq!(std::fs::metadata(place.out("a")).unwrap().len(), 0);
}

#[test]
fn a_body_that_breaks_off_is_gone_on_with() {
    let place = Place::new("short");
    let body = content(1, 0..SIZE);
    let server = Server::start(move |asked| {
        let reply = Reply::file(asked, &body, "\"x\"");
        Reply { cut: (asked.number < 2).then_some(1_000_000), ..reply }
    });
    place.get(&[&format!("{}/a", server.url), "--algorithm", "fixed"]).is_good();
    assert_eq!(std::fs::read(place.out("a")).unwrap(), content(1, 0..SIZE));
    let asked = server.asked();
    assert!(asked[1].range.is_some_and(|(first, _)| first > 500_000), "{asked:?}");
    assert_eq!(asked[1].if_range.as_deref(), Some("\"x\""));
}

#[test]
fn a_body_that_never_is_whole_is_no_file() {
    let place = Place::new("never");
    let server = Server::start(|_| Reply { body: vec![1; 100_000], cut: Some(5_000), ..Reply::new(200) });
    let got = place.get(&[&format!("{}/a", server.url), "--retry-s", "0.2"]);
    got.is_bad(1, "connection");
    assert!(!place.names().contains(&"a".to_owned()), "{:?}", place.names());
}

#[test]
fn a_connection_that_breaks_off_often_is_waited_for_where_nothing_can_be_gone_on_with() {
    let place = Place::new("flaky");
    let server = Server::start(|asked| {
        let cut = (asked.number < 6).then_some(50_000);
        Reply { body: content(1, 0..100_000), cut, ..Reply::new(200) }
    });
    place.get(&[&format!("{}/a", server.url)]).is_good();
    assert_eq!(std::fs::read(place.out("a")).unwrap(), content(1, 0..100_000));
}

#[test]
fn a_wrong_hash_a_wrong_length_and_a_wrong_place_are_no_files() {
    let hash = "0".repeat(64);
    let served = content(1, 0..100_000);
    for (name, entry, code) in [
        ("hash", json!({ "name": "a", "sha256": hash }), "hash"),
        ("length", json!({ "name": "a", "size_bytes": 99_999 }), "length"),
    ] {
        let place = Place::new(name);
        let body = served.clone();
        let server = Server::start(move |asked| Reply::file(asked, &body, "\"x\""));
        let manifest = place.manifest(&[entry]);
        place.get(&["--manifest", text(&manifest), "--from", &server.url]).is_bad(4, code);
        assert!(place.names().is_empty(), "{:?}", place.names());
    }
    let place = Place::new("signature");
    // Right length, wrong bytes.
    let server = Server::start(|asked| Reply::file(asked, &vec![0; 131_072], "\"x\""));
    let words = ["--dataset", "html-1", "--files", "1", "--from", &server.url];
    place.get(&words).is_bad(4, "signature");
    assert!(place.names().is_empty(), "{:?}", place.names());
}

#[test]
fn the_right_hash_is_right_in_one_piece_and_in_four() {
    let body = content(1, 0..SIZE);
    let hash: String = ring::digest::digest(&ring::digest::SHA256, &body)
        .as_ref()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    let server = Server::start(move |asked| Reply::file(asked, &body, "\"x\""));
    for more in [&["--algorithm", "fixed"][..], &FOUR, &["--request-bytes", "1000000"]] {
        let place = Place::new("right");
        let manifest = place.manifest(&[json!({ "name": "a", "sha256": hash, "size_bytes": SIZE })]);
        place.get(&[&["--manifest", text(&manifest), "--from", &server.url], more].concat()).is_good();
        assert_eq!(place.names(), ["a"]);
        // What is not kept is hashed as it comes.
        let nowhere = ["--manifest", text(&manifest), "--from", &server.url, "--to", "nowhere"];
        place.get(&[&nowhere, more].concat()).is_good();
    }
}

#[test]
fn a_busy_server_is_asked_again_when_it_says() {
    let place = Place::new("busy");
    let server = Server::start(|asked| match asked.number {
        0 => Reply::new(503).with("retry-after", "1"),
        1 => Reply::new(429).with("retry-after", "0"),
        _ => Reply::file(asked, b"here", "\"x\""),
    });
    let started = std::time::Instant::now();
    place.get(&[&format!("{}/a", server.url)]).is_good();
    assert!(started.elapsed() >= Duration::from_secs(1));
    let never = Server::start(|_| Reply::new(503).with("retry-after", "86400"));
    place.get(&[&format!("{}/b", never.url)]).is_bad(1, "busy");
}

#[test]
fn a_redirect_is_followed_to_another_server_and_a_circle_is_not() {
    let place = Place::new("moved");
    let there = Server::start(|asked| Reply::file(asked, b"here", "\"x\""));
    let url = format!("{}/b", there.url);
    let here = Server::start(move |asked| match asked.path.as_str() {
        "/a" => Reply::new(302).with("location", url.clone()),
        _ => Reply::new(301).with("location", "/circle"),
    });
    place.get(&[&format!("{}/a", here.url)]).is_good();
    assert_eq!(place.names(), ["a"]);
    place.get(&[&format!("{}/circle", here.url)]).is_bad(1, "http_status");
}

#[test]
fn a_compressed_answer_is_refused_but_of_a_compressed_file() {
    let place = Place::new("coded");
    let server = Server::start(|asked| Reply::file(asked, b"xxx", "\"x\"").with("content-encoding", "gzip"));
    place.get(&[&format!("{}/a", server.url)]).is_bad(1, "coding");
    place.get(&[&format!("{}/a.tar.gz", server.url)]).is_good();
    assert_eq!(std::fs::read(place.out("a.tar.gz")).unwrap(), b"xxx");
}

#[test]
fn nobody_there_is_one_sentence_for_all_files() {
    let place = Place::new("nobody");
    let words = ["--dataset", "html-1", "--files", "50", "--from", "http://127.0.0.1:9/"];
    let got = place.get(&words);
    got.is_bad(1, "connection");
    assert_eq!(got.report["failures"].as_array().unwrap().len(), 50);
}

#[test]
fn several_servers_have_connections_of_their_own() {
    let place = Place::new("several");
    let count = Arc::new(AtomicUsize::new(0));
    let is_told = Arc::new(AtomicBool::new(false));
    let servers: Vec<Server> = (0..3)
        .map(|_| {
            let (count, is_told) = (count.clone(), is_told.clone());
            Server::start(move |asked| {
                is_told.store(true, Ordering::Relaxed);
                count.fetch_add(usize::from(asked.on_connection == 0), Ordering::Relaxed);
                Reply::file(asked, b"here", "\"x\"")
            })
        })
        .collect();
    let urls: Vec<String> =
        servers.iter().enumerate().map(|(index, server)| format!("{}/f{index}", server.url)).collect();
    place.get(&urls.iter().map(String::as_str).collect::<Vec<_>>()).is_good();
    assert_eq!(count.load(Ordering::Relaxed), 3);
    assert!(is_told.load(Ordering::Relaxed));
}

#[test]
fn a_range_of_a_file_whose_length_nobody_tells_is_not_the_file() {
    let place = Place::new("star");
    let body = content(1, 0..SIZE);
    let server = Server::start(move |asked| {
        let mut reply = Reply::file(asked, &body, "\"x\"");
        for (name, value) in &mut reply.headers {
            if *name == "content-range" {
                *value = value.replace(&SIZE.to_string(), "*");
            }
        }
        reply
    });
    place.get(&[&format!("{}/a", server.url)]).is_good();
    assert_eq!(std::fs::read(place.out("a")).unwrap(), content(1, 0..SIZE));
}

#[test]
fn more_than_was_promised_is_not_cut_to_fit() {
    let place = Place::new("longer");
    let server =
        Server::start(move |_| Reply { is_chunked: true, body: content(1, 0..1_500), ..Reply::new(200) });
    let manifest = place.manifest(&[json!({ "name": "a.bin", "size_bytes": 1_000 })]);
    place.get(&["--manifest", text(&manifest), "--from", &server.url]).is_bad(4, "length");
    assert!(place.names().is_empty(), "{:?}", place.names());
}

#[test]
fn an_empty_answer_for_a_file_that_is_not_empty_is_not_asked_for_without_end() {
    let place = Place::new("endless");
    let server = Server::start(move |_| Reply { is_chunked: true, ..Reply::new(200) });
    let manifest = place.manifest(&[json!({ "name": "a.bin", "size_bytes": 1_000 })]);
    let got = place.get(&["--manifest", text(&manifest), "--from", &server.url, "--retry-s", "1"]);
    assert_eq!(got.code, Some(1), "{:?}", got.errors);
    assert!(server.asked().len() < 30, "{}", server.asked().len());
    assert!(place.names().iter().all(|name| name != "a.bin"));
}

#[test]
fn a_power_model_stands_in_for_a_meter_of_a_slow_server() {
    let place = Place::new("modelled");
    let body = content(1, 0..10_000);
    let server = Server::start(move |asked| {
        std::thread::sleep(Duration::from_millis(50));
        Reply::file(asked, &body, "\"x\"")
    });
    let urls: Vec<String> = (0..60).map(|index| format!("{}/f{index}", server.url)).collect();
    let known = ["--bandwidth-mbps", "100", "--rtt-ms", "1", "--interval-s", "0.3", "--max-connections", "3"];
    let asked = ["--algorithm", "eht", "--objective", "efficiency", "--power-model", "2,0,0.5"];
    let words: Vec<&str> = urls.iter().map(String::as_str).chain(known).chain(asked).collect();
    let got = place.get(&words);
    got.is_good();
    let records = got.report["records"].as_array().unwrap();
    let seen = |decision: &serde_json::Value| {
        let number = |name: &str| decision["seen"][name].as_f64();
        number("energy_uj").map(|energy_uj| (number("at_ns").unwrap() / 1e9, energy_uj / 1e6))
    };
    let decisions = records.iter().flat_map(|record| record["decisions"].as_array().unwrap());
    let seen: Vec<(f64, f64)> = decisions.filter_map(seen).collect();
    assert!(seen.iter().any(|(_, energy_j)| *energy_j > 0.5), "{seen:?}");
    // 2 W, and 1 W more for each connection that has a request.
    assert!(seen.iter().all(|(at_s, energy_j)| *energy_j <= 5.0 * at_s), "{seen:?}");
}
