//! Accounts and their plans, managed by the operator.

use parallax_core::account::{self, Account};
use parallax_core::check::CheckKind;
use parallax_core::delivery::{Delivery, Letter, Recipient, Stage};
use parallax_core::event::{Edited, Event, What};
use parallax_core::id::{AccountId, DeliveryId};
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::plan::{Plan, PlanLimits};
use parallax_core::refusal::Refusals;

use super::{Error, Result, Service};
use crate::letters::plan::{Stops, plan_changed};
use crate::storage::{Batch, Expect, Is, Read, Versioned};

/// Event name of the mail about a smaller plan.
const PLAN_CHANGED: &str = "plan.changed";

impl Service {
    /// Creates an account; called by the operator. Without a plan, the first account of an installation is Pro, later
    /// ones Free.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an invalid or taken email address.
    pub async fn create_account(&self, email: &str, plan: Option<Plan>) -> Result<Account> {
        let email = account::email(email).map_err(|rule| Refusals::one("email", rule))?;
        // One at a time, so that an address is taken once and only one account is the first.
        let _making = self.0.making.lock().await;
        let others = self.store().read(|store| store.accounts()).await?;
        if others.iter().any(|other| other.value.email.eq_ignore_ascii_case(&email)) {
            return Err(Refusals::one("email", "is taken").into());
        }
        let now = self.now();
        let standard = if others.is_empty() { Plan::Pro } else { Plan::Free };
        let account = Account {
            id: AccountId::new(now, rand::random()),
            email,
            plan: plan.unwrap_or(standard),
            created_at: now,
            plan_since: None,
        };
        let mut batch = Batch::new();
        batch.expect(Expect::Account(account.id, Is::Absent)).write(account.clone());
        self.store().commit(batch).await?;
        Ok(account)
    }

    /// Lists all accounts, oldest first; called by the operator.
    ///
    /// # Errors
    /// [`Error::Internal`] if the store can't be read.
    pub async fn accounts(&self) -> Result<Vec<Account>> {
        let accounts = self.store().read(|store| store.accounts()).await?;
        let mut accounts: Vec<Account> = accounts.into_iter().map(|account| account.value).collect();
        accounts.sort_by_key(|account| (account.created_at, account.id));
        Ok(accounts)
    }

    /// Moves an account to another plan; called by the operator. Its pages count as edited, since their monitors'
    /// interval changes. The owner gets a mail about features that stop, if any do.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an account that does not exist.
    pub async fn set_plan(&self, id: AccountId, plan: Plan) -> Result<Account> {
        self.change(id.to_u128(), || async move {
            let account = self.store().reader().account(id)?.ok_or(Error::NotFound)?;
            if account.value.plan == plan {
                return Ok((account.value, None));
            }
            let (before, limits) = (account.value.plan, self.settings().limits);
            let read = move |store: &dyn Read| {
                let pages = store.pages_of(id)?;
                let stops = stops(store, &pages, (before, plan), &limits)?;
                Ok((pages, stops))
            };
            let (pages, stops) = self.store().read(read).await?;
            let changed = Account { plan, plan_since: Some(self.now()), ..account.value };
            let mut batch = Batch::new();
            if !stops.is_nothing() {
                batch.write(self.told_of_plan(&changed, &stops));
            }
            batch.expect(Expect::Account(id, Is::At(account.revision))).write(changed.clone());
            for page in pages {
                batch.event(Event {
                    at: self.now(),
                    page: Some(page.value.id),
                    monitor: None,
                    what: What::PageEdited(Edited::Changed),
                });
            }
            Ok((changed, Some(batch)))
        })
        .await
        .inspect(|_| self.outgoing().notify_one())
    }

    fn told_of_plan(&self, account: &Account, stops: &Stops) -> Delivery {
        let now = self.now();
        Delivery {
            id: DeliveryId::new(now, rand::random()),
            page: None,
            to: Recipient::Owner(account.id),
            event: PLAN_CHANGED.to_owned(),
            monitor: None,
            incident: None,
            seq: 0,
            letter: Letter::Mail(plan_changed(account.plan, stops, now)),
            once: false,
            created_at: now,
            stage: Stage::Waiting(now),
            tries: Default::default(),
            log: Vec::new(),
            began: None,
        }
    }
}

/// Collects the features that stop on these pages when their account changes plan.
fn stops(
    store: &dyn Read,
    pages: &[Versioned<Page>],
    (before, after): (Plan, Plan),
    limits: &PlanLimits,
) -> crate::storage::Result<Stops> {
    let mut stops = Stops::default();
    let (mut counted, mut is_probed) = (0, false);
    for page in pages.iter().map(|page| &page.value) {
        let name = || page.name.clone();
        for destination in store.destinations_of(page.id)?.into_iter().map(|it| it.value) {
            let kind = destination.channel.kind();
            let is_used = destination.enabled && destination.health.off.is_none();
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
    let is_over =
        allowed < limits.monitors(before) && usize::try_from(allowed).is_ok_and(|most| counted > most);
    stops.monitors = is_over.then_some((counted, allowed));
    Ok(stops)
}

fn has_own_regions(monitor: &Monitor) -> bool {
    monitor.pinned.is_some() || monitor.latency_regions.is_some() || monitor.slow_thresholds.is_some()
}
