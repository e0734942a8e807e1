// SPDX-License-Identifier: Apache-2.0
//! Both ends of a flow of DCCP (RFC 4340): connections of netjoule_dccp in UDP (RFC 6773), packets as they are on the wire.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use netjoule_dccp::ccid::{Ccid, Ecn};
use netjoule_dccp::listener::{Listener, Verdict};
use netjoule_dccp::{Carriage, Config, Connection, State};
use netjoule_link_model::rng::Rng;

use crate::ends::{Content, Ends, FlowTotals, Packet, Way};

const SERVICE_CODE: u32 = 0x4e4a_4f55;
const PORTS: (u16, u16) = (40_000, 5_000);
const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 6_511);
/// Messages that wait for congestion control, so that there is always one.
const QUEUED: usize = 2;

/// Parameters of both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DccpParams {
    /// Congestion control.
    pub ccid: Ccid,
    /// Size of a message, each of which is a packet.
    pub payload_bytes: usize,
    /// 4 or 6.
    pub ip_version: u8,
}

impl DccpParams {
    fn carriage(self) -> Carriage {
        Carriage::Udp { ip_version: self.ip_version }
    }

    fn config(self, (local_port, remote_port): (u16, u16)) -> Config {
        let (service_code, ccids) = (SERVICE_CODE, vec![self.ccid]);
        Config {
            carriage: self.carriage(),
            local_port,
            remote_port,
            service_code,
            ccids,
            ..Config::default()
        }
    }

    /// The largest message that a packet of 1500 bytes has room for.
    pub fn greatest_message(self) -> usize {
        Connection::connect(self.config(PORTS), 0, &mut || 0).max_payload_bytes()
    }
}

/// A client that sends and the server that it connects to.
#[derive(Debug)]
pub struct DccpEnds {
    params: DccpParams,
    /// Until the flow has begun there is none.
    client: Option<Connection>,
    listener: Listener,
    server: Option<Connection>,
    /// The listener's answer.
    reply: Option<Vec<u8>>,
    message: Vec<u8>,
    received: u64,
    rng: Rng,
}

impl DccpEnds {
    /// Nothing was sent yet; sequence numbers are drawn from `rng`.
    pub fn new(params: DccpParams, rng: Rng) -> Self {
        let served = params.config((PORTS.1, 0));
        Self {
            params,
            client: None,
            listener: Listener::new(served, vec![SERVICE_CODE], 1, [3; 16]),
            server: None,
            reply: None,
            message: vec![0; params.payload_bytes],
            received: 0,
            rng,
        }
    }

    fn packet(&self, way: Way, bytes: Vec<u8>) -> Packet {
        let ip_bytes = (bytes.len() + self.params.carriage().overhead_bytes()) as u32;
        Packet { way, content: Content::Dccp(bytes.into()), ip_bytes }
    }

    fn client_sends(&mut self, now_ns: i64) -> Option<Vec<u8>> {
        let (params, rng) = (self.params, &mut self.rng);
        let client = self
            .client
            .get_or_insert_with(|| Connection::connect(params.config(PORTS), now_ns, &mut || rng.next_u64()));
        while client.state() == State::Open && client.queued() < QUEUED {
            if client.send(now_ns, &self.message).is_err() {
                break;
            }
        }
        sent(client, now_ns)
    }

    fn server_takes(&mut self, now_ns: i64, bytes: &[u8]) {
        if let Some(server) = &mut self.server {
            self.received += u64::from(server.handle(now_ns, Ecn::NotEct, bytes).is_some());
            return;
        }
        let rng = &mut self.rng;
        match self.listener.handle(now_ns, Ecn::NotEct, PEER, bytes, &mut || rng.next_u64()) {
            Verdict::Ignore => {}
            Verdict::Reply(answer) => self.reply = Some(answer),
            Verdict::Accept { connection, payload } => {
                self.received += u64::from(payload.is_some());
                self.server = Some(*connection);
            }
        }
    }

    fn figure(&self, name: &str) -> Option<f64> {
        let figures = self.client.as_ref()?.figures();
        figures.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// The first of these figures that the congestion control has.
    fn count(&self, names: [&str; 2]) -> u64 {
        names.into_iter().find_map(|name| self.figure(name)).unwrap_or(0.0) as u64
    }
}

fn sent(end: &mut Connection, now_ns: i64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    end.poll_transmit(now_ns, &mut bytes).map(|_| bytes)
}

impl Ends for DccpEnds {
    fn next_ns(&self) -> Option<u64> {
        let ends = [&self.client, &self.server].into_iter().flatten();
        ends.filter_map(Connection::next_wakeup_ns).min().map(|at_ns| at_ns as u64)
    }

    fn poll(&mut self, now_ns: u64) -> Option<Packet> {
        let now_ns = now_ns as i64;
        if let Some(bytes) = self.client_sends(now_ns) {
            return Some(self.packet(Way::Up, bytes));
        }
        let reply = self.reply.take();
        let bytes = reply.or_else(|| sent(self.server.as_mut()?, now_ns))?;
        Some(self.packet(Way::Down, bytes))
    }

    fn take(&mut self, now_ns: u64, way: Way, content: Content) {
        let (Content::Dccp(bytes), now_ns) = (content, now_ns as i64) else { return };
        match (way, &mut self.client) {
            (Way::Up, _) => self.server_takes(now_ns, &bytes),
            (Way::Down, Some(client)) => drop(client.handle(now_ns, Ecn::NotEct, &bytes)),
            (Way::Down, None) => {}
        }
    }

    fn totals(&self) -> FlowTotals {
        FlowTotals {
            acked_packets: self.received,
            sent_packets: self.figure("data_packets_sent").unwrap_or(0.0) as u64,
            resent_packets: 0,
            timeouts: self.count(["timeouts", "nofeedback_expirations"]),
            recoveries: self.count(["congestion_events", "loss_events"]),
        }
    }

    /// The congestion window (CCID 2), or what leaves in a round trip at the allowed rate (CCID 3).
    fn window(&self) -> f64 {
        let of_rate = || {
            let rate = self.figure("allowed_rate_bytes_per_s")? / self.params.payload_bytes as f64;
            Some(rate * self.figure("rtt_us")? / 1e6)
        };
        self.figure("cwnd_packets").or_else(of_rate).unwrap_or(0.0)
    }
}
