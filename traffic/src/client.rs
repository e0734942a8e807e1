// SPDX-License-Identifier: Apache-2.0
//! `send`: one flow from the asking end.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use netjoule_transport::{FlowSpec, IpVersion, Kind, PollFd, Protocol, Role, State, Values};
use serde_json::json;

use crate::assemble::{self, Halves};
use crate::capture::Capture;
use crate::channel::Channel;
use crate::cli::{SendArgs, PORT};
use crate::clock_offset::ClockOffset;
use crate::control::{self, FlowRequest, Hello, Message, Welcome};
use crate::event_log;
use crate::failure::{Code, Failure, Outcome};
use crate::greeting::{Call, Reply};
use crate::host;
use crate::load::Load;
use crate::output::Output;
use crate::partial::{self, Remains};
use crate::receiver::{self, Expectation};
use crate::registry;
use crate::report::{Direction, EndReason, Generator};
use crate::secret::Secret;
use crate::sender::{self, Plan};
use crate::session::{Scope, Session, StdinUse};
use crate::target::{self, Target};
use crate::wait::{Signals, Waiter};

/// How long the server may take to answer, and the data path to open, ns.
const ANSWER_NS: i64 = 10_000_000_000;
const CONNECT: Duration = Duration::from_secs(5);
/// How long the peer's half of the report may take after this end is done, ns.
const REPORT_NS: i64 = 90_000_000_000;

/// Run `send`; the exit code.
pub fn run(args: &SendArgs, signals: &Signals, output: Output) -> Outcome<u8> {
    let protocol = registry::protocol(&args.transport)?;
    let options = protocol.options(&args.options())?;
    check(args, protocol)?;
    let load = Load::of(args)?;
    if args.transport == "null" {
        return run_null(args, &load, protocol, signals, output);
    }
    let target = Target::resolve(args)?;
    sender::check_size(protocol, &options, load.message_bytes, target.ip_version(), target.mtu_bytes(args))?;
    let request = target.request(args, &load, options)?;
    let secret = Secret::find(args.secret.as_deref(), |name| std::env::var_os(name))?;
    let mut flow = Flow::open(args, &load, protocol, &target, &request, secret.as_ref(), signals)?;
    let outcome = flow.run(output).and_then(|code| flow.linger().map(|()| code));
    flow.say_goodbye(outcome.as_ref().err());
    outcome
}

/// Whether the flags make sense together for this transport.
pub(crate) fn check(args: &SendArgs, protocol: &dyn Protocol) -> Outcome<()> {
    let usage = |message: &str| Err(Failure::new(Code::Usage, message));
    if args.qlog.is_some() && !protocol.keeps_event_log() {
        let message = format!("{} keeps no record of its events: leave --qlog out", protocol.name());
        return Err(Failure::new(Code::Usage, message));
    }
    if !(0.0..=86_400.0).contains(&args.linger_s) {
        return usage("--linger-s must be between 0 and 86400");
    }
    if args.transport == "null" && args.reverse {
        return usage("the null transport has no other end: -R makes no sense");
    }
    if args.transport == "null" && args.capture.is_some() {
        return usage("the null transport sends no packets: --capture makes no sense");
    }
    if args.transport != "null" && args.to.is_none() {
        return usage("say where to: --to HOST (a netjoule-traffic serve must run there)");
    }
    Ok(())
}

/// A flow whose data path stands.
struct Flow<'a> {
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
    fn open(
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
            message_bytes: load.message_bytes as usize,
            role: if args.reverse { Role::Receiver } else { Role::Sender },
            token: control::token_from(&welcome.token)?,
            gso: args.gso,
            seed: args.seed,
            rate_bps: load.burst_rate_bps,
            options: request.options.clone(),
            event_log: event_log::stem(args.qlog.as_deref(), &request.flow_id, "client")?,
        };
        let transport = protocol.connect(args.bind, server, &spec, &welcome.offer, host::now_ns())?;
        let stdin_use = if args.hold { StdinUse::Lines } else { StdinUse::Ignored };
        let mut session = Session::new(transport, Some(channel), signals, stdin_use)?;
        session.hear_lines(&load.stdin_rest);
        session.state = session.transport.service(host::now_ns())?;
        session.wait_for("the data path to open", ANSWER_NS, |session| {
            Ok(session.state == State::Open && session.heard.open)
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

    fn run(&mut self, output: Output) -> Outcome<u8> {
        if !self.args.reverse {
            let mtu_bytes = self.session.transport.path_mtu_bytes().unwrap_or(u32::from(u16::MAX));
            let (bytes, options) = (self.load.message_bytes, &self.request.options);
            sender::check_size(self.protocol, options, bytes, self.ip_version, mtu_bytes)?;
            sender::prepare(&mut self.session, self.request.pacing)?;
        }
        if !self.same_clock {
            self.session.compare_clocks()?;
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
        wait_for_go(&mut self.session, self.args.hold)?;
        let capture = self.start_capture()?;
        self.session.tell(&Message::Go { offset_ns })?;
        self.session.wait_for("the server to start", ANSWER_NS, |session| Ok(session.heard.started))?;
        self.session.keep_comparing(true);
        let mut halves = match self.request.direction {
            Direction::Up => self.send(output)?,
            Direction::Down => self.receive(offset_ns.saturating_neg(), output)?,
        };
        halves.capture = capture.map(Capture::end).transpose()?;
        let offset = self.session.clock_offset();
        let limits = self.args.pacing_limits();
        assemble::finish(self.request, Some(self.ip_version), offset, halves, &limits, output)
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
                // Before "finished": the receiving end corrects its delays by it.
                self.session.compare_clocks()?;
            }
            self.session.tell(&Message::Finished { messages_sent })?;
            self.await_report(|session| session.heard.receiver.is_some())
        });
        let mut intervals = sent.intervals;
        let own = intervals.len();
        intervals.append(&mut self.session.heard.intervals);
        let receiver = self.session.heard.receiver.take();
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
            .and_then(|()| self.await_report(|session| session.heard.sender.is_some()));
        let mut intervals = std::mem::take(&mut self.session.heard.intervals);
        let from_peer = 0..intervals.len();
        intervals.append(&mut received.intervals);
        let told = self.session.heard.sender.take();
        let receiver = Some(received.part);
        match (answered, told) {
            (Ok(()), Some((sender, path))) => {
                let congestion =
                    self.request.traces.then(|| std::mem::take(&mut self.session.heard.congestion));
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
    fn linger(&mut self) -> Outcome<()> {
        linger(&mut self.session, self.args)
    }

    /// Tell the server that the flow is over, or why it failed. It may be gone already.
    ///
    /// A data connection that ends well ends before the server is told, so that only one end starts to close it.
    fn say_goodbye(&mut self, failure: Option<&Failure>) {
        match failure {
            None => {
                self.session.transport.close(host::now_ns());
                let _ = self.session.tell(&Message::End);
                self.session.part();
            }
            Some(failure) => {
                let _ = self.session.tell(&Message::Failure {
                    code: failure.code.name().into(),
                    message: failure.message.clone(),
                });
                self.session.transport.close(host::now_ns());
            }
        }
    }
}

fn run_null(
    args: &SendArgs,
    load: &Load,
    protocol: &dyn Protocol,
    signals: &Signals,
    output: Output,
) -> Outcome<u8> {
    // With another end, the limit follows from the address; here there is none.
    sender::check_size(protocol, &Values::new(), load.message_bytes, IpVersion::V4, u32::from(u16::MAX))?;
    let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    let target = Target { data: nowhere.ip(), scope: nowhere, control: nowhere };
    let request = target.request(args, load, Values::new())?;
    let spec = FlowSpec {
        message_bytes: load.message_bytes as usize,
        role: Role::Sender,
        token: [0; 16],
        gso: false,
        seed: args.seed,
        rate_bps: load.burst_rate_bps,
        options: Values::new(),
        event_log: None,
    };
    let transport = protocol.connect(None, nowhere, &spec, &Values::new(), host::now_ns())?;
    let stdin_use = if args.hold { StdinUse::Lines } else { StdinUse::Ignored };
    let mut session = Session::new(transport, None, signals, stdin_use)?;
    sender::prepare(&mut session, request.pacing)?;
    session.hear_lines(&load.stdin_rest);
    output.event("ready", json!({ "flow_id": request.flow_id, "transport": "null", "direction": "up" }))?;
    wait_for_go(&mut session, args.hold)?;
    let plan = Plan::of(&request, load.schedule.clone(), Kind::Datagram);
    let sent = sender::run(&mut session, &plan, output)?;
    if let Some(failure) = sent.failure {
        let remains = Remains { sender: Some(sent.part), receiver: None, intervals: sent.intervals };
        partial::print(&request, remains, &failure, output)?;
        return Err(failure);
    }
    let halves = Halves {
        sender: sent.part,
        path: sent.path,
        receiver: None,
        intervals: sent.intervals,
        from_peer: 0..0,
        congestion: sent.congestion,
        capture: None,
        end_reason: sent.end_reason,
    };
    let limits = args.pacing_limits();
    let code = assemble::finish(&request, None, ClockOffset::SAME_CLOCK, halves, &limits, output)?;
    linger(&mut session, args)?;
    Ok(code)
}

/// Send the profile that the server is to send by, if it is.
fn tell_profile(channel: &mut Channel, text: &str) -> Outcome<()> {
    let mut rest = text;
    while !rest.is_empty() {
        let end =
            rest.char_indices().nth(control::PROFILE_CHARACTERS_PER_LINE).map_or(rest.len(), |(end, _)| end);
        let (part, later) = rest.split_at(end);
        channel.send(&Message::Profile { part: part.into() })?;
        rest = later;
    }
    Ok(())
}

/// Say hello, prove the secret if the server asks for it, and wait for the welcome.
fn greet(channel: &mut Channel, request: &FlowRequest, secret: Option<&Secret>) -> Outcome<Welcome> {
    let hello = Hello {
        protocol: control::PROTOCOL.into(),
        version: control::VERSION,
        generator: Generator::this(),
        boot_id: host::boot_id(),
        nonce: String::new(),
        flow: request.clone(),
    };
    let nonce = host::random_bytes().map_err(Failure::system("draw a nonce"))?;
    let mut call = Call::new(hello, nonce, secret);
    channel.send(call.hello())?;
    let mut waiter = Waiter::new().map_err(Failure::system("open a timer"))?;
    let deadline_ns = host::now_ns() + ANSWER_NS;
    loop {
        let messages = channel.receive().map_err(|error| {
            let server = channel.peer().map_or_else(|_| "the server".into(), |peer| peer.to_string());
            Failure { message: format!("{server} did not welcome the flow: {error}"), ..error }
        })?;
        for message in messages {
            match call.hear(message)? {
                Reply::Say(proof) => channel.send(&proof)?,
                Reply::Enter(welcome) => return Ok(*welcome),
            }
        }
        let now_ns = host::now_ns();
        if now_ns >= deadline_ns {
            return Err(Failure::new(Code::Timeout, "the server did not answer within 10 s"));
        }
        let fds = [PollFd { fd: channel.fd(), read: true, write: false }];
        waiter.wait(&fds, Some(deadline_ns), now_ns).map_err(Failure::system("wait for the server"))?;
    }
}

/// With --hold: nothing happens until "go".
fn wait_for_go(session: &mut Session<'_>, hold: bool) -> Outcome<()> {
    if !hold {
        return Ok(());
    }
    session.wait_for("go", i64::MAX, |session| {
        let Some(line) = (!session.heard.lines.is_empty()).then(|| session.heard.lines.remove(0)) else {
            return match session.heard.stdin_ended {
                true => Err(Failure::new(Code::Interrupted, "stdin ended before \"go\"")),
                false => Ok(false),
            };
        };
        match line.as_str() {
            "go" => Ok(true),
            other => Err(Failure::new(Code::Usage, format!("expected \"go\" on stdin, got {other:?}"))),
        }
    })
}

/// With --hold until "end" or the end of stdin, with --linger-s that long; the sockets stay open and idle.
fn linger(session: &mut Session<'_>, args: &SendArgs) -> Outcome<()> {
    let until_ns = host::now_ns() + (args.linger_s * 1e9) as i64;
    loop {
        let told = session.heard.lines.iter().any(|line| line == "end") || session.heard.stdin_ended;
        let held = args.hold && !told;
        let now_ns = host::now_ns();
        if session.heard.interrupted || (!held && now_ns >= until_ns) || (args.hold && told) {
            return Ok(());
        }
        session.wait((!held).then_some(until_ns), Scope::All)?;
    }
}
