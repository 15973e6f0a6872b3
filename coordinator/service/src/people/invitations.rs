//! Invitations to an account: mailed, listed, sent again and revoked by its owners.
//!
//! An invitation is answered alike, and a mail sent, whether the address belongs to someone or not.

use parallax_core::delivery::DeliveryMessage;
use parallax_core::id::AccountId;
use parallax_core::one_time_link::{LinkKind, LinkOwner, OneTimeLink};
use parallax_core::page::access::normalize_email;
use parallax_core::person::{MAX_MEMBERS, MAX_OPEN_INVITATIONS};
use parallax_core::plan::PlanLimitError;
use parallax_core::role::{Permission, Role};
use parallax_core::time::Timestamp;
use parallax_core::validation::ValidationErrors;
use parallax_notify::render;
use parallax_store::{Batch, Expect, Op, Presence};

use super::{CurrentSession, PeopleService};
use crate::idempotency::{IdempotencyKey, IdempotentRequest};
use crate::{Caller, ServiceError, ServiceResult, secret_text};

/// Event name of deliveries with an invitation.
const EVENT: &str = "person.invitation";

/// An open invitation, as the account's owners see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberInvitation {
    /// Short id, which names it among the account's.
    pub id: String,
    /// The invited person's email address.
    pub email: String,
    /// Their role, once they join.
    pub role: Role,
    /// Time at which it was sent.
    pub sent_at: Timestamp,
    /// Time at which its link ends.
    pub expires_at: Timestamp,
}

/// The invitation to send.
#[derive(Clone, Copy)]
enum InvitationSubject<'a> {
    New {
        email: &'a str,
        role: Role,
    },
    /// One that the account has, by its short id.
    Open {
        id: &'a str,
    },
}

impl PeopleService {
    /// Lists the open invitations of the caller's account, the last sent first.
    ///
    /// # Errors
    /// [`ServiceError::RoleForbids`].
    pub async fn invitations(&self, caller: &Caller) -> ServiceResult<Vec<MemberInvitation>> {
        caller.require(Permission::ManageAccount)?;
        let links = self.open_invitations(caller.account).await?;
        let mut invitations: Vec<MemberInvitation> = links.iter().filter_map(invitation_of).collect();
        invitations.sort_by_key(|it| (std::cmp::Reverse(it.sent_at), it.id.clone()));
        Ok(invitations)
    }

    /// Invites a person to the caller's account. An earlier invitation to the same address ends. A form that was sent
    /// before sends nothing again.
    ///
    /// # Errors
    /// [`ServiceError::RoleForbids`], [`ServiceError::ConfirmationRequired`], [`ServiceError::Invalid`] for an address
    /// that breaks a rule or is a member's, and where no mail is sent; [`ServiceError::PlanLimit`] for too many members
    /// or invitations, [`ServiceError::InvitationLimit`].
    pub async fn invite(
        &self,
        current: &CurrentSession,
        (email, role): (&str, Role),
        once: Option<IdempotencyKey>,
    ) -> ServiceResult<()> {
        self.begin_member_change(current)?;
        let email = normalize_email(email).map_err(|rule| ValidationErrors::single("email", rule))?;
        self.send_invitation(current, InvitationSubject::New { email: &email, role }, once).await
    }

    /// Sends an open invitation again, with a new link; the old one ends. A form that was sent before sends nothing
    /// again.
    ///
    /// # Errors
    /// As [`Self::invite`], and [`ServiceError::NotFound`] for an invitation that the account does not have.
    pub async fn resend_invitation(
        &self,
        current: &CurrentSession,
        id: &str,
        once: Option<IdempotencyKey>,
    ) -> ServiceResult<()> {
        self.begin_member_change(current)?;
        self.send_invitation(current, InvitationSubject::Open { id }, once).await
    }

    /// Revokes an open invitation. A form that was sent before is answered alike.
    ///
    /// # Errors
    /// [`ServiceError::RoleForbids`], [`ServiceError::NotFound`] for an invitation that the account does not have.
    pub async fn revoke_invitation(
        &self,
        caller: &Caller,
        id: &str,
        once: Option<IdempotencyKey>,
    ) -> ServiceResult<()> {
        caller.require(Permission::ManageAccount)?;
        let account = caller.account;
        let once = &IdempotentRequest::new(once, &|(): &()| Vec::new());
        let is_revoked = self
            .context
            .commit_change(account.to_u128(), || async move {
                if self.context.replayed_answer(once)?.is_some() {
                    return Ok((false, None));
                }
                let link = self.invitation_named(account, id).await?;
                let mut batch = Batch::new();
                // Not one that its person is using now.
                batch.expect(Expect::OneTimeLink(link.id, Presence::Present)).write(Op::DeleteOneTimeLink(link.id));
                self.context.log_change(caller, &mut batch)?;
                self.context.store_answer(once, &(), &mut batch)?;
                Ok((true, Some(batch)))
            })
            .await?;
        if is_revoked {
            tracing::info!(%account, invitation = id, by = %caller.limit_id(), "an invitation was revoked");
        }
        Ok(())
    }

    async fn send_invitation(
        &self,
        current: &CurrentSession,
        subject: InvitationSubject<'_>,
        once: Option<IdempotencyKey>,
    ) -> ServiceResult<()> {
        let account = current.session.account;
        let once = &IdempotentRequest::new(once, &|(): &()| Vec::new());
        let token = &secret_text::random_token(rand::random());
        let sent = self
            .context
            .commit_change(account.to_u128(), || async move {
                // Also the second of two clicks, which waited for the first.
                if self.context.replayed_answer(once)?.is_some() {
                    return Ok((None, None));
                }
                let mut batch = Batch::new();
                self.expect_owner(current, &mut batch)?;
                if !self.sends_mail() {
                    let rule = "can't be invited: this installation sends no mail";
                    return Err(ValidationErrors::single("email", rule).into());
                }
                let (email, role) = self.invitee(account, subject, &mut batch).await?;
                self.check_company_address(account, (&email, role))?;
                self.check_invitable(account, &email).await?;
                // The last check: nothing is counted for an invitation that is refused.
                let charge = self.invitation_limits.charge(account, &email, self.context.now());
                let charge = charge.map_err(|exceeded| ServiceError::InvitationLimit { seconds: exceeded.seconds })?;
                self.end_links(LinkOwner::Account(account), |link| is_to(link, &email), &mut batch).await?;
                let kind = LinkKind::Invitation { account, email: email.clone(), role };
                let expires_at = self.add_link(token, (kind, false), &mut batch).await?;
                let stored = self.context.store().reader().account(account)?.ok_or(ServiceError::NotFound)?.value;
                let base_url = self.context.base_url();
                let url = format!("{base_url}/invite/{token}");
                let people = (current.person.email.as_str(), stored.email.as_str());
                let mail = DeliveryMessage::Mail(render::member_invitation(base_url, people, role, &url));
                self.context.mail_visitor((None, EVENT), &email, mail, expires_at, &mut batch);
                self.context.log_change(current.author(), &mut batch)?;
                self.context.store_answer(once, &(), &mut batch)?;
                Ok((Some((charge, role)), Some(batch)))
            })
            .await?;
        if let Some((mut charge, role)) = sent {
            charge.sent();
            self.context.deliveries_due.notify_one();
            tracing::info!(%account, by = %current.person.id, role = role.name(), "an invitation was sent");
        }
        Ok(())
    }

    /// Returns the address and role of an invitation to send. An open one is to exist still when the batch is committed.
    async fn invitee(
        &self,
        account: AccountId,
        subject: InvitationSubject<'_>,
        batch: &mut Batch,
    ) -> ServiceResult<(String, Role)> {
        let id = match subject {
            InvitationSubject::New { email, role } => return Ok((email.to_owned(), role)),
            InvitationSubject::Open { id } => id,
        };
        let link = self.invitation_named(account, id).await?;
        batch.expect(Expect::OneTimeLink(link.id, Presence::Present));
        let LinkKind::Invitation { email, role, .. } = link.kind else { return Err(ServiceError::NotFound) };
        Ok((email, role))
    }

    /// Checks that members of an account that requires company sign-in have addresses of its email domains: others could
    /// not get in.
    fn check_company_address(&self, account: AccountId, (email, role): (&str, Role)) -> ServiceResult<()> {
        if self.can_get_in(account, (email, role))? {
            return Ok(());
        }
        let rule = "must be of an email domain of this account: company sign-in is required for its members";
        Err(ValidationErrors::single("email", rule).into())
    }

    /// Checks that an address may be invited: it is no member's, but for one who enters by company sign-in alone, which the
    /// invitation ends. It says nothing about persons who are no members.
    async fn check_invitable(&self, account: AccountId, email: &str) -> ServiceResult<()> {
        let members = self.context.store().read(move |store| store.members_of(account)).await?;
        let person = self.context.store().reader().person_by_email(email)?;
        let member = person.and_then(|person| members.iter().find(|it| it.value.person == person.value.id));
        if member.is_some_and(|it| !it.value.is_company_only) {
            return Err(ValidationErrors::single("email", "is already a member").into());
        }
        if member.is_none() && members.len() >= MAX_MEMBERS {
            return Err(PlanLimitError::MembersFull.into());
        }
        let open = self.open_invitations(account).await?;
        if open.iter().filter(|link| !is_to(link, email)).count() >= MAX_OPEN_INVITATIONS {
            return Err(PlanLimitError::InvitationsFull.into());
        }
        Ok(())
    }

    pub(super) async fn open_invitations(&self, account: AccountId) -> ServiceResult<Vec<OneTimeLink>> {
        let now = self.context.now();
        let links = self.links_of(LinkOwner::Account(account)).await?.into_iter();
        Ok(links.filter(|link| matches!(link.kind, LinkKind::Invitation { .. }) && link.is_valid(now)).collect())
    }

    async fn invitation_named(&self, account: AccountId, id: &str) -> ServiceResult<OneTimeLink> {
        let mut open = self.open_invitations(account).await?.into_iter();
        open.find(|link| link.id.short() == id).ok_or(ServiceError::NotFound)
    }
}

/// Returns true for an invitation to that address.
pub(super) fn is_to(link: &OneTimeLink, invited: &str) -> bool {
    matches!(&link.kind, LinkKind::Invitation { email, .. } if email == invited)
}

fn invitation_of(link: &OneTimeLink) -> Option<MemberInvitation> {
    let LinkKind::Invitation { email, role, .. } = &link.kind else { return None };
    let (expires_at, sent_at) = (link.expires_at, link.expires_at - link.kind.life());
    Some(MemberInvitation { id: link.id.short(), email: email.clone(), role: *role, sent_at, expires_at })
}
