//! Limits of sessions by company sign-in, accounts that require it, and its settings.

use parallax_core::company_sign_in::MAX_COMPANY_DOMAINS;
use parallax_core::delivery::DeliveryMessage;
use parallax_core::id::PersonId;
use parallax_core::person::{AccountMember, MAX_MEMBERS};
use parallax_core::role::Role;
use parallax_core::time::{HOUR, MINUTE};
use parallax_core::validation::ValidationErrors;
use parallax_store::Batch;

use crate::ServiceError;
use crate::people::soft_authenticator::SoftPasskey;
use crate::people::{
    BrowserInfo, CompanyOptions, CompanyRefusal, JoinDetails, NewPerson, PasskeyAnswer, PasswordSignIn, ProviderEdit,
    SignInStep,
};
use crate::test_world::CompanyWorld;

const EMAIL: &str = "ann@shop.example";
const ORIGIN: &str = "https://status.example";
const PASSWORD: &str = "correct horse";

/// Adds Ann, who has a password and operates the installation, to the owner's account and to another one.
async fn add_ann(company: &CompanyWorld, role: Role) -> PersonId {
    let world = &company.world;
    let password = Some(PASSWORD.to_owned());
    let ann = NewPerson { email: EMAIL.to_owned(), name: String::new(), role, password };
    let id = world.service.people.add_as_operator(world.owner.id, &ann).await.unwrap().id;
    world.service.people.set_operator(EMAIL, true).await.unwrap();
    let mut batch = Batch::new();
    let joined_at = world.service.now() + 1;
    batch.write(AccountMember::new((world.foreign.account, id), Role::Owner, joined_at));
    world.service.context.store().commit(batch).await.unwrap();
    id
}

async fn by_password(company: &CompanyWorld) -> SignInStep {
    let ask = PasswordSignIn { email: EMAIL.to_owned(), password: PASSWORD.to_owned(), is_kept: false };
    company.world.service.people.sign_in(&ask, &BrowserInfo::default()).await.unwrap()
}

#[tokio::test]
async fn a_company_opens_no_other_account_of_a_person() {
    let company = CompanyWorld::new().await;
    let (world, people) = (&company.world, &company.world.service.people);
    add_ann(&company, Role::Editor).await;
    let own = by_password(&company).await.session().unwrap();
    let there = people.authenticate(&own.token).unwrap().unwrap();
    let there = people.choose_account(&there, world.foreign.account).await.unwrap().session().unwrap();
    let there = people.authenticate(&there.token).unwrap().unwrap();
    let ann = company.signed_in().await;
    assert_eq!((ann.session.account, ann.role), (world.owner.id, Role::Editor));
    assert!(there.is_operator() && !ann.is_operator(), "a provider gives nobody the rights of an operator");
    let crate::Actor::Person { is_operator, .. } = ann.caller().actor else { panic!("a person") };
    assert!(!is_operator);
    // It neither sees nor enters other accounts.
    let accounts: Vec<_> = people.accounts(&ann).await.unwrap().into_iter().map(|it| it.id).collect();
    assert_eq!((accounts, people.account_count(&ann).unwrap()), (vec![world.owner.id], 1));
    let is_refused = |error: ServiceError| matches!(error, ServiceError::Invalid(_));
    assert!(is_refused(people.choose_account(&ann, world.foreign.account).await.unwrap_err()));
    // It changes nothing that opens other accounts, and ends no session there.
    let browser = BrowserInfo::default();
    let passwords = (PASSWORD, "another horse");
    assert!(is_refused(people.change_password(&ann, passwords, &browser).await.unwrap_err()));
    assert!(is_refused(people.begin_factor(&ann).await.unwrap_err()));
    assert!(is_refused(people.begin_passkey_registration(&ann).unwrap_err()));
    assert!(is_refused(people.rename_passkey(&ann, "none", "Mine").await.unwrap_err()));
    assert!(is_refused(people.remove_passkey(&ann, "none").await.unwrap_err()));
    assert!(is_refused(people.turn_factor_off(&ann).await.unwrap_err()));
    assert!(is_refused(people.renew_recovery_codes(&ann).await.unwrap_err()));
    // It learns nothing of the person's passkeys, and guesses no password.
    assert!(is_refused(people.confirm(&ann, PASSWORD).await.unwrap_err()));
    assert!(is_refused(people.begin_passkey_confirmation(&ann).unwrap_err()));
    let answer = PasskeyAnswer { ceremony: "any".to_owned(), credential: "{}".to_owned() };
    let refused = people.confirm_by_passkey(&ann, &answer).await.unwrap_err();
    assert!(refused.to_string().contains("session"), "{refused}");
    let seen: Vec<_> = people.sessions(&ann).await.unwrap().into_iter().map(|it| it.account).collect();
    assert!(seen.iter().all(|account| *account == world.owner.id), "{seen:?}");
    let other = there.session.id.short();
    assert_eq!(people.end_session(&ann, &other).await.unwrap_err(), ServiceError::NotFound);
    people.end_other_sessions(&ann).await.unwrap();
    assert!(people.is_signed_in(there.session.id).unwrap(), "a session of another account stays");
    // An invitation elsewhere asks for their own proof.
    let owner = world.signed_in_at(&third_account(&company).await, Role::Owner).await;
    let owner = people.authenticate(&owner.token).unwrap().unwrap();
    people.invite(&owner, (EMAIL, Role::Editor), None).await.unwrap();
    let invitation = invitation(&company);
    let details = JoinDetails::default();
    let joined = people.join(&invitation, &details, Some(&ann), &browser).await;
    assert_eq!(joined.unwrap_err(), ServiceError::WrongCredentials);
    assert!(people.join(&invitation, &details, Some(&there), &browser).await.is_ok());
}

async fn third_account(company: &CompanyWorld) -> parallax_core::account::Account {
    company.world.service.accounts.create("third@example.com", None).await.unwrap()
}

/// The token of the last invitation that was mailed.
fn invitation(company: &CompanyWorld) -> String {
    let newest = company.world.sent_of_no_page("person.invitation").pop().unwrap();
    let DeliveryMessage::Mail(mail) = newest.message else { panic!("links are mailed") };
    mail.text.split_once("/invite/").unwrap().1.split_whitespace().next().unwrap().to_owned()
}

#[tokio::test]
async fn members_of_an_account_that_requires_it_have_no_other_way_in() {
    let company = CompanyWorld::new().await;
    let (world, people) = (&company.world, &company.world.service.people);
    let id = add_ann(&company, Role::Editor).await;
    let before = people.test_session(world.owner.id, id).await;
    company.set_options(true, false).await;
    assert!(people.authenticate(&before.token).unwrap().is_none(), "an open session ends at once");
    assert!(!people.is_signed_in(before.session.id).unwrap());
    // The password opens the other account, and leads to the provider for this one.
    let own = by_password(&company).await.session().unwrap();
    let own = people.authenticate(&own.token).unwrap().unwrap();
    assert_eq!(own.session.account, world.foreign.account);
    let step = people.choose_account(&own, world.owner.id).await.unwrap();
    assert!(matches!(step, SignInStep::Company(account) if account == world.owner.id));
    assert_eq!(company.signed_in().await.role, Role::Editor);
    let refused = people.invite(&company.owner, ("bob@other.example", Role::Viewer), None).await.unwrap_err();
    assert!(refused.to_string().contains("must be of an email domain of this account"), "{refused}");
    // Owners keep their own ways in.
    assert!(people.is_signed_in(company.owner.session.id).unwrap());
    company.world.clock.set(world.service.now() + MINUTE);
    let options = CompanyOptions { is_required: false, covers_second_factor: false };
    people.set_company_options(&company.owner, options).await.unwrap();
    assert!(people.choose_account(&own, world.owner.id).await.unwrap().session().is_some());
}

#[tokio::test]
async fn a_member_of_one_account_alone_is_led_to_its_provider() {
    let company = CompanyWorld::new().await;
    let people = &company.world.service.people;
    let password = Some(PASSWORD.to_owned());
    let ann = NewPerson { email: EMAIL.to_owned(), name: String::new(), role: Role::Viewer, password };
    let ann = people.add_as_operator(company.world.owner.id, &ann).await.unwrap().id;
    let mut passkey = SoftPasskey::new(ORIGIN);
    people.test_passkey(ann, &mut passkey).await;
    company.set_options(true, false).await;
    let by_passkey = async |passkey: &mut SoftPasskey| {
        let challenge = people.begin_passkey_sign_in(&[1; 16], &BrowserInfo::default()).unwrap();
        let answer = passkey.get(&challenge);
        people.sign_in_by_passkey((&[1; 16], &answer), true, &BrowserInfo::default()).await.unwrap()
    };
    for step in [by_password(&company).await, by_passkey(&mut passkey).await] {
        assert!(matches!(step, SignInStep::Company(account) if account == company.world.owner.id));
    }
}

#[tokio::test]
async fn it_is_required_only_after_it_worked() {
    let company = CompanyWorld::new().await;
    let people = &company.world.service.people;
    let required = CompanyOptions { is_required: true, covers_second_factor: false };
    let refused = people.set_company_options(&company.owner, required).await.unwrap_err();
    assert!(refused.to_string().contains("a test that passed"), "{refused}");
    company.signed_in().await;
    people.set_company_options(&company.owner, required).await.unwrap();
    let refused = people.remove_company_domain(&company.owner, "shop.example").await.unwrap_err();
    assert!(refused.to_string().contains("is the last one"), "{refused}");
    // Another provider begins without a test.
    let edit = ProviderEdit {
        issuer: "https://id.other.example".to_owned(),
        client_id: "other".to_owned(),
        client_secret: "other".to_owned(),
    };
    people.set_company_provider(&company.owner, &edit).await.unwrap();
    let settings = people.company_settings(&company.owner).unwrap();
    assert!(!settings.is_required && !settings.works);
    people.remove_company_domain(&company.owner, "shop.example").await.unwrap();
    let refused = people.set_company_options(&company.owner, required).await.unwrap_err();
    assert!(refused.to_string().contains("an email domain that is proved"), "{refused}");
}

#[tokio::test]
async fn sessions_end_with_the_company_sign_in_that_they_began_by() {
    let company = CompanyWorld::new().await;
    let people = &company.world.service.people;
    let ann = company.signed_in().await;
    people.remove_company(&company.owner).await.unwrap();
    assert!(!people.is_signed_in(ann.session.id).unwrap());
    assert_eq!(company.begin().await.unwrap_err(), CompanyRefusal::NotSetUp);
    assert_eq!(people.company_of_email(EMAIL).unwrap(), None);
    people.remove_company(&company.owner).await.unwrap();
}

#[tokio::test]
async fn a_full_account_says_what_to_do() {
    let company = CompanyWorld::new().await;
    let world = &company.world;
    let mut batch = Batch::new();
    for number in 1..MAX_MEMBERS as u128 {
        let person = PersonId::from_u128(number);
        batch.write(AccountMember::new((world.owner.id, person), Role::Viewer, world.service.now()));
    }
    world.service.context.store().commit(batch).await.unwrap();
    let refused = company.sign_in().await.unwrap_err();
    assert_eq!(refused, CompanyRefusal::Full);
    assert!(refused.text().contains("Ask an owner"));
    assert_eq!(world.service.context.store().reader().person_by_email(EMAIL).unwrap(), None, "nothing is left behind");
}

#[tokio::test]
async fn settings_name_the_field_and_the_rule() {
    let company = CompanyWorld::new().await;
    let people = &company.world.service.people;
    for (issuer, client_id, secret, field) in [
        ("", "id", "", "issuer"),
        ("id.shop.example", "id", "x", "issuer"),
        ("ftp://id.shop.example", "id", "x", "issuer"),
        ("https://user@id.shop.example", "id", "x", "issuer"),
        ("https://id.shop.example?a=b", "id", "x", "issuer"),
        ("https://id.shop.example/.well-known/openid-configuration", "id", "x", "issuer"),
        ("https://id.shop.example", "", "x", "clientId"),
        ("https://id.shop.example", "a b", "x", "clientId"),
        ("https://id.shop.example", "id", &"x".repeat(1025), "clientSecret"),
        // The secret of one provider is not sent to another.
        ("https://id.shop.example", "id", "", "clientSecret"),
    ] {
        let edit = ProviderEdit {
            issuer: issuer.to_owned(),
            client_id: client_id.to_owned(),
            client_secret: secret.to_owned(),
        };
        let refused = people.set_company_provider(&company.owner, &edit).await.unwrap_err();
        let ServiceError::Invalid(faults) = &refused else { panic!("{issuer}: {refused}") };
        assert!(faults.to_string().contains(field), "{issuer} {client_id}: {faults}");
    }
    assert!(people.company_settings(&company.owner).unwrap().has_secret, "nothing changed");
    for number in 1..MAX_COMPANY_DOMAINS {
        people.add_company_domain(&company.owner, &format!("d{number}.example")).await.unwrap();
    }
    let no_domain = "must be an email domain such as example.com";
    for (domain, rule) in [
        ("one-more.example", "can be added 10 times at most: remove one"),
        ("localhost", no_domain),
        ("192.0.2.1", no_domain),
        ("a b.example", no_domain),
    ] {
        let refused = people.add_company_domain(&company.owner, domain).await.unwrap_err();
        let expected = ValidationErrors::single("domain", rule);
        assert_eq!(refused, expected.into(), "{domain}");
    }
}

#[tokio::test]
async fn only_owners_who_confirmed_change_it() {
    let company = CompanyWorld::new().await;
    let people = &company.world.service.people;
    let editor = company.world.signed_in(Role::Editor).await;
    let editor = people.authenticate(&editor.token).unwrap().unwrap();
    let edit = ProviderEdit::default();
    let options = CompanyOptions { is_required: false, covers_second_factor: true };
    assert!(matches!(people.company_settings(&editor), Err(ServiceError::RoleForbids { .. })));
    company.world.clock.set(company.world.service.now() + HOUR);
    for (by, expected) in [
        (&editor, ServiceError::RoleForbids { role: Role::Editor }),
        (&company.owner, ServiceError::ConfirmationRequired),
    ] {
        assert_eq!(people.set_company_provider(by, &edit).await.unwrap_err(), expected);
        assert_eq!(people.set_company_options(by, options).await.unwrap_err(), expected);
        assert_eq!(people.test_company_provider(by).await.unwrap_err(), expected);
        assert_eq!(people.add_company_domain(by, "d.example").await.unwrap_err(), expected);
        assert_eq!(people.check_company_domain(by, "shop.example").await.unwrap_err(), expected);
        assert_eq!(people.remove_company_domain(by, "shop.example").await.unwrap_err(), expected);
        assert_eq!(people.remove_company(by).await.unwrap_err(), expected);
    }
}
