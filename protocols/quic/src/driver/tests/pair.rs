// SPDX-License-Identifier: Apache-2.0
//! Two connections joined in memory, and a wire between them that tests can spoil.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::certificate::Identity;
use crate::config::Options;
use crate::driver::Driver;
use crate::fingerprint::Fingerprint;
use crate::options::{Choice, CongestionControl};
use crate::path::packet_io::PACKET_BUFFER_BYTES;

/// With a queue of 64 datagrams.
pub(crate) const OPTIONS: Options = Options {
    mtu_bytes: 1500,
    choice: Choice { congestion_control: CongestionControl::Cubic, is_paced: false, early_data: false },
    payload_bytes: 2048,
};

/// Which end a packet comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    Client,
    Server,
}

/// What the wire does to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Deliver,
    Drop,
    Twice,
    Garble,
}

pub(crate) struct Pair {
    pub(crate) client: Driver,
    pub(crate) server: Driver,
}

impl Pair {
    /// A client that trusts `fingerprint`, and a server with `identity`.
    pub(crate) fn new(identity: &Identity, fingerprint: Fingerprint, connection_id_bytes: usize) -> Self {
        Self::with(OPTIONS, identity, fingerprint, connection_id_bytes)
    }

    /// The same with other options.
    pub(crate) fn with(
        options: Options,
        identity: &Identity,
        fingerprint: Fingerprint,
        connection_id_bytes: usize,
    ) -> Self {
        let client_address: SocketAddr = "192.0.2.1:1111".parse().unwrap();
        let server_address: SocketAddr = "192.0.2.2:2222".parse().unwrap();
        let (client_id, server_id) = (vec![1; connection_id_bytes], vec![2; connection_id_bytes]);
        Self {
            client: Driver::connect(&options, fingerprint, &client_id, client_address, server_address)
                .unwrap(),
            server: Driver::accept(&options, identity, &server_id, server_address, client_address).unwrap(),
        }
    }

    /// A pair whose handshake is done.
    pub(crate) fn established(connection_id_bytes: usize) -> Self {
        let identity = Identity::generate().unwrap();
        let mut pair = Self::new(&identity, identity.fingerprint(), connection_id_bytes);
        pair.exchange();
        assert!(pair.client.is_established() && pair.server.is_established());
        pair
    }

    /// Carries packets until neither end has one, over a perfect wire.
    pub(crate) fn exchange(&mut self) {
        self.exchange_over(&mut |_, _| Fate::Deliver);
    }

    /// Carries packets until neither end has one; `packet_io` decides about each.
    pub(crate) fn exchange_over(&mut self, wire: &mut dyn FnMut(From, usize) -> Fate) {
        while carry(From::Client, &mut self.client, &mut self.server, wire)
            | carry(From::Server, &mut self.server, &mut self.client, wire)
        {}
    }

    /// Waits for the next timer of either end and runs it. quiche reads the clock, so this takes real time.
    pub(crate) fn run_next_timer(&mut self) {
        let at = self.client.timeout_at().into_iter().chain(self.server.timeout_at()).min().unwrap();
        let wait = at.saturating_duration_since(Instant::now());
        assert!(wait < Duration::from_secs(10), "nothing is due for {wait:?}: the pair is stuck");
        std::thread::sleep(wait);
        self.client.on_timeout();
        self.server.on_timeout();
    }
}

fn carry(
    from: From,
    sender: &mut Driver,
    receiver: &mut Driver,
    wire: &mut dyn FnMut(From, usize) -> Fate,
) -> bool {
    let mut packet = [0; PACKET_BUFFER_BYTES];
    let mut any = false;
    while let Ok(Some(transmit)) = sender.transmit(&mut packet) {
        any = true;
        let packet = &mut packet[..transmit.len];
        match wire(from, transmit.len) {
            Fate::Drop => (),
            Fate::Deliver => receiver.receive(packet),
            Fate::Twice => {
                receiver.receive(&mut packet.to_vec());
                receiver.receive(packet);
            }
            Fate::Garble => {
                packet[transmit.len / 2] ^= 0x10;
                receiver.receive(packet);
            }
        }
    }
    any
}
