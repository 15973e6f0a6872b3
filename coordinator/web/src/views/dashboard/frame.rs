//! Frame of every screen: who is signed in, the pages with their worst state, and the navigation with its counts.

use parallax_core::id::PageId;
use parallax_core::role::{Permission, Role};

use super::toast::Toast;
use super::words;
use crate::views::format::FormattedTime;

/// Person who is signed in, as the frame shows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignedInPerson {
    /// Name, or the email address if they have none.
    pub name: String,
    /// Email address.
    pub email: String,
    /// Role in the account.
    pub role: Role,
    /// True if they operate the installation.
    pub is_operator: bool,
    /// Token that every form of theirs carries.
    pub form_token: String,
}

/// A page in the page switcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageEntry {
    /// Id.
    pub id: PageId,
    /// Name.
    pub name: String,
    /// Address that visitors use, without the scheme.
    pub address: String,
    /// CSS class and icon of its worst state.
    pub class: &'static str,
    /// Number of monitors that are down.
    pub down: usize,
    /// Number of open incidents.
    pub open_incidents: usize,
    /// Number of destinations whose deliveries fail.
    pub failing_destinations: usize,
}

/// Part of the dashboard that a screen belongs to, as the navigation shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    /// The things that need attention.
    Overview,
    /// Monitors of a page.
    Monitors,
    /// Incidents of a page.
    Incidents,
    /// Maintenance of a page.
    Maintenance,
    /// Deploys of a page.
    Deploys,
    /// Subscribers of a page.
    Subscribers,
    /// Destinations and deliveries of a page.
    Alerts,
    /// Settings of the status page.
    StatusPage,
    /// Agents and regions.
    Mesh,
    /// Accounts of the installation.
    Accounts,
    /// The person's own account.
    Account,
    /// Search.
    Search,
}

/// An entry of the navigation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NavigationItem {
    /// Address.
    pub href: String,
    /// Icon.
    pub icon: &'static str,
    /// Text.
    pub text: &'static str,
    /// True for the present section.
    pub is_current: bool,
    /// Number of things on which someone must act.
    pub count: usize,
    /// CSS class and word of that number: "3 down".
    pub unit: (&'static str, &'static str),
}

/// Number of entries in the tab bar of phones, beside the menu with the others.
const TABS: usize = 4;

/// Frame of a screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Person who is signed in.
    pub person: SignedInPerson,
    /// Pages of the account, in the order of their names.
    pub pages: Vec<PageEntry>,
    /// Page that the screen is about; `None` for screens of all pages or of none.
    pub page: Option<PageId>,
    /// Present section.
    pub section: Section,
    /// Number of accounts of the person.
    pub accounts: usize,
    /// Time until which the account lets the person go without a second factor; none if they have one or need none.
    pub factor_due: Option<FormattedTime>,
    /// Result of the last form.
    pub toast: Option<Toast>,
    /// Time at which the figures were read.
    pub loaded_at: FormattedTime,
}

impl Frame {
    /// Entry of the page that the screen is about.
    pub(crate) fn current(&self) -> Option<&PageEntry> {
        self.pages.iter().find(|entry| Some(entry.id) == self.page)
    }

    /// Returns true for the entry of the page that the screen is about.
    pub(crate) fn is_current(&self, entry: &PageEntry) -> bool {
        self.page == Some(entry.id)
    }

    /// Address of a screen of the page: `path("monitors")`. On screens of all pages it is one of the first page.
    pub(crate) fn path(&self, rest: &str) -> String {
        let Some(entry) = self.current().or_else(|| self.pages.first()) else { return "/app".to_owned() };
        match rest {
            "" => format!("/app/pages/{}", entry.id),
            rest => format!("/app/pages/{}/{rest}", entry.id),
        }
    }

    /// Name in the document's title: the page's, or the product's.
    pub(crate) fn site(&self) -> &str {
        self.current().map_or("Parallax", |entry| &entry.name)
    }

    /// Number of monitors that are down, of the page or of all pages.
    pub(crate) fn down(&self) -> usize {
        self.sum(|entry| entry.down)
    }

    /// CSS class and icon of the worst state of the pages that the screen is about.
    pub(crate) fn class(&self) -> &'static str {
        const WORST: [&str; 6] = ["down", "part", "slow", "maint", "none", "up"];
        let is = |class: &&str| self.scope().any(|entry| entry.class == *class);
        WORST.into_iter().find(is).unwrap_or("none")
    }

    /// Favicon in the shape and color of the worst state, as a data URL.
    pub(crate) fn favicon(&self) -> String {
        let (color, shape) = match self.class() {
            "down" => ("b82a1b", "M10 10l12 12M22 10L10 22"),
            "part" => ("b2461a", "M16 8v10M16 23v.5"),
            "slow" => ("8f5c00", "M16 7l9 17H7z"),
            "maint" => ("3557bb", "M16 9v8l5 3"),
            "none" => ("59606b", "M9 16h14"),
            _ => ("12805c", "M8 17l5 5 11-12"),
        };
        format!(
            "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' \
             height='32' rx='8' fill='%23{color}'/%3E%3Cpath d='{shape}' fill='none' stroke='%23fff' stroke-width='3.4' \
             stroke-linecap='round' stroke-linejoin='round'/%3E%3C/svg%3E"
        )
    }

    /// Returns true if the person may change monitors, incidents, maintenance, deploys and the page's look.
    pub(crate) const fn may_edit(&self) -> bool {
        self.person.role.allows(Permission::Edit)
    }

    /// Returns true if the person may change destinations and see secrets.
    pub(crate) const fn may_manage_alerts(&self) -> bool {
        self.person.role.allows(Permission::ManageAlerts)
    }

    /// Returns true if the person may create and delete pages and change their address and access.
    pub(crate) const fn may_manage_page(&self) -> bool {
        self.person.role.allows(Permission::ManagePage)
    }

    /// Returns true if the person may change keys, members and plan.
    pub(crate) const fn may_manage_account(&self) -> bool {
        self.person.role.allows(Permission::ManageAccount)
    }

    /// Entries about pages, in the order of the side bar. The first ones have a place in the tab bar of phones.
    pub(crate) fn navigation(&self) -> Vec<NavigationItem> {
        let overview = if self.page.is_some() { self.path("") } else { "/app".to_owned() };
        let overview = self.item(Section::Overview, overview, "home", "Overview");
        if self.pages.is_empty() {
            return vec![overview];
        }
        let (down, open) = (self.down(), self.sum(|entry| entry.open_incidents));
        let failing = self.sum(|entry| entry.failing_destinations);
        let counted = |item: NavigationItem, count, unit| NavigationItem { count, unit, ..item };
        let on_page = |section, rest: &str, icon, text| self.item(section, self.path(rest), icon, text);
        vec![
            overview,
            counted(on_page(Section::Monitors, "monitors", "pulse", "Monitors"), down, ("down", "down")),
            counted(on_page(Section::Incidents, "incidents", "flag", "Incidents"), open, ("part", "open")),
            counted(on_page(Section::Alerts, "alerts", "bell", "Alerts"), failing, ("slow", "failing")),
            on_page(Section::Maintenance, "incidents?kind=maintenance", "tool", "Maintenance"),
            on_page(Section::Deploys, "deploys", "rocket", "Deploys"),
            on_page(Section::Subscribers, "subscribers", "people", "Subscribers"),
            on_page(Section::StatusPage, "settings/look", "page", "Status page"),
        ]
    }

    /// Entries in the tab bar of phones.
    pub(crate) fn tabs(&self) -> Vec<NavigationItem> {
        self.navigation().into_iter().take(TABS).collect()
    }

    /// Entries in the menu at the end of the tab bar.
    pub(crate) fn more(&self) -> Vec<NavigationItem> {
        self.navigation().into_iter().skip(TABS).collect()
    }

    /// Entries about the installation; empty for those who don't operate it.
    pub(crate) fn installation(&self) -> Vec<NavigationItem> {
        if !self.person.is_operator {
            return Vec::new();
        }
        let item = |section, href: &str, icon, text| self.item(section, href.to_owned(), icon, text);
        vec![
            item(Section::Mesh, "/app/mesh", "globe", "Mesh"),
            item(Section::Accounts, "/app/accounts", "vendor", "Accounts"),
        ]
    }

    /// Entry of the person's own account.
    pub(crate) fn account(&self) -> NavigationItem {
        let href = if self.may_manage_account() { "/app/account/keys" } else { "/app/account/security" };
        self.item(Section::Account, href.to_owned(), "user", "Your account")
    }

    /// Pages with their number, for the heading: "2 pages".
    pub(crate) fn pages_text(&self) -> String {
        words::count(self.pages.len(), "page", "pages")
    }

    fn item(&self, section: Section, href: String, icon: &'static str, text: &'static str) -> NavigationItem {
        NavigationItem { href, icon, text, is_current: section == self.section, count: 0, unit: ("", "") }
    }

    /// Pages that the screen is about: one, or all.
    fn scope(&self) -> impl Iterator<Item = &PageEntry> {
        self.pages.iter().filter(|entry| self.page.is_none_or(|page| page == entry.id))
    }

    fn sum(&self, number: impl Fn(&PageEntry) -> usize) -> usize {
        self.scope().map(number).sum()
    }
}
