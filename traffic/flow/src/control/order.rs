// SPDX-License-Identifier: Apache-2.0
//! Who may say what on a control connection, and when. Pure.
//!
//! Whoever breaks the order is not one of ours, or is broken: the flow ends. So nothing that is heard needs to be
//! defended against a second time further in.

use crate::control::Message;
use netjoule_measure::failure::{Code, Outcome};

/// The two ends of a control connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Who asks for a flow.
    Client,
    /// Who serves it.
    Server,
}

/// What one end has said so far.
#[derive(Debug)]
pub struct Order {
    speaker: Side,
    challenged: bool,
    welcomed: bool,
    open: bool,
    begun: bool,
    finished: bool,
    reported: bool,
    ended: bool,
}

impl Order {
    /// Nothing has been said by `speaker` yet (a client's greeting is behind it).
    pub fn of(speaker: Side) -> Self {
        Self {
            speaker,
            challenged: false,
            welcomed: false,
            open: false,
            begun: false,
            finished: false,
            reported: false,
            ended: false,
        }
    }

    /// Take note of the next message.
    ///
    /// # Errors
    /// [`Code::Protocol`] when it was not this end's turn to say that.
    pub fn admit(&mut self, message: &Message) -> Outcome<()> {
        if self.fits(message) {
            return Ok(());
        }
        let tag =
            serde_json::to_value(message).ok().and_then(|value| value["type"].as_str().map(str::to_owned));
        Code::Protocol
            .fail(format!("the peer spoke out of turn: {}", tag.as_deref().unwrap_or("an unknown message")))
    }

    fn fits(&mut self, message: &Message) -> bool {
        let client = self.speaker == Side::Client;
        match message {
            Message::Failure { .. } => true,
            // A client's greeting is read in the accept queue.
            Message::Hello(_) | Message::Proof { .. } => false,
            Message::Challenge { .. } => !client && !self.welcomed && first(&mut self.challenged),
            // In as many parts as it takes; the session bounds their length.
            Message::Profile { .. } => client && !self.begun,
            Message::Welcome(_) => !client && first(&mut self.welcomed),
            Message::Open => !client && first(&mut self.open),
            Message::Clock { .. } | Message::Compared { .. } => client && !self.ended,
            Message::ClockAnswer { .. } => !client && self.open,
            Message::Go { .. } => client && first(&mut self.begun),
            Message::Started => !client && self.open && first(&mut self.begun),
            Message::Stop => self.begun && !self.ended,
            Message::Finished { .. } => self.begun && first(&mut self.finished),
            Message::Intervals { .. } | Message::Congestion { .. } | Message::Live { .. } => {
                !client && self.begun
            }
            Message::SenderPart { .. } | Message::ReceiverPart { .. } => {
                !client && self.begun && first(&mut self.reported)
            }
            Message::End => client && first(&mut self.ended),
        }
    }
}

/// Whether this was the first time; from now on it was not.
fn first(said: &mut bool) -> bool {
    !std::mem::replace(said, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{Welcome, INTERVALS_PER_LINE};
    use crate::report::Generator;
    use netjoule_transport::Values;

    fn welcome() -> Message {
        Message::Welcome(Box::new(Welcome {
            generator: Generator::this(),
            boot_id: String::new(),
            data_port: 1,
            token: String::new(),
            offer: Values::new(),
            proof: None,
        }))
    }

    fn refused(speaker: Side, before: &[Message], last: &Message) -> bool {
        let mut order = Order::of(speaker);
        for message in before {
            order.admit(message).unwrap();
        }
        order.admit(last).is_err_and(|failure| failure.code == Code::Protocol)
    }

    const GO: Message = Message::Go { offset_ns: 0 };
    const FINISHED: Message = Message::Finished { messages_sent: 1 };

    #[test]
    fn a_profile_comes_from_the_client_before_the_flow() {
        let part = || Message::Profile { part: String::new() };
        assert!(!refused(Side::Client, &[part()], &part()));
        assert!(refused(Side::Client, &[part(), GO], &part()));
        assert!(refused(Side::Server, &[], &part()));
    }

    #[test]
    fn whole_flows_pass() {
        let challenge = || Message::Challenge { nonce: String::new() };
        let answer = || Message::ClockAnswer { asked_ns: 0, arrived_ns: 0, answered_ns: 0 };
        let intervals = || Message::Intervals { intervals: Vec::with_capacity(INTERVALS_PER_LINE) };
        let server = [
            challenge(),
            welcome(),
            Message::Open,
            answer(),
            answer(),
            Message::Started,
            Message::Stop,
            FINISHED,
            Message::Live { intervals: vec![] },
            intervals(),
            intervals(),
            answer(),
        ];
        let mut order = Order::of(Side::Server);
        assert!(server.iter().all(|message| order.admit(message).is_ok()));
        let clock = || Message::Clock { asked_ns: 0 };
        let client = [clock(), clock(), GO, Message::Stop, FINISHED, clock(), Message::End];
        let mut order = Order::of(Side::Client);
        assert!(client.iter().all(|message| order.admit(message).is_ok()));
    }

    #[test]
    fn each_end_says_only_what_is_its_to_say() {
        for message in [GO, Message::End, Message::Clock { asked_ns: 0 }] {
            assert!(refused(Side::Server, &[welcome(), Message::Open, Message::Started], &message));
        }
        for message in [welcome(), Message::Open, Message::Started, Message::Intervals { intervals: vec![] }]
        {
            assert!(refused(Side::Client, &[GO], &message), "{message:?}");
        }
    }

    #[test]
    fn nothing_is_said_twice_or_before_its_time() {
        assert!(refused(Side::Client, &[], &FINISHED) && refused(Side::Client, &[], &Message::Stop));
        assert!(refused(Side::Client, &[GO], &GO));
        assert!(refused(Side::Client, &[GO, FINISHED], &FINISHED));
        assert!(refused(Side::Client, &[GO, Message::End], &Message::Stop));
        assert!(refused(Side::Server, &[welcome()], &Message::Started));
        assert!(refused(Side::Server, &[welcome()], &welcome()));
        assert!(refused(Side::Server, &[welcome()], &Message::Challenge { nonce: String::new() }));
        assert!(refused(Side::Server, &[Message::Open], &FINISHED));
    }

    #[test]
    fn the_complaint_names_what_was_said_and_nothing_of_its_contents() {
        let failure = Order::of(Side::Client).admit(&Message::Proof { proof: "abc".into() }).unwrap_err();
        assert_eq!(failure.message, "the peer spoke out of turn: proof");
    }
}
