// SPDX-License-Identifier: Apache-2.0
//! `serve`: a flow, from the asked end. It runs in a process of its own, which does nothing else, so that its run time is
//! the flow's; who comes in when is [`crate::doorkeeper`]'s.

use std::net::{IpAddr, SocketAddr, TcpStream};

use netjoule_transport::{FlowSpec, IpVersion, Protocol, Role, State, Transport, TransportError};
use serde_json::{json, Value};

use crate::channel::Channel;
use crate::cli::ServeArgs;
use crate::control::{
    self, failure_message, Caps, FlowRequest, Message, Welcome, INTERVALS_PER_LINE, SAMPLES_PER_LINE,
};
use crate::doorkeeper;
use crate::event_log;
use crate::failure::{Code, Failure, Outcome};
use crate::greeting::Guest;
use crate::host;
use crate::intervals::Interval;
use crate::order::Side;
use crate::output::Output;
use crate::receiver::{self, Expectation};
use crate::registry;
use crate::report::{Direction, EndReason, Generator, PathFacts, SenderPart};
use crate::schedule::Schedule;
use crate::secret::Proof;
use crate::sender::{self, Plan};
use crate::session::{Session, StdinUse};
use crate::traces::CongestionSample;
use crate::wait::Signals;

/// How long a client may take to open the data path, ns.
const OPEN_NS: i64 = 10_000_000_000;
/// How long a client may take for its profile, ns.
const PROFILE_NS: i64 = 10_000_000_000;
/// How long an interrupted flow waits for the client's goodbye, ns.
const GOODBYE_NS: i64 = 2_000_000_000;

/// Run `serve`; the exit code.
pub fn run(args: &ServeArgs, signals: &Signals, output: Output) -> Outcome<u8> {
    doorkeeper::run(Server { args, signals, output })
}

/// What every flow of this server shares.
pub(crate) struct Server<'a> {
    pub(crate) args: &'a ServeArgs,
    pub(crate) signals: &'a Signals,
    pub(crate) output: Output,
}

impl Server<'_> {
    /// Serve one flow whatever happens; true when this process was told to stop meanwhile.
    pub(crate) fn serve(&self, stream: TcpStream, guest: &Guest) -> bool {
        let hello = &guest.hello;
        let id = &hello.flow.flow_id;
        let _ = self.output.event(
            "flow_started",
            json!({ "flow_id": id, "transport": hello.flow.transport, "process": std::process::id() }),
        );
        let (mut interrupted, mut half) = (false, None);
        let outcome = Channel::new(stream, Side::Client).and_then(|channel| {
            let mut flow = Flow::open(self, channel, &hello.flow, guest.proof.as_ref())?;
            let outcome = flow.run();
            if let Err(failure) = &outcome {
                let _ = flow.session.tell(&failure_message(failure));
            }
            flow.close(outcome.is_ok());
            interrupted = flow.session.heard.interrupted;
            half = flow.half.take();
            outcome
        });
        match &outcome {
            Ok(reason) => {
                let fields = json!({ "flow_id": id, "end_reason": reason });
                let _ = self.output.event("flow_finished", fields);
            }
            Err(failure) => self.tell_failure(id, failure, half),
        }
        interrupted
    }

    /// Say that a flow failed; `half` is this end's half of its report as far as it came.
    pub(crate) fn tell_failure(&self, flow_id: &str, failure: &Failure, half: Option<(&'static str, Value)>) {
        self.output.complain(&format!("flow {flow_id} failed: {failure}"));
        let mut fields =
            json!({ "flow_id": flow_id, "code": failure.code.name(), "message": failure.message });
        if let Some((name, part)) = half {
            fields[name] = part;
        }
        let _ = self.output.event("flow_failed", fields);
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
        let mut listening = protocol.listen(at(wanted), allowed_peer, spec, host::now_ns());
        if listening.is_err() && bind.is_unspecified() {
            // Behind address translation the client's name for us is not ours.
            listening = protocol.listen(at(bind), allowed_peer, spec, host::now_ns());
        }
        listening.map_err(|error| self.without_port(error))
    }

    /// A failure to listen; when it is for want of a port or a descriptor, with what to do about it.
    fn without_port(&self, error: TransportError) -> Failure {
        let hint = match &error {
            TransportError::Io { source, .. } => match (source.raw_os_error(), self.args.data_port) {
                (Some(libc::EADDRINUSE), 0) => "every port is in use: net.ipv4.ip_local_port_range",
                (Some(libc::EADDRINUSE), _) => "another program has it: serve --data-port",
                (Some(libc::EMFILE), _) => "it may open no further file: ulimit -n",
                (Some(libc::ENFILE | libc::ENOBUFS | libc::ENOMEM), _) => {
                    "its host has no memory or files left"
                }
                _ => return error.into(),
            },
            _ => return error.into(),
        };
        let message = format!("the server has no port for the data now: {error} ({hint})");
        Failure::new(Code::Refused, message)
    }
}

struct Flow<'a> {
    server: &'a Server<'a>,
    protocol: &'a dyn Protocol,
    request: &'a FlowRequest,
    session: Session<'a>,
    /// This end's half of the report, by its name there, until the client has it.
    half: Option<(&'static str, Value)>,
}

impl<'a> Flow<'a> {
    fn open(
        server: &'a Server<'a>,
        mut channel: Channel,
        request: &'a FlowRequest,
        proof: Option<&Proof>,
    ) -> Outcome<Self> {
        match Self::welcome(server, &mut channel, request, proof) {
            Ok((protocol, transport)) => {
                // The end of stdin is the doorkeeper's to hear; it then says so with a signal.
                let session = Session::new(transport, Some(channel), server.signals, StdinUse::Ignored)?;
                Ok(Self { server, protocol, request, session, half: None })
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
        proof: Option<&Proof>,
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
            rate_bps: request
                .profile
                .as_ref()
                .map_or(request.rate_bps, |profile| profile.facts.burst_rate_bps),
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
            proof: proof.map(|proof| control::hex(proof)),
        })))?;
        Ok((protocol, transport))
    }

    fn run(&mut self) -> Outcome<EndReason> {
        self.session.wait_for("the client's data", OPEN_NS, |session| Ok(session.state == State::Open))?;
        let mut schedule = None;
        if self.request.direction == Direction::Down {
            schedule = Some(self.schedule()?);
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
        let end_reason = match schedule {
            None => self.receive()?,
            Some(schedule) => self.send(schedule)?,
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
        self.half = serde_json::to_value(&received.part).ok().map(|part| ("receiver", part));
        let told = self
            .tell_intervals(received.intervals)
            .and_then(|()| self.session.tell(&Message::ReceiverPart { receiver: Box::new(received.part) }));
        received.failure.map_or(told, Err)?;
        Ok(received.end_reason)
    }

    /// What this end is to send: of a profile what the client's text gives, once it is here.
    fn schedule(&mut self) -> Outcome<Schedule> {
        let Some(profile) = &self.request.profile else { return Ok(self.request.constant_schedule()) };
        self.session.wait_for("the client's profile", PROFILE_NS, |session| {
            Ok(session.heard.profile.len() as u64 >= profile.text_bytes)
        })?;
        let text = std::mem::take(&mut self.session.heard.profile);
        profile.schedule(&text, self.request.duration_ns)
    }

    fn send(&mut self, schedule: Schedule) -> Outcome<EndReason> {
        let plan = Plan::of(self.request, schedule, self.protocol.kind());
        let sent = sender::run(&mut self.session, &plan, Output::Silent)?;
        if sent.end_reason == EndReason::Interrupted {
            self.session.tell(&Message::Stop)?;
        }
        self.half = serde_json::to_value(&sent.part).ok().map(|part| ("sender", part));
        let told = self.tell_sent(sent.part, sent.path, sent.intervals, sent.congestion);
        sent.failure.map_or(told, Err)?;
        Ok(sent.end_reason)
    }

    fn tell_sent(
        &mut self,
        part: SenderPart,
        path: PathFacts,
        intervals: Vec<Interval>,
        congestion: Option<Vec<CongestionSample>>,
    ) -> Outcome<()> {
        self.session.tell(&Message::Finished { messages_sent: part.messages_sent })?;
        self.tell_intervals(intervals)?;
        for some in congestion.unwrap_or_default().chunks(SAMPLES_PER_LINE) {
            self.session.tell(&Message::Congestion { samples: some.to_vec() })?;
        }
        self.session.tell(&Message::SenderPart { sender: Box::new(part), path })
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
