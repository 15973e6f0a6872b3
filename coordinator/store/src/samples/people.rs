//! Sample persons, with their accounts, sessions and one-time links.

use parallax_core::company_sign_in::{CompanyDomain, CompanySignIn};
use parallax_core::id::PersonId;
use parallax_core::login_session::{LoginSession, LoginSessionId};
use parallax_core::one_time_link::{LinkId, LinkKind, OneTimeLink};
use parallax_core::page::domain::DomainClaim;
use parallax_core::passkey::{PasskeyId, PersonPasskey, PersonPasskeys};
use parallax_core::person::{AccountMember, Person};
use parallax_core::role::Role;
use parallax_core::second_factor::{FactorSecret, RecoveryCodeHash, SecondFactor};

use super::{account_id, at};

pub fn person_id(n: u128) -> PersonId {
    PersonId::from_u128(n)
}

pub fn person(n: u128, email: u8) -> Person {
    Person {
        id: person_id(n),
        email: format!("p{email}@example.com"),
        name: n.is_multiple_of(2).then(|| "Ann".to_owned()),
        password_hash: Some("$argon2id$".to_owned()),
        is_operator: n == 1,
        created_at: at(1),
        second_factor: second_factor(n),
        passkeys: passkeys(n),
    }
}

/// An active second factor for even numbers, none for odd ones.
fn second_factor(n: u128) -> SecondFactor {
    let mut factor = SecondFactor::default();
    if n.is_multiple_of(2) {
        factor.begin(FactorSecret(*b"canary-second-factor"), at(1));
        factor.activate(7, vec![RecoveryCodeHash([n as u8; 32])], at(1));
    }
    factor
}

/// A passkey for even numbers, none for odd ones.
fn passkeys(n: u128) -> PersonPasskeys {
    let mut passkeys = PersonPasskeys::default();
    if n.is_multiple_of(2) {
        let sample = PersonPasskey {
            id: PasskeyId([n as u8; 16]),
            name: "Phone".to_owned(),
            host: "status.example.com".to_owned(),
            created_at: at(1),
            last_used_at: None,
            credential: "{}".to_owned(),
        };
        passkeys.add(sample).unwrap_or_default();
    }
    passkeys
}

pub fn account_member(account: u128, person: u128, role: Role) -> AccountMember {
    AccountMember::new((account_id(account), person_id(person)), role, at(2))
}

/// With one proved domain, and one that is not.
pub fn company_sign_in(account: u128, domain: u8) -> CompanySignIn {
    let of =
        |host: String, proved_at| CompanyDomain { claim: DomainClaim::new(host, "token".to_owned(), at(1)), proved_at };
    CompanySignIn {
        account: account_id(account),
        issuer: "https://id.example.com".to_owned(),
        client_id: "parallax".to_owned(),
        client_secret: "canary-provider".to_owned(),
        domains: vec![of(format!("d{domain}.example"), Some(at(2))), of("other.example".to_owned(), None)],
        is_required: account.is_multiple_of(2),
        covers_second_factor: false,
        worked_at: None,
    }
}

pub fn login_session_id(n: u128) -> LoginSessionId {
    LoginSessionId([n as u8; 32])
}

pub fn login_session(n: u128, person: u128) -> LoginSession {
    LoginSession {
        id: login_session_id(n),
        person: person_id(person),
        account: account_id(1),
        created_at: at(1),
        last_used_at: at(2),
        is_kept: n.is_multiple_of(2),
        network: Some("192.0.2.0/24".to_owned()),
        user_agent: "browser".to_owned(),
        confirmed_at: at(1),
        is_company: n == 3,
        company_subject: (n == 3).then_some([3; 32]),
    }
}

pub fn link_id(n: u128) -> LinkId {
    LinkId([n as u8; 32])
}

/// A link of an account for even numbers, of a person for odd ones.
pub fn one_time_link(n: u128, owner: u128) -> OneTimeLink {
    let kind = if n.is_multiple_of(2) {
        LinkKind::SetUp { account: account_id(owner), is_operator: false }
    } else {
        LinkKind::SignIn { person: person_id(owner), browser: [9; 32], next: "/app".to_owned() }
    };
    OneTimeLink { id: link_id(n), kind, expires_at: at(9), is_kept: n.is_multiple_of(2) }
}
