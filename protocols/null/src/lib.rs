// SPDX-License-Identifier: Apache-2.0
//! A transport that drops: every message is built and timed like any other and then goes nowhere.
//!
//! Its power is the generator floor: what the schedule itself costs on this host.

#![forbid(unsafe_code)]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use netjoule_transport::{
    Arrival, Description, FlowSpec, IpVersion, Kind, Limits, NewTransport, PollFd, Protocol, Result, Role,
    State, Stop, Transport, TransportError, Values,
};

/// Largest message in bytes: as for streams.
const LARGEST_MESSAGE_BYTES: usize = 1 << 20;

/// The null transport as a [`Protocol`]. It has a sending end only.
#[derive(Debug, Clone, Copy)]
pub struct Null;

impl Protocol for Null {
    fn description(&self) -> &Description {
        const {
            &Description {
                takes_launch_times: true,
                ..Description::new("null", "generator floor (null)", Kind::Datagram)
            }
        }
    }

    fn limits(&self, _ip_version: IpVersion, _mtu_bytes: u32, _options: &Values) -> Limits {
        Limits {
            max_message_bytes: LARGEST_MESSAGE_BYTES,
            reason: "1 MiB, the largest message of any transport".into(),
        }
    }

    fn connect(
        &self,
        _local: Option<IpAddr>,
        _remote: SocketAddr,
        flow: &FlowSpec,
        _offer: &Values,
        _now_ns: i64,
    ) -> NewTransport {
        match flow.role {
            Role::Sender => Ok(Box::new(Dropper { dropped: 0 })),
            Role::Receiver => Err(no_other_end()),
        }
    }

    fn listen(&self, _local: SocketAddr, _allowed_peer: Option<IpAddr>, _flow: &FlowSpec) -> NewTransport {
        Err(no_other_end())
    }
}

fn no_other_end() -> TransportError {
    TransportError::Unsupported(
        "the null transport drops messages where they are sent: nothing to receive".into(),
    )
}

/// Counts what it drops.
#[derive(Debug)]
struct Dropper {
    dropped: u64,
}

impl Transport for Dropper {
    fn local_address(&self) -> Result<SocketAddr> {
        Ok(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))
    }

    fn poll_fds(&self, _fds: &mut Vec<PollFd>) {}

    fn service(&mut self, _now_ns: i64) -> Result<State> {
        Ok(State::Open)
    }

    fn send(&mut self, message: &[u8], _now_ns: i64) -> Result<Stop> {
        // Keeps the building of the message from being optimised away.
        std::hint::black_box(message);
        self.dropped += 1;
        Ok(Stop::None)
    }

    /// What is dropped keeps any launch time.
    fn prepare_launch_times(&mut self) -> Result<()> {
        Ok(())
    }

    fn receive(&mut self, _now_ns: i64, _sink: &mut dyn FnMut(Arrival<'_>)) -> Result<usize> {
        Ok(0)
    }

    fn path_statistics(&mut self) -> Values {
        Values::from_iter([("messages_dropped".to_owned(), self.dropped.into())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(role: Role) -> FlowSpec {
        FlowSpec {
            payload_bytes: 64,
            role,
            token: [0; 16],
            gso: false,
            seed: 0,
            rate_bps: 0,
            options: Values::new(),
            event_log: None,
        }
    }

    #[test]
    fn it_is_open_at_once_and_takes_everything() {
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
        let mut end = Null.connect(None, nowhere, &flow(Role::Sender), &Values::new(), 0).unwrap();
        assert_eq!(end.service(0).unwrap(), State::Open);
        let outcome = end.send_batch(&mut [0; 640], 64, 0).unwrap();
        assert_eq!(outcome.sent, 10);
        assert_eq!(end.path_statistics()["messages_dropped"], 10);
    }

    #[test]
    fn it_has_no_receiving_end() {
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
        assert!(Null.connect(None, nowhere, &flow(Role::Receiver), &Values::new(), 0).is_err());
        assert!(Null.listen(nowhere, None, &flow(Role::Receiver)).is_err());
    }
}
