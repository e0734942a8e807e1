// SPDX-License-Identifier: Apache-2.0
//! `netjoule-transfer get` against servers of bad manners: the right bytes or one clear sentence, nothing corrupt, and
//! never half a file under its final name.

mod http2;
mod http3;
mod manners;
mod place;
mod server;
mod stops;
mod tls;
