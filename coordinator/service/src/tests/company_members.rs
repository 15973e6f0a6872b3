//! Members of a company: sessions that end with their provider, second factors, invitations, roles and last owners.

use parallax_core::delivery::DeliveryMessage;
use parallax_core::id::PersonId;
use parallax_core::login_session::LoginSession;
use parallax_core::person::{AccountMember, MAX_MEMBERS};
use parallax_core::role::Role;
use parallax_core::time::{DAY, SECOND};
use parallax_store::Batch;

use crate::people::{
    BrowserInfo, CompanyOptions, DashboardLinkRequest, JoinDetails, NewPerson, ProviderEdit, SignInStep,
};
use crate::test_world::{BROWSER, CompanyWorld, FakeProvider};
use crate::{ServiceError, ServiceResult};

const EMAIL: &str = "ann@shop.example";
const PASSWORD: &str = "correct horse";

/// Adds Ann to an account that is not the company's.
async fn add_ann_elsewhere(company: &CompanyWorld, password: Option<&str>) -> PersonId {
    let (email, password) = (EMAIL.to_owned(), password.map(str::to_owned));
    let ann = NewPerson { email, name: String::new(), role: Role::Owner, password };
    company.world.service.people.add_as_operator(company.world.foreign.account, &ann).await.unwrap().id
}

/// The part of the newest mail of that event that follows a text.
fn mailed(company: &CompanyWorld, event: &str, after: &str) -> String {
    let newest = company.world.sent_of_no_page(event).pop().unwrap();
    let DeliveryMessage::Mail(mail) = newest.message else { panic!("links are mailed") };
    mail.text.split_once(after).unwrap().1.split_whitespace().next().unwrap().to_owned()
}

fn is_signed_in(company: &CompanyWorld, session: &LoginSession) -> bool {
    company.world.service.people.is_signed_in(session.id).unwrap()
}

fn rule<T: std::fmt::Debug>(refused: ServiceResult<T>) -> String {
    let error = refused.unwrap_err();
    assert!(matches!(error, ServiceError::Invalid(_)), "{error}");
    error.to_string()
}

#[tokio::test]
async fn a_session_ends_with_the_provider_that_proved_it() {
    let company = CompanyWorld::new().await;
    let people = &company.world.service.people;
    let other = FakeProvider::start(&company.world.clock).await;
    let replaced = company.signed_in().await.session;
    company.set_provider(&company.owner, &other).await;
    assert!(!is_signed_in(&company, &replaced), "the provider was replaced");
    company.set_provider(&company.owner, &company.provider).await;
    let removed = company.signed_in().await.session;
    people.remove_company(&company.owner).await.unwrap();
    company.set_provider(&company.owner, &company.provider).await;
    company.prove(&company.owner, "shop.example").await;
    assert!(!is_signed_in(&company, &removed), "it was removed and set again");
    let known = company.signed_in().await.session;
    assert!(!is_signed_in(&company, &removed), "also once the provider names the same person again");
    // A session that began while the provider was replaced.
    for company_subject in [None, Some([9; 32])] {
        let mut batch = Batch::new();
        batch.write(LoginSession { company_subject, ..known.clone() });
        company.world.service.context.store().commit(batch).await.unwrap();
        assert!(!is_signed_in(&company, &known), "{company_subject:?}");
    }
}

#[tokio::test]
async fn a_sign_in_that_waits_for_its_code_ends_with_the_provider() {
    let company = CompanyWorld::new().await;
    let people = &company.world.service.people;
    let ann = add_ann_elsewhere(&company, None).await;
    let own = people.test_session(company.world.foreign.account, ann).await;
    people.test_factor(&people.authenticate(&own.token).unwrap().unwrap()).await;
    company.world.clock.set(company.world.service.now() + 30 * SECOND);
    let SignInStep::Code(token) = company.sign_in().await.unwrap() else { panic!("no code was asked for") };
    company.set_provider(&company.owner, &FakeProvider::start(&company.world.clock).await).await;
    company.set_provider(&company.owner, &company.provider).await;
    let late = people.enter_code(&token, &people.test_code(ann), &BrowserInfo::default()).await;
    assert_eq!(late.unwrap_err(), ServiceError::NotFound);
}

#[tokio::test]
async fn an_owner_by_company_sign_in_replaces_no_provider() {
    let company = CompanyWorld::new().await;
    let people = &company.world.service.people;
    let ann = company.signed_in().await;
    people.change_role(&company.owner, ann.person.id, Role::Owner).await.unwrap();
    let ann = company.signed_in().await;
    let edit = |issuer: &str| ProviderEdit {
        issuer: issuer.to_owned(),
        client_id: "parallax".to_owned(),
        client_secret: "secret".to_owned(),
    };
    assert!(rule(people.set_company_provider(&ann, &edit("https://id.other.example")).await).contains("session"));
    people.set_company_provider(&ann, &edit(&company.provider.issuer)).await.unwrap();
    assert!(is_signed_in(&company, &ann.session), "a new secret is the same provider");
}

#[tokio::test]
async fn a_second_factor_that_company_sign_in_can_not_set_up_is_not_needed_where_it_is_required() {
    let company = CompanyWorld::new().await;
    let people = &company.world.service.people;
    let options = |is_required, covers_second_factor| CompanyOptions { is_required, covers_second_factor };
    company.set_options(true, false).await;
    let refused = rule(people.set_factor_needed(&company.owner, true).await);
    assert!(refused.contains("tick \"The provider asks for a second factor\""), "{refused}");
    people.set_company_options(&company.owner, options(true, true)).await.unwrap();
    people.set_factor_needed(&company.owner, true).await.unwrap();
    let refused = rule(people.set_company_options(&company.owner, options(true, false)).await);
    assert!(refused.contains("covers must be ticked"), "{refused}");
    // The other order.
    people.set_company_options(&company.owner, options(false, false)).await.unwrap();
    let refused = rule(people.set_company_options(&company.owner, options(true, false)).await);
    assert!(refused.contains("covers must be ticked"), "{refused}");
    people.set_factor_needed(&company.owner, false).await.unwrap();
    people.set_company_options(&company.owner, options(true, false)).await.unwrap();
}

#[tokio::test]
async fn two_owners_at_once_shut_nobody_out() {
    let company = CompanyWorld::new().await;
    let people = &company.world.service.people;
    company.set_options(false, false).await;
    let required = CompanyOptions { is_required: true, covers_second_factor: false };
    let (requires, needs) = tokio::join!(
        people.set_company_options(&company.owner, required),
        people.set_factor_needed(&company.owner, true)
    );
    assert!(requires.is_ok() != needs.is_ok(), "{requires:?} {needs:?}");
}

#[tokio::test]
async fn a_newcomer_sets_a_needed_second_factor_up_after_a_mailed_link() {
    let company = CompanyWorld::new().await;
    let people = &company.world.service.people;
    people.set_factor_needed(&company.owner, true).await.unwrap();
    let ann = company.sign_in().await.unwrap().session().unwrap();
    company.world.clock.set(company.world.service.now() + 7 * DAY);
    let ann = people.authenticate(&ann.token).unwrap().unwrap();
    assert!(ann.is_factor_overdue(company.world.service.now()));
    assert!(rule(people.begin_factor(&ann).await).contains("a passkey or a mailed link"));
    let request = DashboardLinkRequest {
        email: EMAIL.to_owned(),
        browser: BROWSER,
        network: None,
        next: String::new(),
        is_kept: false,
    };
    people.request_link(&request).await.unwrap();
    let token = mailed(&company, "person.sign-in", "/sign-in/link/");
    let (step, _) = people.sign_in_by_link(&token, Some(&BROWSER), &BrowserInfo::default()).await.unwrap().unwrap();
    let own = people.authenticate(&step.session().unwrap().token).unwrap().unwrap();
    people.test_factor(&own).await;
    company.world.clock.set(company.world.service.now() + 30 * SECOND);
    let SignInStep::Code(token) = company.sign_in().await.unwrap() else { panic!("no code was asked for") };
    let code = people.test_code(ann.person.id);
    let done = people.enter_code(&token, &code, &BrowserInfo::default()).await.unwrap();
    assert_eq!(people.authenticate(&done.session.token).unwrap().unwrap().factor_due, None);
}

#[tokio::test]
async fn an_accepted_invitation_ends_company_sign_in_alone() {
    let company = CompanyWorld::new().await;
    let (world, people) = (&company.world, &company.world.service.people);
    let id = add_ann_elsewhere(&company, Some(PASSWORD)).await;
    company.signed_in().await;
    people.remove_company(&company.owner).await.unwrap();
    let stored = |id| world.service.context.store().reader().account_member(world.owner.id, id).unwrap().unwrap().value;
    assert!(stored(id).is_company_only);
    // Also where no further member has room.
    let mut batch = Batch::new();
    for number in 3..=MAX_MEMBERS as u128 {
        let person = PersonId::from_u128(number);
        batch.write(AccountMember::new((world.owner.id, person), Role::Viewer, world.service.now()));
    }
    world.service.context.store().commit(batch).await.unwrap();
    people.invite(&company.owner, (EMAIL, Role::Editor), None).await.unwrap();
    let invitation = mailed(&company, "person.invitation", "/invite/");
    let details = JoinDetails { name: String::new(), password: PASSWORD.to_owned() };
    let joined = people.join(&invitation, &details, None, &BrowserInfo::default()).await.unwrap().session().unwrap();
    let own = people.authenticate(&joined.token).unwrap().unwrap();
    assert_eq!((own.session.account, own.session.is_company), (world.owner.id, false));
    assert_eq!(own.role, Role::Viewer, "a member keeps their role");
    assert!(rule(people.invite(&company.owner, (EMAIL, Role::Editor), None).await).contains("is already a member"));
}

#[tokio::test]
async fn a_newcomer_takes_the_role_of_their_invitation() {
    let company = CompanyWorld::new().await;
    let people = &company.world.service.people;
    people.invite(&company.owner, (EMAIL, Role::Editor), None).await.unwrap();
    let invitation = mailed(&company, "person.invitation", "/invite/");
    assert_eq!(company.signed_in().await.role, Role::Editor);
    assert_eq!(people.invitations(&company.owner.caller()).await.unwrap(), [], "it ended");
    assert!(people.invitation(&invitation, None).unwrap().is_none());
}

#[tokio::test]
async fn who_enters_by_company_sign_in_alone_keeps_the_invitation_that_ends_it() {
    let company = CompanyWorld::new().await;
    let people = &company.world.service.people;
    add_ann_elsewhere(&company, Some(PASSWORD)).await;
    people.invite(&company.owner, (EMAIL, Role::Editor), None).await.unwrap();
    assert_eq!(company.signed_in().await.role, Role::Editor);
    let invitation = mailed(&company, "person.invitation", "/invite/");
    let details = JoinDetails { name: String::new(), password: PASSWORD.to_owned() };
    let joined = people.join(&invitation, &details, None, &BrowserInfo::default()).await.unwrap().session().unwrap();
    assert_eq!(joined.session.account, company.world.owner.id);
}

#[tokio::test]
async fn an_owner_who_enters_by_company_sign_in_alone_is_not_the_last_one() {
    let company = CompanyWorld::new().await;
    let (owner, people) = (&company.owner, &company.world.service.people);
    let ann = add_ann_elsewhere(&company, Some(PASSWORD)).await;
    company.signed_in().await;
    people.change_role(owner, ann, Role::Owner).await.unwrap();
    for refused in [
        people.remove_member(owner, owner.person.id, None).await,
        people.change_role(owner, owner.person.id, Role::Viewer).await.map(drop),
    ] {
        let refused = rule(refused);
        assert!(refused.contains("the other owners enter by company sign-in alone"), "{refused}");
    }
    company.world.signed_in(Role::Owner).await;
    people.remove_member(owner, owner.person.id, None).await.unwrap();
}

#[tokio::test]
async fn where_it_is_required_addresses_of_other_domains_are_those_of_owners_alone() {
    let company = CompanyWorld::new().await;
    let (owner, people) = (&company.owner, &company.world.service.people);
    people.invite(owner, ("bob@other.example", Role::Viewer), None).await.unwrap();
    let other_owner = company.world.signed_in(Role::Owner).await.session.person;
    company.set_options(true, false).await;
    let rule_of_address = "must be of an email domain of this account";
    let id = people.invitations(&owner.caller()).await.unwrap().remove(0).id;
    assert!(rule(people.resend_invitation(owner, &id, None).await).contains(rule_of_address));
    assert!(rule(people.invite(owner, ("eve@other.example", Role::Editor), None).await).contains(rule_of_address));
    people.invite(owner, ("eve@other.example", Role::Owner), None).await.unwrap();
    let refused = rule(people.change_role(owner, other_owner, Role::Editor).await);
    assert!(refused.contains("their address is of no email domain of this account"), "{refused}");
    company.set_options(false, false).await;
    people.change_role(owner, other_owner, Role::Editor).await.unwrap();
}
