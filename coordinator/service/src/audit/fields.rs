//! Fields of records as the audit log names them: values that everyone who edits them may see, and for all others only
//! that they changed.

use std::fmt::Display;

use parallax_core::account::Account;
use parallax_core::alert_settings::AlertSettings;
use parallax_core::check::{Check, HttpCheck};
use parallax_core::company_sign_in::CompanySignIn;
use parallax_core::destination::{Channel, Destination};
use parallax_core::incident::Incident;
use parallax_core::incident::series::Series;
use parallax_core::key::ApiKey;
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::passkey::{PasskeyId, PersonPasskeys};
use parallax_core::person::{AccountMember, Person};
use parallax_core::subscriber::Subscriber;
use parallax_core::vantage::{Region, RegionSet};

use super::changed_fields::ChangedFields;

/// A record whose changes are logged.
pub(super) trait LoggedRecord {
    /// Notes the fields that differ between this record, the old one, and the new one.
    fn changes(&self, new: &Self, changed: &mut ChangedFields);

    /// Returns what a new record grants: its name and value; none for records that grant nothing.
    fn grant(&self) -> Option<(&'static str, &'static str)> {
        None
    }
}

fn text<T: Display>(value: &T) -> String {
    value.to_string()
}

fn optional<T: Display>(value: &Option<T>) -> String {
    value.as_ref().map_or_else(String::new, ToString::to_string)
}

fn yes_or_no(value: &bool) -> String {
    if *value { "yes" } else { "no" }.to_owned()
}

fn regions(value: &Option<RegionSet>) -> String {
    let names = |set: &RegionSet| {
        Region::ALL.into_iter().filter(|region| set.contains(*region)).map(Region::name).collect::<Vec<_>>().join(", ")
    };
    value.as_ref().map_or_else(String::new, names)
}

/// The number of things in a choice; empty for all.
fn count<T>(value: &Option<Vec<T>>) -> String {
    value.as_ref().map_or_else(String::new, |chosen| chosen.len().to_string())
}

/// Passkeys by their id, since two may have one name. Their use is no change.
fn named_passkeys(passkeys: &PersonPasskeys) -> Vec<(PasskeyId, &str)> {
    passkeys.all().iter().map(|passkey| (passkey.id, passkey.name.as_str())).collect()
}

impl LoggedRecord for Monitor {
    fn changes(&self, new: &Self, changed: &mut ChangedFields) {
        changed
            .shown("Name", (&self.name, &new.name), text)
            .shown("Group", (&self.group, &new.group), optional)
            .shown("Paused", (&self.paused, &new.paused), yes_or_no)
            .shown("Slow above (ms)", (&self.slow_threshold_ms, &new.slow_threshold_ms), optional)
            .hidden("Slow above, by region", (&self.slow_thresholds, &new.slow_thresholds))
            .shown("Regions counted", (&self.latency_regions, &new.latency_regions), regions)
            .shown("Pinned to", (&self.pinned_region, &new.pinned_region), optional)
            .shown("Position", (&self.position, &new.position), text)
            .hidden("Acknowledgement", (&self.acknowledgement, &new.acknowledgement));
        match (&self.check, &new.check) {
            (Check::Http(old), Check::Http(new)) => request_changes(old, new, changed),
            (Check::Heartbeat(old), Check::Heartbeat(new)) => {
                changed
                    .shown("Every (s)", (&old.period_seconds, &new.period_seconds), text)
                    .shown("Grace (s)", (&old.grace_seconds, &new.grace_seconds), text)
                    .hidden("Ping address", (&old.token, &new.token));
            }
            (Check::Dns(old), Check::Dns(new)) => {
                changed.shown("Must contain", (&old.expect, &new.expect), optional);
                changed.shown("Target", (&self.check.target(), &Check::Dns(new.clone()).target()), text);
            }
            (Check::Certificate(old), Check::Certificate(new)) => {
                changed.shown("Warn (days before)", (&old.warn_days, &new.warn_days), text);
                changed.shown("Target", (&self.check.target(), &Check::Certificate(new.clone()).target()), text);
            }
            (Check::Domain(old), Check::Domain(new)) => {
                changed.shown("Warn (days before)", (&old.warn_days, &new.warn_days), text).shown(
                    "Target",
                    (&old.host, &new.host),
                    text,
                );
            }
            (old, new) => {
                changed.shown("Target", (&old.target(), &new.target()), text);
            }
        }
    }
}

/// A URL may hold a password or token, so its changes are without values beyond the host.
fn request_changes(old: &HttpCheck, new: &HttpCheck, changed: &mut ChangedFields) {
    changed
        .hidden("URL", (&old.url, &new.url))
        .shown("Method", (&old.method, &new.method), |method| method.name().to_owned())
        .hidden("Headers", (&old.headers, &new.headers))
        .hidden("Sign-in of the check", (&old.credentials, &new.credentials))
        .hidden("Body", (&old.body, &new.body))
        .shown("Expected status", (&old.expect_status, &new.expect_status), optional)
        .shown("Keyword", (&old.keyword, &new.keyword), optional)
        .shown("Keyword must be", (&old.keyword_mode, &new.keyword_mode), |mode| mode.name().to_owned());
}

impl LoggedRecord for Page {
    fn changes(&self, new: &Self, changed: &mut ChangedFields) {
        changed
            .shown("Name", (&self.name, &new.name), text)
            .shown("Address", (&self.slug, &new.slug), text)
            .shown("Own domain", (&self.custom_domain, &new.custom_domain), optional)
            .hidden(
                "Own domain asked for",
                (&self.domain_claim.as_ref().map(|it| &it.host), &new.domain_claim.as_ref().map(|it| &it.host)),
            )
            .shown("Description", (&self.description, &new.description), optional)
            .shown("Support link", (&self.support_url, &new.support_url), optional)
            .shown("Time zone", (&self.timezone, &new.timezone), |zone| zone.name().to_owned())
            .shown("Uptime target", (&self.uptime_target, &new.uptime_target), optional)
            .hidden("Password", (&self.password_hash, &new.password_hash))
            .shown("Private", (&self.private, &new.private), yes_or_no)
            .shown(
                "People who may see it",
                (&self.allowed_visitors.people.len(), &new.allowed_visitors.people.len()),
                text,
            )
            .shown(
                "Domains that may see it",
                (&self.allowed_visitors.domains.len(), &new.allowed_visitors.domains.len()),
                text,
            )
            .hidden("Visitors", (&self.allowed_visitors, &new.allowed_visitors))
            .shown("Deploys on charts", (&self.show_deploys, &new.show_deploys), yes_or_no)
            .shown("Locations shown", (&self.show_locations, &new.show_locations), yes_or_no)
            .shown("Regions counted for latency", (&self.latency_regions, &new.latency_regions), regions)
            .shown("Regions counted for uptime", (&self.uptime_regions, &new.uptime_regions), regions)
            .shown("Hidden from search engines", (&self.noindex, &new.noindex), yes_or_no)
            .hidden("Look", (&self.branding, &new.branding))
            .hidden("Language", (&self.language, &new.language));
    }
}

impl LoggedRecord for Incident {
    fn changes(&self, new: &Self, changed: &mut ChangedFields) {
        changed
            .shown("Title", (&self.title, &new.title), text)
            .shown("Status", (&self.status, &new.status), |status| status.name().to_owned())
            .shown("Impact", (&self.impact, &new.impact), |impact| impact.name().to_owned())
            .shown("Start", (&self.started_at, &new.started_at), text)
            .shown("End", (&self.ends_at, &new.ends_at), optional)
            .shown("Subscribers notified", (&self.notify, &new.notify), yes_or_no)
            .hidden("Reminders", (&self.remind, &new.remind))
            .hidden("Post-mortem", (&self.postmortem, &new.postmortem))
            .hidden("Affected monitors", (&self.affected, &new.affected))
            .hidden("Updates", (&self.updates, &new.updates));
    }
}

impl LoggedRecord for Series {
    fn changes(&self, new: &Self, changed: &mut ChangedFields) {
        changed
            .shown("Title", (&self.title, &new.title), text)
            .hidden("Repetition", (&self.recurrence, &new.recurrence))
            .shown("Length (ms)", (&self.length, &new.length), text)
            .shown("Stopped", (&self.stopped_at, &new.stopped_at), optional)
            .hidden("Affected monitors", (&self.affected, &new.affected));
    }
}

impl LoggedRecord for Destination {
    fn changes(&self, new: &Self, changed: &mut ChangedFields) {
        let is_off = |it: &Self| it.health.disabled.is_some();
        changed
            .shown("Name", (&self.name, &new.name), text)
            .shown("Channel", (&self.channel.kind(), &new.channel.kind()), |kind| kind.name().to_owned())
            .shown("Enabled", (&self.enabled, &new.enabled), yes_or_no)
            .shown("Events chosen", (&self.events, &new.events), count)
            .shown("Monitors chosen", (&self.monitors, &new.monitors), count)
            .shown("Switched off by the service", (&is_off(self), &is_off(new)), yes_or_no)
            .shown("Evidence link", (&self.evidence_link, &new.evidence_link), yes_or_no);
        match (&self.channel, &new.channel) {
            (Channel::Email { to: old }, Channel::Email { to: new }) => {
                changed.shown("Address", (old, new), text);
            }
            (Channel::Webhook { url: old, secret: old_secret }, Channel::Webhook { url, secret }) => {
                changed.hidden("URL", (old, url)).hidden("Secret", (old_secret, secret));
            }
            (old, new) => {
                changed.hidden("Address or token", (old, new));
            }
        }
    }
}

impl LoggedRecord for Subscriber {
    fn changes(&self, new: &Self, changed: &mut ChangedFields) {
        changed
            .shown("Monitors chosen", (&self.monitors, &new.monitors), count)
            .shown("Confirmed", (&self.confirmed_at.is_some(), &new.confirmed_at.is_some()), yes_or_no)
            .hidden("Asked again", (&self.confirmation_sent_at, &new.confirmation_sent_at));
    }
}

impl LoggedRecord for AlertSettings {
    fn changes(&self, new: &Self, changed: &mut ChangedFields) {
        changed.shown("Repeat (min)", (&self.repeat_minutes, &new.repeat_minutes), optional).shown(
            "Automatic incidents",
            (&self.automatic_incidents, &new.automatic_incidents),
            yes_or_no,
        );
    }
}

impl LoggedRecord for ApiKey {
    fn changes(&self, new: &Self, changed: &mut ChangedFields) {
        changed.shown("Name", (&self.name, &new.name), text);
    }

    fn grant(&self) -> Option<(&'static str, &'static str)> {
        Some(("Access", self.access.name()))
    }
}

impl LoggedRecord for AccountMember {
    fn changes(&self, new: &Self, changed: &mut ChangedFields) {
        changed
            .shown("Role", (&self.role, &new.role), |role| role.name().to_owned())
            .hidden("Person at the company's provider", (&self.company_subject, &new.company_subject))
            .shown("Company sign-in alone", (&self.is_company_only, &new.is_company_only), yes_or_no);
    }

    fn grant(&self) -> Option<(&'static str, &'static str)> {
        Some(("Role", self.role.name()))
    }
}

impl LoggedRecord for CompanySignIn {
    fn changes(&self, new: &Self, changed: &mut ChangedFields) {
        let claimed = |it: &Self| it.domains.iter().map(|it| it.claim.host.clone()).collect::<Vec<_>>();
        let proved = |it: &Self| it.proved_domains().map(str::to_owned).collect::<Vec<_>>();
        changed
            .shown("Issuer", (&self.issuer, &new.issuer), text)
            .shown("Client id", (&self.client_id, &new.client_id), text)
            .hidden("Client secret", (&self.client_secret, &new.client_secret))
            .listed("Email domains", (&claimed(self), &claimed(new)), String::as_str)
            .listed("Proved email domains", (&proved(self), &proved(new)), String::as_str)
            .shown("Required for members", (&self.is_required, &new.is_required), yes_or_no)
            .shown(
                "Provider asks for a second factor",
                (&self.covers_second_factor, &new.covers_second_factor),
                yes_or_no,
            );
    }
}

impl LoggedRecord for Account {
    fn changes(&self, new: &Self, changed: &mut ChangedFields) {
        let needs_factor = |it: &Self| it.factor_needed_since.is_some();
        changed
            .shown("Plan", (&self.plan, &new.plan), |plan| plan.name().to_owned())
            .shown("Email", (&self.email, &new.email), text)
            .shown("Members need a second factor", (&needs_factor(self), &needs_factor(new)), yes_or_no);
    }
}

impl LoggedRecord for Person {
    fn changes(&self, new: &Self, changed: &mut ChangedFields) {
        let (old_factor, factor) = (&self.second_factor, &new.second_factor);
        changed
            .shown("Name", (&self.name, &new.name), optional)
            .shown("Email", (&self.email, &new.email), text)
            .hidden("Password", (&self.password_hash, &new.password_hash))
            .shown("Second factor", (&old_factor.is_active(), &factor.is_active()), yes_or_no)
            .hidden("Authenticator app", (&old_factor.active_secret(), &factor.active_secret()))
            .shown("Recovery codes left", (&old_factor.recovery_codes(), &factor.recovery_codes()), |codes| {
                codes.len().to_string()
            })
            .listed("Passkeys", (&named_passkeys(&self.passkeys), &named_passkeys(&new.passkeys)), |(_, name)| name)
            .shown("Operator", (&self.is_operator, &new.is_operator), yes_or_no);
    }
}
