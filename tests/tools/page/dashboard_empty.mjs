// The dashboard of a new account: its set-up, then without a page, and with a page without monitors.
// Arguments: dashboard.mjs with "setup", the link of a new account, and "site", the address that it begins with.

import { join } from "node:path";
import { done, eventually, holds, told } from "./browser.mjs";
import { base, inspectAll, signIn, tab } from "./dashboard.mjs";

await inspectAll(undefined, [["set-up", new URL(told.setup).pathname]]);

// The address is tested once it is left, and a change tests it again; its password isn't sent along.
const form = await tab();
form.expected = /status of 400/;
await form.goto(told.setup);
const tests = [];
form.on("request", (it) => { if (it.url().includes("/test")) tests.push(it.postData()); });
await form.fill("#password", told.password);
await form.fill("#url", told.site);
await form.keyboard.press("Tab");
const verdict = async () => (await form.textContent("#test")).trim();
await eventually("an address is tested at once", async () => /^Not tested: no agent answered/.test(await verdict()), 20);
holds("without the password", tests.length === 1 && !tests[0].includes("password"), tests);
await form.locator("#url").focus();
await form.fill("#url", "ftp://first.example");
await eventually("a change is tested while it is typed", async () => /http/.test(await verdict()), 20);
await form.locator("#test").screenshot({ path: join(told.shots, "dashboard-set-up-test.png") });
await form.context().close();

const storageState = await signIn();
const page = await tab({ storageState });
await page.goto(`${base}/app`);
const first = await page.locator("a[href^='/app/pages/pg_']").first().getAttribute("href");
await page.goto(`${base}${first.split("/").slice(0, 4).join("/")}/settings/delete`);
await page.fill("#name", "First");
await page.click("button.danger");
await page.waitForURL(/\/app(\?|$)/);
const account = [
  ["overview", "/app"],
  ["search", "/app/search?q=a"],
  ["page-new", "/app/pages/new"],
  ["keys", "/app/account/keys"],
  ["security", "/app/account/security"],
];
await inspectAll(storageState, account, "no-page-");

await page.goto(`${base}/app/pages/new`);
await page.fill("#name", "Northwind");
await page.fill("#slug", "northwind");
await page.click("button.main-act");
await page.waitForURL(/\/app\/pages\/pg_\w+/);
const home = new URL(page.url()).pathname.split("/").slice(0, 4).join("/");
holds("the first page is made", /^\/app\/pages\/pg_/.test(home), home);
const sections = ["look", "address", "access", "uptime", "language", "badges", "delete"];
await inspectAll(storageState, [
  ["overview", "/app"],
  ["overview-page", home],
  ["monitors", `${home}/monitors`],
  ["monitor-new", `${home}/monitors/new`],
  ["incidents", `${home}/incidents`],
  ["incident-new", `${home}/incidents/new`],
  ["maintenance", `${home}/incidents?kind=maintenance`],
  ["maintenance-new", `${home}/incidents/new?kind=maintenance`],
  ["alerts", `${home}/alerts`],
  ["subscribers", `${home}/subscribers`],
  ["deploys", `${home}/deploys`],
  ...sections.map((section) => [`settings-${section}`, `${home}/settings/${section}`]),
], "empty-");
await done();
