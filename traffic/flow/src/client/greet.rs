// SPDX-License-Identifier: Apache-2.0
//! What is said before the data path: the greeting, and the profile of a flow that the server sends.

use netjoule_transport::PollFd;

use crate::control::channel::Channel;
use crate::control::greeting::{Call, Reply};
use crate::control::secret::Secret;
use crate::control::{self, FlowRequest, Hello, Message, Welcome};
use crate::report::Generator;
use netjoule_measure::failure::{Code, Failure, Outcome};
use netjoule_measure::host;
use netjoule_measure::wait::Waiter;

/// How long the server may take to answer, and the data path to open, ns.
pub(super) const ANSWER_NS: i64 = 10_000_000_000;

/// Send the profile that the server is to send by, if it is.
pub(super) fn tell_profile(channel: &mut Channel, text: &str) -> Outcome<()> {
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
pub(super) fn greet(
    channel: &mut Channel,
    request: &FlowRequest,
    secret: Option<&Secret>,
) -> Outcome<Welcome> {
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
            return Code::Timeout.fail("the server did not answer within 10 s");
        }
        let fds = [PollFd { fd: channel.fd(), read: true, write: false }];
        waiter.wait(&fds, Some(deadline_ns), now_ns).map_err(Failure::system("wait for the server"))?;
    }
}
