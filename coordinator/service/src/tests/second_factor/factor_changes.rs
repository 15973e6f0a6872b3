//! Changes of a second factor: what they need, what they end, and what is logged.

use parallax_core::audit::{AuditAction, AuditSubject};

use super::{EMAIL, FactorWorld, PASSWORD, current, is_wrong, mailed, sign_in};
use crate::ServiceError;
use crate::audit::AuditFilter;
use crate::people::{BrowserInfo, NewSession};

#[tokio::test]
async fn changes_need_a_confirmation_and_end_the_other_sessions() {
    let ann = FactorWorld::new().await;
    let (world, people) = (&ann.world, &ann.world.service.people);
    let is_signed_in = |session: &NewSession| people.is_signed_in(session.session.id).unwrap();
    let other = async || people.test_session(world.owner.id, ann.session.session.person).await;
    ann.wait(600);
    let late = ann.current();
    let refused = ServiceError::ConfirmationRequired;
    assert_eq!(people.begin_factor(&late).await, Err(refused.clone()));
    assert_eq!(people.factor_set_up(&late).unwrap_err(), refused);
    assert_eq!(people.confirm_factor(&late, "000000").await.unwrap_err(), refused);
    assert_eq!(people.renew_recovery_codes(&late).await.unwrap_err(), refused);
    assert_eq!(people.turn_factor_off(&late).await.unwrap_err(), refused);
    people.confirm(&late, PASSWORD).await.unwrap();
    // A new app replaces the old one with its first right code, and not before.
    people.begin_factor(&ann.current()).await.unwrap();
    let set_up = people.factor_set_up(&ann.current()).unwrap().unwrap();
    assert!(set_up.url.contains(&set_up.secret.replace(' ', "")) && !format!("{set_up:?}").contains("otpauth"));
    let wrong = people.confirm_factor(&ann.current(), "000000").await.unwrap_err();
    assert!(matches!(wrong, ServiceError::Invalid(_)), "{wrong:?}");
    let open = other().await;
    let (session, codes) = people.confirm_factor(&ann.current(), &ann.code()).await.unwrap();
    assert!(is_signed_in(&session) && !is_signed_in(&open) && !is_signed_in(&ann.session));
    assert!(session.token.reveal() != ann.session.token.reveal() && codes != ann.recovery_codes);
    let used = ann.code();
    assert!(is_wrong(&ann.enter(&ann.pending().await, &used).await), "its first code counted");
    // Off.
    let open = other().await;
    let after = people.turn_factor_off(&current(world, &session)).await.unwrap();
    assert!(is_signed_in(&after) && !is_signed_in(&open) && !is_signed_in(&session));
    assert!(sign_in(world, PASSWORD).await.unwrap().session().is_some());
    let current = current(world, &after);
    assert_eq!(people.turn_factor_off(&current).await.unwrap_err(), ServiceError::NotFound);
    assert_eq!(people.renew_recovery_codes(&current).await.unwrap_err(), ServiceError::NotFound);
    assert_eq!(people.confirm_factor(&current, "000000").await.unwrap_err(), ServiceError::NotFound);
    assert_eq!(people.factor_set_up(&current).unwrap(), None);
}

#[tokio::test]
async fn a_request_from_before_its_session_ended_changes_nothing() {
    let ann = FactorWorld::new().await;
    let (people, late) = (&ann.world.service.people, ann.current());
    people.sign_out(&ann.session.token).await.unwrap();
    assert_eq!(people.renew_recovery_codes(&late).await, Err(ServiceError::ConfirmationRequired));
    assert_eq!(people.begin_factor(&late).await, Err(ServiceError::ConfirmationRequired));
    assert_eq!(people.set_factor_needed(&late, true).await, Err(ServiceError::ConfirmationRequired));
    let token = ann.pending().await;
    assert_eq!(ann.enter(&token, &ann.recovery_codes[0]).await, Ok(Some(9)), "the old codes count");
}

#[tokio::test]
async fn a_new_password_forgets_an_app_that_waits_for_its_code() {
    let ann = FactorWorld::new().await;
    let people = &ann.world.service.people;
    people.begin_factor(&ann.current()).await.unwrap();
    assert!(people.factor_set_up(&ann.current()).unwrap().is_some());
    people.request_password_reset(EMAIL, None).await.unwrap();
    let reset = mailed(&ann.world, "person.password-reset", "/reset/");
    people.reset_password(&reset, PASSWORD, &BrowserInfo::default()).await.unwrap();
    let token = ann.pending().await;
    let browser = BrowserInfo::default();
    let again = people.enter_code(&token, &ann.recovery_codes[0], &browser).await.unwrap();
    assert_eq!(people.factor_set_up(&current(&ann.world, &again.session)).unwrap().map(|it| it.secret), None);
}

#[tokio::test]
async fn changes_of_a_factor_and_wrong_codes_are_logged() {
    let ann = FactorWorld::new().await;
    let people = &ann.world.service.people;
    let sign_ins = async || {
        let filter = AuditFilter { subject: Some(AuditSubject::SignIn), ..AuditFilter::default() };
        let part = ann.world.service.audit.list(&ann.current().caller(), &filter, None).await.unwrap();
        part.entries.into_iter().map(|it| it.entry.items[0].clone()).collect::<Vec<_>>()
    };
    let before = sign_ins().await.len();
    let codes = people.renew_recovery_codes(&ann.current()).await.unwrap();
    let renewed = &sign_ins().await[0];
    assert_eq!((renewed.action, renewed.fields.len()), (AuditAction::Changed, 1), "{renewed:?}");
    let (session, _) = people.test_factor(&ann.current()).await;
    let ann = FactorWorld { session, ..ann };
    let people = &ann.world.service.people;
    let list = async |count: usize| loop {
        let filter = AuditFilter { subject: Some(AuditSubject::SignIn), ..AuditFilter::default() };
        let part = ann.world.service.audit.list(&ann.current().caller(), &filter, None).await.unwrap();
        // A failed sign-in is logged in the background.
        if part.entries.len() >= count {
            break part.entries.into_iter().map(|it| it.entry).collect::<Vec<_>>();
        }
        tokio::task::yield_now().await;
    };
    let replaced = &list(before + 2).await[0];
    assert!(replaced.items[0].fields.iter().any(|it| it.name == "Authenticator app"), "{replaced:?}");
    assert!(!format!("{replaced:?}").contains(&codes[0]));
    let token = ann.pending().await;
    let browser = BrowserInfo::new("203.0.113.7".parse().ok(), "", None);
    assert!(people.enter_code(&token, "000000", &browser).await.is_err());
    let failed = &list(before + 3).await[0];
    assert_eq!(
        (failed.items[0].action, failed.network.as_deref()),
        (AuditAction::SignInFailed, Some("203.0.113.0/24"))
    );
}
