//! TLS for everything that calls out: one configuration, checked against the certificates of this
//! machine. They are a hundred files, and are read when the first server shows one of its own: who
//! never leaves this machine does not wait for them, and nobody reads them twice.

use std::sync::{Arc, LazyLock, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;

/// The configuration of a client; a clone shares the certificates.
pub fn tls() -> ClientConfig {
    static CONFIG: LazyLock<ClientConfig> = LazyLock::new(|| {
        // For libraries that bring their own configuration. Whichever there is already is as good.
        let _installed = ring::default_provider().install_default();
        let provider = Arc::new(ring::default_provider());
        let machine = Machine { provider: Arc::clone(&provider), verifier: OnceLock::new() };
        let config = ClientConfig::builder_with_provider(provider);
        #[expect(clippy::expect_used, reason = "ring has the ciphers of TLS 1.2 and 1.3")]
        let config = config.with_safe_default_protocol_versions().expect("versions of ring");
        // The danger is a verifier that accepts too much: this one only comes later.
        config.dangerous().with_custom_certificate_verifier(Arc::new(machine)).with_no_client_auth()
    });
    CONFIG.clone()
}

/// What this machine trusts.
#[derive(Debug)]
struct Machine {
    provider: Arc<CryptoProvider>,
    verifier: OnceLock<Result<Verifier, Error>>,
}

impl Machine {
    fn verifier(&self) -> Result<&Verifier, Error> {
        self.verifier
            .get_or_init(|| Verifier::new(Arc::clone(&self.provider)))
            .as_ref()
            .map_err(Clone::clone)
    }
}

impl ServerCertVerifier for Machine {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verifier = self.verifier()?;
        verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
