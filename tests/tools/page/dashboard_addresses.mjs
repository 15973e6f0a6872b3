// Addresses of the dashboard's screens over the demo's data: name, path, and who may open it ("all", "editors",
// "owners" or "operators"). Arguments: browser.mjs.

import { api, told } from "./browser.mjs";

const { monitors } = await api("GET", "/monitors");
const { incidents } = await api("GET", "/incidents");
const { destinations } = await api("GET", "/destinations");
const { deliveries } = await api("GET", "/deliveries");
const page = `/app/pages/${told.id}`;
const monitorOf = (test) => `${page}/monitors/${monitors.find(test).id}`;
const incidentOf = (test) => `${page}/incidents/${incidents.find(test).id}`;
const up = monitorOf((it) => it.type === "http" && it.status === "up");
const down = monitorOf((it) => it.status === "down" && it.downFrom);
const open = incidentOf((it) => it.kind === "incident" && !it.resolvedAt);
const past = incidentOf((it) => it.title === "Checkout fails");
const window = incidentOf((it) => it.kind === "maintenance" && it.status === "scheduled");
const destination = `${page}/destinations/${destinations.find((it) => it.type === "webhook").id}`;
const delivery = `${page}/deliveries/${deliveries.find((it) => it.event === "went-down").id}`;
const types = ["http", "tcp", "dns", "ping", "certificate", "domain", "heartbeat", "component"];
const channels = ["email", "webhook", "slack", "discord", "teams", "telegram", "ntfy", "pagerduty"];

const of = (who, list) => list.map(([name, path]) => [name, path, who]);
export const addresses = [
  ...of("all", [
    ["overview", "/app"],
    ["overview-page", page],
    ["search", "/app/search?q=search"],
    ["search-none", "/app/search?q=zzz"],
    ["monitors", `${page}/monitors`],
    ["monitors-down", `${page}/monitors?state=down&sort=worst`],
    ["monitors-none", `${page}/monitors?q=zzz`],
    ["monitor-down", down],
    ["monitor-slow", monitorOf((it) => it.status === "slow")],
    ["monitor-up-90d", `${up}?range=90d`],
    ...types.map((type) => [`monitor-${type}`, monitorOf((it) => it.type === type)]),
    ["monitor-rounds", `${down}/checks`],
    ["monitor-events", `${down}/events`],
    ["monitor-alerts", `${down}/alerts`],
    ["incidents", `${page}/incidents`],
    ["incidents-past", `${page}/incidents?state=past`],
    ["maintenance", `${page}/incidents?kind=maintenance`],
    ["incident", open],
    ["incident-past", past],
    ["window", window],
    ["alerts", `${page}/alerts`],
    ["alerts-failed", `${page}/alerts?status=failed`],
    ["destination", destination],
    ["delivery", delivery],
    ["subscribers", `${page}/subscribers`],
    ["deploys", `${page}/deploys`],
    ...["look", "address", "access", "uptime", "language", "badges"]
      .map((section) => [`settings-${section}`, `${page}/settings/${section}`]),
    ["security", "/app/account/security"],
    ["factor", "/app/account/security/factor"],
    ["factor-off", "/app/account/security/factor/off"],
  ]),
  ...of("editors", [
    ["monitors-done", `${page}/monitors?done=monitors-paused&count=3`],
    ...types.map((type) => [`monitor-new-${type}`, `${page}/monitors/new?type=${type}`]),
    ["monitor-edit", `${up}/edit`],
    ["monitor-pause", `${down}/pause`],
    ["monitor-delete", `${up}/delete`],
    ["incident-new", `${page}/incidents/new`],
    ["incident-edit", `${open}/edit`],
    ["incident-delete", `${open}/delete`],
    ["postmortem", `${past}/postmortem`],
    ["maintenance-new", `${page}/incidents/new?kind=maintenance`],
    ["maintenance-start", `${page}/incidents/new?kind=maintenance&monitor=${monitors[0].id}`],
    ["window-edit", `${window}/edit`],
    ["monitors-order", `${page}/monitors?order=edit`],
    ["subscribers-import", `${page}/subscribers/import`],
  ]),
  ...of("owners", [
    ...channels.map((type) => [`destination-new-${type}`, `${page}/destinations/new?type=${type}`]),
    ["destination-rotate", `${destination}/rotate-secret`],
    ["settings-delete", `${page}/settings/delete`],
    ["page-new", "/app/pages/new"],
    ["keys", "/app/account/keys"],
    ["company", "/app/account/company"],
    ["company-remove", "/app/account/company/remove"],
    ["key-new", "/app/account/keys/new"],
    ["members", "/app/account/members"],
    ["member-invite", "/app/account/members/invite"],
    ["audit", "/app/account/audit"],
    ["plan", "/app/account/plan"],
  ]),
  ...of("operators", [
    ["mesh", "/app/mesh"],
    ["agent", "/app/mesh/agents/jnb1"],
    ["agent-new", "/app/mesh/agents/new"],
    ["accounts", "/app/accounts"],
  ]),
];
