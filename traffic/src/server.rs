// SPDX-License-Identifier: Apache-2.0
//! `serve`: flows one after the other, from the asked end.
//!
//! The main thread runs the flows, so that its own run time is the flow's. A helper thread accepts control
//! connections and hands over the first that asks while no flow is on; others are told that the server is busy.

use std::io::Read;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::AsRawFd;

use netjoule_transport::{FlowSpec, IpVersion, PollFd, Protocol, Role, State, Transport};
use serde_json::json;

use crate::channel::Channel;
use crate::cli::ServeArgs;
use crate::control::{self, Caps, FlowRequest, Message, Welcome, INTERVALS_PER_LINE, SAMPLES_PER_LINE};
use crate::event_log;
use crate::failure::{Code, Failure, Outcome};
use crate::host;
use crate::intervals::Interval;
use crate::lobby::{failure_message, Lobby, Visitor};
use crate::output::{self, Output};
use crate::receiver::{self, Expectation};
use crate::registry;
use crate::report::{Direction, EndReason, Generator};
use crate::sender::{self, Plan};
use crate::session::{Session, StdinUse};
use crate::wait::{Signals, Waiter};

/// How long a client may take to open the data path, ns.
const OPEN_NS: i64 = 10_000_000_000;
/// How long an interrupted flow waits for the client's goodbye, ns.
const GOODBYE_NS: i64 = 2_000_000_000;

/// Run `serve`; the exit code.
pub fn run(args: &ServeArgs, signals: &Signals, output: Output) -> Outcome<u8> {
    let control = SocketAddr::new(args.control_bind.unwrap_or(args.bind), args.port);
    let listener = TcpListener::bind(control).map_err(|error| {
        Failure::new(
            Code::Refused,
            format!("cannot listen on {control}: {error} (choose another --bind or --port)"),
        )
    })?;
    let address = listener.local_addr().map_err(Failure::system("read the control address"))?;
    output::write(&json!({ "event": "listening", "control": address.to_string() }).to_string())?;
    let lobby = Lobby::open(listener)?;
    let server = Server { args, signals, output };
    let mut waiter = Waiter::new().map_err(Failure::system("open a timer"))?;
    loop {
        if server.should_end(&lobby, &mut waiter)? {
            return Ok(0);
        }
        let Some(visitor) = lobby.visitor() else { continue };
        let interrupted = server.serve(visitor);
        lobby.free();
        if interrupted {
            return Ok(1);
        }
    }
}

struct Server<'a> {
    args: &'a ServeArgs,
    signals: &'a Signals,
    output: Output,
}

impl Server<'_> {
    /// Sleep until a client rings; true when it is time to end instead.
    fn should_end(&self, lobby: &Lobby, waiter: &mut Waiter) -> Outcome<bool> {
        let readable = |fd| PollFd { fd, read: true, write: false };
        let mut fds = vec![readable(self.signals.fd()), readable(lobby.bell())];
        if self.args.exit_with_stdin {
            fds.push(readable(std::io::stdin().as_raw_fd()));
        }
        waiter.wait(&fds, None, host::now_ns()).map_err(Failure::system("wait for clients"))?;
        let stdin_ended = waiter.ready(2) && !matches!(std::io::stdin().lock().read(&mut [0; 4096]), Ok(1..));
        Ok((waiter.ready(0) && self.signals.take()) || stdin_ended)
    }

    /// Serve one flow whatever happens; true when this process was told to stop meanwhile.
    fn serve(&self, (stream, rest, hello): Visitor) -> bool {
        let id = &hello.flow.flow_id;
        let _ =
            self.output.event("flow_started", json!({ "flow_id": id, "transport": hello.flow.transport }));
        let mut interrupted = false;
        let outcome = Channel::new(stream, rest).and_then(|channel| {
            let mut flow = Flow::open(self, channel, &hello.flow)?;
            let outcome = flow.run();
            if let Err(failure) = &outcome {
                let _ = flow.session.tell(&failure_message(failure));
            }
            flow.close(outcome.is_ok());
            interrupted = flow.session.heard.interrupted;
            outcome
        });
        let fields = match &outcome {
            Ok(reason) => json!({ "flow_id": id, "end_reason": reason }),
            Err(failure) => {
                self.output.complain(&format!("flow {id} failed: {failure}"));
                json!({ "flow_id": id, "code": failure.code.name(), "message": failure.message })
            }
        };
        let _ = self.output.event(if outcome.is_ok() { "flow_finished" } else { "flow_failed" }, fields);
        interrupted
    }

    fn caps(&self) -> Caps {
        Caps {
            duration_ns: u64::from(self.args.max_duration_s) * 1_000_000_000,
            rate_bps: self.args.max_rate,
        }
    }

    fn hold_ns(&self) -> i64 {
        i64::from(self.args.max_hold_s) * 1_000_000_000
    }

    /// Listen for the data where the client will look for it, as far as --bind allows.
    fn listen(
        &self,
        protocol: &dyn Protocol,
        request: &FlowRequest,
        allowed_peer: Option<IpAddr>,
        spec: &FlowSpec,
    ) -> Outcome<Box<dyn Transport>> {
        let bind = self.args.bind;
        let wanted = if bind.is_unspecified() { request.data_address } else { bind };
        if IpVersion::of(wanted) != IpVersion::of(request.data_address)
            || (bind.is_ipv4() && wanted.is_ipv6())
        {
            return Err(Failure::new(
                Code::Refused,
                format!("the server is bound to {bind} and does not serve data on {}", request.data_address),
            ));
        }
        let at = |ip| SocketAddr::new(ip, self.args.data_port);
        let listening = protocol.listen(at(wanted), allowed_peer, spec, host::now_ns());
        match listening {
            // Behind address translation the client's name for us is not ours.
            Err(_) if bind.is_unspecified() => {
                Ok(protocol.listen(at(bind), allowed_peer, spec, host::now_ns())?)
            }
            other => Ok(other?),
        }
    }
}

struct Flow<'a> {
    server: &'a Server<'a>,
    protocol: &'a dyn Protocol,
    request: &'a FlowRequest,
    session: Session<'a>,
}

impl<'a> Flow<'a> {
    fn open(server: &'a Server<'a>, mut channel: Channel, request: &'a FlowRequest) -> Outcome<Self> {
        match Self::welcome(server, &mut channel, request) {
            Ok((protocol, transport)) => {
                let stdin_use =
                    if server.args.exit_with_stdin { StdinUse::EndStops } else { StdinUse::Ignored };
                let session = Session::new(transport, Some(channel), server.signals, stdin_use)?;
                Ok(Self { server, protocol, request, session })
            }
            Err(failure) => {
                let _ = channel.send(&failure_message(&failure));
                Err(failure)
            }
        }
    }

    fn welcome(
        server: &Server<'_>,
        channel: &mut Channel,
        request: &FlowRequest,
    ) -> Outcome<(&'static dyn Protocol, Box<dyn Transport>)> {
        request.check(server.caps())?;
        let protocol = registry::protocol(&request.transport)?;
        let options = protocol.options(&request.options)?;
        let version = IpVersion::of(request.data_address);
        sender::check_size(protocol, &options, request.payload_bytes, version, u32::from(u16::MAX))?;
        let token = host::random_bytes().map_err(Failure::system("draw a token"))?;
        let spec = FlowSpec {
            message_bytes: request.payload_bytes as usize,
            role: match request.direction {
                Direction::Up => Role::Receiver,
                Direction::Down => Role::Sender,
            },
            token,
            gso: request.gso,
            seed: request.seed,
            rate_bps: request.rate_bps,
            options,
            event_log: event_log::stem(server.args.qlog.as_deref(), &request.flow_id, "server")?,
        };
        // Only who started the server may lift the rule that data goes to the control connection's peer.
        let apart = server.args.control_bind.is_some();
        if request.control_apart && !apart {
            return Err(Failure::new(
                Code::Refused,
                "this server sends data only to the address of the control connection; \
                 start it with --control-bind to keep control on another network",
            ));
        }
        let peer = channel.peer()?.ip().to_canonical();
        let transport = server.listen(protocol, request, (!apart).then_some(peer), &spec)?;
        channel.send(&Message::Welcome(Box::new(Welcome {
            generator: Generator::this(),
            boot_id: host::boot_id(),
            data_port: transport.local_address()?.port(),
            token: control::token_text(&token),
            offer: transport.offer(),
        })))?;
        Ok((protocol, transport))
    }

    fn run(&mut self) -> Outcome<EndReason> {
        self.session.wait_for("the client's data", OPEN_NS, |session| Ok(session.state == State::Open))?;
        if self.request.direction == Direction::Down {
            let mtu_bytes = self.session.transport.path_mtu_bytes().unwrap_or(u32::from(u16::MAX));
            let version = IpVersion::of(self.request.data_address);
            let (bytes, options) = (self.request.payload_bytes, &self.request.options);
            sender::check_size(self.protocol, options, bytes, version, mtu_bytes)?;
            sender::prepare(&mut self.session, self.request.pacing)?;
        }
        self.session.tell(&Message::Open)?;
        let hold_ns = self.server.hold_ns();
        self.session.wait_for("the client's go", hold_ns, |session| Ok(session.heard.go.is_some()))?;
        self.session.tell(&Message::Started)?;
        let end_reason = match self.request.direction {
            Direction::Up => self.receive()?,
            Direction::Down => self.send()?,
        };
        self.hold(end_reason)?;
        Ok(end_reason)
    }

    /// Close the data connection. After a whole flow the client does so first, and a transport with a connection parts
    /// in peace.
    fn close(&mut self, in_peace: bool) {
        if in_peace && !self.session.transport.parted() {
            self.session.await_close();
        }
        self.session.transport.close(host::now_ns());
        if in_peace {
            self.session.part();
        }
    }

    fn receive(&mut self) -> Outcome<EndReason> {
        let clock_ahead_ns = self.session.heard.go.unwrap_or(0);
        let expectation = Expectation::of(self.request, self.protocol.kind(), clock_ahead_ns);
        let received = receiver::run(&mut self.session, &expectation, Output::Silent)?;
        self.tell_intervals(received.intervals)?;
        self.session.tell(&Message::ReceiverPart { receiver: Box::new(received.part) })?;
        Ok(received.end_reason)
    }

    fn send(&mut self) -> Outcome<EndReason> {
        let sent =
            sender::run(&mut self.session, &Plan::of(self.request, self.protocol.kind()), Output::Silent)?;
        if sent.end_reason == EndReason::Interrupted {
            self.session.tell(&Message::Stop)?;
        }
        self.session.tell(&Message::Finished { messages_sent: sent.part.messages_sent })?;
        self.tell_intervals(sent.intervals)?;
        for some in sent.congestion.unwrap_or_default().chunks(SAMPLES_PER_LINE) {
            self.session.tell(&Message::Congestion { samples: some.to_vec() })?;
        }
        self.session.tell(&Message::SenderPart { sender: Box::new(sent.part), path: sent.path })?;
        Ok(sent.end_reason)
    }

    fn tell_intervals(&mut self, intervals: Vec<Interval>) -> Outcome<()> {
        for some in intervals.chunks(INTERVALS_PER_LINE) {
            self.session.tell(&Message::Intervals { intervals: some.to_vec() })?;
        }
        Ok(())
    }

    /// Keep the sockets open and idle until the client says goodbye. Its silence is no failure of the flow.
    fn hold(&mut self, end_reason: EndReason) -> Outcome<()> {
        let limit_ns = if end_reason == EndReason::Interrupted { GOODBYE_NS } else { self.server.hold_ns() };
        let waited = self.session.wait_for_calmly("the client's goodbye", limit_ns, |session| {
            Ok(session.heard.end || (session.heard.interrupted && end_reason != EndReason::Interrupted))
        });
        match waited {
            Err(failure) if !matches!(failure.code, Code::ControlLost | Code::Timeout | Code::DataLost) => {
                Err(failure)
            }
            // A goodbye that came with the signal is a goodbye.
            _ if self.session.heard.interrupted
                && !self.session.heard.end
                && end_reason != EndReason::Interrupted =>
            {
                Err(Failure::new(Code::Interrupted, "stopped while the client held its flow"))
            }
            _ => Ok(()),
        }
    }
}
