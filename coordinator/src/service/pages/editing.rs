//! Page edits, by API key or by the operator, including pictures, passwords and hostnames.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parallax_core::event::Edited;
use parallax_core::given::Given;
use parallax_core::id::PageId;
use parallax_core::page::Page;
use parallax_core::page::domain::{FREED_FOR, Freed};
use parallax_core::page::edit::{Ground, PageEdit};
use parallax_core::page::look::{Picture, PictureKind, PictureUse};
use parallax_core::refusal::Rule;
use sha2::{Digest, Sha256};

use crate::service::gate::Admitted;
use crate::service::once::{Done, Once};
use crate::service::{Caller, Error, Result, Service, password};
use crate::storage::{Batch, Expect, Is, Op, Versioned};

/// An edited page with the other records to write.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) page: Page,
    pub(super) ops: Vec<Op>,
}

impl Service {
    /// Edits a page.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NotFound`], [`Error::Invalid`].
    pub async fn edit_page(
        &self,
        caller: &Caller,
        id: PageId,
        edit: &PageEdit,
        once: &Once<'_, Page>,
    ) -> Result<Done<Page>> {
        caller.writes()?;
        self.edit(id, edit, once, &|| self.reached(caller, id)).await
    }

    /// Edits a page; called by the operator.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Invalid`].
    pub async fn set_page(&self, id: PageId, edit: &PageEdit) -> Result<Page> {
        let once = Once::new(None, &|_: &Page| Vec::new());
        let found = || self.store().reader().page(id)?.ok_or(Error::NotFound);
        match self.edit(id, edit, &once, &found).await? {
            Done::Now(page) => Ok(page),
            Done::Before(_) | Done::Again(_) => {
                Err(Error::Internal("an edit without an idempotency key was replayed".to_owned()))
            }
        }
    }

    /// Returns the bytes of a page's picture, identified by its digest.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the page has another picture or none.
    pub async fn picture(
        &self,
        page: &Admitted,
        usage: PictureUse,
        digest: &str,
    ) -> Result<(PictureKind, Vec<u8>)> {
        let picture = page.page().look.picture(usage).filter(|picture| picture.hex() == digest);
        let (picture, id) = (picture.ok_or(Error::NotFound)?, page.page().id);
        let bytes = self.store().read(move |store| store.picture(id, usage)).await?;
        // The page may be from before an edit, and the bytes from after it.
        let is_asked = |bytes: &Vec<u8>| Sha256::digest(bytes).iter().take(16).eq(picture.digest.iter());
        Ok((picture.kind, bytes.filter(is_asked).ok_or(Error::NotFound)?))
    }

    async fn edit(
        &self,
        id: PageId,
        edit: &PageEdit,
        once: &Once<'_, Page>,
        reach: &(dyn Fn() -> Result<Versioned<Page>> + Send + Sync),
    ) -> Result<Done<Page>> {
        let before = reach()?.value;
        if let Some(answer) = self.answered(once)? {
            return Ok(Done::Before(answer));
        }
        // An edit that would be refused must not cost a hash.
        self.settled(edit, &before)?;
        let hash = &hashed(edit).await?;
        self.change(id.to_u128(), || async move {
            let page = reach()?;
            if let Some(answer) = self.answered(once)? {
                return Ok((Done::Before(answer), None));
            }
            let Settled { page: mut changed, ops } = self.settled(edit, &page.value)?;
            if hash.is_some() {
                changed.password.clone_from(hash);
            }
            let mut batch = Batch::new();
            if changed != page.value {
                batch.expect(Expect::Page(id, Is::At(page.revision))).write(changed.clone());
                batch.ops.extend(ops);
                if changed.custom_domain != page.value.custom_domain {
                    batch.ops.extend(self.given_up(&page.value));
                }
                batch.event(self.page_event(id, Edited::Changed));
            }
            self.remember(once, &changed, &mut batch)?;
            Ok((Done::Now(changed), (!batch.is_empty()).then_some(batch)))
        })
        .await
    }

    /// Applies an edit, except for a new password's hash.
    ///
    /// # Errors
    /// [`Error::Invalid`] with every field that breaks a rule.
    pub(super) fn settled(&self, edit: &PageEdit, page: &Page) -> Result<Settled> {
        let (own, token) = (self.base_host(), token());
        let root_domain = self.settings().root_domain.as_deref();
        let ground = Ground { own_host: own.as_deref(), root_domain, token: &token, now: self.now() };
        let settled = edit.settle(page, &ground);
        let mut faults = settled.as_ref().err().cloned().unwrap_or_default();
        let mut changed = settled.unwrap_or_else(|_| page.clone());
        if changed.slug != page.slug && self.store().reader().page_by_slug(&changed.slug)?.is_some() {
            faults.add("slug", "is taken");
        }
        if let Some(claim) = changed
            .domain_claim
            .as_ref()
            .filter(|claim| page.domain_claim.as_ref().is_none_or(|before| before.host != claim.host))
            && let Some(rule) = self.host_refused(&claim.host, page)?
        {
            faults.add("customDomain", rule);
        }
        let mut ops = Vec::new();
        for usage in PictureUse::ALL {
            let (given, slot) = match usage {
                PictureUse::Logo => (&edit.logo, &mut changed.look.logo),
                PictureUse::Favicon => (&edit.favicon, &mut changed.look.favicon),
            };
            let read =
                given.optional(usage.name(), None, &mut faults, |url| read_picture(usage, url).map(Some));
            match (given, read) {
                (Given::Null, _) => {
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
        if faults.is_empty() { Ok(Settled { page: changed, ops }) } else { Err(faults.into()) }
    }

    /// Reserves the hostname that a page releases, for a while.
    pub(in crate::service) fn given_up(&self, page: &Page) -> Vec<Op> {
        let Some(host) = &page.custom_domain else { return Vec::new() };
        let freed = Freed { account: page.account, until: self.now() + FREED_FOR };
        vec![Op::ForgetFreed(self.now()), Op::PutFreed(host.clone(), freed)]
    }

    /// Returns the reason why a page may not claim a hostname: another page has it or had it recently.
    pub(in crate::service) fn host_refused(&self, host: &str, page: &Page) -> Result<Option<Rule>> {
        let reader = self.store().reader();
        if reader.page_by_host(host)?.is_some_and(|owner| owner.value.id != page.id) {
            return Ok(Some("is another page's domain".to_owned()));
        }
        let is_kept = reader.freed(host)?.is_some_and(|freed| freed.holds_against(page.account, self.now()));
        Ok(is_kept.then(|| "was another page's domain within the last 30 days".to_owned()))
    }
}

/// Hashes the password that an edit sets.
pub(super) async fn hashed(edit: &PageEdit) -> Result<Option<String>> {
    match &edit.password {
        Given::Value(text) => password::hash(text.reveal()).await.map(Some),
        Given::Absent | Given::Null | Given::Wrong(_) => Ok(None),
    }
}

/// Returns 160 random bits in hexadecimal.
fn token() -> String {
    rand::random::<[u8; 20]>()
        .iter()
        .fold(String::with_capacity(40), |text, byte| text + &format!("{byte:02x}"))
}

/// Parses a picture from a base64 `data:` URL (RFC 2397), and checks that the bytes match its media type.
fn read_picture(usage: PictureUse, url: &str) -> std::result::Result<(Picture, Vec<u8>), Rule> {
    let rule = || "must be a base64 data: URL of a PNG, JPEG, WebP or SVG image".to_owned();
    let (media, coded) =
        url.trim().strip_prefix("data:").and_then(|rest| rest.split_once(',')).ok_or_else(rule)?;
    let media = media.strip_suffix(";base64").ok_or_else(rule)?;
    // SVG is text and may declare an encoding; only UTF-8 is accepted.
    let media = media.split(';').next().unwrap_or_default();
    let kind = PictureKind::ALL
        .into_iter()
        .find(|kind| kind.media().eq_ignore_ascii_case(media))
        .ok_or_else(rule)?;
    // Four characters encode three bytes: anything too long is refused without decoding.
    let most = usage.most();
    let too_long = || format!("must be at most {most} bytes");
    if coded.len() > most.div_ceil(3) * 4 {
        return Err(too_long());
    }
    let bytes = STANDARD.decode(coded).map_err(|_| rule())?;
    if bytes.len() > most {
        return Err(too_long());
    }
    if !kind.fits(&bytes) {
        return Err(format!("must contain an image of its media type, {}", kind.media()));
    }
    let mut digest = [0; 16];
    digest.iter_mut().zip(Sha256::digest(&bytes)).for_each(|(to, from)| *to = from);
    Ok((Picture { kind, digest }, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::gate::Door;
    use crate::service::tests::world;

    fn data(media: &str, bytes: &[u8]) -> String {
        format!("data:{media};base64,{}", STANDARD.encode(bytes))
    }

    #[tokio::test]
    async fn no_picture_is_served_by_the_digest_of_another() {
        let world = world().await;
        let usage = PictureUse::Logo;
        let put = async |text: &str| {
            let (picture, bytes) = read_picture(usage, &data("image/svg+xml", text.as_bytes())).unwrap();
            let mut page = world.shop.clone();
            page.look.logo = Some(picture);
            let mut batch = Batch::new();
            batch.write(Op::PutPicture(page.id, usage, bytes));
            world.service.store().commit(batch).await.unwrap();
            world.put_page(page).await;
            (world.service.admit("shop", Door::Shared).unwrap(), picture.hex())
        };
        let (old, first) = put("<svg/>").await;
        assert_eq!(world.service.picture(&old, usage, &first).await.unwrap().1, b"<svg/>");
        let (new, second) = put("<svg> </svg>").await;
        assert_eq!(world.service.picture(&old, usage, &first).await.unwrap_err(), Error::NotFound);
        assert_eq!(world.service.picture(&new, usage, &second).await.unwrap().1, b"<svg> </svg>");
    }

    #[test]
    fn pictures_are_what_they_say_and_have_their_bounds() {
        let png = |length: usize| {
            let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
            bytes.resize(length, 0);
            data("image/png", &bytes)
        };
        for (usage, most) in [(PictureUse::Logo, 64 << 10), (PictureUse::Favicon, 32 << 10)] {
            let read = |length| read_picture(usage, &png(length)).map(|(_, bytes)| bytes.len());
            assert_eq!(read(most), Ok(most));
            for length in [most + 1, most + 5] {
                assert_eq!(read(length), Err(format!("must be at most {most} bytes")));
            }
        }
        let (picture, bytes) =
            read_picture(PictureUse::Logo, &data("image/svg+xml;charset=utf-8", b"<svg/>")).unwrap();
        assert_eq!(
            (picture.kind, bytes.as_slice(), picture.hex().len()),
            (PictureKind::Svg, &b"<svg/>"[..], 32)
        );
        for bad in [
            "",
            "https://example.com/a.png",
            "data:image/png,abc",
            "data:image/png;base64,*",
            &data("image/gif", b"GIF89a"),
            &data("text/html", b"<svg/>"),
        ] {
            assert!(
                read_picture(PictureUse::Logo, bad).unwrap_err().starts_with("must be a base64 data: URL"),
                "{bad}"
            );
        }
        let wrong = read_picture(PictureUse::Logo, &data("image/png", b"<svg/>"));
        assert_eq!(wrong, Err("must contain an image of its media type, image/png".to_owned()));
    }
}
