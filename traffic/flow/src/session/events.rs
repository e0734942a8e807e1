// SPDX-License-Identifier: Apache-2.0
//! What the peer has said, a signal or stdin: each part stays until somebody takes it.

use super::Session;
use crate::control::{self, Message, INTERVALS, SAMPLES};
use crate::intervals::Interval;
use crate::report::{PathFacts, ReceiverPart, SenderPart};
use crate::schedule::profile::LONGEST_TEXT_BYTES;
use crate::traces::CongestionSample;
use netjoule_measure::clock_offset::{self, Exchange};
use netjoule_measure::failure::{Code, Failure, Outcome};
use netjoule_measure::host;

/// What was heard so far. Each part stays until somebody takes it.
#[derive(Debug, Default)]
pub struct SessionEvents {
    /// A signal came.
    pub interrupted: bool,
    /// The peer asks to end the flow early.
    pub stop: bool,
    /// What came of the profile that this end is to send by.
    pub profile: String,
    /// The server's data path stands.
    pub open: bool,
    /// The client says go; its clock offset.
    pub go: Option<i64>,
    /// The server has started.
    pub started: bool,
    /// The sending end sent this many messages, and no more will come.
    pub finished: Option<u64>,
    /// The client is done.
    pub end: bool,
    /// Comparisons of the two ends' clocks, in order; none where both read the same clock.
    pub exchanges: Vec<Exchange>,
    /// The peer's intervals.
    pub intervals: Vec<Interval>,
    /// Those that it told as they closed, for who watches.
    pub live: Vec<Interval>,
    /// The peer's congestion control when it sends, if that was asked for.
    pub congestion: Vec<CongestionSample>,
    /// The peer's half when it sends.
    pub sender: Option<(SenderPart, PathFacts)>,
    /// The peer's half when it receives.
    pub receiver: Option<ReceiverPart>,
}

impl Session<'_> {
    pub(super) fn hear(&mut self, message: Message, now_ns: i64) -> Outcome<()> {
        let events = &mut self.events;
        match message {
            Message::Failure { code, message } => {
                let failure = control::refusal(&code, &message);
                let message = format!("the other end ended the flow: {}", failure.message);
                return Err(Failure { message, ..failure });
            }
            Message::Profile { part } => {
                events.profile.push_str(&part);
                if events.profile.len() > LONGEST_TEXT_BYTES {
                    return Code::Protocol.fail("the peer sent too long a profile");
                }
            }
            Message::Open => events.open = true,
            Message::Clock { asked_ns } => {
                let answered_ns = host::now_ns();
                return self.tell(&Message::ClockAnswer { asked_ns, arrived_ns: now_ns, answered_ns });
            }
            Message::ClockAnswer { asked_ns, arrived_ns, answered_ns } => {
                let exchange = Exchange { asked_ns, arrived_ns, answered_ns, heard_ns: now_ns };
                clock_offset::keep(&mut events.exchanges, exchange);
                let is_one_of_many = self.compare_at_ns == Some(i64::MAX);
                return if is_one_of_many { Ok(()) } else { self.tell(&Message::Compared { exchange }) };
            }
            Message::Compared { exchange } => {
                clock_offset::keep(&mut events.exchanges, exchange);
            }
            Message::Go { offset_ns } => events.go = Some(offset_ns),
            Message::Started => events.started = true,
            Message::Stop => events.stop = true,
            Message::Finished { messages_sent } => events.finished = Some(messages_sent),
            Message::Intervals { intervals } => {
                events.intervals.extend(intervals);
                if events.intervals.len() > INTERVALS {
                    return Code::Protocol.fail("the peer sent too many intervals");
                }
            }
            Message::Live { intervals } => {
                events.live.extend(intervals);
                if events.live.len() > INTERVALS {
                    return Code::Protocol.fail("the peer sent too many intervals");
                }
            }
            Message::Congestion { samples } => {
                events.congestion.extend(samples);
                if events.congestion.len() > SAMPLES {
                    return Code::Protocol.fail("the peer sent too many samples");
                }
            }
            Message::SenderPart { sender, path } => events.sender = Some((*sender, path)),
            Message::ReceiverPart { receiver } => events.receiver = Some(*receiver),
            Message::End => events.end = true,
            Message::Hello(_) | Message::Challenge { .. } | Message::Proof { .. } | Message::Welcome(_) => {
                return Code::Protocol.fail("the peer began again in the middle of a flow");
            }
        }
        Ok(())
    }
}
