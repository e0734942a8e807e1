// SPDX-License-Identifier: Apache-2.0
//! A flow, from the asking end: its data path, the clocks of both ends, the messages, both halves of the report.

use std::net::SocketAddr;
use std::time::Duration;

use netjoule_transport::{FlowSpec, IpVersion, Protocol, Role, State};
use serde_json::json;

use super::greet::{greet, tell_profile, ANSWER_NS};
use super::hold::{linger, wait_for_go};
use crate::arguments::SendArgs;
use crate::client::assemble::{self, Halves};
use crate::client::partial::{self, Remains};
use crate::client::target::{self, Target};
use crate::control::channel::Channel;
use crate::control::secret::Secret;
use crate::control::{self, FlowRequest, Message};
use crate::event_log;
use crate::load::Load;
use crate::receiver::{self, Expectation};
use crate::report::{Direction, EndReason};
use crate::sender::{self, Plan};
use crate::session::Session;
use crate::stdin_lines::StdinLines;
use netjoule_measure::capture::Capture;
use netjoule_measure::failure::{Code, Failure, Outcome};
use netjoule_measure::host;
use netjoule_measure::output::Output;
use netjoule_measure::wait::Signals;

const CONNECT: Duration = Duration::from_secs(5);
/// How long the server may take beyond its answer for the schedule of a profile that it is to send, ns: seconds for millions of
/// messages, more on a small host.
const SCHEDULE_NS: i64 = 60_000_000_000;
/// How long the peer's half of the report may take after this end is done, ns.
const REPORT_NS: i64 = 90_000_000_000;

/// A flow whose data path stands.
pub(super) struct Flow<'a> {
    args: &'a SendArgs,
    load: &'a Load,
    protocol: &'a dyn Protocol,
    request: &'a FlowRequest,
    session: Session<'a>,
    ip_version: IpVersion,
    same_clock: bool,
    server: SocketAddr,
}

impl<'a> Flow<'a> {
    pub(super) fn open(
        args: &'a SendArgs,
        load: &'a Load,
        protocol: &'a dyn Protocol,
        target: &Target,
        request: &'a FlowRequest,
        secret: Option<&Secret>,
        signals: &'a Signals,
    ) -> Outcome<Self> {
        let local = args.bind.filter(|_| !request.control_apart);
        let mut channel = Channel::connect(target.control, local, CONNECT)?;
        let welcome = greet(&mut channel, request, secret)?;
        let server = target.data_address(welcome.data_port);
        tell_profile(&mut channel, &load.profile_text)?;
        let spec = FlowSpec {
            payload_bytes: load.message_bytes as usize,
            role: if args.reverse { Role::Receiver } else { Role::Sender },
            token: control::token_from(&welcome.token)?,
            gso: args.gso,
            seed: args.seed,
            rate_bps: request.burst_rate_bps(),
            options: request.options.clone(),
            event_log: event_log::stem(args.qlog.as_deref(), &request.flow_id, "client")?,
        };
        let transport = protocol.connect(args.bind, server, &spec, &welcome.offer, host::now_ns())?;
        let stdin = args.hold.then(|| StdinLines::after(load.stdin_rest.clone()));
        let mut session = Session::new(transport, Some(channel), signals, stdin)?;
        session.state = session.transport.service(host::now_ns())?;
        let is_computed_there = load.profile.is_some() && args.reverse;
        let limit_ns = ANSWER_NS + if is_computed_there { SCHEDULE_NS } else { 0 };
        session.wait_for("the data path to open", limit_ns, |session| {
            Ok(session.state == State::Open && session.events.open)
        })?;
        let same_clock = args.clock == "auto" && welcome.boot_id == host::boot_id();
        Ok(Self {
            args,
            load,
            protocol,
            request,
            session,
            ip_version: target.ip_version(),
            same_clock,
            server,
        })
    }

    pub(super) fn run(&mut self, output: Output) -> Outcome<u8> {
        if !self.args.reverse {
            let mtu_bytes = self.session.transport.path_mtu_bytes().unwrap_or(u32::from(u16::MAX));
            let (bytes, options) = (self.load.message_bytes, &self.request.options);
            sender::check_size(self.protocol, options, bytes, self.ip_version, mtu_bytes)?;
            sender::prepare(&mut self.session, self.request.pacing)?;
        }
        if !self.same_clock && !self.session.compare_clocks()? {
            return Code::Timeout.fail("the server did not tell its clock in time");
        }
        let offset_ns = self.session.clock_offset().offset_ns;
        output.event(
            "ready",
            json!({
                "flow_id": self.request.flow_id,
                "transport": self.request.transport,
                "direction": self.request.direction,
                "local": self.session.transport.local_address()?.to_string(),
                "peer": self.server.to_string(),
                "mtu_bytes": self.session.transport.path_mtu_bytes(),
            }),
        )?;
        wait_for_go(&mut self.session)?;
        let capture = self.start_capture()?;
        self.session.tell(&Message::Go { offset_ns })?;
        self.session.wait_for("the server to start", ANSWER_NS, |session| Ok(session.events.started))?;
        self.session.keep_comparing(true);
        let mut halves = match self.request.direction {
            Direction::Up => self.send(output)?,
            Direction::Down => self.receive(offset_ns.saturating_neg(), output)?,
        };
        halves.capture = capture.map(Capture::end);
        let broken = halves.capture.as_ref().and_then(|capture| capture.failure.clone());
        let offset = self.session.clock_offset();
        let limits = self.args.pacing_limits();
        let code = assemble::finish(self.request, Some(self.ip_version), offset, halves, &limits, output)?;
        // The flow's report stands all the same: nothing of it comes from the capture.
        let Some(reason) = broken else { return Ok(code) };
        output.complain(&reason);
        Ok(code.max(Code::System.exit()))
    }

    /// Begin to capture the flow's packets, if that was asked for.
    fn start_capture(&self) -> Outcome<Option<Capture>> {
        let Some(path) = &self.args.capture else { return Ok(None) };
        let mut local = self.session.transport.local_address()?;
        if local.ip().is_unspecified() {
            local.set_ip(target::local_ip_towards(self.server)?);
        }
        let number = self.protocol.ip_protocol(&self.request.options);
        Capture::start(path, local, self.server, number, self.args.capture_headers).map(Some)
    }

    fn send(&mut self, output: Output) -> Outcome<Halves> {
        let plan = Plan::of(self.request, self.load.schedule.clone(), self.protocol.kind());
        let sent = sender::run(&mut self.session, &plan, output)?;
        self.session.keep_comparing(false);
        let messages_sent = sent.part.messages_sent;
        let interrupted = sent.end_reason == EndReason::Interrupted;
        let same_clock = self.same_clock;
        let answered = sent.failure.map_or(Ok(()), Err).and_then(|()| {
            if interrupted {
                self.session.tell(&Message::Stop)?;
            }
            if !same_clock {
                // Before "finished": the receiving end corrects its delays by it. Where it is not answered, the clocks are
                // known as they were, with the residual to show for it.
                self.session.compare_clocks()?;
            }
            self.session.tell(&Message::Finished { messages_sent })?;
            self.await_report(|session| session.events.receiver.is_some())
        });
        let mut intervals = sent.intervals;
        let own = intervals.len();
        intervals.append(&mut self.session.events.intervals);
        let receiver = self.session.events.receiver.take();
        if let Err(failure) = answered {
            return Err(self.keep(Remains { sender: Some(sent.part), receiver, intervals }, failure, output));
        }
        Ok(Halves {
            sender: sent.part,
            path: sent.path,
            receiver,
            from_peer: own..intervals.len(),
            intervals,
            congestion: sent.congestion,
            capture: None,
            end_reason: sent.end_reason,
        })
    }

    fn receive(&mut self, clock_ahead_ns: i64, output: Output) -> Outcome<Halves> {
        let expectation = Expectation::of(self.request, self.protocol.kind(), clock_ahead_ns);
        let mut received = receiver::run(&mut self.session, &expectation, output)?;
        let answered = received
            .failure
            .map_or(Ok(()), Err)
            .and_then(|()| self.await_report(|session| session.events.sender.is_some()));
        let mut intervals = std::mem::take(&mut self.session.events.intervals);
        let from_peer = 0..intervals.len();
        intervals.append(&mut received.intervals);
        let told = self.session.events.sender.take();
        let receiver = Some(received.part);
        match (answered, told) {
            (Ok(()), Some((sender, path))) => {
                let congestion =
                    self.request.traces.then(|| std::mem::take(&mut self.session.events.congestion));
                let end_reason = received.end_reason;
                Ok(Halves {
                    sender,
                    path,
                    receiver,
                    intervals,
                    from_peer,
                    congestion,
                    capture: None,
                    end_reason,
                })
            }
            (answered, told) => {
                let failure = answered.err().unwrap_or_else(|| {
                    Failure::new(Code::Protocol, "the server ended the flow without its half of the report")
                });
                let sender = told.map(|(sender, _)| sender);
                Err(self.keep(Remains { sender, receiver, intervals }, failure, output))
            }
        }
    }

    fn await_report(&mut self, is_there: impl Fn(&Session<'_>) -> bool) -> Outcome<()> {
        self.session.wait_for_calmly("the server's report", REPORT_NS, |session| Ok(is_there(session)))
    }

    /// Print what there is of a flow that failed; its failure.
    fn keep(&self, remains: Remains, failure: Failure, output: Output) -> Failure {
        // Where stdout is gone nothing can be kept.
        let _ = partial::print(self.request, remains, &failure, output);
        failure
    }

    /// Keep the sockets open and idle as long as asked.
    pub(super) fn linger(&mut self) -> Outcome<()> {
        linger(&mut self.session, self.args)
    }

    /// Tell the server that the flow is over, or why it failed. It may be gone already.
    ///
    /// A data connection that ends well ends before the server is told, so that only one end starts to close it.
    pub(super) fn say_goodbye(&mut self, failure: Option<&Failure>) {
        match failure {
            None => {
                self.session.transport.close(host::now_ns());
                let _ = self.session.tell(&Message::End);
                self.session.part();
            }
            Some(failure) => {
                let _ = self.session.tell(&control::failure_message(failure));
                self.session.transport.close(host::now_ns());
            }
        }
    }
}
