// SPDX-License-Identifier: Apache-2.0
//! Whom a transfer believes, and which HTTP it offers: one judge for TLS over TCP and for QUIC.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use boring::error::ErrorStack;
use boring::ssl::{SslAlert, SslContextBuilder, SslMethod, SslVerifyError, SslVerifyMode};
use netjoule_measure::failure::{Code, Failure, Outcome};
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::crypto::{ring, CryptoProvider};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{AlertDescription, CertificateError as Wrong, ClientConfig, Error, RootCertStore};

use crate::fault::{Fault, Trouble};
use crate::network::origin::Origin;

/// Says whether a server is the one that it should be.
pub(crate) type Judge = Arc<WebPkiServerVerifier>;

/// Believes the authorities in `ca_file`, or else those of this host.
pub(crate) fn judge(ca_file: Option<&Path>) -> Outcome<Judge> {
    let roots = match ca_file {
        Some(path) => of_file(path)?,
        None => of_host()?,
    };
    let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider());
    builder.build().map_err(|error| Failure::new(Code::System, format!("setting up TLS: {error}")))
}

/// Settings of TLS over TCP.
pub(crate) fn client(judge: Judge, protocols: &[&[u8]]) -> Outcome<Arc<ClientConfig>> {
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| Failure::new(Code::System, format!("setting up TLS: {error}")))?;
    let mut config = builder.with_webpki_verifier(judge).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(Arc::new(config))
}

/// Settings of TLS within QUIC. `why` holds the reason of a refusal.
pub(crate) fn quic(
    judge: Judge,
    name: ServerName<'static>,
    why: Arc<OnceLock<Error>>,
) -> Result<SslContextBuilder, ErrorStack> {
    let mut context = SslContextBuilder::new(SslMethod::tls())?;
    context.set_custom_verify_callback(SslVerifyMode::PEER, move |tls| {
        let chain = tls.peer_cert_chain().into_iter().flatten().map(|shown| shown.to_der());
        let chain: Result<Vec<CertificateDer<'_>>, ErrorStack> =
            chain.map(|shown| shown.map(CertificateDer::from)).collect();
        let refused = SslVerifyError::Invalid(SslAlert::BAD_CERTIFICATE);
        let Some((own, others)) = chain.as_deref().ok().and_then(<[_]>::split_first) else {
            return Err(refused);
        };
        match judge.verify_server_cert(own, others, &name, &[], UnixTime::now()) {
            Ok(_) => Ok(()),
            Err(error) => {
                why.get_or_init(|| error);
                Err(refused)
            }
        }
    });
    Ok(context)
}

/// What is wrong with a server with which no TLS comes about.
pub(crate) fn refused(origin: &Origin, why: &Error, ca_file: Option<&Path>) -> Trouble {
    let words = match (why, ca_file) {
        (Error::AlertReceived(AlertDescription::NoApplicationProtocol), _) => {
            return origin.speaks_otherwise()
        }
        // A bad signature is that of another authority under the same name.
        (Error::InvalidCertificate(Wrong::UnknownIssuer | Wrong::BadSignature), Some(path)) => {
            format!("its certificate is of none of the authorities in {}", path.display())
        }
        (Error::InvalidCertificate(Wrong::UnknownIssuer | Wrong::BadSignature), None) => {
            "this host does not know the authority of its certificate: name that by --ca-file".to_owned()
        }
        (Error::InvalidCertificate(Wrong::Other(why)), _) if why.to_string() == "CaUsedAsEndEntity" => {
            "its certificate is an authority's own (CA:TRUE): give it one that this has signed".to_owned()
        }
        (other, _) => other.to_string(),
    };
    Trouble::Server(Fault::new("tls", format!("{origin}: {words}")))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn of_file(path: &Path) -> Outcome<RootCertStore> {
    let wrong = |why: String| Failure::new(Code::Usage, format!("--ca-file {}: {why}", path.display()));
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(wrong("holds no certificate (PEM)".into()));
    }
    Ok(roots)
}

fn of_host() -> Outcome<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        let words =
            "this host has no certificates of authorities: install ca-certificates, or give --ca-file";
        return Code::HostLacks.fail(words);
    }
    Ok(roots)
}
