// SPDX-License-Identifier: Apache-2.0
//! How does a client get to an open flow?
//!
//! By one connection: handshake, token, the server's answer. With early data by two: a first one that ends as soon as the
//! server's session ticket has come, then the flow's own, which resumes it and sends the token with 0-RTT keys, so that the
//! answer comes one round trip earlier. The ticket never leaves this process, and its key is made for one flow.
//!
//! Early data can be replayed by who records it (RFC 8446 section 8). Here that gains nothing: the server opens a flow only
//! when the handshake is done too, which a replay cannot do, and messages, which carry sequence numbers and are counted
//! once, always come after that.

use std::net::SocketAddr;
use std::path::PathBuf;

use netjoule_sockets::socket;
use netjoule_transport::{Values, TOKEN_BYTES};

use crate::config::Options;
use crate::driver::Driver;
use crate::endpoint::Endpoint;
use crate::error::QuicError;
use crate::fingerprint::Fingerprint;
use crate::path::packet_io::PacketIo;
use crate::qlog::EventLog;
use crate::token_exchange::{Progress, TokenExchange};

/// What every connection of one flow needs.
pub(crate) struct Target {
    /// Before the route is known.
    pub(crate) options: Options,
    /// The server's certificate.
    pub(crate) fingerprint: Fingerprint,
    /// Address to bind; the port is 0.
    pub(crate) local: SocketAddr,
    /// The server.
    pub(crate) remote: SocketAddr,
    /// What the server's packets will carry.
    pub(crate) connection_id: Vec<u8>,
    /// The flow's secret.
    pub(crate) token: [u8; TOKEN_BYTES],
    /// Send and receive trains.
    pub(crate) gso: bool,
    /// Where the flow's own connection is recorded.
    pub(crate) event_log: Option<PathBuf>,
}

impl Target {
    /// Starts a connection, without sending anything yet.
    fn connect(&self) -> netjoule_transport::Result<Endpoint> {
        let mut wire = PacketIo::bind(self.local, self.gso)?;
        wire.connect(self.remote)?;
        let local = wire.local_address()?;
        let options = self.options.on_route(socket::path_mtu_bytes(wire.fd(), self.remote.is_ipv4()));
        let driver = Driver::connect(&options, self.fingerprint, &self.connection_id, local, self.remote)?;
        Ok(Endpoint::new(driver, wire))
    }

    /// Starts the connection that will carry messages.
    fn connect_flow(&self, session: Option<&[u8]>) -> netjoule_transport::Result<Endpoint> {
        let mut endpoint = self.connect()?;
        if let Some(stem) = &self.event_log {
            let log = EventLog::held();
            log.keep(stem)?;
            log.attach(&mut endpoint.driver.quic, "client");
        }
        if let Some(session) = session {
            endpoint.driver.resume(session)?;
        }
        endpoint.flush()?;
        Ok(endpoint)
    }
}

enum Stage {
    /// Waiting for a session ticket.
    Ticket,
    /// Proving the flow's token.
    TokenExchange(TokenExchange),
}

/// A client that is not open yet.
pub(crate) struct Opening {
    target: Target,
    endpoint: Endpoint,
    stage: Stage,
    /// When this stage began.
    began_ns: i64,
    ticket_ns: Option<i64>,
}

impl Opening {
    pub(crate) fn start(target: Target, now_ns: i64) -> netjoule_transport::Result<Self> {
        let early_data = target.options.choice.early_data;
        let mut endpoint = if early_data { target.connect()? } else { target.connect_flow(None)? };
        endpoint.flush()?;
        let stage = if early_data {
            Stage::Ticket
        } else {
            Stage::TokenExchange(TokenExchange::client(target.token))
        };
        Ok(Self { target, endpoint, stage, began_ns: now_ns, ticket_ns: None })
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Does what is due; true when the server has accepted the flow: then call `into_open`.
    pub(crate) fn service(&mut self, now_ns: i64) -> netjoule_transport::Result<bool> {
        let endpoint = &mut self.endpoint;
        endpoint.drain(None)?;
        endpoint.run_timers();
        let progress = match &mut self.stage {
            Stage::Ticket => Progress::Underway,
            Stage::TokenExchange(token_exchange) => advance(endpoint, token_exchange)?,
        };
        endpoint.flush()?;
        endpoint.driver.health()?;
        if matches!(self.stage, Stage::Ticket) {
            self.resume_when_possible(now_ns)?;
        }
        match progress {
            Progress::Underway => Ok(false),
            Progress::Wrong => Err(QuicError::BadGreeting { peer: self.endpoint.peer() }.into()),
            Progress::Done => Ok(true),
        }
    }

    /// The open connection, and how long it took.
    pub(crate) fn into_open(self, now_ns: i64) -> (Endpoint, Values) {
        let milliseconds = |ns: i64| ns as f64 * 1e-6;
        let mut times = Values::new();
        times.insert("opening_ms".to_owned(), milliseconds(now_ns - self.began_ns).into());
        if let Some(ticket_ns) = self.ticket_ns {
            times.insert("ticket_connection_ms".to_owned(), milliseconds(ticket_ns).into());
        }
        (self.endpoint, times)
    }

    /// Says goodbye.
    pub(crate) fn close(&mut self) {
        self.endpoint.driver.close();
        // Best effort: a server that misses it gives the connection up by itself.
        let _ = self.endpoint.flush();
    }

    /// Once the ticket is here: ends the first connection and starts the flow's own.
    fn resume_when_possible(&mut self, now_ns: i64) -> netjoule_transport::Result<()> {
        let quic = &self.endpoint.driver.quic;
        let Some(session) = quic.session().filter(|_| quic.is_established()).map(<[u8]>::to_vec) else {
            return Ok(());
        };
        self.close();
        let mut endpoint = self.target.connect_flow(Some(&session))?;
        let mut token_exchange = TokenExchange::client(self.target.token);
        // The keys for early data are there as soon as the first packet is.
        advance(&mut endpoint, &mut token_exchange)?;
        endpoint.flush()?;
        self.endpoint = endpoint;
        self.stage = Stage::TokenExchange(token_exchange);
        self.ticket_ns = Some(now_ns - self.began_ns);
        self.began_ns = now_ns;
        Ok(())
    }
}

fn advance(endpoint: &mut Endpoint, token_exchange: &mut TokenExchange) -> Result<Progress, QuicError> {
    if !endpoint.driver.carries_data() {
        return Ok(Progress::Underway);
    }
    token_exchange
        .advance(&mut endpoint.driver.quic)
        .map_err(|source| QuicError::Library { doing: "proving the flow's token", source })
}
