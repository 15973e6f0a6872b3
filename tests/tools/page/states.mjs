// A page without monitors, then of some that are new, up, paused and in maintenance. How it is called: browser.mjs, with
// "target", a URL that answers, beside.

import { accessible, api, done, eventually, holds, open, shot, told } from "./browser.mjs";

// Nothing is there yet.
const empty = await open("");
await shot(empty, "empty");
await accessible(empty, "a page without monitors");

const make = async (body) => (await api("POST", "/monitors", body)).monitor;
const up = await make({ name: "Web shop", groupName: "Shop", url: told.target });
const paused = await make({ name: "Old shop", groupName: "Shop", url: told.target, paused: true });
const fresh = await make({ name: "Nightly job", groupName: "Jobs", type: "heartbeat", periodMinutes: 60 });
const covered = await make({ name: "Database", groupName: "Jobs", url: told.target });
const at = (ahead) => new Date(Date.now() + ahead).toISOString(), hour = 3600e3;
await api("POST", "/incidents", { kind: "maintenance", title: "Database upgrade", startsAt: at(1e3), endsAt: at(hour), monitorIds: [covered.id], message: "Under way." });
await api("POST", "/incidents", { kind: "maintenance", title: "Network work", startsAt: at(48 * hour), endsAt: at(50 * hour), monitorIds: [up.id], message: "Planned." });
await api("POST", "/incidents", { kind: "maintenance", title: "Move to another hall", startsAt: at(240 * hour), endsAt: at(242 * hour), message: "Planned.", repeat: "weekly" });
const state = (page, id) => page.textContent(`[id="${id}"] .state`);
const page = await open("");
await eventually("what passes is up", async () => {
  await page.reload();
  return (await state(page, up.id)) === "Up" && (await state(page, covered.id)) === "In maintenance";
}, 90);
for (const [id, words] of [[paused.id, "Paused"], [fresh.id, "No data"]]) {
  holds(`a state in words: ${words}`, (await state(page, id)) === words, await state(page, id));
}
const kinds = await page.locator("#open .state").allTextContents();
holds("maintenance is told, under way and planned", kinds.includes("Maintenance in progress") && kinds.includes("Scheduled maintenance"), kinds);
const [running, planned] = await page.locator("#open .meta:has(.state)").allTextContents();
holds("what is under way says when it ends", /^Maintenance in progress ends in (1 hr|\d+ min) · /.test(running) && /In progress/.test(await page.textContent("#open .updates")), running);
holds("what is planned says when, for how long and in how long", /^Scheduled maintenance in 2 days · \w{3},? .* \(2 hours\)/.test(planned), planned);
const later = await page.textContent("#later li");
holds("what is further away is listed in short", /Move to another hall .* \(2 hours\) · repeats weekly/.test(later), later);
const far = await open("");
await far.locator("#later a").click();
holds("and leads to its page", (await far.textContent("main h1")) === "Move to another hall");
holds("what was never seen is shown as no data", (await page.locator(`[id="${fresh.id}"] .strip .n`).count()) === 24);
await eventually("it is seen from the regions that look", async () => {
  await page.reload();
  return /Checked from 2 regions/.test(await page.textContent("#headline p"));
});
await shot(page, "states");
await accessible(page, "states");
await page.goto(`${told.page}?range=24h`);
await shot(page, "states-24h");
for (const [name, id] of [["paused", paused.id], ["no-data", fresh.id], ["maintenance", covered.id]]) {
  const one = await open(`/monitors/${id}`);
  await shot(one, `monitor-${name}`);
  await accessible(one, `a monitor: ${name}`);
}
const past = await (await open("")).locator("#past .day").allTextContents();
holds("the past goes back to when the page was made, which was today", past.length === 1 || past.length === 2, past);
holds("a day names the maintenance that is under way", past[0].includes("Database upgrade Maintenance in progress"), past);
holds("and not what is planned", !past.join().includes("Network work"), past);
// That axe asks a frame which does not answer is no fault of the page.
const badges = await open("/badges", { permissions: ["clipboard-read", "clipboard-write"], forgiven: ["'postMessage'"] });
holds("what other sites may show is previewed", await badges.locator("img").first().evaluate((it) => it.decode().then(() => it.naturalWidth > 50)));
holds("in its frame too", (await badges.frameLocator("iframe").locator("h1").textContent()).length > 0);
await badges.locator("[data-copied]").first().click();
await badges.locator("[data-copied]", { hasText: "Copied" }).waitFor();
holds("and is copied by a button", (await badges.evaluate(() => navigator.clipboard.readText())).startsWith("[!["));
await accessible(badges, "badges");
await shot(badges, "badges");
const month = await (await open("/history")).textContent("main");
holds("a month names its maintenance", month.includes("Database upgrade"), month);
const database = await open(`/monitors/${covered.id}`);
holds("so does the page of a monitor that it is of", await database.locator("#open h2", { hasText: "Database upgrade" }).isVisible());
holds("and no other", (await database.locator("#open article").count()) === 1);

// A page of many monitors folds the groups that are well, and opens those that are not.
const many = [];
for (let n = 0; n < 13; n++) many.push(await make({ name: `Shelf ${n}`, groupName: "Shelves", url: told.target }));
const large = await open("");
const shelves = large.locator("details.group", { hasText: "Shelves" }), jobs = large.locator("details.group", { hasText: "Jobs" });
await eventually("a group that is well is folded, and says how it is", async () => {
  await large.reload();
  return !(await shelves.evaluate((it) => it.open)) && (await shelves.locator("summary .state").first().textContent()) === "Up";
}, 120);
holds("one with something to see is not", await jobs.evaluate((it) => it.open));
holds("a group's summary is named by it", (await large.getByRole("heading", { name: "Shelves" }).count()) === 1);
await shot(large, "groups");
await accessible(large, "folded groups");
await large.evaluate(() => { window.same = true; });
// What was folded is looked into by keys, what was open is closed by the mouse.
await shelves.locator("summary").first().focus();
await large.keyboard.press("Enter");
await jobs.locator("summary").first().click();
await shelves.locator("summary").first().focus();
const opened = (await api("POST", "/incidents", { title: "Shelf fell over", impact: "degraded", monitorIds: [many[0].id], message: "We look.", notify: false })).incident;
await large.waitForFunction(() => document.querySelector("#headline h2").textContent === "Shelf fell over", null, { timeout: 60000 });
holds("a change without a reload keeps what was opened", await large.evaluate(() => window.same === true) && await shelves.evaluate((it) => it.open));
holds("and what was closed", !(await jobs.evaluate((it) => it.open)));
holds("and whoever stands on a group still does", await shelves.locator("summary").first().evaluate((it) => it === document.activeElement));
await api("POST", `/incidents/${opened.id}/updates`, { status: "resolved", message: "Over.", notify: false });
// Whoever did nothing is shown what turned bad.
const still = await open("");
await eventually("it is folded for another visitor", async () => { await still.reload(); return !(await still.locator("details.group", { hasText: "Shelves" }).evaluate((it) => it.open)); });
await api("POST", "/incidents", { kind: "maintenance", title: "Shelves are painted", startsAt: at(1e3), endsAt: at(hour), monitorIds: [many[1].id], message: "Under way.", notify: false });
await still.waitForFunction(() => [...document.querySelectorAll("details.group")].some((it) => it.open && it.textContent.includes("Shelves") && it.querySelector("summary .maint")), null, { timeout: 60000 });
holds("a folded group opens by itself when something is to be seen", true);
const onPaper = await open("");
await onPaper.emulateMedia({ media: "print" });
holds("paper names each group and shows what is in it", (await onPaper.locator(".group h2:visible").count()) === 3 && await onPaper.getByText("Old shop").first().isVisible());
for (const it of many) await api("DELETE", `/monitors/${it.id}`);

await done();
