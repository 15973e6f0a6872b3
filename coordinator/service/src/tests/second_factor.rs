//! Second factors: asked for on every way in, each code once, recovery codes, delays, changes, and accounts that need one.

mod factor_changes;

use parallax_core::delivery::DeliveryMessage;
use parallax_core::role::Role;
use parallax_core::time::{DAY, MINUTE, SECOND};

use crate::people::{
    BrowserInfo, CurrentSession, DashboardLinkRequest, FirstSite, JoinDetails, NewPerson, NewSession, PasswordSignIn,
    SessionToken, SetUpDetails, SignInStep,
};
use crate::test_world::{World, world};
use crate::{ServiceError, ServiceResult};

const EMAIL: &str = "ann@example.com";
const PASSWORD: &str = "correct horse";

/// A world whose owner's account has Ann, with a second factor.
struct FactorWorld {
    world: World,
    /// Her session, in which she turned it on.
    session: NewSession,
    recovery_codes: Vec<String>,
}

impl FactorWorld {
    async fn new() -> Self {
        let world = world().await;
        let password = Some(PASSWORD.to_owned());
        let ann = NewPerson { email: EMAIL.to_owned(), name: String::new(), role: Role::Owner, password };
        world.service.people.add_as_operator(world.owner.id, &ann).await.unwrap();
        let first = sign_in(&world, PASSWORD).await.unwrap().session().unwrap();
        let (session, recovery_codes) = world.service.people.test_factor(&current(&world, &first)).await;
        let ann = Self { world, session, recovery_codes };
        ann.wait(30);
        ann
    }

    fn wait(&self, seconds: i64) {
        self.world.clock.set(self.world.service.now() + seconds * SECOND);
    }

    fn current(&self) -> CurrentSession {
        current(&self.world, &self.session)
    }

    /// The code that her app shows now.
    fn code(&self) -> String {
        self.world.service.people.test_code(self.session.session.person)
    }

    /// Enters her password, and returns the sign-in that waits for the code.
    async fn pending(&self) -> SessionToken {
        pending(sign_in(&self.world, PASSWORD).await.unwrap())
    }

    /// Enters a code; returns the recovery codes left, if it was one.
    async fn enter(&self, token: &SessionToken, code: &str) -> ServiceResult<Option<usize>> {
        let browser = BrowserInfo::new("203.0.113.7".parse().ok(), "", None);
        let done = self.world.service.people.enter_code(token, code, &browser).await?;
        let current = current(&self.world, &done.session);
        assert_eq!(current.person.email, EMAIL);
        assert!(done.session.token.reveal() != token.reveal(), "the session's secret is new");
        Ok(done.recovery_codes_left)
    }
}

fn current(world: &World, session: &NewSession) -> CurrentSession {
    world.service.people.authenticate(&session.token).unwrap().unwrap()
}

async fn sign_in(world: &World, password: &str) -> ServiceResult<SignInStep> {
    let ask = PasswordSignIn { email: EMAIL.to_owned(), password: password.to_owned(), is_kept: true };
    world.service.people.sign_in(&ask, &BrowserInfo::new("203.0.113.7".parse().ok(), "", None)).await
}

fn pending(step: SignInStep) -> SessionToken {
    let SignInStep::Code(token) = step else { panic!("signed in without a code") };
    token
}

/// The token of the newest mail of that event.
fn mailed(world: &World, event: &str, path: &str) -> String {
    let DeliveryMessage::Mail(mail) = world.sent_of_no_page(event).pop().unwrap().message else { panic!("a mail") };
    mail.text.split_once(path).unwrap().1.split_whitespace().next().unwrap().to_owned()
}

fn is_wrong(result: &ServiceResult<Option<usize>>) -> bool {
    let Err(ServiceError::Invalid(faults)) = result else { return false };
    faults.iter().all(|fault| fault.field == "code" && fault.rule == "is wrong or was used already")
}

#[tokio::test]
async fn every_way_in_asks_for_the_code() {
    let ann = FactorWorld::new().await;
    let (world, people) = (&ann.world, &ann.world.service.people);
    // By password.
    let token = ann.pending().await;
    assert!(
        people.second_steps(&token).unwrap().is_some() && people.authenticate(&token).unwrap().is_none(),
        "no session before the code"
    );
    assert!(is_wrong(&ann.enter(&token, "000000").await) && is_wrong(&ann.enter(&token, "").await));
    assert_eq!(ann.enter(&token, &ann.code()).await, Ok(None));
    assert_eq!(ann.enter(&token, &ann.code()).await, Err(ServiceError::NotFound), "it is complete");
    // By mailed link, which is used up before the code.
    ann.wait(30);
    let browser = [7; 16];
    let request = DashboardLinkRequest {
        email: EMAIL.to_owned(),
        browser,
        next: "/app".to_owned(),
        is_kept: true,
        network: None,
    };
    people.request_link(&request).await.unwrap();
    let link = mailed(world, "person.sign-in", "/sign-in/link/");
    let info = BrowserInfo::default();
    let (step, next) = people.sign_in_by_link(&link, Some(&browser), &info).await.unwrap().unwrap();
    assert_eq!(next, "/app");
    assert!(people.sign_in_by_link(&link, Some(&browser), &info).await.unwrap().is_err(), "it works once");
    let done = people.enter_code(&pending(step), &ann.code(), &info).await.unwrap();
    assert!(done.session.session.is_kept, "as ticked when the link was requested");
    // By an invitation with her password: she becomes a member after the code.
    ann.wait(30);
    let accounts = world.service.accounts.list().await.unwrap();
    let foreign = accounts.into_iter().find(|account| account.id == world.foreign.account).unwrap();
    let stranger = current(world, &world.signed_in_at(&foreign, Role::Owner).await);
    people.invite(&stranger, (EMAIL, Role::Viewer), None).await.unwrap();
    let invitation = mailed(world, "person.invitation", "/invite/");
    let details = JoinDetails { password: PASSWORD.to_owned(), ..JoinDetails::default() };
    let token = pending(people.join(&invitation, &details, None, &info).await.unwrap());
    let member_count = async || people.members(foreign.id).await.unwrap().len();
    assert_eq!((member_count().await, people.invitation(&invitation, None).unwrap().is_some()), (1, true));
    let done = people.enter_code(&token, &ann.code(), &info).await.unwrap();
    assert_eq!((done.session.session.account, member_count().await), (foreign.id, 2));
    assert_eq!(people.invitation(&invitation, None).unwrap(), None, "it is used");
    // By a set-up link: the operator prints it for the account that has her address.
    ann.wait(30);
    let account = world.service.accounts.create(EMAIL, None).await.unwrap();
    let link = people.create_set_up_link(account.id, false).await.unwrap();
    let site = FirstSite { url: "https://example.com".to_owned(), ..FirstSite::default() };
    let details = SetUpDetails { password: "another horse".to_owned(), site, ..SetUpDetails::default() };
    let token = pending(people.set_up(link.split_once("/setup/").unwrap().1, &details, &info).await.unwrap());
    let done = people.enter_code(&token, &ann.code(), &info).await.unwrap();
    assert_eq!(done.session.session.account, account.id);
    // A password replaced by mail signs nobody in, and leaves the factor.
    ann.wait(30);
    people.request_password_reset(EMAIL, None).await.unwrap();
    people
        .reset_password(&mailed(world, "person.password-reset", "/reset/"), PASSWORD, &BrowserInfo::default())
        .await
        .unwrap();
    assert_eq!(ann.enter(&ann.pending().await, &ann.code()).await, Ok(None));
}

#[tokio::test]
async fn a_code_counts_once_even_for_two_at_once() {
    let ann = FactorWorld::new().await;
    let (first, second) = (ann.pending().await, ann.pending().await);
    let code = ann.code();
    let (one, two) = tokio::join!(ann.enter(&first, &code), ann.enter(&second, &code));
    let is_used = [&one, &two].map(is_wrong);
    assert!(is_used.iter().filter(|is_used| **is_used).count() == 1 && (one.is_ok() || two.is_ok()), "{one:?} {two:?}");
    // Neither counts again, nor does one from before.
    let token = ann.pending().await;
    assert!(is_wrong(&ann.enter(&token, &code).await));
    ann.wait(30);
    assert!(is_wrong(&ann.enter(&token, &code).await));
    assert_eq!(ann.enter(&token, &ann.code()).await, Ok(None));
}

#[tokio::test]
async fn a_recovery_code_works_once_and_new_ones_replace_them() {
    let ann = FactorWorld::new().await;
    let people = &ann.world.service.people;
    assert_eq!(ann.recovery_codes.len(), 10);
    let typed = ann.recovery_codes[3].to_lowercase().replace('-', " ");
    assert_eq!(ann.enter(&ann.pending().await, &typed).await, Ok(Some(9)));
    let token = ann.pending().await;
    assert!(is_wrong(&ann.enter(&token, &ann.recovery_codes[3]).await));
    let (first, second) = (ann.pending().await, ann.pending().await);
    let code = &ann.recovery_codes[4];
    let (one, two) = tokio::join!(ann.enter(&first, code), ann.enter(&second, code));
    assert!(is_wrong(&one) != is_wrong(&two) && (one == Ok(Some(8)) || two == Ok(Some(8))), "{one:?} {two:?}");
    let renewed = people.renew_recovery_codes(&ann.current()).await.unwrap();
    assert!(is_wrong(&ann.enter(&token, &ann.recovery_codes[5]).await), "the older ones are gone");
    assert_eq!(ann.enter(&token, &renewed[0]).await, Ok(Some(9)));
    // None of them is stored in clear text.
    let id = ann.session.session.person;
    let stored = ann.world.service.context.store().reader().person(id).unwrap().unwrap().value;
    let stored = postcard::to_stdvec(&stored).unwrap();
    for code in renewed.iter().flat_map(|code| [code.clone(), code.replace('-', "")]) {
        assert!(!stored.windows(code.len()).any(|part| part == code.as_bytes()));
    }
}

#[tokio::test]
async fn wrong_codes_delay_and_only_a_complete_sign_in_forgets_them() {
    let ann = FactorWorld::new().await;
    for number in 0..10 {
        // A right password in between resets nothing.
        let token = ann.pending().await;
        assert!(is_wrong(&ann.enter(&token, "000000").await), "{number}");
    }
    let token = ann.pending().await;
    let code = ann.code();
    assert_eq!(ann.enter(&token, &code).await, Err(ServiceError::TooManyTries { seconds: 30 }));
    ann.wait(30);
    assert!(is_wrong(&ann.enter(&token, "000000").await));
    assert_eq!(ann.enter(&token, &ann.code()).await, Err(ServiceError::TooManyTries { seconds: 60 }));
    ann.wait(60);
    assert_eq!(ann.enter(&token, &ann.code()).await, Ok(None));
    ann.wait(30);
    let token = ann.pending().await;
    assert!(is_wrong(&ann.enter(&token, "000000").await));
    assert_eq!(ann.enter(&token, &ann.code()).await, Ok(None), "the failures are forgotten");
}

#[tokio::test]
async fn a_right_password_without_its_code_counts_as_a_failure() {
    let ann = FactorWorld::new().await;
    for _ in 0..9 {
        assert_eq!(sign_in(&ann.world, "wrong").await.unwrap_err(), ServiceError::WrongCredentials);
    }
    let token = ann.pending().await;
    let elsewhere = BrowserInfo::new("198.51.100.7".parse().ok(), "", None);
    let ask = PasswordSignIn { email: EMAIL.to_owned(), password: PASSWORD.to_owned(), is_kept: true };
    let refused = ann.world.service.people.sign_in(&ask, &elsewhere).await.unwrap_err();
    assert_eq!(refused, ServiceError::TooManyTries { seconds: 30 });
    assert_eq!(ann.enter(&token, &ann.code()).await, Ok(None));
    assert!(ann.world.service.people.sign_in(&ask, &elsewhere).await.is_ok(), "the failures are forgotten");
    // Tries of a network that ended with a right code don't delay it.
    for _ in 0..31 {
        ann.wait(30);
        assert_eq!(ann.enter(&ann.pending().await, &ann.code()).await, Ok(None));
    }
}

#[tokio::test]
async fn a_sign_in_waits_ten_minutes_for_its_code_and_ends_with_the_password() {
    let ann = FactorWorld::new().await;
    let people = &ann.world.service.people;
    let token = ann.pending().await;
    ann.wait(600);
    assert_eq!(ann.enter(&token, &ann.code()).await, Err(ServiceError::NotFound));
    let token = ann.pending().await;
    people.request_password_reset(EMAIL, None).await.unwrap();
    let reset = mailed(&ann.world, "person.password-reset", "/reset/");
    people.reset_password(&reset, "another horse", &BrowserInfo::default()).await.unwrap();
    assert_eq!(ann.enter(&token, &ann.code()).await, Err(ServiceError::NotFound));
    assert_eq!(ann.enter(&SessionToken::parse(&"a".repeat(43)).unwrap(), "000000").await, Err(ServiceError::NotFound));
}

#[tokio::test]
async fn the_operator_removes_a_lost_factor() {
    let ann = FactorWorld::new().await;
    let people = &ann.world.service.people;
    let token = ann.pending().await;
    let person = people.remove_factor_as_operator("Ann@example.com").await.unwrap();
    assert!(!person.second_factor.is_active() && !people.is_signed_in(ann.session.session.id).unwrap());
    assert_eq!(people.second_steps(&token).unwrap(), None, "no page without a field");
    assert_eq!(ann.enter(&token, "000000").await, Err(ServiceError::NotFound), "she signs in again");
    assert!(sign_in(&ann.world, PASSWORD).await.unwrap().session().is_some());
    let again = people.remove_factor_as_operator(EMAIL).await.unwrap_err();
    assert!(again.to_string().contains("a person without a second factor"), "{again}");
    assert_eq!(people.remove_factor_as_operator("bob@example.com").await.unwrap_err(), ServiceError::NotFound);
}

#[tokio::test]
async fn members_have_seven_days_for_a_factor_that_their_account_needs() {
    let ann = FactorWorld::new().await;
    let (world, people) = (&ann.world, &ann.world.service.people);
    let owner = ann.current();
    let bob = world.signed_in(Role::Viewer).await;
    let at_bob = || current(world, &bob);
    assert_eq!(at_bob().factor_due, None);
    let refused = people.set_factor_needed(&at_bob(), true).await.unwrap_err();
    assert_eq!(refused, ServiceError::RoleForbids { role: Role::Viewer });
    people.set_factor_needed(&owner, true).await.unwrap();
    let begin = world.service.now();
    assert!(people.is_factor_needed(&owner).unwrap());
    assert_eq!((at_bob().factor_due, ann.current().factor_due), (Some(begin + 7 * DAY), None));
    // Setting it again gives no more time; who joins later has as long.
    world.clock.set(begin + DAY);
    people.confirm(&ann.current(), PASSWORD).await.unwrap();
    people.set_factor_needed(&ann.current(), true).await.unwrap();
    assert_eq!(at_bob().factor_due, Some(begin + 7 * DAY));
    let carl = world.signed_in(Role::Editor).await;
    assert_eq!(current(world, &carl).factor_due, Some(begin + 8 * DAY));
    world.clock.set(begin + 7 * DAY - 1);
    assert!(!at_bob().is_factor_overdue(world.service.now()));
    world.clock.set(begin + 7 * DAY);
    assert!(at_bob().is_factor_overdue(world.service.now()));
    assert!(!current(world, &carl).is_factor_overdue(world.service.now()));
    // With a factor nothing is due; a fresh sign-in confirms Bob.
    let fresh = people.test_session(world.owner.id, bob.session.person).await;
    let (with_factor, _) = people.test_factor(&current(world, &fresh)).await;
    assert_eq!(current(world, &with_factor).factor_due, None);
    let late = people.set_factor_needed(&ann.current(), false).await.unwrap_err();
    assert_eq!(late, ServiceError::ConfirmationRequired);
    people.confirm(&ann.current(), PASSWORD).await.unwrap();
    people.set_factor_needed(&ann.current(), false).await.unwrap();
    assert_eq!(current(world, &carl).factor_due, None);
    world.clock.set(world.service.now() + MINUTE);
    assert!(!people.is_factor_needed(&ann.current()).unwrap());
}
