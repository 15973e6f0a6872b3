//! Accounts, their plans and their usage, managed by the operator; and API keys.

pub mod keys;
pub mod meters;
pub mod usage;

use std::sync::Arc;

use parallax_core::account::Account;
use parallax_core::check::CheckKind;
use parallax_core::delivery::{Delivery, DeliveryMessage, Recipient};
use parallax_core::event::{EditKind, Event, EventKind};
use parallax_core::id::{AccountId, DeliveryId};
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::plan::{Plan, PlanLimits};
use parallax_core::text;
use parallax_core::validation::ValidationErrors;
use parallax_notify::render::plan_change::{DowngradeEffects, downgrade_mail};
use parallax_store::{Batch, Expect, Presence, StoreRead, VersionedValue};

use super::audit::ChangeAuthor;
use super::context::ServiceContext;
use super::{ServiceError, ServiceResult};

/// Event name of the mail about a smaller plan.
const PLAN_CHANGED: &str = "plan.changed";

/// Owns accounts and their plans. No API key creates or changes an account; an email address is taken once, since
/// accounts are created one at a time.
#[derive(Debug)]
pub struct AccountService {
    context: Arc<ServiceContext>,
}

impl AccountService {
    pub(crate) fn new(context: &Arc<ServiceContext>) -> Self {
        Self { context: Arc::clone(context) }
    }

    /// Creates an account; called by the operator. Without a plan, the first account of an installation is Pro, later
    /// ones Free.
    ///
    /// # Errors
    /// [`ServiceError::Invalid`] for an invalid or taken email address.
    pub async fn create(&self, email: &str, plan: Option<Plan>) -> ServiceResult<Account> {
        let email = text::parse_email(email).map_err(|rule| ValidationErrors::single("email", rule))?;
        // One at a time, so that an address is taken once and only one account is the first.
        let _making = self.context.create_lock.lock().await;
        let accounts = self.context.store().read(|store| store.accounts()).await?;
        if accounts.iter().any(|other| other.value.email.eq_ignore_ascii_case(&email)) {
            return Err(ValidationErrors::single("email", "is taken").into());
        }
        let now = self.context.now();
        let standard = if accounts.is_empty() { Plan::Pro } else { Plan::Free };
        let account = Account {
            id: AccountId::new(now, rand::random()),
            email,
            plan: plan.unwrap_or(standard),
            created_at: now,
            plan_since: None,
            is_set_up_dismissed: false,
            set_up_done: 0,
            factor_needed_since: None,
        };
        let mut batch = Batch::new();
        batch.expect(Expect::Account(account.id, Presence::Absent)).write(account.clone());
        self.context.store().commit(batch).await?;
        Ok(account)
    }

    /// Lists all accounts, oldest first; called by the operator.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub async fn list(&self) -> ServiceResult<Vec<Account>> {
        let accounts = self.context.store().read(|store| store.accounts()).await?;
        let mut accounts: Vec<Account> = accounts.into_iter().map(|account| account.value).collect();
        accounts.sort_by_key(|account| (account.created_at, account.id));
        Ok(accounts)
    }

    /// Moves an account to another plan; called by the operator. Its pages count as edited, since their monitors'
    /// interval changes. The owner gets a mail about features that stop, if any do.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for an account that does not exist.
    pub async fn set_plan(&self, id: AccountId, plan: Plan) -> ServiceResult<Account> {
        self.context
            .commit_change(id.to_u128(), || async move {
                let account = self.context.store().reader().account(id)?.ok_or(ServiceError::NotFound)?;
                if account.value.plan == plan {
                    return Ok((account.value, None));
                }
                let (before, limits) = (account.value.plan, self.context.settings().limits);
                let read = move |store: &dyn StoreRead| {
                    let pages = store.pages_of(id)?;
                    let stops = lost_features(store, &pages, (before, plan), &limits)?;
                    Ok((pages, stops))
                };
                let (pages, stops) = self.context.store().read(read).await?;
                let changed = Account { plan, plan_since: Some(self.context.now()), ..account.value };
                let mut batch = Batch::new();
                if !stops.is_empty() {
                    batch.write(self.plan_change_mail(&changed, &stops));
                }
                batch.expect(Expect::Account(id, Presence::At(account.revision))).write(changed.clone());
                self.context.log_change(ChangeAuthor::operator(id), &mut batch)?;
                for page in pages {
                    batch.event(Event {
                        at: self.context.now(),
                        page: Some(page.value.id),
                        monitor: None,
                        kind: EventKind::PageEdited(EditKind::Changed),
                    });
                }
                Ok((changed, Some(batch)))
            })
            .await
            .inspect(|_| self.context.deliveries_due.notify_one())
    }

    fn plan_change_mail(&self, account: &Account, stops: &DowngradeEffects) -> Delivery {
        let now = self.context.now();
        let mail = DeliveryMessage::Mail(downgrade_mail(account.plan, stops, now));
        let id = DeliveryId::new(now, rand::random());
        Delivery::waiting(id, Recipient::Owner(account.id), PLAN_CHANGED, mail, now)
    }
}

/// Collects the features that stop on these pages when their account changes plan.
fn lost_features(
    store: &dyn StoreRead,
    pages: &[VersionedValue<Page>],
    (before, after): (Plan, Plan),
    limits: &PlanLimits,
) -> parallax_store::Result<DowngradeEffects> {
    let mut stops = DowngradeEffects::default();
    let (mut counted, mut is_probed) = (0, false);
    for page in pages.iter().map(|page| &page.value) {
        let name = || page.name.clone();
        for destination in store.destinations_of(page.id)?.into_iter().map(|it| it.value) {
            let kind = destination.channel.kind();
            let is_used = destination.enabled && destination.health.disabled.is_none();
            if is_used && before.has_channel(kind) && !after.has_channel(kind) {
                stops.destinations.push((kind, destination.name, name()));
            }
        }
        let has_regions = page.uptime_regions.is_some() || page.latency_regions.is_some();
        let mut uses_regions = has_regions;
        for monitor in store.monitors_of(page.id)?.into_iter().map(|monitor| monitor.value) {
            uses_regions |= has_own_regions(&monitor);
            let kind = monitor.check.kind();
            if kind == CheckKind::Component {
                if !monitor.paused && before.has_components() && !after.has_components() {
                    stops.components.push((monitor.name, name()));
                }
                continue;
            }
            counted += 1;
            is_probed |= limits.interval_ms(before, kind) < limits.interval_ms(after, kind);
        }
        stops.regions |= uses_regions && before.uses_regions() && !after.uses_regions();
    }
    stops.interval_ms = limits.interval_ms(after, CheckKind::Http).filter(|_| is_probed);
    let allowed = limits.monitors(after);
    let is_over = allowed < limits.monitors(before) && usize::try_from(allowed).is_ok_and(|limit| counted > limit);
    stops.monitors = is_over.then_some((counted, allowed));
    Ok(stops)
}

fn has_own_regions(monitor: &Monitor) -> bool {
    monitor.pinned_region.is_some() || monitor.latency_regions.is_some() || monitor.slow_thresholds.is_some()
}
