//! Attacks on company sign-in: forged proofs, stolen answers, hostile providers, and people who are somebody else.

use futures_util::future::join_all;
use parallax_core::audit::AuditAction;
use parallax_core::role::Role;
use parallax_core::time::{MINUTE, SECOND};
use serde_json::json;

use crate::audit::AuditFilter;
use crate::people::soft_authenticator::SoftPasskey;
use crate::people::{BrowserInfo, CompanyAnswer, CompanyRefusal, NewPerson, SignInStep};
use crate::test_world::{BROWSER, CompanyWorld, FakeProvider, ProviderFault, SignedClaims};

type Forgery = fn(&mut SignedClaims);

#[tokio::test]
async fn a_forged_proof_is_refused() {
    let company = CompanyWorld::new().await;
    let forgeries: [(Forgery, &str); 13] = [
        (|it| it.claims["iss"] = json!("https://evil.example"), "The ID token is from another provider"),
        (|it| it.claims["aud"] = json!("another"), "The provider's ID token is for another service"),
        (|it| it.claims["aud"] = json!(["parallax", "another"]), "The provider's ID token is for another service"),
        (|it| it.claims["nonce"] = json!("another"), "The provider's ID token is of another sign-in"),
        (
            |it| drop(it.claims.as_object_mut().unwrap().remove("nonce")),
            "The provider's ID token is of another sign-in",
        ),
        (|it| it.claims["exp"] = json!(it.claims["iat"].as_i64().unwrap() - 61), "The provider's ID token has expired"),
        (|it| it.has_foreign_key = true, "The signature of the provider's ID token is wrong"),
        (|it| it.header["kid"] = json!("unknown"), "The signature of the provider's ID token is wrong"),
        (
            |it| it.header = json!({"alg": "none", "typ": "JWT"}),
            "The provider's ID token is signed by an algorithm that does not count",
        ),
        (
            |it| it.header = json!({"alg": "HS256", "typ": "JWT"}),
            "The provider's ID token is signed by an algorithm that does not count",
        ),
        (|it| it.claims["sub"] = json!("x".repeat(256)), "The provider's name of the person is too long"),
        (|it| it.claims["sub"] = json!(""), "The provider's name of the person is too long"),
        (|it| it.header["crit"] = json!(["exp"]), "The provider's ID token can't be read"),
    ];
    for (forgery, problem) in forgeries {
        company.provider.change_tokens(forgery);
        assert_eq!(company.sign_in().await.unwrap_err(), CompanyRefusal::InvalidProof(problem));
    }
    company.provider.change_tokens(|_| {});
    let members = company.world.service.people.members(company.world.owner.id).await.unwrap();
    assert_eq!(members.len(), 1, "none of them became a member");
    company.signed_in().await;
}

#[tokio::test]
async fn an_address_counts_only_if_it_is_verified_and_of_a_proved_domain() {
    let company = CompanyWorld::new().await;
    company.world.service.people.add_company_domain(&company.owner, "new.example").await.unwrap();
    let owner_email = company.world.owner.email.clone();
    for (claims, refusal) in [
        (json!({"email_verified": false}), CompanyRefusal::UnverifiedEmail("ann@shop.example".to_owned())),
        (json!({"email_verified": null}), CompanyRefusal::UnverifiedEmail("ann@shop.example".to_owned())),
        (json!({"email_verified": true, "email": "ann@new.example"}), foreign("ann@new.example")),
        (json!({"email": "ann@eu.shop.example"}), foreign("ann@eu.shop.example")),
        (json!({"email": "ann@shop.example.evil.example"}), foreign("ann@shop.example.evil.example")),
        (json!({ "email": owner_email }), foreign(&company.world.owner.email)),
        (json!({"email": "not an address"}), CompanyRefusal::NoEmail),
    ] {
        company.provider.set_person(&claims);
        assert_eq!(company.sign_in().await.unwrap_err(), refusal, "{claims}");
    }
}

fn foreign(email: &str) -> CompanyRefusal {
    CompanyRefusal::ForeignDomain(email.to_owned())
}

#[tokio::test]
async fn an_answer_counts_once_in_its_browser_and_for_ten_minutes() {
    let company = CompanyWorld::new().await;
    let people = &company.world.service.people;
    let account = company.world.owner.id;
    let browser = BrowserInfo::default();
    let answer = company.provider.sign_in(&company.begin().await.unwrap());
    for by in [None, Some(&[8; 16])] {
        let finished = people.finish_company_sign_in(account, &answer, (by, &browser)).await.unwrap();
        assert_eq!(finished.unwrap_err(), CompanyRefusal::Unknown, "{by:?}");
    }
    let unknown = CompanyAnswer { state: "unknown".to_owned(), ..answer.clone() };
    assert_eq!(company.finish(&unknown).await.unwrap_err(), CompanyRefusal::Unknown);
    company.finish(&answer).await.unwrap();
    assert_eq!(company.finish(&answer).await.unwrap_err(), CompanyRefusal::Unknown, "the state is used");
    // A code that was used, with a new state.
    let next = company.provider.sign_in(&company.begin().await.unwrap());
    let replayed = CompanyAnswer { code: answer.code.clone(), ..next };
    let refused = CompanyRefusal::InvalidProof("The provider did not accept the code, or the client secret");
    assert_eq!(company.finish(&replayed).await.unwrap_err(), refused);
    // A code of a sign-in that another browser began: its challenge is another.
    let (mine, theirs) = (company.begin().await.unwrap(), company.begin().await.unwrap());
    let (mine, theirs) = (company.provider.sign_in(&mine), company.provider.sign_in(&theirs));
    let injected = CompanyAnswer { code: theirs.code, ..mine };
    assert_eq!(company.finish(&injected).await.unwrap_err(), refused);
    let late = company.provider.sign_in(&company.begin().await.unwrap());
    company.world.clock.set(company.world.service.now() + 10 * MINUTE);
    assert_eq!(company.finish(&late).await.unwrap_err(), CompanyRefusal::Unknown);
}

#[tokio::test]
async fn two_that_bring_one_answer_get_one_session() {
    let company = CompanyWorld::new().await;
    let answer = company.provider.sign_in(&company.begin().await.unwrap());
    let (first, second) = tokio::join!(company.finish(&answer), company.finish(&answer));
    assert!(first.is_ok() != second.is_ok());
}

#[tokio::test]
async fn answers_of_two_accounts_are_not_mixed_up() {
    let company = CompanyWorld::new().await;
    let people = &company.world.service.people;
    let other = company.other_account().await;
    let stranger = company.world.signed_in_at(&other, Role::Owner).await;
    let stranger = people.authenticate(&stranger.token).unwrap().unwrap();
    let hostile = FakeProvider::start(&company.world.clock).await;
    company.set_provider(&stranger, &hostile).await;
    company.prove(&stranger, "evil.example").await;
    // Its own state at the address of the other account, in both directions.
    let answer = company.provider.sign_in(&company.begin().await.unwrap());
    let by = (Some(&BROWSER), &BrowserInfo::default());
    let finished = people.finish_company_sign_in(other.id, &answer, by).await.unwrap();
    assert_eq!(finished.unwrap_err(), CompanyRefusal::Unknown);
    // It names itself as who answers (RFC 9207).
    let named = CompanyAnswer { issuer: hostile.issuer.clone(), ..answer.clone() };
    let refused = CompanyRefusal::InvalidProof("The answer is from another provider");
    assert_eq!(company.finish(&named).await.unwrap_err(), refused);
    let answer = company.provider.sign_in(&company.begin().await.unwrap());
    let named = CompanyAnswer { issuer: company.provider.issuer.clone(), ..answer };
    assert!(company.finish(&named).await.is_ok());
    // It names people of the other account's domain.
    let start = crate::people::CompanySignInStart {
        browser: BROWSER,
        network: None,
        email: String::new(),
        next: String::new(),
        is_kept: false,
        is_confirmation: false,
    };
    let url = people.begin_company_sign_in(other.id, &start).await.unwrap().unwrap();
    let finished = people.finish_company_sign_in(other.id, &hostile.sign_in(&url), by).await.unwrap();
    assert_eq!(finished.unwrap_err(), foreign("ann@shop.example"));
    // The provider was replaced while the person was there.
    let answer = company.provider.sign_in(&company.begin().await.unwrap());
    company.set_provider(&company.owner, &hostile).await;
    assert_eq!(company.finish(&answer).await.unwrap_err(), CompanyRefusal::Unknown);
}

#[tokio::test]
async fn another_person_with_the_same_address_is_refused() {
    let company = CompanyWorld::new().await;
    let ann = company.signed_in().await;
    company.provider.set_person(&json!({"sub": "ann-2"}));
    let refused = company.sign_in().await.unwrap_err();
    assert_eq!(refused, CompanyRefusal::OtherSubject("ann@shop.example".to_owned()));
    assert!(refused.text().contains("Ask an owner"), "{}", refused.text());
    company.provider.set_person(&json!({"sub": "ann-1", "email": "ann.new@shop.example"}));
    assert_eq!(company.sign_in().await.unwrap_err(), CompanyRefusal::OtherEmail);
    // An owner who removes the member lets the new person in.
    let people = &company.world.service.people;
    people.remove_member(&company.owner, ann.person.id, None).await.unwrap();
    company.provider.set_person(&json!({"sub": "ann-2", "email": "ann@shop.example"}));
    company.signed_in().await;
    // Another client at the provider may know everyone by another subject.
    let edit = crate::people::ProviderEdit {
        issuer: FakeProvider::start(&company.world.clock).await.issuer,
        client_id: "parallax".to_owned(),
        client_secret: "new".to_owned(),
    };
    people.set_company_provider(&company.owner, &edit).await.unwrap();
    company.set_provider(&company.owner, &company.provider).await;
    company.provider.set_person(&json!({"sub": "ann-3"}));
    company.signed_in().await;
}

#[tokio::test]
async fn hostile_providers_end_in_a_clear_error() {
    let company = CompanyWorld::new().await;
    let people = &company.world.service.people;
    for (fault, said) in [
        (ProviderFault::Huge, "sent an answer of more than 256 KiB"),
        (ProviderFault::RedirectLoop, "redirects its configuration (status 302)"),
        (ProviderFault::Silent, "did not answer in time"),
        (ProviderFault::NoJson, "can't be read"),
        (ProviderFault::OtherIssuer, "names itself by another address"),
        (ProviderFault::ForeignScheme, "not https"),
    ] {
        company.provider.fail(fault);
        let problem = people.test_company_provider(&company.owner).await.unwrap().unwrap();
        assert!(problem.contains(said), "{fault:?}: {problem}");
        company.world.clock.set(company.world.service.now() + 20_000);
    }
    // At the sign-in, and with documents that are kept.
    let refused = company.begin().await.unwrap_err();
    assert!(matches!(&refused, CompanyRefusal::Unreachable(_)) && refused.text().contains("mailed link"));
    company.provider.fail(ProviderFault::None);
    company.world.clock.set(company.world.service.now() + 30 * SECOND);
    let answer = company.provider.sign_in(&company.begin().await.unwrap());
    company.provider.fail(ProviderFault::Huge);
    assert!(matches!(company.finish(&answer).await.unwrap_err(), CompanyRefusal::Unreachable(_)));
    company.provider.fail(ProviderFault::None);
    let answer = CompanyAnswer { error: "access_denied".to_owned(), ..answer_of(&company).await };
    assert_eq!(company.finish(&answer).await.unwrap_err(), CompanyRefusal::Cancelled);
    let answer = CompanyAnswer { error: "<b>server_error\"".to_owned(), ..answer_of(&company).await };
    assert_eq!(company.finish(&answer).await.unwrap_err(), CompanyRefusal::ProviderError("bserver_error".to_owned()));
    let answer = CompanyAnswer { state: "x".repeat(5_000), ..answer_of(&company).await };
    assert_eq!(company.finish(&answer).await.unwrap_err(), CompanyRefusal::Unknown);
}

async fn answer_of(company: &CompanyWorld) -> CompanyAnswer {
    company.provider.sign_in(&company.begin().await.unwrap())
}

#[tokio::test]
async fn a_provider_is_asked_once_by_all_who_begin_and_not_again_at_once() {
    let company = CompanyWorld::new().await;
    company.provider.fail(ProviderFault::Silent);
    company.provider.take_requests();
    let began = join_all((0..20).map(|_| company.begin())).await;
    assert!(began.iter().all(|it| matches!(it, Err(CompanyRefusal::Unreachable(_)))), "{began:?}");
    assert_eq!(company.provider.take_requests(), ["/.well-known/openid-configuration"]);
    company.provider.fail(ProviderFault::None);
    company.begin().await.unwrap_err();
    assert_eq!(company.provider.take_requests(), [""; 0], "it failed just before");
    // A test asks at once, and what it reads counts.
    let people = &company.world.service.people;
    assert_eq!(people.test_company_provider(&company.owner).await.unwrap(), None);
    company.begin().await.unwrap();
    assert_eq!(company.provider.take_requests(), ["/.well-known/openid-configuration", "/keys"]);
}

#[tokio::test]
async fn someone_who_made_a_passkey_before_does_not_get_in_by_it() {
    let company = CompanyWorld::new().await;
    let people = &company.world.service.people;
    let email = "ann@shop.example".to_owned();
    let squatter = NewPerson { email, name: String::new(), role: Role::Owner, password: None };
    let id = people.add_as_operator(company.world.foreign.account, &squatter).await.unwrap().id;
    let mut passkey = SoftPasskey::new("https://status.example");
    people.test_passkey(id, &mut passkey).await;
    assert_eq!(company.signed_in().await.role, Role::Viewer);
    let challenge = people.begin_passkey_sign_in(&BROWSER, &BrowserInfo::default()).unwrap();
    let answer = (&BROWSER, &passkey.get(&challenge));
    let own = people.sign_in_by_passkey(answer, true, &BrowserInfo::default()).await.unwrap().session().unwrap();
    let own = people.authenticate(&own.token).unwrap().unwrap();
    assert_eq!(own.session.account, company.world.foreign.account);
    let step = people.choose_account(&own, company.world.owner.id).await.unwrap();
    assert!(step.session().is_none(), "not by their passkey");
}

#[tokio::test]
async fn strangers_use_up_no_entries_of_failed_sign_ins() {
    let company = CompanyWorld::new().await;
    let (world, people) = (&company.world, &company.world.service.people);
    let (email, password) = ("bob@shop.example".to_owned(), Some("correct horse".to_owned()));
    let bob = NewPerson { email: email.clone(), name: String::new(), role: Role::Editor, password };
    people.add_as_operator(world.owner.id, &bob).await.unwrap();
    for _ in 0..30 {
        let cancelled = CompanyAnswer { error: "access_denied".to_owned(), ..answer_of(&company).await };
        assert_eq!(company.finish(&cancelled).await.unwrap_err(), CompanyRefusal::Cancelled);
    }
    let ask =
        crate::people::PasswordSignIn { email: email.clone(), password: "wrong horse".to_owned(), is_kept: false };
    people.sign_in(&ask, &BrowserInfo::default()).await.unwrap_err();
    assert_eq!(failed_sign_ins(&company).await, [email]);
}

#[tokio::test]
async fn a_wrong_second_step_is_logged_in_the_account_that_it_leads_to() {
    let company = CompanyWorld::new().await;
    let (world, people) = (&company.world, &company.world.service.people);
    let email = "ann@shop.example".to_owned();
    let ann = NewPerson { email: email.clone(), name: String::new(), role: Role::Owner, password: None };
    let ann = people.add_as_operator(world.foreign.account, &ann).await.unwrap().id;
    let own = people.test_session(world.foreign.account, ann).await;
    people.test_factor(&people.authenticate(&own.token).unwrap().unwrap()).await;
    let SignInStep::Code(token) = company.sign_in().await.unwrap() else { panic!("no code was asked for") };
    people.enter_code(&token, "no code", &BrowserInfo::default()).await.unwrap_err();
    assert_eq!(failed_sign_ins(&company).await, [email]);
}

/// Names in the entries of failed sign-ins, once there is one: they are written in the background.
async fn failed_sign_ins(company: &CompanyWorld) -> Vec<String> {
    let filter = AuditFilter { action: Some(AuditAction::SignInFailed), ..AuditFilter::default() };
    loop {
        let part = company.world.service.audit.list(&company.owner.caller(), &filter, None).await.unwrap();
        if !part.entries.is_empty() {
            return part.entries.into_iter().flat_map(|it| it.entry.items).map(|it| it.name).collect();
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn someone_who_chose_a_password_before_does_not_get_in_by_it() {
    let company = CompanyWorld::new().await;
    let people = &company.world.service.people;
    // Anyone may have chosen it: the address was never proved to the owner's account.
    let (email, password) = ("ann@shop.example".to_owned(), "correct horse".to_owned());
    let squatter =
        NewPerson { email: email.clone(), name: String::new(), role: Role::Owner, password: Some(password.clone()) };
    people.add_as_operator(company.world.foreign.account, &squatter).await.unwrap();
    assert_eq!(company.signed_in().await.role, Role::Viewer);
    let ask = crate::people::PasswordSignIn { email, password, is_kept: false };
    let own = people.sign_in(&ask, &BrowserInfo::default()).await.unwrap().session().unwrap();
    let own = people.authenticate(&own.token).unwrap().unwrap();
    assert_eq!(own.session.account, company.world.foreign.account);
    let step = people.choose_account(&own, company.world.owner.id).await.unwrap();
    assert!(step.session().is_none(), "not by their password");
}
