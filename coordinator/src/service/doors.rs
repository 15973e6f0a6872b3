//! What lets a visitor through the gate of a guarded page: passes and feed tokens, made and known by a key of ours.
//!
//! Both are bound to what guards the page at that moment: any change of its password, of `private` or of who is allowed
//! ends them all. Nothing of them is kept.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parallax_core::page::Page;
use parallax_core::time::{DAY, SECOND};
use ring::hmac;
use subtle::ConstantTimeEq;

use super::Service;

/// Milliseconds that a pass is good for. It does not end earlier for want of use: a status page is looked at seldom, and
/// then there is no time to sign in.
pub const PASS_LIFE: i64 = 30 * DAY;

/// What proves that a pass or a token is ours. It is the same at each start, or all of them end.
#[derive(Clone)]
pub struct DoorKey(hmac::Key);

impl DoorKey {
    /// That key.
    pub fn new(bytes: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }
}

impl fmt::Debug for DoorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DoorKey")
    }
}

/// How a page is guarded. One that has a password and is private is private: who may see it is known by name there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Not at all.
    Open,
    /// By a password.
    Password,
    /// By who its visitors are.
    Private,
}

impl Guard {
    /// The guard of that page.
    pub const fn of(page: &Page) -> Self {
        match (page.private, &page.password) {
            (true, _) => Self::Private,
            (false, Some(_)) => Self::Password,
            (false, None) => Self::Open,
        }
    }
}

/// What a visitor shows at the gate.
#[derive(Clone, Default)]
pub struct Shown {
    /// Passes, each by its name: those that a browser keeps.
    pub passes: Vec<(String, String)>,
    /// A feed token.
    pub token: Option<String>,
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shown").field("passes", &self.passes.len()).finish_non_exhaustive()
    }
}

/// A pass as a browser keeps it.
#[derive(Clone, PartialEq, Eq)]
pub struct Pass {
    /// Its name, by which those of different pages are told apart.
    pub name: String,
    /// Its text.
    pub value: String,
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Service {
    /// The token by which programs that keep no cookies read a guarded page's feeds, calendar, badges and status; none for
    /// a page that everybody may see. It is the last part of an address, so it is made of letters that need no escape.
    pub fn feed_token(&self, page: &Page) -> Option<String> {
        (Guard::of(page) != Guard::Open).then(|| self.token(page))
    }

    /// What the addresses begin with by which such programs read a guarded page, without a slash at the end.
    pub fn feed_address(&self, page: &Page) -> Option<String> {
        self.feed_token(page).map(|token| format!("{}/t/{token}", self.page_url(page)))
    }

    /// The name of a page's pass: it tells nothing of the page to whoever has no pass.
    pub(super) fn pass_name(&self, page: &Page) -> String {
        let sealed = self.sealed(&[b"name", &page.id.to_u128().to_be_bytes()]);
        sealed.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    /// A pass to the page as it is guarded now.
    pub(super) fn pass(&self, page: &Page) -> Pass {
        let until = self.second() + PASS_LIFE / SECOND;
        Pass { name: self.pass_name(page), value: format!("{until}.{}", self.pass_seal(page, until)) }
    }

    /// Whether what is shown is good for the page as it is guarded now.
    pub(super) fn is_good(&self, page: &Page, shown: &Shown) -> bool {
        let name = self.pass_name(page);
        let passes = shown.passes.iter().filter(|(known, _)| *known == name);
        let by_pass = passes.fold(false, |is_good, (_, value)| self.is_pass(page, value) || is_good);
        let token = shown.token.as_deref().unwrap_or_default();
        let by_token = self.token(page).as_bytes().ct_eq(token.as_bytes());
        by_pass || bool::from(by_token)
    }

    /// As much work as [`Self::is_good`] does, for a page that does not exist.
    pub(super) fn look_in_vain(&self) {
        for purpose in [&b"name"[..], b"pass", b"feed"] {
            std::hint::black_box(self.sealed(&[purpose, &[0; 16], &[0; 100]]));
        }
    }

    fn is_pass(&self, page: &Page, value: &str) -> bool {
        let Some((until, seal)) = value.split_once('.') else { return false };
        let Ok(seconds) = until.parse::<i64>() else { return false };
        let is_ours = self.pass_seal(page, seconds).as_bytes().ct_eq(seal.as_bytes());
        // None is good for longer than one that is made now.
        let left = seconds.saturating_sub(self.second());
        bool::from(is_ours) && (1..=PASS_LIFE / SECOND).contains(&left)
    }

    fn pass_seal(&self, page: &Page, until: i64) -> String {
        let id = page.id.to_u128().to_be_bytes();
        URL_SAFE_NO_PAD.encode(self.sealed(&[b"pass", &id, &access_of(page), &until.to_be_bytes()]))
    }

    fn token(&self, page: &Page) -> String {
        let id = page.id.to_u128().to_be_bytes();
        URL_SAFE_NO_PAD.encode(self.sealed(&[b"feed", &id, &access_of(page)]))
    }

    /// What proves that these parts were put together here.
    pub(super) fn sealed(&self, parts: &[&[u8]]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.settings().doors.0);
        for part in parts {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        context.sign()
    }

    fn second(&self) -> i64 {
        self.now().as_millis().div_euclid(SECOND)
    }
}

/// What guards a page, as bytes that change with each change of it. The revision alone says that much; what it stands
/// for is there too, since a store that was restored counts anew.
fn access_of(page: &Page) -> Vec<u8> {
    let mut bytes = page.access_revision.to_be_bytes().to_vec();
    bytes.extend([u8::from(page.private), u8::from(page.password.is_some())]);
    bytes.extend_from_slice(&(page.allowed.people.len() as u64).to_be_bytes());
    for text in page.password.iter().chain(&page.allowed.people).chain(&page.allowed.domains) {
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(0);
    }
    bytes
}
