//! Members of accounts: their roles and removal, invitations, a new password, and persons with several accounts.

use parallax_core::delivery::DeliveryMessage;
use parallax_core::id::PersonId;
use parallax_core::person::MAX_OPEN_INVITATIONS;
use parallax_core::plan::PlanLimitError;
use parallax_core::role::Role;
use parallax_core::time::{DAY, HOUR, MINUTE};

use crate::people::{
    BrowserInfo, CurrentSession, DashboardLinkRequest, INVITATIONS_PER_HOUR, InvitedPerson, JoinDetails, NewSession,
    PasswordSignIn,
};
use crate::test_world::{World, world};
use crate::{ServiceError, ServiceResult};

const PASSWORD: &str = "correct horse";
const LINK: &str = "https://status.example/invite/";
const RESET: &str = "https://status.example/reset/";

async fn signed_in(world: &World, role: Role) -> CurrentSession {
    current(world, &world.signed_in(role).await)
}

fn current(world: &World, session: &NewSession) -> CurrentSession {
    world.service.people.authenticate(&session.token).unwrap().unwrap()
}

fn is_signed_in(world: &World, session: &CurrentSession) -> bool {
    world.service.people.is_signed_in(session.session.id).unwrap()
}

/// The receiver and token of the newest mail of that event.
fn mailed(world: &World, event: &str, prefix: &str) -> String {
    let delivery = world.sent_of_no_page(event).pop().unwrap();
    let DeliveryMessage::Mail(mail) = delivery.message else { panic!("links are mailed") };
    mail.text.split_once(prefix).unwrap().1.split_whitespace().next().unwrap().to_owned()
}

/// Invites an address, and returns the token of the link.
async fn invite(world: &World, owner: &CurrentSession, email: &str, role: Role) -> ServiceResult<String> {
    // Ids of deliveries are ordered by their time.
    world.clock.set(world.service.now() + 1);
    world.service.people.invite(owner, (email, role), None).await?;
    Ok(mailed(world, "person.invitation", LINK))
}

async fn join(world: &World, token: &str, password: &str) -> ServiceResult<CurrentSession> {
    let details = JoinDetails { name: "Ann".to_owned(), password: password.to_owned() };
    let joined = world.service.people.join(token, &details, None, &BrowserInfo::default()).await?;
    Ok(current(world, &joined.session().unwrap()))
}

async fn sign_in(world: &World, email: &str, password: &str) -> ServiceResult<CurrentSession> {
    let ask = PasswordSignIn { email: email.to_owned(), password: password.to_owned(), is_kept: true };
    let step = world.service.people.sign_in(&ask, &BrowserInfo::default()).await?;
    Ok(current(world, &step.session().unwrap()))
}

fn rule(error: ServiceError) -> String {
    let ServiceError::Invalid(faults) = error else { panic!("{error:?}") };
    faults.iter().map(|fault| format!("{} {}", fault.field, fault.rule)).collect()
}

#[tokio::test]
async fn only_owners_who_confirmed_change_members() {
    let world = world().await;
    let people = &world.service.people;
    let owner = signed_in(&world, Role::Owner).await;
    let other = signed_in(&world, Role::Viewer).await;
    let id = other.person.id;
    for role in [Role::Editor, Role::Viewer] {
        let member = signed_in(&world, role).await;
        let forbidden = ServiceError::RoleForbids { role };
        assert_eq!(people.list_members(&member.caller()).await.unwrap_err(), forbidden);
        assert_eq!(people.invitations(&member.caller()).await.unwrap_err(), forbidden);
        assert_eq!(people.change_role(&member, id, Role::Owner).await.unwrap_err(), forbidden);
        assert_eq!(people.remove_member(&member, id, None).await.unwrap_err(), forbidden);
        assert_eq!(people.invite(&member, ("a@example.com", role), None).await.unwrap_err(), forbidden);
        assert_eq!(people.resend_invitation(&member, "x", None).await.unwrap_err(), forbidden);
        assert_eq!(people.revoke_invitation(&member.caller(), "x", None).await.unwrap_err(), forbidden);
    }
    let key = world.caller(parallax_core::key::KeyAccess::Write).await;
    assert_eq!(people.list_members(&key).await.unwrap_err(), ServiceError::NotFound);
    // Another account's owner reaches neither members nor invitations.
    let accounts = world.service.accounts.list().await.unwrap();
    let foreign = accounts.into_iter().find(|account| account.id == world.foreign.account).unwrap();
    let stranger = current(&world, &world.signed_in_at(&foreign, Role::Owner).await);
    invite(&world, &owner, "ann@example.com", Role::Viewer).await.unwrap();
    let invitation = people.invitations(&owner.caller()).await.unwrap().remove(0).id;
    assert_eq!(people.change_role(&stranger, id, Role::Owner).await.unwrap_err(), ServiceError::NotFound);
    assert_eq!(people.remove_member(&stranger, id, None).await.unwrap_err(), ServiceError::NotFound);
    assert_eq!(people.resend_invitation(&stranger, &invitation, None).await.unwrap_err(), ServiceError::NotFound);
    assert_eq!(
        people.revoke_invitation(&stranger.caller(), &invitation, None).await.unwrap_err(),
        ServiceError::NotFound
    );
    // The confirmation ends after ten minutes.
    world.clock.set(world.service.now() + 11 * MINUTE);
    let expected = ServiceError::ConfirmationRequired;
    assert_eq!(people.change_role(&owner, id, Role::Editor).await.unwrap_err(), expected);
    assert_eq!(people.remove_member(&owner, id, None).await.unwrap_err(), expected);
    assert_eq!(people.invite(&owner, ("b@example.com", Role::Viewer), None).await.unwrap_err(), expected);
    assert_eq!(people.resend_invitation(&owner, &invitation, None).await.unwrap_err(), expected);
    people.revoke_invitation(&owner.caller(), &invitation, None).await.unwrap();
}

#[tokio::test]
async fn a_higher_role_ends_sessions_and_a_lower_one_counts_at_once() {
    let world = world().await;
    let people = &world.service.people;
    let (owner, other) = (signed_in(&world, Role::Owner).await, signed_in(&world, Role::Editor).await);
    let session = world.service.people.test_session(world.owner.id, other.person.id).await;
    let role = || people.authenticate(&session.token).unwrap().map(|session| session.role);
    assert!(!people.change_role(&owner, other.person.id, Role::Viewer).await.unwrap());
    assert_eq!(role(), Some(Role::Viewer), "the session goes on with less");
    assert!(!people.change_role(&owner, other.person.id, Role::Viewer).await.unwrap(), "nothing changes");
    assert!(people.change_role(&owner, other.person.id, Role::Owner).await.unwrap());
    assert_eq!((role(), is_signed_in(&world, &other)), (None, false), "no old session becomes an owner's");
    let members = people.list_members(&owner.caller()).await.unwrap();
    let mut roles: Vec<_> = members.iter().map(|it| (it.role, it.last_seen_at.is_some())).collect();
    // Persons of one moment have no fixed order.
    roles.sort_by_key(|(_, was_seen)| !was_seen);
    assert_eq!(roles, [(Role::Owner, true), (Role::Owner, false)]);
    assert_eq!(people.change_role(&owner, PersonId::from_u128(1), Role::Owner).await, Err(ServiceError::NotFound));
}

#[tokio::test]
async fn the_last_owner_stays_and_two_owners_cannot_lower_each_other() {
    let world = world().await;
    let people = &world.service.people;
    let owner = signed_in(&world, Role::Owner).await;
    let expected = "role make someone else owner first";
    for role in [Role::Editor, Role::Viewer] {
        assert_eq!(rule(people.change_role(&owner, owner.person.id, role).await.unwrap_err()), expected);
    }
    assert_eq!(rule(people.remove_member(&owner, owner.person.id, None).await.unwrap_err()), expected);
    let second = signed_in(&world, Role::Owner).await;
    for role in [Role::Editor, Role::Viewer] {
        let refused = people.change_role(&owner, owner.person.id, role).await.unwrap_err();
        assert_eq!(rule(refused), "role ask another owner to change your own role");
    }
    assert_eq!(people.change_role(&owner, owner.person.id, Role::Owner).await, Ok(false), "nothing changes");
    let (first, other) = tokio::join!(
        people.change_role(&owner, second.person.id, Role::Viewer),
        people.change_role(&second, owner.person.id, Role::Viewer),
    );
    let refused = ServiceError::RoleForbids { role: Role::Viewer };
    assert!(matches!((&first, &other), (Ok(false), Err(_)) | (Err(_), Ok(false))), "{first:?} {other:?}");
    assert_eq!(first.err().or(other.err()), Some(refused), "the one who was lowered changes nothing");
    let owners = people.members(world.owner.id).await.unwrap().into_iter().filter(|(_, role)| *role == Role::Owner);
    assert_eq!(owners.count(), 1);
}

#[tokio::test]
async fn a_removed_member_is_signed_out_of_that_account_alone() {
    let world = world().await;
    let people = &world.service.people;
    let owner = signed_in(&world, Role::Owner).await;
    let token = invite(&world, &owner, "ann@example.com", Role::Viewer).await.unwrap();
    let ann = join(&world, &token, PASSWORD).await.unwrap();
    let accounts = world.service.accounts.list().await.unwrap();
    let foreign = accounts.into_iter().find(|account| account.id == world.foreign.account).unwrap();
    let stranger = current(&world, &world.signed_in_at(&foreign, Role::Owner).await);
    let token = invite(&world, &stranger, "ann@example.com", Role::Editor).await.unwrap();
    let elsewhere = join(&world, &token, PASSWORD).await.unwrap();
    assert_eq!((elsewhere.session.account, elsewhere.role), (foreign.id, Role::Editor));
    people.remove_member(&owner, ann.person.id, None).await.unwrap();
    assert!(!is_signed_in(&world, &ann) && is_signed_in(&world, &elsewhere));
    let again = sign_in(&world, "ann@example.com", PASSWORD).await.unwrap();
    assert_eq!(again.session.account, foreign.id, "their other account");
    people.remove_member(&stranger, ann.person.id, None).await.unwrap();
    assert_eq!(sign_in(&world, "ann@example.com", PASSWORD).await.unwrap_err(), ServiceError::WrongCredentials);
    // An owner may leave once there is another.
    let second = signed_in(&world, Role::Owner).await;
    people.remove_member(&second, second.person.id, None).await.unwrap();
    assert!(!is_signed_in(&world, &second));
}

#[tokio::test]
async fn an_invitation_works_once_and_for_seven_days() {
    let world = world().await;
    let people = &world.service.people;
    let owner = signed_in(&world, Role::Owner).await;
    let token = invite(&world, &owner, " Ann@Example.com ", Role::Editor).await.unwrap();
    let shown = people.invitation(&token, None).unwrap().unwrap();
    let expected = ("ann@example.com", "owner@example.com", Role::Editor, InvitedPerson::New);
    assert_eq!((shown.email.as_str(), shown.account.as_str(), shown.role, shown.person), expected);
    assert_eq!(rule(join(&world, &token, "short").await.unwrap_err()), "password must be at least 10 characters");
    let ann = join(&world, &token, PASSWORD).await.unwrap();
    assert_eq!((ann.session.account, ann.role, ann.person.display_name()), (world.owner.id, Role::Editor, "Ann"));
    assert_eq!(join(&world, &token, PASSWORD).await.unwrap_err(), ServiceError::NotFound, "used");
    assert!(people.invitations(&owner.caller()).await.unwrap().is_empty());
    assert_eq!(
        rule(invite(&world, &owner, "ann@example.com", Role::Owner).await.unwrap_err()),
        "email is already a member"
    );
    assert_eq!(
        rule(invite(&world, &owner, "nobody", Role::Owner).await.unwrap_err()),
        "email must be an email address"
    );

    let first = invite(&world, &owner, "bob@example.com", Role::Viewer).await.unwrap();
    let second = invite(&world, &owner, "bob@example.com", Role::Editor).await.unwrap();
    assert_eq!(people.invitation(&first, None).unwrap(), None, "a new one ends the old one");
    let open = people.invitations(&owner.caller()).await.unwrap();
    assert_eq!(
        open.iter().map(|it| (it.email.as_str(), it.role)).collect::<Vec<_>>(),
        [("bob@example.com", Role::Editor)]
    );
    world.clock.set(world.service.now() + 1);
    people.resend_invitation(&owner, &open[0].id, None).await.unwrap();
    let third = mailed(&world, "person.invitation", LINK);
    assert_eq!(people.invitation(&second, None).unwrap(), None);
    assert_eq!(people.invitation(&third, None).unwrap().unwrap().role, Role::Editor);
    let id = people.invitations(&owner.caller()).await.unwrap().remove(0).id;
    people.revoke_invitation(&owner.caller(), &id, None).await.unwrap();
    assert_eq!(join(&world, &third, PASSWORD).await.unwrap_err(), ServiceError::NotFound, "revoked");

    let token = invite(&world, &owner, "eve@example.com", Role::Viewer).await.unwrap();
    world.clock.set(world.service.now() + 7 * DAY);
    assert_eq!(join(&world, &token, PASSWORD).await.unwrap_err(), ServiceError::NotFound, "ended");
    assert!(people.invitations(&owner.caller()).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_person_joins_a_second_account_by_password_or_session_and_chooses_between_them() {
    let world = world().await;
    let people = &world.service.people;
    let owner = signed_in(&world, Role::Owner).await;
    let accounts = world.service.accounts.list().await.unwrap();
    let foreign = accounts.into_iter().find(|account| account.id == world.foreign.account).unwrap();
    let stranger = current(&world, &world.signed_in_at(&foreign, Role::Owner).await);
    let first = invite(&world, &owner, "ann@example.com", Role::Viewer).await.unwrap();
    let second = invite(&world, &stranger, "ann@example.com", Role::Owner).await.unwrap();
    let ann = join(&world, &first, PASSWORD).await.unwrap();
    assert_eq!(people.invitation(&second, None).unwrap().unwrap().person, InvitedPerson::WithPassword);
    assert_eq!(people.invitation(&second, Some(&ann)).unwrap().unwrap().person, InvitedPerson::SignedIn);
    assert_eq!(join(&world, &second, "wrong password").await.unwrap_err(), ServiceError::WrongCredentials);
    // Another person's session proves nothing.
    let details = JoinDetails::default();
    let by_owner = people.join(&second, &details, Some(&owner), &BrowserInfo::default()).await;
    assert_eq!(by_owner.unwrap_err(), ServiceError::WrongCredentials);
    world.clock.set(world.service.now() + HOUR);
    let joined = people.join(&second, &details, Some(&ann), &BrowserInfo::default()).await.unwrap().session().unwrap();
    let there = current(&world, &joined);
    assert_eq!((there.session.account, there.role), (foreign.id, Role::Owner));
    assert!(there.session.id != ann.session.id && !is_signed_in(&world, &ann), "a new id");
    assert!(people.require_confirmed(&there).is_err(), "joining proves no password");

    let choices = people.accounts(&there).await.unwrap();
    let shown: Vec<_> = choices.iter().map(|it| (it.email.as_str(), it.role, it.is_current)).collect();
    assert_eq!(shown, [("owner@example.com", Role::Viewer, false), ("stranger@example.com", Role::Owner, true)]);
    assert_eq!((choices[0].pages.join(" "), choices[0].page_count), ("Blog Shop".to_owned(), 2));
    let back = current(&world, &people.choose_account(&there, world.owner.id).await.unwrap().session().unwrap());
    assert_eq!((back.role, back.session.created_at), (Role::Viewer, ann.session.created_at), "no younger");
    assert!(people.require_confirmed(&back).is_err() && !is_signed_in(&world, &there));
    assert_eq!(people.choose_account(&stranger, world.owner.id).await.unwrap_err(), ServiceError::NotFound);
}

#[tokio::test]
async fn a_member_who_was_invited_before_keeps_their_role() {
    let world = world().await;
    let people = &world.service.people;
    let owner = signed_in(&world, Role::Owner).await;
    let accounts = world.service.accounts.list().await.unwrap();
    let foreign = accounts.into_iter().find(|account| account.id == world.foreign.account).unwrap();
    let stranger = current(&world, &world.signed_in_at(&foreign, Role::Owner).await);
    // Without a password they sign in first.
    let token = invite(&world, &owner, &stranger.person.email, Role::Viewer).await.unwrap();
    assert_eq!(people.invitation(&token, None).unwrap().unwrap().person, InvitedPerson::WithoutPassword);
    assert_eq!(join(&world, &token, PASSWORD).await.unwrap_err(), ServiceError::WrongCredentials);
    let details = JoinDetails::default();
    let joined = people.join(&token, &details, Some(&stranger), &BrowserInfo::default()).await.unwrap();
    let joined = joined.session().unwrap();
    let joined = current(&world, &joined);
    assert_eq!(joined.role, Role::Viewer);
    assert!(!people.change_role(&owner, joined.person.id, Role::Viewer).await.unwrap());
}

#[tokio::test]
async fn invitations_are_bounded_in_number_and_rate() {
    let world = world().await;
    let people = &world.service.people;
    let refused = async |email: &str| {
        let owner = signed_in(&world, Role::Owner).await;
        invite(&world, &owner, email, Role::Viewer).await.unwrap_err()
    };
    let mut sent = 0;
    while sent < MAX_OPEN_INVITATIONS {
        let owner = signed_in(&world, Role::Owner).await;
        for _ in 0..INVITATIONS_PER_HOUR.min((MAX_OPEN_INVITATIONS - sent) as u32) {
            // What is refused for another reason counts for no limit.
            for email in ["nobody", &owner.person.email] {
                assert!(invite(&world, &owner, email, Role::Viewer).await.is_err(), "{email}");
            }
            invite(&world, &owner, &format!("p{sent}@example.com"), Role::Viewer).await.unwrap();
            sent += 1;
        }
        if sent < MAX_OPEN_INVITATIONS {
            let refused = refused("more@example.com").await;
            assert!(matches!(refused, ServiceError::InvitationLimit { seconds } if seconds <= 3600), "{refused:?}");
            world.clock.set(world.service.now() + HOUR);
        }
    }
    let full = ServiceError::PlanLimit(PlanLimitError::InvitationsFull);
    assert_eq!(refused("more@example.com").await, full);
    let owner = signed_in(&world, Role::Owner).await;
    for _ in 0..2 {
        invite(&world, &owner, "p49@example.com", Role::Viewer).await.unwrap();
    }
    // A new link counts like a new invitation.
    let open = people.invitations(&owner.caller()).await.unwrap();
    let last = open.iter().find(|it| it.email == "p49@example.com").unwrap();
    let again = people.resend_invitation(&owner, &last.id, None).await.unwrap_err();
    assert!(matches!(again, ServiceError::InvitationLimit { seconds } if seconds <= 3600), "{again:?}");
    // The same mailbox with a tag is the same.
    people.revoke_invitation(&owner.caller(), &last.id, None).await.unwrap();
    let again = refused("p49+tag@example.com").await;
    assert!(matches!(again, ServiceError::InvitationLimit { seconds } if seconds <= 3600), "{again:?}");
}

#[tokio::test]
async fn a_forgotten_password_is_replaced_once_and_everything_of_before_ends() {
    let world = world().await;
    let people = &world.service.people;
    let owner = signed_in(&world, Role::Owner).await;
    let token = invite(&world, &owner, "ann@example.com", Role::Viewer).await.unwrap();
    let ann = join(&world, &token, PASSWORD).await.unwrap();
    let ask = async || {
        world.clock.set(world.service.now() + 1);
        people.request_password_reset("Ann@example.com", None).await.unwrap();
    };
    people.request_password_reset("nobody@example.com", None).await.unwrap();
    assert!(world.sent_of_no_page("person.password-reset").is_empty());
    ask().await;
    let first = mailed(&world, "person.password-reset", RESET);
    ask().await;
    let second = mailed(&world, "person.password-reset", RESET);
    assert_eq!(people.password_reset_email(&first).unwrap().as_deref(), Some("ann@example.com"));
    assert_eq!(
        rule(people.reset_password(&first, "short", &BrowserInfo::default()).await.unwrap_err()),
        "password must be at least 10 characters"
    );
    for _ in 0..10 {
        assert_eq!(sign_in(&world, "ann@example.com", "wrong").await.unwrap_err(), ServiceError::WrongCredentials);
    }
    people.reset_password(&first, "another horse", &BrowserInfo::default()).await.unwrap();
    assert!(!is_signed_in(&world, &ann) && is_signed_in(&world, &owner));
    for link in [&first, &second] {
        assert_eq!(people.password_reset_email(link).unwrap(), None);
        assert_eq!(
            people.reset_password(link, "a third horse", &BrowserInfo::default()).await.unwrap_err(),
            ServiceError::NotFound
        );
    }
    assert!(sign_in(&world, "ann@example.com", "another horse").await.is_ok(), "earlier failures don't delay them");
    assert_eq!(sign_in(&world, "ann@example.com", PASSWORD).await.unwrap_err(), ServiceError::WrongCredentials);
    // Links for sign-in count for the same three an hour.
    let email = "ann@example.com".to_owned();
    let link = DashboardLinkRequest { email, browser: [7; 16], network: None, next: String::new(), is_kept: false };
    people.request_link(&link).await.unwrap();
    ask().await;
    let sent = || (world.sent_of_no_page("person.password-reset").len(), world.sent_of_no_page("person.sign-in").len());
    assert_eq!(sent(), (2, 1), "the fourth is not sent");
    // Strangers elsewhere did not use up theirs.
    people.request_password_reset("ann@example.com", Some(1)).await.unwrap();
    assert_eq!(sent(), (3, 1));
    world.clock.set(world.service.now() + HOUR);
    ask().await;
    assert_eq!(sent(), (4, 1));
    let third = mailed(&world, "person.password-reset", RESET);
    world.clock.set(world.service.now() + HOUR);
    assert_eq!(people.password_reset_email(&third).unwrap(), None, "an hour is over");
}
