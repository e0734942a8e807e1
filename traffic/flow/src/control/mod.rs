// SPDX-License-Identifier: Apache-2.0
//! What the two ends say to each other beside the data: one JSON object per line. Pure.
//!
//! ```text
//! client                              server
//!   hello(version, nonce, flow) ->
//!                               <-    challenge(nonce)                   (when the server has a shared secret)
//!   proof                       ->
//!                               <-    welcome(token, data port, offer, proof) | failure(code, message)
//!   profile(part) ...           ->    (only where the server is to send what a profile gives)
//!   ... the client opens the data path and proves the token ...
//!                               <-    open
//!   clock(t0)                   ->                                     (not on the same boot: 8 times now and after
//!                               <-    clock_answer(t0, t1, t2)          the messages, every 10 s between)
//!   compared(t0, t1, t2, t3)    ->
//!   go(offset)                  ->
//!                               <-    started
//!   ... messages; either end may say stop ...
//!   finished(messages sent)     ->    (from whichever end sends messages)
//!   intervals ..., part         <->   (each end's half, to the client in the end)
//!   end                         ->
//! ```
//! A connection that ends early ends the flow.
//!
//! | question | module |
//! | --- | --- |
//! | what can be said? | [`message`] |
//! | what can be asked for, and what is allowed? | [`request`], of a profile [`profile`] |
//! | how does it look on the wire? | [`line`], [`text`] |
//! | how do lines travel? | [`channel`] |
//! | how do the two ends greet each other? | [`greeting`], with a [`secret`] where there is one |
//! | who may say what, and when? | [`order`] |

pub mod channel;
pub mod greeting;
pub mod line;
pub mod message;
pub mod order;
pub mod profile;
pub mod request;
pub mod secret;
pub mod text;

pub use line::{decode, encode, expect_hello, take_line, LINE_BYTES};
pub use message::{
    failure_message, refusal, Hello, Message, Welcome, INTERVALS_PER_LINE, PROFILE_CHARACTERS_PER_LINE,
    PROTOCOL, SAMPLES, SAMPLES_PER_LINE, VERSION,
};
pub use profile::ProfileRequest;
pub use request::{Caps, FlowRequest, INTERVALS, LONGEST_INTERVAL_NS};
pub use text::{from_hex, hex, token_from, token_text};
