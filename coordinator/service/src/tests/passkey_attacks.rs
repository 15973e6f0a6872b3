//! Attacks on passkeys: none of them signs in, and none of them locks anyone out.

use parallax_core::delivery::DeliveryMessage;
use parallax_core::person::AccountMember;
use parallax_core::role::Role;
use parallax_core::time::{MINUTE, SECOND};
use parallax_store::Batch;

use super::passkeys::{BROWSER, PasskeyWorld, add, browser, by_password, current, rule};
use crate::people::soft_authenticator::SoftPasskey;
use crate::people::{
    BrowserInfo, FirstSite, JoinDetails, NewPerson, PasskeyAnswer, PasskeyChallenge, PasswordSignIn, SetUpDetails,
    SignInStep,
};
use crate::test_world::World;
use crate::{ServiceError, ServiceResult};

const REFUSED: &str = "is not known here, or was removed";
const OVER: &str = "was asked for more than 5 minutes ago, or was used already: try again";

/// Changes a part of an answer, as a man in the middle would.
fn tampered(answer: &PasskeyAnswer, part: &str, change: impl Fn(&str) -> String) -> PasskeyAnswer {
    let mut credential: serde_json::Value = serde_json::from_str(&answer.credential).unwrap();
    let value = credential["response"][part].as_str().unwrap().to_owned();
    credential["response"][part] = change(&value).into();
    PasskeyAnswer { ceremony: answer.ceremony.clone(), credential: credential.to_string() }
}

#[tokio::test]
async fn what_the_device_signed_wrongly_is_refused() {
    let mut ann = PasskeyWorld::new().await;
    type Attack = (&'static str, fn(&mut SoftPasskey));
    let attacks: [Attack; 9] = [
        ("another origin", |it| it.origin = "https://status.example.evil.example".to_owned()),
        ("a subdomain, where a customer's page may be", |it| it.origin = "https://shop.status.example".to_owned()),
        ("plain http", |it| it.origin = "http://status.example".to_owned()),
        ("another port", |it| it.origin = "https://status.example:8443".to_owned()),
        ("another host", |it| it.host = "example".to_owned()),
        ("no verification of the owner", |it| it.is_verified = false),
        ("a frame of another origin", |it| it.is_framed = true),
        ("an unknown credential", |it| it.id[0] ^= 1),
        ("a handle of nobody", |it| it.handle[0] ^= 1),
    ];
    for (name, attack) in attacks {
        let (origin, host, id, handle) =
            (ann.passkey.origin.clone(), ann.passkey.host.clone(), ann.passkey.id.clone(), ann.passkey.handle.clone());
        attack(&mut ann.passkey);
        assert_eq!(rule(ann.sign_in().await), REFUSED, "{name}");
        // Nothing of it stays: the next right one works.
        (ann.passkey.origin, ann.passkey.host, ann.passkey.id, ann.passkey.handle) = (origin, host, id, handle);
        (ann.passkey.is_verified, ann.passkey.is_framed) = (true, false);
        ann.sign_in().await.unwrap();
    }
}

#[tokio::test]
async fn an_answer_that_was_changed_is_refused() {
    let mut ann = PasskeyWorld::new().await;
    let flip = |text: &str| {
        let end = if text.ends_with('A') { "B" } else { "A" };
        format!("{}{end}{}", &text[..20], &text[21..])
    };
    for part in ["authenticatorData", "clientDataJSON", "signature"] {
        let people = &ann.world.service.people;
        let answer = ann.passkey.get(&people.begin_passkey_sign_in(&BROWSER, &browser()).unwrap());
        let changed = tampered(&answer, part, flip);
        assert_ne!(changed.credential, answer.credential);
        assert_eq!(rule(people.sign_in_by_passkey((&BROWSER, &changed), true, &browser()).await), REFUSED, "{part}");
        let again = people.sign_in_by_passkey((&BROWSER, &answer), true, &browser()).await;
        assert_eq!(rule(again), OVER, "the ceremony is over: {part}");
    }
    let people = &ann.world.service.people;
    let long = format!("{{\"id\":\"{}\"}}", "a".repeat(20_000));
    for credential in ["", "null", "{}", "[]", "\0", long.as_str()] {
        let challenge = people.begin_passkey_sign_in(&BROWSER, &browser()).unwrap();
        let answer = PasskeyAnswer { ceremony: challenge.ceremony, credential: credential.to_owned() };
        assert_eq!(rule(people.sign_in_by_passkey((&BROWSER, &answer), true, &browser()).await), REFUSED);
    }
}

#[tokio::test]
async fn a_counter_that_went_back_is_refused() {
    let mut ann = PasskeyWorld::new().await;
    ann.passkey.counter = 40;
    ann.sign_in().await.unwrap();
    // The device counts each up before it signs: 41 was the last.
    for counter in [0, 39, 40, 41] {
        ann.passkey.counter = counter;
        assert_eq!(ann.sign_in().await.is_ok(), counter == 41, "{counter}");
    }
    // Two at once with the same counter, each with a challenge of its own: the key was copied.
    let people = &ann.world.service.people;
    let [first, second] = [(), ()].map(|()| people.begin_passkey_sign_in(&BROWSER, &browser()).unwrap());
    let counter = ann.passkey.counter;
    let first = ann.passkey.get(&first);
    ann.passkey.counter = counter;
    let second = ann.passkey.get(&second);
    let browser = browser();
    let (one, two) = tokio::join!(
        people.sign_in_by_passkey((&BROWSER, &first), true, &browser),
        people.sign_in_by_passkey((&BROWSER, &second), true, &browser),
    );
    assert!(one.is_ok() != two.is_ok(), "{one:?} {two:?}");
}

#[tokio::test]
async fn an_answer_counts_once_in_time_and_at_its_browser() {
    let mut ann = PasskeyWorld::new().await;
    let people = &ann.world.service.people;
    let begin = || people.begin_passkey_sign_in(&BROWSER, &browser()).unwrap();
    let send =
        async |id: [u8; 16], answer: &PasskeyAnswer| people.sign_in_by_passkey((&id, answer), true, &browser()).await;
    // Another browser, then its own, then again.
    let answer = ann.passkey.get(&begin());
    assert_eq!(rule(send([8; 16], &answer).await), OVER);
    send(BROWSER, &answer).await.unwrap();
    assert_eq!(rule(send(BROWSER, &answer).await), OVER);
    // Two at once.
    let answer = ann.passkey.get(&begin());
    let (one, two) = tokio::join!(send(BROWSER, &answer), send(BROWSER, &answer));
    assert!(one.is_ok() != two.is_ok(), "{one:?} {two:?}");
    // The challenge of another ceremony.
    let (first, second) = (begin(), begin());
    let mixed = PasskeyChallenge { ceremony: second.ceremony, options: first.options };
    assert_eq!(rule(send(BROWSER, &ann.passkey.get(&mixed)).await), REFUSED);
    // Late.
    let answer = ann.passkey.get(&begin());
    ann.world.clock.set(ann.world.service.now() + 5 * MINUTE);
    assert_eq!(rule(send(BROWSER, &answer).await), OVER);
    // One of another kind: a registration, a confirmation, a second step.
    let (current, answers) = (ann.current(), &mut ann.passkey);
    let confirmation = answers.get(&people.begin_passkey_confirmation(&current).unwrap());
    assert_eq!(rule(send(BROWSER, &confirmation).await), OVER);
    let registration = answers.create(&people.begin_passkey_registration(&current).unwrap());
    assert_eq!(rule(people.confirm_by_passkey(&current, &registration).await), OVER);
    let sign_in = answers.get(&begin());
    assert_eq!(rule(people.confirm_by_passkey(&current, &sign_in).await), OVER);
}

#[tokio::test]
async fn a_passkey_is_of_use_to_its_person_alone() {
    let mut ann = PasskeyWorld::new().await;
    let world = &ann.world;
    let people = &world.service.people;
    // A stranger adds one that claims Ann's credential, and one that names her.
    let accounts = world.service.accounts.list().await.unwrap();
    let foreign = accounts.into_iter().find(|account| account.id == world.foreign.account).unwrap();
    let stranger = world.signed_in_at(&foreign, parallax_core::role::Role::Owner).await;
    let mut copy = SoftPasskey::new("https://status.example");
    copy.id = ann.passkey.id.clone();
    let stranger = add(world, &stranger, &mut copy, "Copy").await.unwrap();
    let own_handle = copy.handle.clone();
    let begin = || people.begin_passkey_sign_in(&BROWSER, &browser()).unwrap();
    copy.handle = ann.passkey.handle.clone();
    let answer = copy.get(&begin());
    assert_eq!(rule(people.sign_in_by_passkey((&BROWSER, &answer), true, &browser()).await), REFUSED);
    copy.handle = own_handle;
    let answer = copy.get(&begin());
    let step = people.sign_in_by_passkey((&BROWSER, &answer), true, &browser()).await.unwrap();
    let session = step.session().unwrap();
    assert_eq!(session.session.account, foreign.id);
    // Ann's confirms nobody else, and completes no one else's sign-in.
    let other = current(world, &stranger);
    let begun = people.begin_passkey_confirmation(&other);
    let answer = ann.passkey.get(&begun.unwrap());
    assert_eq!(rule(people.confirm_by_passkey(&other, &answer).await), REFUSED);
    // One without a passkey can't begin.
    let nobody = world.signed_in(parallax_core::role::Role::Editor).await;
    let refused = people.begin_passkey_confirmation(&current(world, &nobody)).unwrap_err();
    assert_eq!(refused, ServiceError::NotFound);
}

#[tokio::test]
async fn refusals_delay_the_credential_and_the_network_and_nobody_else() {
    let mut ann = PasskeyWorld::new().await;
    ann.passkey.is_verified = false;
    for number in 0..10 {
        assert_eq!(rule(ann.sign_in().await), REFUSED, "{number}");
    }
    ann.passkey.is_verified = true;
    assert_eq!(ann.sign_in().await.unwrap_err(), ServiceError::TooManyTries { seconds: 30 });
    ann.world.clock.set(ann.world.service.now() + 30 * SECOND);
    ann.sign_in().await.unwrap();
    // A stranger without the credential can't delay it, only their own network.
    let mut stranger = SoftPasskey::new("https://status.example");
    stranger.handle = ann.passkey.handle.clone();
    let (people, far) = (&ann.world.service.people, BrowserInfo::new("198.51.100.7".parse().ok(), "", None));
    let mut last = None;
    for number in 0..31_u8 {
        let challenge = people.begin_passkey_sign_in(&BROWSER, &far).unwrap();
        stranger.id[0] = number;
        let answer = stranger.get(&challenge);
        last = Some(people.sign_in_by_passkey((&BROWSER, &answer), true, &far).await.unwrap_err());
    }
    assert_eq!(last, Some(ServiceError::TooManyTries { seconds: 30 }));
    ann.sign_in().await.unwrap();
    assert!(by_password(&ann.world).await.session().is_some(), "passwords are not delayed");
}

#[tokio::test]
async fn refused_passkeys_at_the_second_step_count_as_wrong_codes() {
    let mut ann = PasskeyWorld::new().await;
    let people = &ann.world.service.people;
    let (session, _) = people.test_factor(&ann.current()).await;
    let SignInStep::Code(token) = by_password(&ann.world).await else { panic!("no second step") };
    for number in 0..9 {
        ann.passkey.is_verified = false;
        let answer = ann.passkey.get(&people.begin_passkey_step(&token, &browser()).unwrap());
        assert_eq!(rule(people.enter_passkey(&token, &answer, &browser()).await), REFUSED, "{number}");
    }
    assert!(people.enter_code(&token, "000000", &browser()).await.is_err());
    ann.passkey.is_verified = true;
    let answer = ann.passkey.get(&people.begin_passkey_step(&token, &browser()).unwrap());
    let refused = people.enter_passkey(&token, &answer, &browser()).await.unwrap_err();
    assert_eq!(refused, ServiceError::TooManyTries { seconds: 30 });
    // At another pending sign-in the answer to this one's challenge counts for nothing.
    ann.world.clock.set(ann.world.service.now() + 30 * SECOND);
    let SignInStep::Code(other) = by_password(&ann.world).await else { panic!("no second step") };
    let answer = ann.passkey.get(&people.begin_passkey_step(&token, &browser()).unwrap());
    assert_eq!(rule(people.enter_passkey(&other, &answer, &browser()).await), OVER);
    people.enter_passkey(&token, &answer, &browser()).await.unwrap();
    assert!(people.is_signed_in(session.session.id).unwrap());
}

#[tokio::test]
async fn a_removed_passkey_confirms_nothing_that_it_was_asked_for_before() {
    let mut ann = PasskeyWorld::new().await;
    let people = &ann.world.service.people;
    let answer = ann.passkey.get(&people.begin_passkey_sign_in(&BROWSER, &browser()).unwrap());
    let id = ann.current().person.passkeys.all()[0].id.to_string();
    let session = people.remove_passkey(&ann.current(), &id).await.unwrap();
    assert_eq!(rule(people.sign_in_by_passkey((&BROWSER, &answer), true, &browser()).await), REFUSED);
    // A registration that was begun in the session before the change ended with it.
    let mut other = SoftPasskey::new("https://status.example");
    let late = other.create(&people.begin_passkey_registration(&current(&ann.world, &session)).unwrap());
    let moved = add(&ann.world, &session, &mut SoftPasskey::new("https://status.example"), "Key").await.unwrap();
    assert_eq!(rule(people.add_passkey(&current(&ann.world, &moved), &late, "Late").await), OVER);
}

const EMAIL: &str = "ann@example.com";
const NEW_PASSWORD: &str = "another horse";

/// The token of the newest mail of that event.
fn mailed(world: &World, event: &str, path: &str) -> String {
    let DeliveryMessage::Mail(mail) = world.sent_of_no_page(event).pop().unwrap().message else { panic!("a mail") };
    mail.text.split_once(path).unwrap().1.split_whitespace().next().unwrap().to_owned()
}

/// Replaces the password by the mailbox.
async fn reset(world: &World) {
    world.clock.set(world.service.now() + 1);
    world.service.people.request_password_reset(EMAIL, None).await.unwrap();
    let link = mailed(world, "person.password-reset", "/reset/");
    world.service.people.reset_password(&link, NEW_PASSWORD, &browser()).await.unwrap();
}

async fn by_new_password(world: &World) -> SignInStep {
    let ask = PasswordSignIn { email: EMAIL.to_owned(), password: NEW_PASSWORD.to_owned(), is_kept: true };
    world.service.people.sign_in(&ask, &browser()).await.unwrap()
}

#[tokio::test]
async fn a_passkey_of_someone_who_had_the_address_before_ends_with_a_mailed_password() {
    // A squatter added it. Ann has the mailbox, and joins another account.
    let mut squatter = PasskeyWorld::new().await;
    let world = &squatter.world;
    let people = &world.service.people;
    let accounts = world.service.accounts.list().await.unwrap();
    let shop = accounts.into_iter().find(|account| account.id == world.foreign.account).unwrap();
    let owner = current(world, &world.signed_in_at(&shop, Role::Owner).await);
    people.invite(&owner, (EMAIL, Role::Editor), None).await.unwrap();
    let invitation = mailed(world, "person.invitation", "/invite/");
    reset(world).await;
    let details = JoinDetails { name: String::new(), password: NEW_PASSWORD.to_owned() };
    let joined = people.join(&invitation, &details, None, &browser()).await.unwrap().session().unwrap();
    assert_eq!(joined.session.account, shop.id);
    assert!(!people.is_signed_in(squatter.session.session.id).unwrap());
    assert_eq!(rule(squatter.sign_in().await), REFUSED);
}

#[tokio::test]
async fn a_passkey_that_an_account_needs_as_second_factor_outlives_a_mailed_password() {
    let mut ann = PasskeyWorld::new().await;
    let people = &ann.world.service.people;
    people.set_factor_needed(&ann.current(), true).await.unwrap();
    reset(&ann.world).await;
    assert!(matches!(by_new_password(&ann.world).await, SignInStep::Code(_)), "a mailbox is not enough");
    // Beside an app no passkey is needed.
    ann.session = ann.sign_in().await.unwrap();
    let (session, _) = ann.world.service.people.test_factor(&ann.current()).await;
    assert_eq!(current(&ann.world, &session).person.passkeys.all().len(), 1);
    reset(&ann.world).await;
    assert!(matches!(by_new_password(&ann.world).await, SignInStep::Code(_)));
    assert_eq!(rule(ann.sign_in().await), REFUSED);
}

async fn set_up(world: &World, account: parallax_core::id::AccountId) -> ServiceResult<SignInStep> {
    let people = &world.service.people;
    let link = people.create_set_up_link(account, false).await.unwrap();
    let site = FirstSite { url: "https://shop.example".to_owned(), ..FirstSite::default() };
    let details = SetUpDetails { password: NEW_PASSWORD.to_owned(), site, ..SetUpDetails::default() };
    people.set_up(link.split_once("/setup/").unwrap().1, &details, &browser()).await
}

#[tokio::test]
async fn a_passkey_from_before_makes_nobody_an_owner() {
    let mut squatter = PasskeyWorld::new().await;
    let people = &squatter.world.service.people;
    let shop = squatter.world.service.accounts.create(EMAIL, None).await.unwrap().id;
    // The squatter's own account needs a second factor, so the passkey would stay.
    people.set_factor_needed(&squatter.current(), true).await.unwrap();
    let refused = set_up(&squatter.world, shop).await.unwrap_err();
    assert!(refused.to_string().contains("`parallax account factor --email ADDRESS off`"), "{refused}");
    let own = squatter.sign_in().await.unwrap();
    let people = &squatter.world.service.people;
    let chosen = people.choose_account(&current(&squatter.world, &own), shop).await.unwrap_err();
    assert_eq!(chosen, ServiceError::NotFound, "nothing was written");
    people.set_factor_needed(&current(&squatter.world, &own), false).await.unwrap();
    let ann = set_up(&squatter.world, shop).await.unwrap().session().unwrap();
    assert_eq!(ann.session.account, shop);
    assert_eq!(rule(squatter.sign_in().await), REFUSED);
    // An owner's own one stays where their account needs it.
    let world = &squatter.world;
    let mut own = SoftPasskey::new("https://status.example");
    let ann = add(world, &ann, &mut own, "Phone").await.unwrap();
    world.service.people.set_factor_needed(&current(world, &ann), true).await.unwrap();
    assert!(matches!(set_up(world, shop).await.unwrap(), SignInStep::Code(_)));
}

#[tokio::test]
async fn an_accepted_invitation_gives_no_account_to_a_passkey_that_nobody_vouched_for() {
    let world = crate::test_world::world().await;
    let people = &world.service.people;
    let owner = current(&world, &world.signed_in(Role::Owner).await);
    // Someone who had the mailbox before added the passkey, and is signed in still.
    let new = NewPerson { email: EMAIL.to_owned(), name: String::new(), role: Role::Owner, password: None };
    let id = people.add_as_operator(world.foreign.account, &new).await.unwrap().id;
    let mut passkey = SoftPasskey::new("https://status.example");
    people.test_passkey(id, &mut passkey).await;
    let before = people.test_session(world.foreign.account, id).await;
    people.invite(&owner, (EMAIL, Role::Viewer), None).await.unwrap();
    let invitation = mailed(&world, "person.invitation", "/invite/");
    let member = AccountMember::new((world.owner.id, id), Role::Viewer, world.service.now());
    let mut batch = Batch::new();
    batch.write(AccountMember { is_company_only: true, ..member });
    world.service.context.store().commit(batch).await.unwrap();
    // Ann proves her mailbox.
    let ann = current(&world, &people.test_session(world.foreign.account, id).await);
    let joined = people.join(&invitation, &JoinDetails::default(), Some(&ann), &browser()).await.unwrap();
    assert_eq!(joined.session().unwrap().session.account, world.owner.id);
    assert!(!people.is_signed_in(before.session.id).unwrap());
    let challenge = people.begin_passkey_sign_in(&BROWSER, &browser()).unwrap();
    let answer = passkey.get(&challenge);
    assert_eq!(rule(people.sign_in_by_passkey((&BROWSER, &answer), true, &browser()).await), REFUSED);
}
