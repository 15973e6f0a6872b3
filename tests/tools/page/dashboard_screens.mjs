// Every screen of the dashboard for an owner who operates the installation, and what its forms draw.
// Arguments: dashboard.mjs, and those of dashboard_addresses.mjs.

import { done, holds, told } from "./browser.mjs";
import { base, inspectAll, inspectHere, signIn, tab } from "./dashboard.mjs";
import { addresses } from "./dashboard_addresses.mjs";

await inspectAll(undefined, [["sign-in", "/sign-in?next=%2Fapp"], ["set-up-used", "/setup/none", 404]]);
const storageState = await signIn();
await inspectAll(storageState, [...addresses.map(([name, path]) => [name, path]), ["missing", "/app/missing", 404]]);

// What a form draws: refused, tested, previewed, asked.
const home = `/app/pages/${told.id}`;
const page = await tab({ storageState });
const wrong = [];
const after = async (name, path, act, status) => {
  page.expected = status && /status of 4\d\d/;
  await page.goto(base + path);
  await act();
  await page.waitForLoadState("load");
  wrong.push(...await inspectHere(page, name));
};
const press = async (name) => {
  const [response] = await Promise.all([
    page.waitForResponse((it) => it.request().method() === "POST" && it.request().isNavigationRequest()),
    // Not the first button of a form, which the Enter key presses: it is hidden.
    page.locator("button:not(.vh)", { hasText: new RegExp(`^\\s*${name}\\s*$`) }).first().click(),
  ]);
  return response;
};
await after("refused-monitor", `${home}/monitors/new`, async () => {
  await page.fill("#name", "x".repeat(81));
  await press("Create monitor");
}, 400);
await after("tested-monitor", `${home}/monitors/new?type=tcp`, async () => {
  await page.fill("#host", "127.0.0.1");
  await page.fill("#port", "1");
  await page.locator("[formaction$='/test']").click();
  await page.locator("#test .fall").waitFor();
  await page.locator("button", { hasText: /^\s*Test\s*$/ }).waitFor();
});
await after("refused-incident", `${home}/incidents/new`, async () => {
  await page.locator("button[name=notify]").first().click();
  await page.locator(".fault").first().waitFor();
}, 400);
await after("previewed-incident", `${home}/incidents/new`, async () => {
  await page.fill("#title", "Payments fail");
  await page.fill("#message", "**We** look into it.\n\n- one\n- two\n\n`code`");
  await press("Preview");
});
await after("refused-window", `${home}/incidents/new?kind=maintenance`, async () => {
  await page.fill("#title", "");
  await page.locator("button[name=notify]").first().click();
  await page.locator(".fault").first().waitFor();
}, 400);
await after("refused-destination", `${home}/destinations/new?type=webhook`, () => press("Create destination"), 400);
await after("refused-page", "/app/pages/new", () => press("Create page"), 400);
await after("refused-address", `${home}/settings/address`, async () => {
  await page.fill("#slug", "-");
  await press("Save address");
}, 400);
await after("bulk-delete", `${home}/monitors`, async () => {
  await page.locator("input.pick[name=id]").first().check();
  await press("Delete");
});
await after("key", "/app/account/keys/new", async () => {
  await page.fill("#name", "deploys");
  await press("Create key");
});
await after("agent-invited", "/app/mesh/agents/new", async () => {
  await page.fill("#name", "lag1");
  await page.fill("#network", "AS64509");
  await press("Invite agent");
});
await page.context().close();
holds("what forms draw is whole", wrong.length === 0, wrong);
await done();
