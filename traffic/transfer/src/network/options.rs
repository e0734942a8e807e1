// SPDX-License-Identifier: Apache-2.0
//! How connections are made, and what they say of the server.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use netjoule_measure::failure::Outcome;
use tokio_rustls::rustls::ClientConfig;

use crate::network::socket::PathFacts;
use crate::network::tls::{self, Judge};

/// Which HTTP is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
pub(crate) enum Http {
    /// /2 where the server takes it, which TLS settles, else /1.1.
    #[value(name = "auto")]
    #[serde(rename = "auto")]
    Auto,
    /// HTTP/1.1: one request at a time on a connection.
    #[value(name = "1.1")]
    #[serde(rename = "1.1")]
    One,
    /// HTTP/2, without TLS by prior knowledge.
    #[value(name = "2")]
    #[serde(rename = "2")]
    Two,
    /// HTTP/3.
    #[value(name = "3")]
    #[serde(rename = "3")]
    Three,
}

/// What all connections of a transfer have in common.
#[derive(Debug)]
pub(crate) struct Options {
    /// Which HTTP.
    pub(crate) http: Http,
    /// What TLS offers of it.
    pub(crate) protocols: &'static [&'static [u8]],
    /// Made when it is needed: to read all authorities takes a while.
    pub(crate) judge: OnceCell<Judge>,
    /// The same.
    pub(crate) tls: OnceCell<Arc<ClientConfig>>,
    /// Whom to believe.
    pub(crate) ca_file: Option<PathBuf>,
    /// Cap of what a server may send before it hears of this end.
    pub(crate) window_bytes: Option<u32>,
    /// How long nothing may come, before a file or a server is given up.
    pub(crate) patience: Duration,
    /// What the path is like.
    pub(crate) facts: Rc<PathFacts>,
}

impl Options {
    /// Settings of TLS over TCP.
    pub(crate) fn tls(&self) -> Outcome<Arc<ClientConfig>> {
        if let Some(tls) = self.tls.get() {
            return Ok(tls.clone());
        }
        let made = tls::client(self.judge()?, self.protocols)?;
        Ok(self.tls.get_or_init(|| made).clone())
    }

    /// Whom to believe.
    pub(crate) fn judge(&self) -> Outcome<Judge> {
        if let Some(judge) = self.judge.get() {
            return Ok(judge.clone());
        }
        let made = tls::judge(self.ca_file.as_deref())?;
        Ok(self.judge.get_or_init(|| made).clone())
    }
}

/// How a server is, as its connections tell.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub(crate) struct Server {
    /// Its header `server`.
    pub(crate) software: Option<String>,
    /// 1.1, 2 or 3.
    pub(crate) http_version: Option<&'static str>,
    /// 1.2 or 1.3; none without TLS.
    pub(crate) tls_version: Option<&'static str>,
}
