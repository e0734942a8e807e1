// SPDX-License-Identifier: Apache-2.0
//! A flow, from the asked end: it is welcomed, waits for the client's go, sends or receives, and tells its half.

use std::net::TcpStream;

use netjoule_transport::{FlowSpec, IpVersion, Protocol, Role, State, Transport};
use serde_json::{json, Value};

use super::log_lines;
use super::shared::Server;
use crate::control::channel::Channel;
use crate::control::greeting::Guest;
use crate::control::order::Side;
use crate::control::secret::Proof;
use crate::control::{
    self, failure_message, FlowRequest, Message, Welcome, INTERVALS_PER_LINE, SAMPLES_PER_LINE,
};
use crate::event_log;
use crate::intervals::Interval;
use crate::receiver::{self, Expectation};
use crate::registry;
use crate::report::{Direction, EndReason, Generator, PathFacts, SenderPart};
use crate::schedule::Schedule;
use crate::sender::{self, Plan};
use crate::session::{Scope, Session};
use crate::traces::CongestionSample;
use netjoule_measure::failure::{Code, Failure, Outcome};
use netjoule_measure::host;
use netjoule_measure::output::Output;
use netjoule_measure::realtime;

/// How long a client may take to open the data path, ns.
const OPEN_NS: i64 = 10_000_000_000;
/// How long a client may take for its profile, ns.
const PROFILE_NS: i64 = 10_000_000_000;
/// How long a client may hold its flow before it begins, and its place after it, s: who has proved the secret means it.
const HOLD_S: u32 = 60;
const TRUSTED_HOLD_S: u32 = 3_600;
/// How long an interrupted flow waits for the client's goodbye, ns.
const GOODBYE_NS: i64 = 2_000_000_000;

/// How long a client may keep its place when nothing is sent, ns: `told_s`, or what it is trusted with.
fn hold_ns(told_s: Option<u32>, has_proved_the_secret: bool) -> i64 {
    let usual_s = if has_proved_the_secret { TRUSTED_HOLD_S } else { HOLD_S };
    i64::from(told_s.unwrap_or(usual_s)) * 1_000_000_000
}

/// Serve one flow whatever happens; true when this process was told to stop meanwhile.
pub(super) fn serve(server: &Server<'_>, stream: TcpStream, guest: &Guest) -> bool {
    let hello = &guest.hello;
    let id = &hello.flow.flow_id;
    let peer = stream.peer_addr().map_or_else(|_| "a client that has gone".into(), |peer| peer.to_string());
    let _ = server.output.say(|| log_lines::begun(&peer, &hello.flow));
    let _ = server.output.event(
        "flow_started",
        json!({ "flow_id": id, "transport": hello.flow.transport, "process": std::process::id() }),
    );
    let (mut interrupted, mut half) = (false, None);
    let outcome = Channel::new(stream, Side::Client).and_then(|mut channel| {
        let entered = if server.args.realtime { realtime::enter() } else { Ok(()) };
        if let Err(failure) = entered {
            let _ = channel.send(&failure_message(&failure));
            return Err(failure);
        }
        let mut flow = Flow::open(server, channel, &hello.flow, guest.proof.as_ref())?;
        let outcome = flow.run();
        if let Err(failure) = &outcome {
            let _ = flow.session.tell(&failure_message(failure));
        }
        flow.close(outcome.is_ok());
        interrupted = flow.session.events.interrupted;
        half = flow.half.take();
        outcome
    });
    match &outcome {
        Ok(reason) => {
            let fields = json!({ "flow_id": id, "end_reason": reason });
            let _ = server.output.event("flow_finished", fields);
            let _ = server.output.say(|| log_lines::ended(&peer, half.as_ref()));
        }
        Err(failure) => server.tell_failure(id, failure, half),
    }
    interrupted
}

struct Flow<'a> {
    protocol: &'a dyn Protocol,
    request: &'a FlowRequest,
    session: Session<'a>,
    /// How long the client may keep its place when nothing is sent, ns.
    hold_ns: i64,
    /// The client left without a goodbye: it is dead, or was killed.
    deserted: bool,
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
                // The end of stdin is the accept loop's to hear; it then says so with a signal.
                let mut session = Session::new(transport, Some(channel), server.signals, None)?;
                session.tells_live = request.live;
                let hold_ns = hold_ns(server.args.max_hold_s, proof.is_some());
                Ok(Self { protocol, request, session, hold_ns, deserted: false, half: None })
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
            payload_bytes: request.payload_bytes as usize,
            role: match request.direction {
                Direction::Up => Role::Receiver,
                Direction::Down => Role::Sender,
            },
            token,
            gso: request.gso,
            seed: request.seed,
            rate_bps: request.burst_rate_bps(),
            options,
            event_log: event_log::stem(server.args.qlog.as_deref(), &request.flow_id, "server")?,
        };
        // Only who started the server may lift the rule that data goes to the control connection's peer.
        let apart = server.args.control_bind.is_some();
        if request.control_apart && !apart {
            return Code::Refused.fail(
                "this server sends data only to the address of the control connection; \
                 start it with --control-bind to keep control on another network",
            );
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
        let what = "the client's go (serve --max-hold-s)";
        self.session.wait_for(what, self.hold_ns, |session| Ok(session.events.go.is_some()))?;
        self.session.tell(&Message::Started)?;
        let end_reason = match schedule {
            None => self.receive()?,
            Some(schedule) => self.send(schedule)?,
        };
        self.hold(end_reason)?;
        Ok(end_reason)
    }

    /// Close the data connection. After a whole flow the client does so first, and a transport with a connection parts
    /// in peace; where the client is there no more, nobody waits for its answer.
    fn close(&mut self, is_whole: bool) {
        let in_peace = is_whole && !self.deserted;
        if in_peace && !self.session.transport.parted() {
            self.session.await_close();
        }
        self.session.transport.close(host::now_ns());
        if in_peace {
            self.session.part();
        }
    }

    fn receive(&mut self) -> Outcome<EndReason> {
        let clock_ahead_ns = self.session.events.go.unwrap_or(0);
        let expectation = Expectation::of(self.request, self.protocol.kind(), clock_ahead_ns);
        let received = receiver::run(&mut self.session, &expectation, Output::Silent)?;
        self.half = serde_json::to_value(&received.part).ok().map(|part| ("receiver", part));
        let told = self
            .tell_intervals(received.intervals)
            .and_then(|()| self.session.tell(&Message::ReceiverPart { receiver: Box::new(received.part) }));
        received.failure.map_or(told, Err)?;
        Ok(received.end_reason)
    }

    /// What this end is to send: of a profile what the client's text gives, once it is here. That can take seconds, so the
    /// client is served meanwhile.
    fn schedule(&mut self) -> Outcome<Schedule> {
        let Some(profile) = &self.request.profile else { return Ok(self.request.constant_schedule()) };
        self.session.wait_for("the client's profile", PROFILE_NS, |session| {
            Ok(session.events.profile.len() as u64 >= profile.text_bytes)
        })?;
        let text = std::mem::take(&mut self.session.events.profile);
        let session = &mut self.session;
        profile.schedule(&text, self.request.duration_ns, &mut || {
            session.wait(Some(host::now_ns()), Scope::All)?;
            match session.events.interrupted {
                true => Code::Interrupted.fail("interrupted while computing the schedule"),
                false => Ok(()),
            }
        })
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
        let limit_ns = if end_reason == EndReason::Interrupted { GOODBYE_NS } else { self.hold_ns };
        let waited = self.session.wait_for_calmly("the client's goodbye", limit_ns, |session| {
            Ok(session.events.end || (session.events.interrupted && end_reason != EndReason::Interrupted))
        });
        self.deserted = matches!(&waited, Err(failure) if failure.code == Code::ControlLost);
        match waited {
            Err(failure) if !matches!(failure.code, Code::ControlLost | Code::Timeout | Code::DataLost) => {
                Err(failure)
            }
            // A goodbye that came with the signal is a goodbye.
            _ if self.session.events.interrupted
                && !self.session.events.end
                && end_reason != EndReason::Interrupted =>
            {
                Code::Interrupted.fail("stopped while the client held its flow")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_may_hold_a_place_for_a_minute() {
        let hold_s = |told_s, trusted| hold_ns(told_s, trusted) / 1_000_000_000;
        assert_eq!((hold_s(None, false), hold_s(None, true)), (60, 3_600));
        assert_eq!((hold_s(Some(7_200), false), hold_s(Some(5), true)), (7_200, 5));
    }
}
