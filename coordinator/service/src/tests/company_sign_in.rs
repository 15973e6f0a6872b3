//! Company sign-in as it should be: newcomers, members, second factors, keys that change, and what is logged.

use parallax_core::audit::{AuditAction, AuditSubject};
use parallax_core::role::Role;
use parallax_core::time::{HOUR, MINUTE, SECOND};
use serde_json::json;

use crate::audit::AuditFilter;
use crate::people::{BrowserInfo, CompanyRefusal, NewPerson, SignInStep};
use crate::test_world::{CompanyWorld, FakeProvider, ProviderFault};

#[tokio::test]
async fn a_newcomer_becomes_a_viewer_and_stays_the_same_person() {
    let company = CompanyWorld::new().await;
    let ann = company.signed_in().await;
    assert_eq!((ann.role, ann.session.is_company, ann.session.is_kept), (Role::Viewer, true, true));
    assert_eq!((ann.person.email.as_str(), ann.person.name.as_deref()), ("ann@shop.example", Some("Ann of the shop")));
    assert_eq!((ann.person.password_hash.as_ref(), ann.session.account), (None, company.world.owner.id));
    company.provider.set_person(&json!({"name": "Renamed", "email": "Ann@Shop.example"}));
    let again = company.signed_in().await;
    assert_eq!((again.person.id, again.person.name), (ann.person.id, ann.person.name));
    assert_eq!(company.world.service.people.members(company.world.owner.id).await.unwrap().len(), 2);
}

#[tokio::test]
async fn sign_ins_refusals_and_settings_are_logged_without_secrets() {
    let company = CompanyWorld::new().await;
    company.signed_in().await;
    company.provider.set_person(&json!({"email_verified": false}));
    company.sign_in().await.unwrap_err();
    let list = async |subject, action| {
        let filter = AuditFilter { subject: Some(subject), action: Some(action), text: String::new() };
        let part = company.world.service.audit.list(&company.owner.caller(), &filter, None).await.unwrap();
        part.entries.into_iter().flat_map(|it| it.entry.items).collect::<Vec<_>>()
    };
    // Written in the background.
    while list(AuditSubject::SignIn, AuditAction::SignInFailed).await.is_empty() {
        tokio::task::yield_now().await;
    }
    let failed = list(AuditSubject::SignIn, AuditAction::SignInFailed).await;
    let value = |item: &parallax_core::audit::AuditItem, name: &str| {
        let field = item.fields.iter().find(|field| field.name == name);
        field.and_then(|field| field.values.clone()).map(|values| values.1).unwrap_or_default()
    };
    assert_eq!((failed[0].name.as_str(), value(&failed[0], "Way").as_str()), ("ann@shop.example", "company sign-in"));
    assert_eq!(value(&failed[0], "Reason"), "unverified email address");
    let signed_in = list(AuditSubject::SignIn, AuditAction::SignedIn).await;
    assert_eq!(value(&signed_in[0], "Way"), "company sign-in");
    assert_eq!(list(AuditSubject::Member, AuditAction::Created).await.len(), 2, "the owner and Ann");
    let created = list(AuditSubject::CompanySignIn, AuditAction::Created).await;
    assert_eq!(created[0].name, company.provider.issuer);
    let people = &company.world.service.people;
    let edit = crate::people::ProviderEdit {
        issuer: company.provider.issuer.clone(),
        client_id: "parallax".to_owned(),
        client_secret: "another secret".to_owned(),
    };
    people.set_company_provider(&company.owner, &edit).await.unwrap();
    let changed = list(AuditSubject::CompanySignIn, AuditAction::Changed).await;
    let secret = changed[0].fields.iter().find(|field| field.name == "Client secret").unwrap();
    assert_eq!(secret.values, None);
    assert!(!format!("{changed:?}").contains("another secret"));
}

#[tokio::test]
async fn a_second_factor_is_asked_for_unless_the_provider_asks_for_one() {
    let company = CompanyWorld::new().await;
    let people = &company.world.service.people;
    let account = company.world.owner.id;
    let new =
        NewPerson { email: "ann@shop.example".to_owned(), name: String::new(), role: Role::Editor, password: None };
    let ann = people.add_as_operator(account, &new).await.unwrap();
    let own = people.test_session(account, ann.id).await;
    people.test_factor(&people.authenticate(&own.token).unwrap().unwrap()).await;
    company.world.clock.set(company.world.service.now() + 30 * SECOND);
    let SignInStep::Code(token) = company.sign_in().await.unwrap() else { panic!("no code was asked for") };
    let done = people.enter_code(&token, &people.test_code(ann.id), &BrowserInfo::default()).await.unwrap();
    let session = people.authenticate(&done.session.token).unwrap().unwrap();
    assert!(session.session.is_company, "the code makes it no session of another kind");
    assert_eq!(session.role, Role::Editor);
    company.set_options(false, true).await;
    assert!(company.signed_in().await.session.is_company);
}

#[tokio::test]
async fn members_need_no_second_factor_where_the_provider_asks_for_one() {
    let company = CompanyWorld::new().await;
    company.world.service.people.set_factor_needed(&company.owner, true).await.unwrap();
    assert!(company.signed_in().await.factor_due.is_some());
    company.set_options(false, true).await;
    assert!(company.signed_in().await.factor_due.is_none());
}

#[tokio::test]
async fn an_email_address_at_the_userinfo_address_counts_for_the_same_person_alone() {
    let company = CompanyWorld::new().await;
    company.provider.fail(ProviderFault::EmailAtUserinfo);
    assert_eq!(company.signed_in().await.person.email, "ann@shop.example");
    company.provider.fail(ProviderFault::OtherUserinfo);
    assert_eq!(company.sign_in().await.unwrap_err(), CompanyRefusal::NoEmail);
}

#[tokio::test]
async fn documents_are_kept_and_read_again_for_a_new_key_once_a_minute() {
    let company = CompanyWorld::new().await;
    company.signed_in().await;
    company.provider.take_requests();
    company.signed_in().await;
    assert_eq!(company.provider.take_requests(), ["/token"], "the documents are kept");
    company.provider.rotate_key("second");
    let refused = company.sign_in().await.unwrap_err();
    assert_eq!(refused, CompanyRefusal::InvalidProof("The signature of the provider's ID token is wrong"));
    assert_eq!(company.provider.take_requests(), ["/token"], "not twice in a minute");
    company.world.clock.set(company.world.service.now() + MINUTE);
    company.signed_in().await;
    assert_eq!(company.provider.take_requests(), ["/token", "/.well-known/openid-configuration", "/keys"]);
    company.world.clock.set(company.world.service.now() + HOUR);
    company.signed_in().await;
    assert_eq!(company.provider.take_requests(), ["/.well-known/openid-configuration", "/keys", "/token"]);
}

#[tokio::test]
async fn a_session_is_no_fresher_than_the_proof_of_the_provider() {
    let company = CompanyWorld::new().await;
    let people = &company.world.service.people;
    assert!(people.require_confirmed(&company.signed_in().await).is_ok());
    company.provider.change_tokens(|parts| {
        let issued = parts.claims["iat"].as_i64().unwrap();
        parts.claims["auth_time"] = json!(issued - 3600);
    });
    assert!(people.require_confirmed(&company.signed_in().await).is_err(), "the provider remembered them");
    company.provider.change_tokens(|parts| {
        parts.claims["auth_time"] = json!(4_000_000_000_i64);
    });
    let now = company.world.service.now();
    assert_eq!(company.signed_in().await.session.confirmed_at, now, "not in the future");
}

#[tokio::test]
async fn a_confirmation_counts_only_if_the_provider_asked_again() {
    let company = CompanyWorld::new().await;
    let people = &company.world.service.people;
    company.signed_in().await;
    let confirm = async || {
        let answer = company.provider.sign_in(&company.begin_confirmation().await.unwrap());
        company.finish(&answer).await
    };
    for (seconds, is_right) in [(-3600, false), (-61, false), (-60, true), (0, true)] {
        company.provider.change_tokens(move |parts| {
            parts.claims["auth_time"] = json!(parts.claims["iat"].as_i64().unwrap() + seconds);
        });
        let done = confirm().await;
        assert_eq!(done.as_ref().err(), Some(&CompanyRefusal::NotAskedAgain).filter(|_| !is_right), "{seconds}");
    }
    assert!(CompanyRefusal::NotAskedAgain.text().contains("Sign out there, then try again."));
    // A provider that says no time was asked to, and is believed.
    company.provider.change_tokens(|parts| drop(parts.claims.as_object_mut().unwrap().remove("auth_time")));
    let new = confirm().await.unwrap().session().unwrap();
    people.require_confirmed(&people.authenticate(&new.token).unwrap().unwrap()).unwrap();
}

#[tokio::test]
async fn the_operator_releases_an_email_domain_for_another_account() {
    let company = CompanyWorld::new().await;
    let (service, owner) = (&company.world.service, company.world.owner.id);
    company.set_options(true, false).await;
    let released = service.domains.release("Shop.example.").await.unwrap();
    assert_eq!((released.host.as_str(), released.page, released.company), ("shop.example", None, Some(owner)));
    let mut settings = service.people.company_settings(&company.owner).unwrap();
    assert!(!settings.is_required, "nobody could get in");
    let domain = settings.domains.remove(0);
    assert!(domain.proved_at.is_none() && domain.claim.problem.unwrap().contains("the operator released it"));
    let filter = AuditFilter { subject: Some(AuditSubject::CompanySignIn), ..AuditFilter::default() };
    let newest = service.audit.list(&company.owner.caller(), &filter, None).await.unwrap().entries.remove(0);
    let fields: Vec<_> = newest.entry.items[0].fields.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(fields, ["Proved email domains (removed → added)", "Required for members"]);
    let other = company.other_account().await;
    let stranger = company.world.signed_in_at(&other, Role::Owner).await;
    let stranger = service.people.authenticate(&stranger.token).unwrap().unwrap();
    company.set_provider(&stranger, &FakeProvider::start(&company.world.clock).await).await;
    company.prove(&stranger, "shop.example").await;
    assert_eq!(service.people.company_of_email("ann@shop.example").unwrap().unwrap().account, other.id);
}

#[tokio::test]
async fn an_email_domain_leads_to_the_account_that_proved_it() {
    let company = CompanyWorld::new().await;
    let people = &company.world.service.people;
    let found = people.company_of_email(" Somebody@SHOP.example").unwrap().unwrap();
    assert_eq!((found.account, found.host.as_str()), (company.world.owner.id, "127.0.0.1"));
    people.add_company_domain(&company.owner, "new.example").await.unwrap();
    for email in ["ann@new.example", "ann@eu.shop.example", "ann@example.com", "shop.example", ""] {
        assert_eq!(people.company_of_email(email).unwrap(), None, "{email}");
    }
    // Another account can't have it, too.
    let other = company.other_account().await;
    let stranger = company.world.signed_in_at(&other, Role::Owner).await;
    let stranger = people.authenticate(&stranger.token).unwrap().unwrap();
    company.set_provider(&stranger, &FakeProvider::start(&company.world.clock).await).await;
    company.prove(&stranger, "shop.example").await;
    let domain = people.company_settings(&stranger).unwrap().domains.remove(0);
    assert_eq!(domain.proved_at, None);
    assert_eq!(domain.claim.problem.as_deref(), Some("another account has proved shop.example already"));
    people.remove_company_domain(&company.owner, "shop.example").await.unwrap();
    company.prove(&stranger, "shop.example").await;
    assert_eq!(people.company_of_email("ann@shop.example").unwrap().unwrap().account, other.id);
}
