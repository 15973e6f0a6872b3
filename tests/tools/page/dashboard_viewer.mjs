// The dashboard of a viewer: every screen that they may open is whole, without a form that changes anything, and
// without what others keep secret. Arguments: dashboard.mjs, and those of dashboard_addresses.mjs.

import { done, holds } from "./browser.mjs";
import { base, inspectAll, signIn, tab } from "./dashboard.mjs";
import { addresses } from "./dashboard_addresses.mjs";

const storageState = await signIn();
const open = addresses.filter(([, , who]) => who === "all");
// The owner's screens were seen in the dark.
await inspectAll(storageState, open.map(([name, path]) => [name, path]), "viewer-", ["light"]);

const page = await tab({ storageState });
page.expected = /status of 40[34]/;
const own = ["/sign-out", "/app/account/security", "/confirm"];
const wrong = [];
for (const [, path, who] of addresses) {
  const response = await page.goto(base + path, { waitUntil: "domcontentloaded" });
  const status = { all: 200, editors: 403, owners: 403, operators: 404 }[who];
  if (path.includes("done=")) continue;
  if (response.status() !== status) wrong.push(`${path} answers ${response.status()}`);
  if (status !== 200) continue;
  // Forms without a button show settings; their fields are disabled.
  const posts = page.locator("form[method=post]:has(button:enabled)");
  const forms = await posts.evaluateAll((all) => all.map((it) => it.getAttribute("action")));
  for (const form of forms) {
    if (!own.some((path) => form.startsWith(path))) wrong.push(`${path} has a form for ${form}`);
  }
  const text = await page.content();
  for (const secret of ["whsec_", "/ping/", "plx_"]) if (text.includes(secret)) wrong.push(`${path} shows ${secret}`);
  const links = await page.locator("main a[href]").evaluateAll((all) => all.map((it) => it.getAttribute("href")));
  for (const link of links) {
    if (/\/(edit|delete|new|pause|postmortem|rotate-secret)(\?|$)/.test(link)) wrong.push(`${path} links ${link}`);
  }
}
holds("a viewer is shown nothing that they may not do", wrong.length === 0, wrong);
await done();
