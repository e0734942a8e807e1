// SPDX-License-Identifier: Apache-2.0
//! How the two ends of a control connection greet each other, and prove a shared secret where there is one. Pure: bytes,
//! messages and nonces are arguments.
//!
//! Before a client has proved the secret the server has spent on it a connection, at most one line of memory and one
//! answer. Whoever speaks before it is asked is turned away, so that there is nothing more to keep.

use crate::control::secret::{Nonce, Proof, Prover, Secret};
use crate::control::{self, from_hex, hex, Hello, Message, Welcome};
use netjoule_measure::failure::{Code, Failure, Outcome};

/// What a hello takes beside its texts, at most: its own size, and up to 16 options in the nodes of a tree.
pub const HELLO_BYTES: usize = 4 << 10;

/// A client that has said who it is and what it wants, and proved the secret if there is one.
#[derive(Debug)]
pub struct Guest {
    /// Its first line.
    pub hello: Hello,
    /// The server's own proof, for the welcome.
    pub proof: Option<Proof>,
    /// Bytes of the line that the hello was.
    line_bytes: usize,
}

impl Guest {
    /// Bytes that are kept of this client, at most: no text of the hello is longer than the line that it stood in.
    pub fn held_bytes(&self) -> usize {
        HELLO_BYTES + self.line_bytes
    }
}

/// What the server does next.
#[derive(Debug)]
pub enum Step {
    /// Wait for more bytes.
    More,
    /// Say this and wait.
    Say(Message),
    /// The greeting is over.
    Enter(Box<Guest>),
}

/// The server's half of one connection.
#[derive(Debug, Default)]
pub struct Greeting {
    received: Vec<u8>,
    challenged: Option<Box<Challenged>>,
}

/// A client that was asked for its proof.
#[derive(Debug)]
struct Challenged {
    line: Vec<u8>,
    hello: Hello,
    client: Nonce,
    server: Nonce,
}

impl Greeting {
    /// Bytes that are kept of this client.
    pub fn held_bytes(&self) -> usize {
        let of_hello = |challenged: &Challenged| HELLO_BYTES + 2 * challenged.line.len();
        self.received.len() + self.challenged.as_deref().map_or(0, of_hello)
    }

    /// Take what the client said. `fresh_nonce` is asked at most once.
    ///
    /// # Errors
    /// [`Code::Protocol`] for what is no greeting, [`Code::Usage`] for a name that is none, [`Code::Refused`] for a
    /// wrong secret. The connection ends then.
    pub fn hear(
        &mut self,
        bytes: &[u8],
        secret: Option<&Secret>,
        fresh_nonce: &mut dyn FnMut() -> Outcome<Nonce>,
    ) -> Outcome<Step> {
        self.received.extend_from_slice(bytes);
        let Some(line) = control::take_line(&mut self.received)? else { return Ok(Step::More) };
        let step = match (self.challenged.take(), secret) {
            (Some(challenged), Some(secret)) => challenged.judge(&line, secret)?,
            (_, None) => {
                let hello = control::expect_hello(&line)?;
                Step::Enter(Box::new(Guest { hello, proof: None, line_bytes: line.len() }))
            }
            (None, Some(_)) => {
                let hello = control::expect_hello(&line)?;
                let client = from_hex(&hello.nonce).ok_or_else(malformed_nonce)?;
                let server = fresh_nonce()?;
                self.challenged = Some(Box::new(Challenged { line, hello, client, server }));
                Step::Say(Message::Challenge { nonce: hex(&server) })
            }
        };
        if self.received.is_empty() {
            Ok(step)
        } else {
            Code::Protocol.fail("the client went on speaking before it was answered")
        }
    }
}

impl Challenged {
    fn judge(self, line: &[u8], secret: &Secret) -> Outcome<Step> {
        let Self { line: hello_line, hello, client, server } = self;
        let Message::Proof { proof } = control::decode(line)? else {
            return Code::Protocol.fail("the client did not answer the challenge");
        };
        let knows = match from_hex(&proof) {
            Some(proof) => secret.accepts(&proof, Prover::Client, &client, &server, &hello_line)?,
            None => false,
        };
        if !knows {
            return Code::Refused.fail(
                "the client has another shared secret than this server; give both ends the same one \
                 (--secret)",
            );
        }
        let proof = secret.prove(Prover::Server, &client, &server, &hello_line)?;
        Ok(Step::Enter(Box::new(Guest { hello, proof: Some(proof), line_bytes: hello_line.len() })))
    }
}

/// What the client does next.
#[derive(Debug, PartialEq)]
pub enum Reply {
    /// Say this and wait.
    Say(Message),
    /// Come in.
    Enter(Box<Welcome>),
}

/// The client's half.
#[derive(Debug)]
pub struct Call<'a> {
    hello: Message,
    line: Vec<u8>,
    nonce: Nonce,
    secret: Option<&'a Secret>,
    challenge: Option<Nonce>,
}

impl<'a> Call<'a> {
    /// A greeting that begins with `hello`, whose nonce becomes `nonce`.
    pub fn new(mut hello: Hello, nonce: Nonce, secret: Option<&'a Secret>) -> Self {
        hello.nonce = hex(&nonce);
        let hello = Message::Hello(Box::new(hello));
        let mut line = control::encode(&hello).into_bytes();
        line.pop();
        Self { hello, line, nonce, secret, challenge: None }
    }

    /// The first line.
    pub fn hello(&self) -> &Message {
        &self.hello
    }

    /// Take the server's next message.
    ///
    /// # Errors
    /// [`Code::Refused`] when the server said no, or has not the same secret; [`Code::Protocol`] for anything else that
    /// is no answer.
    pub fn hear(&mut self, message: Message) -> Outcome<Reply> {
        match message {
            Message::Challenge { nonce } if self.challenge.is_none() => self.answer(&nonce).map(Reply::Say),
            Message::Welcome(welcome) => self.check(&welcome).map(|()| Reply::Enter(welcome)),
            Message::Failure { code, message } => {
                let refusal = control::refusal(&code, &message);
                let message = format!("the server refused the flow: {}", refusal.message);
                Err(Failure { message, ..refusal })
            }
            _ => Code::Protocol.fail("the server did not answer with a welcome"),
        }
    }

    fn answer(&mut self, nonce: &str) -> Outcome<Message> {
        let Some(secret) = self.secret else {
            return Code::Refused
                .fail("the server asks for its shared secret; name it with --secret env:NAME or file:PATH");
        };
        let server = from_hex(nonce).ok_or_else(malformed_nonce)?;
        self.challenge = Some(server);
        let proof = secret.prove(Prover::Client, &self.nonce, &server, &self.line)?;
        Ok(Message::Proof { proof: hex(&proof) })
    }

    /// Who has a secret speaks only with a server that knows it too.
    fn check(&self, welcome: &Welcome) -> Outcome<()> {
        let Some(secret) = self.secret else { return Ok(()) };
        let Some(server) = &self.challenge else {
            return Code::Refused.fail(
                "this end has a shared secret and the server asked for none; start it with the same one, \
                 or leave --secret out here",
            );
        };
        let knows = match welcome.proof.as_deref().and_then(from_hex) {
            Some(proof) => secret.accepts(&proof, Prover::Server, &self.nonce, server, &self.line)?,
            None => false,
        };
        if knows {
            return Ok(());
        }
        Code::Refused.fail("the server did not prove that it knows the shared secret")
    }
}

fn malformed_nonce() -> Failure {
    Failure::new(Code::Protocol, "the peer's nonce is malformed")
}

#[cfg(test)]
pub(crate) mod tests;
