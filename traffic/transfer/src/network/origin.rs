// SPDX-License-Identifier: Apache-2.0
//! The server of a URL: scheme, host and port, which one connection serves.

use std::fmt;

use url::{Host, Url};

use crate::fault::{Fault, Trouble};

/// Where connections lead.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Origin {
    /// Over TLS.
    pub(crate) is_tls: bool,
    /// Name or address, the latter without brackets.
    pub(crate) host: String,
    /// Port.
    pub(crate) port: u16,
}

impl Origin {
    /// Of a URL of http or https.
    pub(crate) fn of(url: &Url) -> Option<Self> {
        let is_tls = match url.scheme() {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let host = match url.host()? {
            Host::Domain(name) => name.to_owned(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        Some(Self { is_tls, host, port: url.port_or_known_default()? })
    }

    /// Host and, where it is not the scheme's own, port, as requests name them.
    pub(crate) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let usual = if self.is_tls { 443 } else { 80 };
        if self.port == usual {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }

    /// It speaks another HTTP than is asked for.
    pub(crate) fn speaks_otherwise(&self) -> Trouble {
        let words = format!("{self} does not speak the HTTP that is asked for: take another --http");
        Trouble::Server(Fault::new("http_version", words))
    }

    /// `http` or `https`.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.is_tls {
            "https"
        } else {
            "http"
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}://{}", self.scheme(), self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_what_requests_name() {
        for (url, authority) in [
            ("http://a/x?y", "a"),
            ("https://a:8443/", "a:8443"),
            ("https://a:443/", "a"),
            ("http://[::1]:80/", "[::1]"),
            ("http://10.0.0.1:8080/", "10.0.0.1:8080"),
        ] {
            assert_eq!(Origin::of(&Url::parse(url).unwrap()).unwrap().authority(), authority);
        }
        assert_eq!(Origin::of(&Url::parse("ftp://a/").unwrap()), None);
    }
}
