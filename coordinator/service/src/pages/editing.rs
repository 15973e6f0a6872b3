//! Page edits, by API key or by the operator, including pictures, passwords and hostnames.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parallax_core::event::EditKind;
use parallax_core::id::PageId;
use parallax_core::page::Page;
use parallax_core::page::branding::{Picture, PictureKind, PictureUse};
use parallax_core::page::domain::{RESERVED_FOR, ReservedHostname};
use parallax_core::page::edit::{PageEdit, PageEditContext};
use parallax_core::patch::PatchField;
use parallax_core::role::Permission;
use parallax_core::validation::Rule;
use parallax_store::{Batch, Expect, Op, Presence, VersionedValue};
use sha2::{Digest, Sha256};

use super::PageService;
use crate::audit::ChangeAuthor;
use crate::idempotency::{IdempotentRequest, RequestOutcome};
use crate::page_access::authorize::AuthorizedPage;
use crate::page_access::password;
use crate::{Caller, ServiceError, ServiceResult};

/// An edited page with the other records to write.
#[derive(Debug)]
pub(super) struct EditedPage {
    pub(super) page: Page,
    pub(super) ops: Vec<Op>,
}

/// A page with settings that aren't saved.
#[derive(Debug)]
pub struct PagePreview {
    /// The page.
    pub page: Page,
    /// Media type and bytes of its logo.
    pub logo: Option<(PictureKind, Vec<u8>)>,
}

impl PageService {
    /// Edits a page.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`], [`ServiceError::NotFound`], [`ServiceError::Invalid`].
    pub async fn edit(
        &self,
        caller: &Caller,
        id: PageId,
        edit: &PageEdit,
        once: &IdempotentRequest<'_, Page>,
    ) -> ServiceResult<RequestOutcome<Page>> {
        let is_look = !edit.changes_address() && !edit.changes_access();
        caller.require(if is_look { Permission::Edit } else { Permission::ManagePage })?;
        self.apply(Some(caller), id, edit, once, &|| self.context.accessible_page(caller, id)).await
    }

    /// Edits a page; called by the operator.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`], [`ServiceError::Invalid`].
    pub async fn edit_as_operator(&self, id: PageId, edit: &PageEdit) -> ServiceResult<Page> {
        let once = IdempotentRequest::new(None, &|_: &Page| Vec::new());
        let stored = || self.context.store().reader().page(id)?.ok_or(ServiceError::NotFound);
        match self.apply(None, id, edit, &once, &stored).await? {
            RequestOutcome::Fresh(page) => Ok(page),
            RequestOutcome::Replayed(_) | RequestOutcome::Reread(_) => {
                Err(ServiceError::Internal("an edit without an idempotency key was replayed".to_owned()))
            }
        }
    }

    /// Returns the bytes of a page's picture, identified by its digest.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] if the page has another picture or none.
    pub async fn picture(
        &self,
        page: &AuthorizedPage,
        usage: PictureUse,
        digest: &str,
    ) -> ServiceResult<(PictureKind, Vec<u8>)> {
        let picture = page.page().branding.picture(usage).filter(|picture| picture.hex() == digest);
        let (picture, id) = (picture.ok_or(ServiceError::NotFound)?, page.page().id);
        let bytes = self.context.store().read(move |store| store.picture(id, usage)).await?;
        // The page may be from before an edit, and the bytes from after it.
        let is_asked = |bytes: &Vec<u8>| Sha256::digest(bytes).iter().take(16).eq(picture.digest.iter());
        Ok((picture.kind, bytes.filter(is_asked).ok_or(ServiceError::NotFound)?))
    }

    /// Returns the page as an edit would make it, with its logo. Nothing is saved, so that every role may do it.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a page that the caller can't access, and [`ServiceError::Invalid`].
    pub async fn preview(&self, caller: &Caller, id: PageId, edit: &PageEdit) -> ServiceResult<PagePreview> {
        let page = self.context.page(caller, id)?;
        let EditedPage { page, ops } = self.apply_edit(edit, &page)?;
        let new_logo = ops.into_iter().find_map(|op| match op {
            Op::PutPicture(_, PictureUse::Logo, bytes) => Some(bytes),
            _ => None,
        });
        let logo = match (page.branding.logo, new_logo) {
            (None, _) => None,
            (Some(picture), Some(bytes)) => Some((picture.kind, bytes)),
            (Some(picture), None) => {
                let bytes = self.context.store().read(move |store| store.picture(id, PictureUse::Logo)).await?;
                bytes.map(|bytes| (picture.kind, bytes))
            }
        };
        Ok(PagePreview { page, logo })
    }

    /// Applies an edit of that caller, or of the operator.
    async fn apply(
        &self,
        caller: Option<&Caller>,
        id: PageId,
        edit: &PageEdit,
        once: &IdempotentRequest<'_, Page>,
        reach: &(dyn Fn() -> ServiceResult<VersionedValue<Page>> + Send + Sync),
    ) -> ServiceResult<RequestOutcome<Page>> {
        let before = reach()?.value;
        if let Some(answer) = self.context.replayed_answer(once)? {
            return Ok(RequestOutcome::Replayed(answer));
        }
        // An edit that would be refused must not cost a hash.
        self.apply_edit(edit, &before)?;
        let hash = &hash_new_password(edit).await?;
        self.context
            .commit_change(id.to_u128(), || async move {
                let page = reach()?;
                if let Some(answer) = self.context.replayed_answer(once)? {
                    return Ok((RequestOutcome::Replayed(answer), None));
                }
                let EditedPage { page: mut changed, ops } = self.apply_edit(edit, &page.value)?;
                if hash.is_some() {
                    changed.password_hash.clone_from(hash);
                }
                let mut batch = Batch::new();
                if changed != page.value {
                    batch.expect(Expect::Page(id, Presence::At(page.revision))).write(changed.clone());
                    batch.ops.extend(ops);
                    if changed.custom_domain != page.value.custom_domain {
                        batch.ops.extend(self.reserve_released_host(&page.value));
                    }
                    batch.event(self.context.page_event(id, EditKind::Changed));
                }
                let author = caller.map_or_else(|| ChangeAuthor::operator(page.value.account), ChangeAuthor::from);
                self.context.log_change(author, &mut batch)?;
                self.context.store_answer(once, &changed, &mut batch)?;
                Ok((RequestOutcome::Fresh(changed), (!batch.is_empty()).then_some(batch)))
            })
            .await
    }

    /// Applies an edit, except for a new password's hash.
    ///
    /// # Errors
    /// [`ServiceError::Invalid`] with every field that breaks a rule.
    pub(super) fn apply_edit(&self, edit: &PageEdit, page: &Page) -> ServiceResult<EditedPage> {
        let (base_host, token) = (self.context.base_host(), claim_token());
        let root_domain = self.context.settings().root_domain.as_deref();
        let edit_context =
            PageEditContext { own_host: base_host.as_deref(), root_domain, token: &token, now: self.context.now() };
        let validated = edit.validate(page, &edit_context);
        let mut faults = validated.as_ref().err().cloned().unwrap_or_default();
        let mut changed = validated.unwrap_or_else(|_| page.clone());
        if changed.slug != page.slug && self.context.store().reader().page_by_slug(&changed.slug)?.is_some() {
            faults.add("slug", "is taken");
        }
        if let Some(claim) = changed
            .domain_claim
            .as_ref()
            .filter(|claim| page.domain_claim.as_ref().is_none_or(|before| before.host != claim.host))
            && let Some(rule) = self.host_refusal(&claim.host, page)?
        {
            faults.add("customDomain", rule);
        }
        let mut ops = Vec::new();
        for usage in PictureUse::ALL {
            let (field, slot) = match usage {
                PictureUse::Logo => (&edit.logo, &mut changed.branding.logo),
                PictureUse::Favicon => (&edit.favicon, &mut changed.branding.favicon),
            };
            let read = field.optional(usage.name(), None, &mut faults, |url| parse_picture(usage, url).map(Some));
            match (field, read) {
                (PatchField::Null, _) => {
                    *slot = None;
                    ops.push(Op::DeletePicture(page.id, usage));
                }
                (_, Some((picture, bytes))) => {
                    *slot = Some(picture);
                    ops.push(Op::PutPicture(page.id, usage, bytes));
                }
                (_, None) => {}
            }
        }
        if faults.is_empty() { Ok(EditedPage { page: changed, ops }) } else { Err(faults.into()) }
    }

    /// Reserves the hostname that a page releases, for a while.
    pub(super) fn reserve_released_host(&self, page: &Page) -> Vec<Op> {
        let Some(host) = &page.custom_domain else { return Vec::new() };
        let reservation = ReservedHostname { account: page.account, until: self.context.now() + RESERVED_FOR };
        vec![Op::DeleteExpiredReservations(self.context.now()), Op::PutReservedHostname(host.clone(), reservation)]
    }

    /// Returns the reason why a page may not claim a hostname: another page has it or had it recently.
    fn host_refusal(&self, host: &str, page: &Page) -> ServiceResult<Option<Rule>> {
        let reader = self.context.store().reader();
        if reader.page_by_host(host)?.is_some_and(|owner| owner.value.id != page.id) {
            return Ok(Some("is another page's domain".to_owned()));
        }
        let is_kept = reader
            .reserved_hostname(host)?
            .is_some_and(|reservation| reservation.is_reserved_from(page.account, self.context.now()));
        Ok(is_kept.then(|| "was another page's domain within the last 30 days".to_owned()))
    }
}

/// Hashes the password that an edit sets.
pub(super) async fn hash_new_password(edit: &PageEdit) -> ServiceResult<Option<String>> {
    match &edit.password {
        PatchField::Value(text) => password::hash(text.reveal()).await.map(Some),
        PatchField::Absent | PatchField::Null | PatchField::Invalid(_) => Ok(None),
    }
}

/// Returns 160 random bits in hexadecimal.
fn claim_token() -> String {
    hex::encode(rand::random::<[u8; 20]>())
}

/// Parses a picture from a base64 `data:` URL (RFC 2397), and checks that the bytes match its media type.
fn parse_picture(usage: PictureUse, url: &str) -> std::result::Result<(Picture, Vec<u8>), Rule> {
    let rule = || "must be a base64 data: URL of a PNG, JPEG, WebP or SVG image".to_owned();
    let (media, encoded) = url.trim().strip_prefix("data:").and_then(|rest| rest.split_once(',')).ok_or_else(rule)?;
    let media = media.strip_suffix(";base64").ok_or_else(rule)?;
    // SVG is text and may declare an encoding; only UTF-8 is accepted.
    let media = media.split(';').next().unwrap_or_default();
    let kind = PictureKind::ALL.into_iter().find(|kind| kind.media().eq_ignore_ascii_case(media)).ok_or_else(rule)?;
    // Four characters encode three bytes: anything too long is refused without decoding.
    let max_bytes = usage.max_bytes();
    let too_long = || format!("must be at most {max_bytes} bytes");
    if encoded.len() > max_bytes.div_ceil(3) * 4 {
        return Err(too_long());
    }
    let bytes = STANDARD.decode(encoded).map_err(|_| rule())?;
    if bytes.len() > max_bytes {
        return Err(too_long());
    }
    if !kind.matches(&bytes) {
        return Err(format!("must contain an image of its media type, {}", kind.media()));
    }
    let digest = Sha256::digest(&bytes).first_chunk().copied().unwrap_or_default();
    Ok((Picture { kind, digest }, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_access::authorize::PageAddress;
    use crate::test_world::world;

    fn data(media: &str, bytes: &[u8]) -> String {
        format!("data:{media};base64,{}", STANDARD.encode(bytes))
    }

    #[tokio::test]
    async fn a_picture_is_served_only_by_its_own_digest() {
        let world = world().await;
        let usage = PictureUse::Logo;
        let put = async |text: &str| {
            let (picture, bytes) = parse_picture(usage, &data("image/svg+xml", text.as_bytes())).unwrap();
            let mut page = world.shop.clone();
            page.branding.logo = Some(picture);
            let mut batch = Batch::new();
            batch.write(Op::PutPicture(page.id, usage, bytes));
            world.service.context.store().commit(batch).await.unwrap();
            world.put_page(page).await;
            (world.service.page_access.authorize_anonymous("shop", PageAddress::BasePath).unwrap(), picture.hex())
        };
        let (old, first) = put("<svg/>").await;
        assert_eq!(world.service.pages.picture(&old, usage, &first).await.unwrap().1, b"<svg/>");
        let (new, second) = put("<svg> </svg>").await;
        assert_eq!(world.service.pages.picture(&old, usage, &first).await.unwrap_err(), ServiceError::NotFound);
        assert_eq!(world.service.pages.picture(&new, usage, &second).await.unwrap().1, b"<svg> </svg>");
    }

    #[test]
    fn pictures_match_their_media_type_and_size_limit() {
        let png = |length: usize| {
            let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
            bytes.resize(length, 0);
            data("image/png", &bytes)
        };
        for (usage, max_bytes) in [(PictureUse::Logo, 64 << 10), (PictureUse::Favicon, 32 << 10)] {
            let read = |length| parse_picture(usage, &png(length)).map(|(_, bytes)| bytes.len());
            assert_eq!(read(max_bytes), Ok(max_bytes));
            for length in [max_bytes + 1, max_bytes + 5] {
                assert_eq!(read(length), Err(format!("must be at most {max_bytes} bytes")));
            }
        }
        let (picture, bytes) =
            parse_picture(PictureUse::Logo, &data("image/svg+xml;charset=utf-8", b"<svg/>")).unwrap();
        assert_eq!((picture.kind, bytes.as_slice(), picture.hex().len()), (PictureKind::Svg, &b"<svg/>"[..], 32));
        for invalid in [
            "",
            "https://example.com/a.png",
            "data:image/png,abc",
            "data:image/png;base64,*",
            &data("image/gif", b"GIF89a"),
            &data("text/html", b"<svg/>"),
        ] {
            assert!(
                parse_picture(PictureUse::Logo, invalid).unwrap_err().starts_with("must be a base64 data: URL"),
                "{invalid}"
            );
        }
        let mismatched = parse_picture(PictureUse::Logo, &data("image/png", b"<svg/>"));
        assert_eq!(mismatched, Err("must contain an image of its media type, image/png".to_owned()));
    }
}
