// SPDX-License-Identifier: Apache-2.0
//! Servers with which no TLS comes about, and why.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use tokio_rustls::rustls::{
    crypto::ring::default_provider, pki_types::PrivateKeyDer, ServerConfig, ServerConnection, StreamOwned,
};

use crate::place::{text, Place};
use crate::server::rest;

/// The URL of a server that says nothing after its handshake; its certificate, signed by itself, lies in own.pem.
fn server(place: &Place, is_ca: IsCa, protocols: &[&[u8]]) -> String {
    let mut own = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    own.is_ca = is_ca;
    let key = KeyPair::generate().unwrap();
    let own = own.self_signed(&key).unwrap();
    std::fs::write(place.0.join("own.pem"), own.pem()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut config = config.with_single_cert(vec![own.der().clone()], key).unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let config = Arc::new(config);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}/a", listener.local_addr().unwrap().port());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            rest(StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream.unwrap()));
        }
    });
    url
}

#[test]
fn a_certificate_that_nobody_believes_is_one_sentence() {
    let place = Place::new("certificate");
    let url = server(&place, IsCa::NoCa, &[]);
    let other = rcgen::generate_simple_self_signed(vec!["other".to_owned()]).unwrap();
    let ca_file = place.0.join("ca.pem");
    std::fs::write(&ca_file, other.cert.pem()).unwrap();
    let got = place.get(&[&url, "--ca-file", text(&ca_file)]);
    got.is_bad(1, "tls");
    let sentence = &got.errors[0];
    assert!(sentence.contains(text(&ca_file)) && !sentence.contains("--ca-file"), "{sentence}");
    assert!(place.names().is_empty());
}

#[test]
fn a_certificate_of_an_authority_is_told_from_one_that_nobody_knows() {
    let place = Place::new("authority");
    let url = server(&place, IsCa::Ca(BasicConstraints::Unconstrained), &[]);
    let got = place.get(&[&url, "--ca-file", text(&place.0.join("own.pem"))]);
    got.is_bad(1, "tls");
    assert!(got.errors[0].contains("CA:TRUE"), "{:?}", got.errors);
}

#[test]
fn a_server_that_does_not_speak_the_http_that_is_asked_for_says_so_in_tls() {
    let place = Place::new("protocols");
    for protocols in [&[b"http/1.1".as_slice()][..], &[]] {
        let url = server(&place, IsCa::NoCa, protocols);
        let ca_file = place.0.join("own.pem");
        place.get(&[&url, "--http", "2", "--ca-file", text(&ca_file)]).is_bad(1, "http_version");
    }
}
