//! Passkeys: added, used at each place, renamed, removed, and as the second factor that an account needs.

use parallax_core::audit::{AuditAction, AuditSubject};
use parallax_core::role::Role;
use parallax_core::time::{DAY, SECOND};

use crate::audit::AuditFilter;
use crate::people::soft_authenticator::SoftPasskey;
use crate::people::{BrowserInfo, CurrentSession, NewPerson, NewSession, PasswordSignIn, SecondSteps, SignInStep};
use crate::test_world::{World, world};
use crate::{ServiceError, ServiceResult};

const EMAIL: &str = "ann@example.com";
const PASSWORD: &str = "correct horse";
const ORIGIN: &str = "https://status.example";

/// The browser that asks, as its cookie names it.
pub(super) const BROWSER: [u8; 16] = [7; 16];

/// A world whose owner's account has Ann, with a passkey.
pub(super) struct PasskeyWorld {
    pub(super) world: World,
    pub(super) passkey: SoftPasskey,
    /// Her session, in which she added it.
    pub(super) session: NewSession,
}

impl PasskeyWorld {
    pub(super) async fn new() -> Self {
        let world = world().await;
        let password = Some(PASSWORD.to_owned());
        let ann = NewPerson { email: EMAIL.to_owned(), name: String::new(), role: Role::Owner, password };
        world.service.people.add_as_operator(world.owner.id, &ann).await.unwrap();
        let session = by_password(&world).await.session().unwrap();
        let mut passkey = SoftPasskey::new(ORIGIN);
        let session = add(&world, &session, &mut passkey, "Phone").await.unwrap();
        Self { world, passkey, session }
    }

    pub(super) fn current(&self) -> CurrentSession {
        current(&self.world, &self.session)
    }

    pub(super) async fn sign_in(&mut self) -> ServiceResult<NewSession> {
        let people = &self.world.service.people;
        let challenge = people.begin_passkey_sign_in(&BROWSER, &browser()).unwrap();
        let answer = self.passkey.get(&challenge);
        let step = people.sign_in_by_passkey((&BROWSER, &answer), true, &browser()).await?;
        Ok(step.session().expect("no account needs company sign-in"))
    }

    fn wait(&self, seconds: i64) {
        self.world.clock.set(self.world.service.now() + seconds * SECOND);
    }
}

pub(super) fn browser() -> BrowserInfo {
    BrowserInfo::new("203.0.113.7".parse().ok(), "", None)
}

pub(super) fn current(world: &World, session: &NewSession) -> CurrentSession {
    world.service.people.authenticate(&session.token).unwrap().unwrap()
}

pub(super) async fn by_password(world: &World) -> SignInStep {
    let ask = PasswordSignIn { email: EMAIL.to_owned(), password: PASSWORD.to_owned(), is_kept: true };
    world.service.people.sign_in(&ask, &browser()).await.unwrap()
}

pub(super) async fn add(
    world: &World,
    session: &NewSession,
    passkey: &mut SoftPasskey,
    name: &str,
) -> ServiceResult<NewSession> {
    let (people, current) = (&world.service.people, current(world, session));
    let answer = passkey.create(&people.begin_passkey_registration(&current)?);
    people.add_passkey(&current, &answer, name).await
}

/// The rule that a passkey broke.
pub(super) fn rule(result: ServiceResult<impl std::fmt::Debug>) -> String {
    match result {
        Err(ServiceError::Invalid(faults)) => {
            let fault = faults.iter().find(|fault| fault.field == "passkey").unwrap();
            fault.rule.to_string()
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_passkey_signs_in_without_a_password_or_code() {
    let mut ann = PasskeyWorld::new().await;
    // An authenticator app asks for codes after passwords, not after a passkey.
    let (session, _) = ann.world.service.people.test_factor(&ann.current()).await;
    ann.session = session;
    let session = ann.sign_in().await.unwrap();
    let seen = current(&ann.world, &session);
    assert_eq!((seen.person.email.as_str(), seen.session.is_kept), (EMAIL, true));
    assert!(seen.session.is_confirmed(ann.world.service.now()), "it is a fresh proof");
    let stored = &seen.person.passkeys.all()[0];
    assert_eq!((stored.name.as_str(), stored.host.as_str()), ("Phone", "status.example"));
    assert_eq!(stored.last_used_at, Some(ann.world.service.now()));
    assert!(stored.credential.len() < 2000, "{}", stored.credential.len());
    // A synced passkey counts nothing.
    let people = &ann.world.service.people;
    let mut synced = SoftPasskey::new(ORIGIN);
    add(&ann.world, &ann.session, &mut synced, "Synced").await.unwrap();
    for _ in 0..2 {
        let challenge = people.begin_passkey_sign_in(&BROWSER, &browser()).unwrap();
        synced.counter = u32::MAX;
        let answer = synced.get(&challenge);
        people.sign_in_by_passkey((&BROWSER, &answer), false, &browser()).await.unwrap();
    }
}

#[tokio::test]
async fn changes_need_a_confirmation_and_end_the_other_sessions() {
    let mut ann = PasskeyWorld::new().await;
    let other = ann.sign_in().await.unwrap();
    ann.wait(600);
    let (people, late) = (&ann.world.service.people, ann.current());
    let id = late.person.passkeys.all()[0].id.to_string();
    let refused = ServiceError::ConfirmationRequired;
    assert_eq!(people.begin_passkey_registration(&late).unwrap_err(), refused);
    assert_eq!(people.add_passkey(&late, &Default::default(), "Key").await.unwrap_err(), refused);
    assert_eq!(people.remove_passkey(&late, &id).await.unwrap_err(), refused);
    // By the passkey itself.
    let answer = ann.passkey.get(&people.begin_passkey_confirmation(&late).unwrap());
    people.confirm_by_passkey(&late, &answer).await.unwrap();
    let mut second = SoftPasskey::new(ORIGIN);
    let is_signed_in = |session: &NewSession| people.is_signed_in(session.session.id).unwrap();
    assert!(is_signed_in(&other));
    for name in ["", "a\nb", &"a".repeat(61)] {
        let challenge = people.begin_passkey_registration(&ann.current()).unwrap();
        let answer = second.create(&challenge);
        let refused = people.add_passkey(&ann.current(), &answer, name).await.unwrap_err();
        assert!(matches!(&refused, ServiceError::Invalid(faults) if faults.iter().all(|it| it.field == "name")));
    }
    let session = add(&ann.world, &ann.session, &mut second, " Work laptop ").await.unwrap();
    assert!(is_signed_in(&session) && !is_signed_in(&other) && !is_signed_in(&ann.session));
    // A credential is in the list once.
    let rules = [rule(add(&ann.world, &session, &mut second, "Again").await)];
    assert_eq!(rules, ["is not known here, or was removed"], "the list of excluded ones refuses it");
    let now = current(&ann.world, &session);
    let names: Vec<_> = now.person.passkeys.all().iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["Phone", "Work laptop"]);
    people.rename_passkey(&now, &id, "Old phone").await.unwrap();
    assert_eq!(people.rename_passkey(&now, "0", "Old phone").await, Err(ServiceError::NotFound));
    let after = people.remove_passkey(&now, &id).await.unwrap();
    assert!(is_signed_in(&after) && !is_signed_in(&session));
    assert_eq!(people.remove_passkey(&current(&ann.world, &after), &id).await.unwrap_err(), ServiceError::NotFound);
    assert_eq!(rule(ann.sign_in().await), "is not known here, or was removed");
}

#[tokio::test]
async fn a_passkey_is_the_second_factor_that_an_account_needs() {
    let mut ann = PasskeyWorld::new().await;
    let people = &ann.world.service.people;
    assert!(by_password(&ann.world).await.session().is_some(), "a passkey is a way in of its own");
    people.set_factor_needed(&ann.current(), true).await.unwrap();
    ann.world.clock.set(ann.world.service.now() + 8 * DAY);
    let SignInStep::Code(token) = by_password(&ann.world).await else { panic!("no second step") };
    assert_eq!(people.second_steps(&token).unwrap(), Some(SecondSteps { app: false, passkey: true }));
    assert_eq!(people.enter_code(&token, "000000", &browser()).await.unwrap_err(), ServiceError::NotFound);
    let challenge = people.begin_passkey_step(&token, &browser()).unwrap();
    assert!(challenge.options.contains("\"allowCredentials\":[{"), "{}", challenge.options);
    let answer = ann.passkey.get(&challenge);
    let done = people.enter_passkey(&token, &answer, &browser()).await.unwrap();
    let seen = current(&ann.world, &done.session);
    assert_eq!((seen.factor_due, seen.session.is_kept), (None, true));
    let members = people.list_members(&seen.caller()).await.unwrap();
    assert!(members.iter().any(|it| it.email == EMAIL && it.has_factor), "{members:?}");
    assert_eq!(people.enter_passkey(&token, &answer, &browser()).await.unwrap_err(), over(), "it is complete");
    // Beside an app either does.
    let (session, _) = people.test_factor(&seen).await;
    ann.session = session;
    let SignInStep::Code(token) = by_password(&ann.world).await else { panic!("no second step") };
    assert_eq!(people.second_steps(&token).unwrap(), Some(SecondSteps { app: true, passkey: true }));
    let answer = ann.passkey.get(&people.begin_passkey_step(&token, &browser()).unwrap());
    people.enter_passkey(&token, &answer, &browser()).await.unwrap();
    // The operator's rescue takes both off.
    people.remove_factor_as_operator(EMAIL).await.unwrap();
    let session = by_password(&ann.world).await.session().unwrap();
    let seen = current(&ann.world, &session);
    assert!(seen.person.passkeys.all().is_empty() && seen.factor_due.is_some());
    assert!(matches!(people.remove_factor_as_operator(EMAIL).await, Err(ServiceError::Invalid(_))));
}

fn over() -> ServiceError {
    let rule = "was asked for more than 5 minutes ago, or was used already: try again";
    parallax_core::validation::ValidationErrors::single("passkey", rule).into()
}

#[tokio::test]
async fn a_passkey_alone_is_removed_by_the_operator() {
    let ann = PasskeyWorld::new().await;
    let people = &ann.world.service.people;
    people.remove_factor_as_operator(EMAIL).await.unwrap();
    assert!(!people.is_signed_in(ann.session.session.id).unwrap());
}

#[tokio::test]
async fn changes_sign_ins_and_refusals_are_logged() {
    let mut ann = PasskeyWorld::new().await;
    ann.sign_in().await.unwrap();
    ann.passkey.is_verified = false;
    ann.sign_in().await.unwrap_err();
    let people = &ann.world.service.people;
    let id = ann.current().person.passkeys.all()[0].id.to_string();
    people.rename_passkey(&ann.current(), &id, "Old phone").await.unwrap();
    let session = people.remove_passkey(&ann.current(), &id).await.unwrap();
    let entries = loop {
        let filter = AuditFilter { subject: Some(AuditSubject::SignIn), ..AuditFilter::default() };
        let caller = current(&ann.world, &session).caller();
        let part = ann.world.service.audit.list(&caller, &filter, None).await.unwrap();
        // A failed sign-in is logged in the background.
        if part.entries.iter().any(|it| it.entry.items[0].action == AuditAction::SignInFailed) {
            break part.entries;
        }
        tokio::task::yield_now().await;
    };
    let changes = entries.iter().map(|it| &it.entry.items[0]).filter(|it| it.action == AuditAction::Changed);
    let mut changes: Vec<_> = changes.map(|it| (it.fields[0].name.clone(), it.fields[0].values.clone())).collect();
    changes.reverse();
    let change =
        |old: &str, new: &str| ("Passkeys (removed → added)".to_owned(), Some((old.to_owned(), new.to_owned())));
    let expected = [change("", "Phone"), change("Phone", "Old phone"), change("Old phone", "")];
    assert_eq!(changes, expected);
    let count = |action| entries.iter().filter(|it| it.entry.items[0].action == action).count();
    assert_eq!((count(AuditAction::SignedIn), count(AuditAction::SignInFailed)), (2, 1));
}
