//! A new password by a mailed link, for a person who forgot theirs.
//!
//! The link is bound to no browser: people open mail on their phone. It signs nobody in, so a second factor stays one.

use parallax_core::id::PersonId;
use parallax_core::one_time_link::{LinkKind, OneTimeLink};
use parallax_core::page::access::normalize_email;
use parallax_core::person::check_password;
use parallax_core::validation::ValidationErrors;
use parallax_notify::render;
use parallax_store::{Batch, Expect, Presence, VersionedValue};

use super::{BrowserInfo, PeopleService};
use crate::audit::ChangeAuthor;
use crate::page_access::password;
use crate::{ServiceError, ServiceResult};

/// Event name of deliveries with such a link.
const EVENT: &str = "person.password-reset";

impl PeopleService {
    /// Mails a link for a new password if a person has the address. The answer and the work are the same whether anyone
    /// has it or not. Links for sign-in count for the same limit.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read or written.
    pub async fn request_password_reset(&self, email: &str, network: Option<u128>) -> ServiceResult<()> {
        let email = normalize_email(email).unwrap_or_default();
        let person = self.context.store().reader().person_by_email(&email)?.map(|person| person.value);
        let person = person.filter(|person| self.admit_link(&person.email, network));
        let kind = person.map(|person| LinkKind::PasswordReset { person: person.id });
        let mail = |token: &str| {
            let base_url = self.context.base_url();
            render::password_reset(base_url, &format!("{base_url}/reset/{token}"))
        };
        self.mail_link((&email, EVENT), kind, false, mail).await
    }

    /// Returns the email address whose password a link replaces; none for an invalid link.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub fn password_reset_email(&self, token: &str) -> ServiceResult<Option<String>> {
        let Some((_, person)) = self.reset_link(token)? else { return Ok(None) };
        Ok(self.context.store().reader().person(person)?.map(|person| person.value.email))
    }

    /// Uses a link: the person gets that password. All their sessions and pending links end, and their passkeys are
    /// removed, unless one is the second factor that an account needs.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for an invalid link, which is checked first; [`ServiceError::Invalid`] for a password
    /// that breaks a rule, [`ServiceError::Busy`].
    pub async fn reset_password(&self, token: &str, new_password: &str, browser: &BrowserInfo) -> ServiceResult<()> {
        let (_, id) = self.reset_link(token)?.ok_or(ServiceError::NotFound)?;
        check_password(new_password).map_err(|rule| ValidationErrors::single("password", rule))?;
        let hash = &password::hash(new_password).await?;
        let (email, ended) = self
            .context
            .commit_change(id.to_u128(), || async move {
                let (link, _) = self.reset_link(token)?.ok_or(ServiceError::NotFound)?;
                let mut batch = Batch::new();
                batch.expect(Expect::OneTimeLink(link.value.id, Presence::At(link.revision)));
                let (person, ended) = self.replace_password(id, (hash, false), &mut batch).await?;
                if let Some(membership) = self.first_membership(id)? {
                    let author = ChangeAuthor::person(membership.account, &person, browser.network.clone());
                    self.context.log_change(author, &mut batch)?;
                }
                Ok(((person.email, ended), Some(batch)))
            })
            .await?;
        ended.iter().for_each(|session| self.uses.remove(session));
        // The failures were about the password that is gone.
        self.forget_failures(&email);
        tracing::info!(person = %id, "a password was replaced by a mailed link");
        Ok(())
    }

    #[allow(clippy::type_complexity, reason = "a link with its person")]
    fn reset_link(&self, token: &str) -> ServiceResult<Option<(VersionedValue<OneTimeLink>, PersonId)>> {
        let link = self.valid_link(token)?;
        Ok(link.and_then(|link| match link.value.kind {
            LinkKind::PasswordReset { person } => Some((link, person)),
            _ => None,
        }))
    }
}
