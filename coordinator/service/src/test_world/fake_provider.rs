//! A small OpenID Connect provider on this host, which does wrong what a test asks for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use parallax_runtime::clock::Clock;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use url::{Url, form_urlencoded};

use crate::people::CompanyAnswer;

/// Client of every test.
pub(super) const CLIENT_ID: &str = "parallax";
/// Its secret.
pub(super) const CLIENT_SECRET: &str = "canary-client-secret";

/// Fault of the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProviderFault {
    /// Nothing.
    #[default]
    None,
    /// It sends more than anyone reads.
    Huge,
    /// It sends the browserless to itself, in a circle.
    RedirectLoop,
    /// It answers never.
    Silent,
    /// Its configuration is no JSON.
    NoJson,
    /// It names another issuer.
    OtherIssuer,
    /// It names a token address of plain text.
    ForeignScheme,
    /// It says nothing of the email address in tokens, but at its userinfo address.
    EmailAtUserinfo,
    /// Its userinfo is of another person.
    OtherUserinfo,
}

/// A token's parts before they are signed.
#[derive(Debug, Clone)]
pub struct SignedClaims {
    pub header: Value,
    pub claims: Value,
    /// Signed with a key that the provider does not publish.
    pub has_foreign_key: bool,
}

type Change = Box<dyn Fn(&mut SignedClaims) + Send>;

/// The provider. It ends with the test's runtime.
#[derive(Clone)]
pub struct FakeProvider {
    pub issuer: String,
    state: Arc<Mutex<State>>,
}

impl std::fmt::Debug for FakeProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeProvider").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

struct State {
    clock: Clock,
    fault: ProviderFault,
    key: EcdsaKeyPair,
    foreign_key: EcdsaKeyPair,
    kid: String,
    change: Change,
    /// Claims of the person at the provider.
    person: Value,
    /// Open codes with their nonce, challenge and redirect address.
    codes: BTreeMap<String, [String; 3]>,
    requests: Vec<String>,
}

impl FakeProvider {
    /// Starts a provider whose person is Ann of shop.example.
    pub async fn start(clock: &Clock) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let person = json!({
            "sub": "ann-1", "email": "ann@shop.example", "email_verified": true, "name": "Ann of the shop"
        });
        let state = Arc::new(Mutex::new(State {
            clock: clock.clone(),
            fault: ProviderFault::None,
            key: new_key(),
            foreign_key: new_key(),
            kid: "first".to_owned(),
            change: Box::new(|_| {}),
            person,
            codes: BTreeMap::new(),
            requests: Vec::new(),
        }));
        let provider = Self { issuer, state };
        let served = provider.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let provider = served.clone();
                tokio::spawn(async move { provider.serve(stream).await });
            }
        });
        provider
    }

    /// Does that wrong from now on.
    pub fn fail(&self, fault: ProviderFault) {
        self.lock().fault = fault;
    }

    /// Changes claims of its person.
    pub fn set_person(&self, claims: &Value) {
        let mut state = self.lock();
        for (name, value) in claims.as_object().unwrap() {
            state.person[name] = value.clone();
        }
    }

    /// Changes each token before it is signed.
    pub fn change_tokens(&self, change: impl Fn(&mut SignedClaims) + Send + 'static) {
        self.lock().change = Box::new(change);
    }

    /// Signs with another key from now on, which it publishes.
    pub fn rotate_key(&self, kid: &str) {
        let mut state = self.lock();
        (state.key, state.kid) = (new_key(), kid.to_owned());
    }

    /// Paths that were requested since the last call.
    pub fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().requests)
    }

    /// Signs its person in at the address to which the browser was sent.
    pub fn sign_in(&self, url: &str) -> CompanyAnswer {
        let url = Url::parse(url).unwrap();
        assert!(url.as_str().starts_with(&format!("{}/authorize?", self.issuer)), "{url}");
        let query: BTreeMap<String, String> = url.query_pairs().into_owned().collect();
        assert_eq!((query["response_type"].as_str(), query["client_id"].as_str()), ("code", CLIENT_ID));
        assert_eq!(query["code_challenge_method"], "S256");
        assert!(query["scope"].split(' ').any(|scope| scope == "openid"), "{url}");
        let code = format!("code-{}", hex::encode(rand::random::<[u8; 8]>()));
        let bound = ["nonce", "code_challenge", "redirect_uri"].map(|name| query[name].clone());
        self.lock().codes.insert(code.clone(), bound);
        CompanyAnswer { state: query["state"].clone(), code, error: String::new(), issuer: String::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    async fn serve(&self, mut stream: TcpStream) {
        let mut read = Vec::new();
        let mut buffer = [0; 4096];
        let (head, body) = loop {
            let Ok(count @ 1..) = stream.read(&mut buffer).await else { return };
            read.extend_from_slice(&buffer[..count]);
            let text = String::from_utf8_lossy(&read).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = header(head, "content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
            if body.len() >= length {
                break (head.to_owned(), body.to_owned());
            }
        };
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let fault = self.lock().fault;
        self.lock().requests.push(path.clone());
        let answer = match fault {
            ProviderFault::Silent => std::future::pending().await,
            ProviderFault::Huge => {
                format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{}", " ".repeat(1 << 20))
            }
            ProviderFault::RedirectLoop => {
                format!("HTTP/1.1 302 Found\r\nlocation: {}{path}\r\ncontent-length: 0\r\n\r\n", self.issuer)
            }
            ProviderFault::NoJson => reply(200, "<html>"),
            _ => match path.as_str() {
                "/.well-known/openid-configuration" => reply(200, &self.configuration(fault).to_string()),
                "/keys" => reply(200, &self.keys().to_string()),
                "/token" => self.token(&head, &body),
                "/userinfo" => reply(200, &self.userinfo(fault).to_string()),
                _ => reply(404, "{}"),
            },
        };
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
    }

    fn configuration(&self, fault: ProviderFault) -> Value {
        let issuer = &self.issuer;
        let named = if fault == ProviderFault::OtherIssuer { "https://evil.example" } else { issuer.as_str() };
        let token = if fault == ProviderFault::ForeignScheme { "gopher://127.0.0.1" } else { issuer.as_str() };
        json!({
            "issuer": named,
            "authorization_endpoint": format!("{issuer}/authorize"),
            "token_endpoint": format!("{token}/token"),
            "userinfo_endpoint": format!("{issuer}/userinfo"),
            "jwks_uri": format!("{issuer}/keys"),
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256", "HS256", "none"],
        })
    }

    fn keys(&self) -> Value {
        let state = self.lock();
        let point = state.key.public_key().as_ref();
        let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({"keys": [{
            "kty": "EC", "crv": "P-256", "use": "sig", "kid": state.kid, "x": part(&point[1..33]), "y": part(&point[33..])
        }]})
    }

    fn token(&self, head: &str, body: &str) -> String {
        let fields: BTreeMap<String, String> = form_urlencoded::parse(body.as_bytes()).into_owned().collect();
        let basic = format!("Basic {}", STANDARD.encode(format!("{CLIENT_ID}:{CLIENT_SECRET}")));
        let is_client = header(head, "authorization") == Some(&basic);
        let field = |name: &str| fields.get(name).cloned().unwrap_or_default();
        let Some([nonce, challenge, redirect]) = self.lock().codes.remove(&field("code")) else {
            return reply(400, r#"{"error":"invalid_grant"}"#);
        };
        let is_verified = URL_SAFE_NO_PAD.encode(Sha256::digest(field("code_verifier"))) == challenge;
        if !is_client || !is_verified || field("redirect_uri") != redirect {
            return reply(400, r#"{"error":"invalid_grant"}"#);
        }
        let token = self.id_token(&nonce);
        let body = json!({"access_token": "access", "token_type": "Bearer", "expires_in": 60, "id_token": token});
        reply(200, &body.to_string())
    }

    fn id_token(&self, nonce: &str) -> String {
        let state = self.lock();
        let now = state.clock.now().as_millis() / 1000;
        let mut claims = json!({
            "iss": self.issuer, "aud": CLIENT_ID, "exp": now + 300, "iat": now, "nonce": nonce, "auth_time": now
        });
        for (name, value) in state.person.as_object().unwrap() {
            let is_hidden =
                state.fault == ProviderFault::EmailAtUserinfo || state.fault == ProviderFault::OtherUserinfo;
            if name == "sub" || !is_hidden {
                claims[name] = value.clone();
            }
        }
        let header = json!({"alg": "ES256", "typ": "JWT", "kid": state.kid});
        let mut parts = SignedClaims { header, claims, has_foreign_key: false };
        (state.change)(&mut parts);
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", part(&parts.header), part(&parts.claims));
        let signature = match parts.header["alg"].as_str() {
            Some("none") => Vec::new(),
            Some("HS256") => {
                let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, CLIENT_SECRET.as_bytes());
                ring::hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
            }
            _ => {
                let key = if parts.has_foreign_key { &state.foreign_key } else { &state.key };
                key.sign(&SystemRandom::new(), text.as_bytes()).unwrap().as_ref().to_vec()
            }
        };
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn userinfo(&self, fault: ProviderFault) -> Value {
        let mut person = self.lock().person.clone();
        if fault == ProviderFault::OtherUserinfo {
            person["sub"] = json!("somebody else");
        }
        person
    }
}

fn new_key() -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap()
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    pairs.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

fn reply(status: u16, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
}
