// SPDX-License-Identifier: Apache-2.0
//! HTTP/2 by prior knowledge against a server that says goodbye after so many requests of a connection.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::Future;
use std::net::TcpListener;
use std::rc::Rc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::place::{text, Place};
use crate::server::{Reply, Server};

#[derive(Clone)]
struct Local;

impl<F: Future + 'static> hyper::rt::Executor<F> for Local {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

async fn serve(stream: TcpStream, most: u32) {
    let served = Rc::new(Cell::new(0));
    let is_enough = Rc::new(Notify::new());
    let enough = is_enough.clone();
    let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
        served.set(served.get() + 1);
        if served.get() == most {
            enough.notify_one();
        }
        let body = Full::new(Bytes::from(request.uri().path().repeat(200)));
        async { Ok::<_, Infallible>(http::Response::new(body)) }
    });
    let connection =
        hyper::server::conn::http2::Builder::new(Local).serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        () = is_enough.notified() => connection.as_mut().graceful_shutdown(),
    }
    // The client may have closed it.
    let _ = connection.await;
}

/// The URL of a server of which each connection takes about `most` requests.
fn server(most: u32) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::task::spawn_local(serve(stream, most));
            }
        });
    });
    url
}

#[test]
fn a_server_that_says_goodbye_loses_no_file() {
    let place = Place::new("goodbye");
    let names: Vec<String> = (0..300).map(|index| format!("f{index:03}")).collect();
    let manifest = place
        .manifest(&names.iter().map(|name| json!({ "name": name, "size_bytes": 1_000 })).collect::<Vec<_>>());
    for more in [&["--algorithm", "fixed", "--concurrency", "2"][..], &["--streams", "32"]] {
        let words = ["--manifest", text(&manifest), "--from", &server(40), "--http", "2"];
        let got = place.get(&[&words[..], more].concat());
        got.is_good();
        assert_eq!(got.report["server"]["http_version"], "2");
        assert!(
            got.report["connections_opened_n"].as_u64().unwrap() >= 300 / 80,
            "{}",
            got.report["connections_opened_n"]
        );
        assert_eq!(place.names(), names);
        for name in &names {
            assert_eq!(std::fs::read_to_string(place.out(name)).unwrap(), format!("/{name}").repeat(200));
        }
    }
}

#[test]
fn a_server_that_speaks_http_1_is_told_at_once() {
    let place = Place::new("prior-knowledge");
    let server = Server::start(|_| Reply::new(400).with("connection", "close"));
    let urls = [format!("{}/a", server.url), format!("{}/b", server.url)];
    let got = place.get(&[&urls[0], &urls[1], "--http", "2"]);
    got.is_bad(1, "http_version");
    // One that closes before it has read all may be gone before its answer is read.
    assert!(got.report["retries_n"].as_u64().unwrap() < 10, "{}", got.report["retries_n"]);
}
