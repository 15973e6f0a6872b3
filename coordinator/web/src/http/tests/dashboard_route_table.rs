//! The signed-in routes of the dashboard, with the persons who may use them.

/// The persons who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Users {
    /// Every member of the account.
    Members,
    /// Owners and editors.
    Editors,
    /// Owners alone.
    Owners,
    /// Operators of the installation; for others it does not exist.
    Operators,
}
use Users::{Editors, Members, Operators, Owners};

/// Exports, which leave an entry in the audit log.
pub(super) const LOGGED_READS: [&str; 2] = ["/app/pages/{page}/subscribers.csv", "/app/account/audit.csv"];

/// Every signed-in route with its users. What uses up a thing comes after all that needs it.
pub(super) const ROUTES: [(&str, &str, Users); 119] = [
    ("GET", "/app", Members),
    ("GET", "/app/live", Members),
    ("GET", "/app/search", Members),
    ("POST", "/app/next-steps/dismiss", Owners),
    ("GET", "/app/pages/new", Owners),
    ("POST", "/app/pages/new", Owners),
    ("GET", "/app/pages/{page}", Members),
    ("GET", "/app/pages/{page}/monitors", Members),
    ("POST", "/app/pages/{page}/monitors/bulk", Editors),
    ("POST", "/app/pages/{page}/monitors/order", Editors),
    ("GET", "/app/pages/{page}/monitors/new", Editors),
    ("POST", "/app/pages/{page}/monitors/new", Editors),
    ("POST", "/app/pages/{page}/monitors/new/type", Editors),
    ("POST", "/app/pages/{page}/monitors/new/test", Editors),
    ("GET", "/app/pages/{page}/monitors/{monitor}", Members),
    ("POST", "/app/pages/{page}/monitors/{monitor}/check", Editors),
    ("POST", "/app/pages/{page}/monitors/{monitor}/acknowledge", Editors),
    ("POST", "/app/pages/{page}/monitors/{monitor}/take-back", Editors),
    ("GET", "/app/pages/{page}/monitors/{monitor}/checks", Members),
    ("GET", "/app/pages/{page}/monitors/{monitor}/events", Members),
    ("GET", "/app/pages/{page}/monitors/{monitor}/alerts", Members),
    ("GET", "/app/pages/{page}/monitors/{monitor}/edit", Editors),
    ("POST", "/app/pages/{page}/monitors/{monitor}/edit", Editors),
    ("POST", "/app/pages/{page}/monitors/{monitor}/edit/type", Editors),
    ("POST", "/app/pages/{page}/monitors/{monitor}/edit/test", Editors),
    ("GET", "/app/pages/{page}/monitors/{monitor}/pause", Editors),
    ("POST", "/app/pages/{page}/monitors/{monitor}/pause", Editors),
    ("POST", "/app/pages/{page}/monitors/{monitor}/resume", Editors),
    ("GET", "/app/pages/{page}/monitors/{monitor}/delete", Editors),
    ("POST", "/app/pages/{page}/monitors/{monitor}/delete", Editors),
    ("GET", "/app/pages/{page}/incidents", Members),
    ("GET", "/app/pages/{page}/incidents/new", Editors),
    ("POST", "/app/pages/{page}/incidents/new", Editors),
    ("POST", "/app/pages/{page}/incidents/start", Editors),
    ("GET", "/app/pages/{page}/incidents/{incident}", Members),
    ("POST", "/app/pages/{page}/incidents/{incident}", Editors),
    ("GET", "/app/pages/{page}/incidents/{incident}/edit", Editors),
    ("POST", "/app/pages/{page}/incidents/{incident}/edit", Editors),
    ("GET", "/app/pages/{page}/incidents/{incident}/postmortem", Editors),
    ("POST", "/app/pages/{page}/incidents/{incident}/postmortem", Editors),
    ("POST", "/app/pages/{page}/incidents/{incident}/end", Editors),
    ("POST", "/app/pages/{page}/incidents/{incident}/extend", Editors),
    ("POST", "/app/pages/{page}/incidents/{incident}/stop", Editors),
    ("GET", "/app/pages/{page}/incidents/{incident}/delete", Editors),
    ("POST", "/app/pages/{page}/incidents/{incident}/delete", Editors),
    ("GET", "/app/pages/{page}/alerts", Members),
    ("POST", "/app/pages/{page}/alerts", Editors),
    ("GET", "/app/pages/{page}/destinations/new", Owners),
    ("POST", "/app/pages/{page}/destinations/new", Owners),
    ("GET", "/app/pages/{page}/destinations/{destination}", Members),
    ("POST", "/app/pages/{page}/destinations/{destination}", Owners),
    ("POST", "/app/pages/{page}/destinations/{destination}/test", Editors),
    ("POST", "/app/pages/{page}/destinations/{destination}/enable", Owners),
    ("GET", "/app/pages/{page}/destinations/{destination}/rotate-secret", Owners),
    ("POST", "/app/pages/{page}/destinations/{destination}/rotate-secret", Owners),
    ("POST", "/app/pages/{page}/destinations/{destination}/activate-secret", Owners),
    ("GET", "/app/pages/{page}/deliveries/{delivery}", Members),
    ("POST", "/app/pages/{page}/deliveries/{delivery}/redeliver", Editors),
    ("POST", "/app/pages/{page}/destinations/{destination}/delete", Owners),
    ("GET", "/app/pages/{page}/subscribers", Members),
    ("POST", "/app/pages/{page}/subscribers", Editors),
    ("GET", "/app/pages/{page}/subscribers.csv", Owners),
    ("GET", "/app/pages/{page}/subscribers/import", Editors),
    ("POST", "/app/pages/{page}/subscribers/import", Editors),
    ("POST", "/app/pages/{page}/subscribers/{subscriber}/delete", Editors),
    ("GET", "/app/pages/{page}/deploys", Members),
    ("POST", "/app/pages/{page}/deploys", Editors),
    ("POST", "/app/pages/{page}/deploys/{deploy}/delete", Editors),
    ("GET", "/app/pages/{page}/settings", Members),
    ("GET", "/app/pages/{page}/settings/look", Members),
    ("POST", "/app/pages/{page}/settings/look", Editors),
    ("GET", "/app/pages/{page}/preview", Members),
    ("POST", "/app/pages/{page}/preview", Members),
    ("GET", "/app/pages/{page}/settings/address", Members),
    ("POST", "/app/pages/{page}/settings/address", Owners),
    ("POST", "/app/pages/{page}/settings/address/check", Owners),
    ("GET", "/app/pages/{page}/settings/access", Members),
    ("POST", "/app/pages/{page}/settings/access", Owners),
    ("GET", "/app/pages/{page}/settings/uptime", Members),
    ("POST", "/app/pages/{page}/settings/uptime", Editors),
    ("GET", "/app/pages/{page}/settings/language", Members),
    ("POST", "/app/pages/{page}/settings/language", Editors),
    ("GET", "/app/pages/{page}/settings/badges", Members),
    ("GET", "/app/pages/{page}/settings/delete", Owners),
    ("POST", "/app/pages/{page}/settings/delete", Owners),
    ("GET", "/app/mesh", Operators),
    ("GET", "/app/mesh/agents/new", Operators),
    ("POST", "/app/mesh/agents/new", Operators),
    ("GET", "/app/mesh/agents/{agent}", Operators),
    ("POST", "/app/mesh/agents/{agent}", Operators),
    ("GET", "/app/mesh/invitations/{invitation}", Operators),
    ("POST", "/app/mesh/invitations/{invitation}/revoke", Operators),
    ("GET", "/app/accounts", Operators),
    ("POST", "/app/accounts/{account}/plan", Operators),
    ("POST", "/app/accounts/{account}/set-up-link", Operators),
    ("GET", "/app/account/keys", Owners),
    ("GET", "/app/account/keys/new", Owners),
    ("POST", "/app/account/keys/new", Owners),
    ("POST", "/app/account/keys/{key}/revoke", Owners),
    ("GET", "/app/account/members", Owners),
    ("GET", "/app/account/members/invite", Owners),
    ("POST", "/app/account/members/invite", Owners),
    ("POST", "/app/account/members/{person}/role", Owners),
    ("GET", "/app/account/members/{person}/remove", Owners),
    ("POST", "/app/account/members/{person}/remove", Owners),
    ("POST", "/app/account/members/invitations/{memberInvitation}/resend", Owners),
    ("POST", "/app/account/members/invitations/{memberInvitation}/revoke", Owners),
    ("GET", "/app/account/audit", Owners),
    ("GET", "/app/account/audit.csv", Owners),
    ("GET", "/app/account/plan", Owners),
    ("GET", "/app/account/switch", Members),
    ("POST", "/app/account/switch", Members),
    ("GET", "/app/account/security", Members),
    ("POST", "/app/account/security/password", Members),
    ("POST", "/app/account/security/sessions/{session}/end", Members),
    ("POST", "/app/account/security/sessions/end-others", Members),
    ("GET", "/confirm", Members),
    ("POST", "/confirm", Members),
    ("POST", "/sign-out", Members),
];

/// Answers by a token of the person's alone, whose rules have tests of their own.
pub(super) const UNDO: (&str, &str) = ("POST", "/app/undo/{token}");

/// Routes that lead to the same place a second time, and so for what is not there.
pub(super) const REPEATABLE: [&str; 2] =
    ["/app/account/keys/{key}/revoke", "/app/account/security/sessions/{session}/end"];

/// Routes whose request in the test of roles names nothing that is there: a switch without an account, since another one
/// would end the session, and an invitation that got another id when it was sent again.
pub(super) const NAMES_NOTHING: [&str; 2] =
    ["/app/account/switch", "/app/account/members/invitations/{memberInvitation}/revoke"];
