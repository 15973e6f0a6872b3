//! Members of the account: their roles and removal, and invitations; for its owners alone.

use std::sync::Arc;

use ::http::{Method, StatusCode};
use futures_util::FutureExt;
use parallax_core::id::PersonId;
use parallax_core::role::Role;
use parallax_core::validation::ValidationErrors;
use parallax_service::ServiceError;
use parallax_service::people::{MemberDetails, MemberInvitation};

use super::confirm::ask_to_confirm;
use super::forms::{Form, FormRefusal, FormStatus, ONCE, SubmittedForm, new_key};
use super::frame::frame;
use super::page_screen::{reply, reply_with};
use super::session_cookie::without_session;
use super::{SignedIn, screen, see_other};
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::response::HttpResponse;
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::alerts::QuestionScreen;
use crate::views::dashboard::members::{InvitationRow, InviteScreen, MemberRow, MembersScreen};
use crate::views::dashboard::{MessagePage, Section, Toast, time};

/// Address of the list.
const MEMBERS: &str = "/app/account/members";
/// Reason for refusing a change of someone who left meanwhile.
const NO_MEMBER: &str = "Not found, or you have no access. The member may have left the account.";
/// Reason for refusing a change of an invitation that is no longer open.
const NO_INVITATION: &str =
    "Not found, or you have no access. The invitation may have been used, sent again or revoked, or has ended.";
/// Address of the form for an invitation.
const INVITE: &str = "/app/account/members/invite";

/// Address of the setting that members need a second factor.
const NEED: &str = "/app/account/members/second-factor";

/// Routes of members and invitations.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    const GET: Method = Method::GET;
    const POST: Method = Method::POST;
    vec![
        (MEMBERS, vec![(GET, signed_in_route(|context, call| list(context, call).boxed()))]),
        (
            INVITE,
            vec![
                (GET, signed_in_route(|context, call| show_form(context, call).boxed())),
                (POST, signed_in_route(|context, call| invite(context, call).boxed())),
            ],
        ),
        (NEED, vec![(POST, signed_in_route(|context, call| set_factor_needed(context, call).boxed()))]),
        (
            "/app/account/members/{person}/role",
            vec![(POST, signed_in_route(|context, call| change_role(context, call).boxed()))],
        ),
        (
            "/app/account/members/{person}/remove",
            vec![
                (GET, signed_in_route(|context, call| ask_to_remove(context, call).boxed())),
                (POST, signed_in_route(|context, call| remove(context, call).boxed())),
            ],
        ),
        (
            "/app/account/members/invitations/{memberInvitation}/resend",
            vec![(POST, signed_in_route(|context, call| resend(context, call).boxed()))],
        ),
        (
            "/app/account/members/invitations/{memberInvitation}/revoke",
            vec![(POST, signed_in_route(|context, call| revoke(context, call).boxed()))],
        ),
    ]
}

/// `GET /app/account/members`
async fn list(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    reply(&members_screen(&context, &mut call).await?)
}

/// `POST /app/account/members/{person}/role`
async fn change_role(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let SubmittedForm { form, .. } = SubmittedForm::read(&mut call).await?;
    let person: PersonId = call.id("person")?;
    let changed = match Role::read(form.text("role")) {
        Ok(role) => context.service.people.change_role(&call.caller.session, person, role).await,
        Err(rule) => Err(ValidationErrors::single("role", rule).into()),
    };
    match changed {
        Ok(true) => Ok(see_other(&Toast::address(MEMBERS, "role-raised", 1))),
        Ok(false) => Ok(see_other(&Toast::address(MEMBERS, "role-changed", 1))),
        Err(error) => refused(&context, &mut call, error, NO_MEMBER).await,
    }
}

/// `POST /app/account/members/second-factor`: members need one with `needed=on`.
async fn set_factor_needed(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let SubmittedForm { form, .. } = SubmittedForm::read(&mut call).await?;
    let is_needed = form.text("needed") == "on";
    match context.service.people.set_factor_needed(&call.caller.session, is_needed).await {
        Ok(()) => Ok(see_other(&Toast::address(MEMBERS, if is_needed { "factor-needed" } else { "saved" }, 1))),
        Err(error) => refused(&context, &mut call, error, NO_MEMBER).await,
    }
}

/// `GET /app/account/members/{person}/remove`: the question before.
async fn ask_to_remove(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let person: PersonId = call.id("person")?;
    let member = match context.service.people.member_to_change(&call.caller.session, person).await {
        Ok(member) => member,
        Err(ServiceError::ConfirmationRequired) => return Ok(ask_to_confirm(MEMBERS)),
        Err(error) => return Err(error.into()),
    };
    let is_you = person == call.caller.session.person.id;
    let name = member.name.unwrap_or(member.email);
    let lost = if is_you { "You lose" } else { "They lose" };
    let mut text =
        format!("{lost} access to this account at once. API keys keep working: revoke those that they should not use.");
    if context.service.people.company_provider(call.caller.session.session.account)?.is_some() {
        text.push_str(" Who still has a sign-in at your company's provider can come back by it as a viewer.");
    }
    reply(&QuestionScreen {
        href: format!("{MEMBERS}/{person}/remove"),
        back: MEMBERS.to_owned(),
        title: if is_you { "Leave this account?".to_owned() } else { format!("Remove {name}?") },
        text,
        act: if is_you { "Leave" } else { "Remove member" },
        keep: "Cancel",
        form: Form::default().view(&call.caller.form_token),
        frame: frame(&context, &mut call, None, Section::Account).await?,
    })
}

/// `POST /app/account/members/{person}/remove`
async fn remove(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let SubmittedForm { idempotency_key, .. } = SubmittedForm::read(&mut call).await?;
    let person: PersonId = call.id("person")?;
    match context.service.people.remove_member(&call.caller.session, person, idempotency_key).await {
        // Their own session has ended.
        Ok(()) if person == call.caller.session.person.id => Ok(without_session(&context, see_other("/sign-in"))),
        Ok(()) => Ok(see_other(&Toast::address(MEMBERS, "member-removed", 1))),
        Err(error) => refused(&context, &mut call, error, NO_MEMBER).await,
    }
}

/// `GET /app/account/members/invite`: the form, once the person confirmed, so that nothing typed is lost.
async fn show_form(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    if let Some(redirect) = confirmation_first(&context, &call)? {
        return Ok(redirect);
    }
    let form = Form::of([("role", Role::Viewer.name())]);
    reply(&invite_screen(&context, &mut call, &form, None).await?)
}

/// `POST /app/account/members/invite`
async fn invite(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let SubmittedForm { form, idempotency_key } = SubmittedForm::read(&mut call).await?;
    if let Some(redirect) = confirmation_first(&context, &call)? {
        return Ok(redirect);
    }
    let sent = match Role::read(form.text("role")) {
        Ok(role) => {
            let invited = (form.text("email"), role);
            context.service.people.invite(&call.caller.session, invited, idempotency_key).await
        }
        Err(rule) => Err(ValidationErrors::single("role", rule).into()),
    };
    match sent {
        Ok(()) => Ok(see_other(&Toast::address(MEMBERS, "invitation-sent", 1))),
        Err(error) => {
            let refusal = FormRefusal::of(error)?;
            let status = refusal.status.clone();
            let again = invite_screen(&context, &mut call, &form, Some(refusal)).await?;
            reply_with(&again, status)
        }
    }
}

/// `POST /app/account/members/invitations/{memberInvitation}/resend`
async fn resend(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let SubmittedForm { idempotency_key, .. } = SubmittedForm::read(&mut call).await?;
    let id = call.path_param("memberInvitation")?;
    match context.service.people.resend_invitation(&call.caller.session, id, idempotency_key).await {
        Ok(()) => Ok(see_other(&Toast::address(MEMBERS, "invitation-sent", 1))),
        Err(error) => refused(&context, &mut call, error, NO_INVITATION).await,
    }
}

/// `POST /app/account/members/invitations/{memberInvitation}/revoke`
async fn revoke(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let SubmittedForm { idempotency_key, .. } = SubmittedForm::read(&mut call).await?;
    let id = call.path_param("memberInvitation")?;
    match context.service.people.revoke_invitation(&call.caller.caller, id, idempotency_key).await {
        Ok(()) => Ok(see_other(&Toast::address(MEMBERS, "invitation-revoked", 1))),
        Err(error) => refused(&context, &mut call, error, NO_INVITATION).await,
    }
}

/// Returns the redirect to the confirmation that an invitation needs; none for an owner who confirmed.
fn confirmation_first(
    context: &HttpContext,
    call: &RoutedRequest<SignedIn>,
) -> Result<Option<HttpResponse>, ServiceError> {
    match context.service.people.check_may_invite(&call.caller.session) {
        Ok(()) => Ok(None),
        Err(ServiceError::ConfirmationRequired) => Ok(Some(ask_to_confirm(INVITE))),
        Err(error) => Err(error),
    }
}

/// Draws the list again with the reason why a change was refused, or asks for a confirmation first. A change without an
/// object gets a page with the reason `missing`, which is the same for ids of other accounts.
async fn refused(
    context: &HttpContext,
    call: &mut RoutedRequest<SignedIn>,
    error: ServiceError,
    missing: &str,
) -> HandlerResult {
    let FormRefusal { status, faults, problem } = match error {
        ServiceError::ConfirmationRequired => return Ok(ask_to_confirm(MEMBERS)),
        ServiceError::NotFound => {
            let page = MessagePage::new("Nothing was changed", missing.to_owned()).with_link(MEMBERS, "Members");
            return Ok(screen(page.html()).with_status(StatusCode::NOT_FOUND));
        }
        error => FormRefusal::of(error)?,
    };
    let reasons: Vec<String> = faults.into_iter().map(|fault| fault.text).chain(problem).collect();
    let again = MembersScreen { problem: reasons.join(" "), ..members_screen(context, call).await? };
    reply_with(&again, status)
}

async fn members_screen(context: &HttpContext, call: &mut RoutedRequest<SignedIn>) -> Result<MembersScreen, ApiError> {
    let (people, now, you) = (&context.service.people, context.service.now(), call.caller.session.person.id);
    let members = people.list_members(&call.caller.caller).await?;
    let invitations = people.invitations(&call.caller.caller).await?;
    let is_factor_needed = people.is_factor_needed(&call.caller.session)?;
    let member = |it: MemberDetails| MemberRow {
        id: it.person.to_string(),
        is_you: it.person == you,
        role: it.role,
        has_factor: it.has_factor,
        joined: time(it.joined_at, now),
        last_seen: it.last_seen_at.map(|at| time(at, now)),
        email: it.name.is_some().then(|| it.email.clone()),
        name: it.name.unwrap_or(it.email),
    };
    let invitation = |it: MemberInvitation| InvitationRow {
        id: it.id,
        email: it.email,
        role: it.role,
        sent: time(it.sent_at, now),
        ends: time(it.expires_at, now),
    };
    Ok(MembersScreen {
        members: members.into_iter().map(member).collect(),
        invitations: invitations.into_iter().map(invitation).collect(),
        sends_mail: people.sends_mail(),
        is_factor_needed,
        problem: String::new(),
        once: new_key(),
        frame: frame(context, call, None, Section::Account).await?,
    })
}

async fn invite_screen(
    context: &HttpContext,
    call: &mut RoutedRequest<SignedIn>,
    form: &Form,
    refusal: Option<FormRefusal>,
) -> Result<InviteScreen, ApiError> {
    let refusal = refusal.unwrap_or(FormRefusal { status: FormStatus::OK, faults: Vec::new(), problem: None });
    let once = Some(form.text(ONCE)).filter(|once| !once.is_empty()).map(str::to_owned);
    // The role has no place for its fault: only a forged form breaks its rule.
    let role_fault = Some(refusal.fault("role")).filter(|fault| !fault.is_empty());
    Ok(InviteScreen {
        frame: frame(context, call, None, Section::Account).await?,
        email: form.text("email").to_owned(),
        email_fault: refusal.fault("email"),
        role: form.text("role").to_owned(),
        problem: refusal.problem.or(role_fault).unwrap_or_default(),
        idempotency_key: once.unwrap_or_else(new_key),
    })
}
