// SPDX-License-Identifier: Apache-2.0
//! HTTP/3 against quiche's own other end.

use std::collections::{BTreeMap, HashMap};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use netjoule_sockets::random;
use quiche::h3::{self, NameValue};
use serde_json::json;

use crate::place::{text, Place};
use crate::server::content;

/// One connection at the server.
struct Peer {
    quic: quiche::Connection,
    h3: Option<h3::Connection>,
    /// What is left to send of each answer.
    answers: BTreeMap<u64, (Vec<h3::Header>, Vec<u8>)>,
}

impl Peer {
    fn work(&mut self, answer: &dyn Fn(&str) -> (u16, Vec<u8>)) {
        if self.h3.is_none() && self.quic.is_established() {
            let config = h3::Config::new().unwrap();
            self.h3 = Some(h3::Connection::with_transport(&mut self.quic, &config).unwrap());
        }
        let Some(h3) = &mut self.h3 else { return };
        while let Ok((id, event)) = h3.poll(&mut self.quic) {
            let h3::Event::Headers { list, .. } = event else { continue };
            let value = |name: &str| {
                let found = list.iter().find(|header| header.name() == name.as_bytes());
                found.map(|header| String::from_utf8(header.value().to_vec()).unwrap())
            };
            let (status, body) = answer(&value(":path").unwrap());
            let length = body.len().to_string();
            let head = vec![
                h3::Header::new(b":status", status.to_string().as_bytes()),
                h3::Header::new(b"content-length", length.as_bytes()),
            ];
            self.answers.insert(id, (head, body));
        }
        // What finds no room in the client's windows is sent later.
        self.answers.retain(|id, (head, body)| {
            if !head.is_empty() && h3.send_response(&mut self.quic, *id, head, body.is_empty()).is_ok() {
                head.clear();
            }
            if let Ok(sent) = h3.send_body(&mut self.quic, *id, body, true) {
                body.drain(..sent);
            }
            !head.is_empty() || !body.is_empty()
        });
    }
}

fn config(folder: &Path, protocols: &[&[u8]]) -> quiche::Config {
    let own =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let (certificate, key) = (folder.join("own.pem"), folder.join("key.pem"));
    std::fs::write(&certificate, own.cert.pem()).unwrap();
    std::fs::write(&key, own.signing_key.serialize_pem()).unwrap();
    let mut config = quiche::Config::new(quiche::PROTOCOL_VERSION).unwrap();
    config.load_cert_chain_from_pem_file(text(&certificate)).unwrap();
    config.load_priv_key_from_pem_file(text(&key)).unwrap();
    config.set_application_protos(protocols).unwrap();
    config.set_initial_max_data(1 << 20);
    config.set_initial_max_stream_data_bidi_remote(1 << 16);
    config.set_initial_max_stream_data_uni(1 << 16);
    config.set_initial_max_streams_bidi(8);
    config.set_initial_max_streams_uni(8);
    config.set_max_idle_timeout(20_000);
    config
}

/// The port of a server; its certificate lies in `folder`/own.pem.
fn server(
    folder: &Path,
    protocols: &[&[u8]],
    answer: impl Fn(&str) -> (u16, Vec<u8>) + Send + 'static,
) -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let local = socket.local_addr().unwrap();
    let mut config = config(folder, protocols);
    std::thread::spawn(move || {
        let mut peers: HashMap<SocketAddr, Peer> = HashMap::new();
        let mut packet = [0; 2048];
        loop {
            if let Ok((length, from)) = socket.recv_from(&mut packet) {
                let peer = peers.entry(from).or_insert_with(|| {
                    let id: [u8; 16] = random::bytes();
                    let id = quiche::ConnectionId::from_ref(&id);
                    let quic = quiche::accept(&id, None, local, from, &mut config).unwrap();
                    Peer { quic, h3: None, answers: BTreeMap::new() }
                });
                // A packet that is wrong shows in the client.
                let _ = peer.quic.recv(&mut packet[..length], quiche::RecvInfo { from, to: local });
            }
            for (to, peer) in &mut peers {
                peer.quic.on_timeout();
                peer.work(&answer);
                while let Ok((length, _)) = peer.quic.send(&mut packet) {
                    socket.send_to(&packet[..length], to).unwrap();
                }
            }
        }
    });
    local.port()
}

#[test]
fn files_come_over_several_connections_and_streams() {
    let place = Place::new("http3");
    let port = server(&place.0, h3::APPLICATION_PROTOCOL, |path| match path {
        "/f7" => (404, Vec::new()),
        "/f8" => (200, Vec::new()),
        _ => (200, content(path.len() as u64, 0..100_000)),
    });
    let files: Vec<_> = (0..40).map(|index| json!({ "name": format!("f{index}") })).collect();
    let manifest = place.manifest(&files);
    let ca_file = place.0.join("own.pem");
    for host in ["localhost", "127.0.0.1"] {
        let from = format!("https://{host}:{port}/");
        let words =
            ["--manifest", text(&manifest), "--from", &from, "--http", "3", "--ca-file", text(&ca_file)];
        let more = ["--algorithm", "fixed", "--concurrency", "3", "--streams", "4", "--window-bytes", "64K"];
        let got = place.get(&[words, more].concat());
        got.is_bad(1, "http_status");
        assert_eq!(
            (&got.report["files_verified_n"], &got.report["connections_opened_n"]),
            (&json!(39), &json!(3))
        );
        assert_eq!(got.report["window_effective_bytes"], 32_768);
        assert_eq!(std::fs::read(place.out("f10")).unwrap(), content(4, 0..100_000));
        assert_eq!(std::fs::metadata(place.out("f8")).unwrap().len(), 0);
        assert!(!place.out("f7").exists());
    }
}

#[test]
fn a_certificate_that_nobody_believes_is_one_sentence_over_quic_too() {
    let place = Place::new("http3-certificate");
    let port = server(&place.0, h3::APPLICATION_PROTOCOL, |_| (200, Vec::new()));
    let other = rcgen::generate_simple_self_signed(vec!["other".to_owned()]).unwrap();
    let ca_file = place.0.join("other.pem");
    std::fs::write(&ca_file, other.cert.pem()).unwrap();
    let url = format!("https://localhost:{port}/a");
    place.get(&[&url, "--http", "3", "--ca-file", text(&ca_file)]).is_bad(1, "tls");
}

#[test]
fn a_server_of_quic_that_does_not_speak_http_3_is_one_sentence() {
    let place = Place::new("http3-otherwise");
    let port = server(&place.0, &[b"other"], |_| (200, Vec::new()));
    let url = format!("https://localhost:{port}/a");
    let ca_file = place.0.join("own.pem");
    place.get(&[&url, "--http", "3", "--ca-file", text(&ca_file)]).is_bad(1, "http_version");
}

#[test]
fn nobody_at_the_port_is_one_sentence() {
    let place = Place::new("http3-nobody");
    let url = "https://127.0.0.1:9/a";
    place.get(&[url, "--http", "3", "--to", "nowhere"][..3]).is_bad(1, "connection");
}
