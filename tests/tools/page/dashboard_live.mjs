// Scripts of the dashboard in use: live parts and what they leave alone, the order of monitors, unsaved changes, and the
// palette. Arguments: dashboard.mjs, and "api", "key", "id" of the demo's page.

import { api, done, eventually, holds, told } from "./browser.mjs";
import { base, signIn, tab } from "./dashboard.mjs";

const home = `${base}/app/pages/${told.id}`;
const storageState = await signIn();
const open = async (path, options = {}) => {
  const page = await tab({ storageState, ...options });
  await page.goto(home + path, { waitUntil: "load" });
  return page;
};

// A change elsewhere appears by itself; what was ticked stays.
const list = await open("/monitors");
const [first] = (await api("GET", "/monitors")).monitors;
const row = list.locator(`#${first.id} .who a`), tick = list.locator(`#${first.id} input.pick`);
const rename = async (name) => {
  const renewed = list.waitForResponse((it) => it.request().resourceType() === "fetch" && it.url().endsWith("/monitors"));
  await api("PATCH", `/monitors/${first.id}`, { name });
  await (await renewed).finished();
};
const shows = (name) => async () => (await row.textContent()) === name;
await row.focus();
await rename("Renamed");
await eventually("a new name appears without a reload", shows("Renamed"), 30);
holds("and the focus stays on its row", await row.evaluate((it) => it === document.activeElement));
await tick.check();
await rename("Ticked");
// The answer before this one has been applied.
await rename(first.name);
holds("a list with ticks waits", (await shows("Renamed")()) && await tick.isChecked());
await tick.uncheck();
await eventually("until they are gone", shows(first.name), 40);
holds("and an empty tick box with the focus keeps it", await tick.evaluate((it) => it === document.activeElement));
await list.keyboard.press("Space");
holds("so that a key ticks the same row", await tick.isChecked());
await tick.uncheck();

// Every live part has a place in a screen that lacked it: one of its own, or a parent that can be found.
const screen = await open("");
const lost = await screen.evaluate(() => [...document.querySelectorAll("[data-part]")]
  .filter((it) => !it.id || !(it.parentElement.matches(".col") || it.parentElement.closest("[id]:not(#main)")))
  .map((it) => it.id));
holds("every live part can be found again", lost.length === 0, lost);
await screen.context().close();

// A screen that is removed stops asking for itself.
const short = { title: "Short", message: "Soon over.", impact: "none", notify: false };
const { incident: made } = await api("POST", "/incidents", short);
const gone = await open(`/incidents/${made.id}`);
gone.expected = /status of 404/;
let asks = 0;
gone.on("request", (it) => { if (it.resourceType() === "fetch" && it.url().includes(made.id)) asks += 1; });
await api("DELETE", `/incidents/${made.id}`);
await eventually("a removed screen says so", async () => /was removed/.test(await gone.textContent("#lost")), 30);
const asked = asks;
await rename("Changed");
await rename(first.name);
holds("and asks no more, whatever changes", asks === asked, `${asks - asked} times`);
await gone.context().close();
await list.context().close();

// Order: by button, by key and by number; all numbers follow, and leaving without saving asks.
const order = await open("/monitors?order=edit");
const rows = () => order.locator("[data-reorder] li").evaluateAll((all) => all.map((it) => [
  it.querySelector("[name=id]").value, it.querySelector("[inputmode]").name, it.querySelector("[inputmode]").value,
]));
const before = (await rows()).map(([id]) => id);
const numbered = async (what, ids) => {
  const now = await rows();
  holds(what, now.every(([id, field, value], at) => id === ids[at] && field === `at.${at + 1}` && value === `${at + 1}`), now);
};
await order.locator("button[name=down]").first().click();
const swapped = [before[1], before[0], ...before.slice(2)];
await numbered("a button moves a row, and the numbers follow", swapped);
await order.keyboard.press("Alt+ArrowUp");
await numbered("Alt and an arrow key move it back", before);
await order.locator("[inputmode]").nth(2).fill("1");
await order.keyboard.press("Tab");
await numbered("a typed number moves its row", [before[2], before[0], before[1], ...before.slice(3)]);
const questions = [];
order.asked = (dialog) => { questions.push(dialog.type()); };
await order.locator(".side a.nav").first().click({ noWaitAfter: true });
await eventually("leaving with an unsaved order asks", () => questions.includes("beforeunload"), 10);
await order.context().close();

// A form that was saved doesn't ask; one that came back with faults does.
const form = await open("/monitors/new?type=tcp");
const left = [];
form.asked = (dialog) => { left.push(dialog.type()); };
form.expected = /status of 4\d\d/;
await form.fill("#name", "x".repeat(81));
await form.locator("button.main-act", { hasText: /Create/ }).first().click();
await form.locator(".fault").first().waitFor();
holds("a refused form was sent without a question", left.length === 0, left);
await form.locator("#host").click();
await form.locator(".side a.nav").first().click({ noWaitAfter: true });
await eventually("leaving it asks: nothing was saved", () => left.includes("beforeunload"), 10);
await form.context().close();

// The palette: Enter acts on the results of what is typed.
const palette = await open("");
await palette.keyboard.press("Control+k");
await palette.locator("dialog.palette input").pressSequentially("checkout");
await palette.keyboard.press("Enter");
await palette.locator("h1", { hasText: "Checkout" }).waitFor();
holds("Enter right after typing opens what was typed", true);
await palette.context().close();

await done();
