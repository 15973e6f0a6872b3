// A page without monitors, then with monitors that are new, up, paused and in maintenance. Arguments: browser.mjs, and
// "target", a URL that responds.

import { accessible, api, done, eventually, holds, open, shot, told } from "./browser.mjs";

// Empty page.
const empty = await open("");
await shot(empty, "empty");
await accessible(empty, "a page without monitors");

const make = async (body) => (await api("POST", "/monitors", body)).monitor;
const up = await make({ name: "Web shop", groupName: "Shop", url: told.target });
const young = await open("");
holds("a new page shows 24 hours by default", (await young.locator(".strip").first().locator("a").count()) === 24);
await shot(young, "page-young");
const paused = await make({ name: "Old shop", groupName: "Shop", url: told.target, paused: true });
const fresh = await make({ name: "Nightly job", groupName: "Jobs", type: "heartbeat", periodMinutes: 60 });
const covered = await make({ name: "Database", groupName: "Jobs", url: told.target });
const at = (ahead) => new Date(Date.now() + ahead).toISOString(), hour = 3600e3;
await api("POST", "/incidents", { kind: "maintenance", title: "Database upgrade", startsAt: at(1e3), endsAt: at(hour), monitorIds: [covered.id], message: "Under way." });
await api("POST", "/incidents", { kind: "maintenance", title: "Network work", startsAt: at(48 * hour), endsAt: at(50 * hour), monitorIds: [up.id], message: "Planned." });
await api("POST", "/incidents", { kind: "maintenance", title: "Move to another hall", startsAt: at(240 * hour), endsAt: at(242 * hour), message: "Planned.", repeat: "weekly" });
const state = (page, id) => page.textContent(`[id="${id}"] .state`);
const page = await open("");
await eventually("passing monitors are up", async () => {
  await page.reload();
  return (await state(page, up.id)) === "Up" && (await state(page, covered.id)) === "In maintenance";
}, 90);
for (const [id, words] of [[paused.id, "Paused"], [fresh.id, "No data"]]) {
  holds(`a status as text: ${words}`, (await state(page, id)) === words, await state(page, id));
}
const kinds = await page.locator("#open .state").allTextContents();
holds("maintenance is shown, in progress and scheduled", kinds.includes("Maintenance in progress") && kinds.includes("Scheduled maintenance"), kinds);
const [running, planned] = await page.locator("#open .meta:has(.state)").allTextContents();
holds("maintenance in progress shows its end", /^Maintenance in progress ends in (1 hr|\d+ min) · /.test(running) && /In progress/.test(await page.textContent("#open .updates")), running);
holds("scheduled maintenance shows its start, duration and remaining time", /^Scheduled maintenance in 2 days · \w{3},? .* \(2 hours\)/.test(planned), planned);
const later = await page.textContent("#later li");
holds("later maintenance is listed in short form", /Move to another hall .* \(2 hours\) · repeats weekly/.test(later), later);
const far = await open("");
await far.locator("#later a").click();
holds("and links to its page", (await far.textContent("main h1")) === "Move to another hall");
holds("periods without checks are shown as no data", (await page.locator(`[id="${fresh.id}"] .strip .n`).count()) === 24);
await eventually("it shows the regions that check", async () => {
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
holds("history begins when the page was created, which was today", past.length === 1 || past.length === 2, past);
holds("a day shows the maintenance in progress", past[0].includes("Database upgrade Maintenance in progress"), past);
holds("and not the scheduled one", !past.join().includes("Network work"), past);
// axe logs an error for a frame that does not answer it; that is no fault of the page.
const badges = await open("/badges", { permissions: ["clipboard-read", "clipboard-write"], forgiven: ["'postMessage'"] });
holds("badges are previewed", await badges.locator("img").first().evaluate((it) => it.decode().then(() => it.naturalWidth > 50)));
holds("and so is the frame", (await badges.frameLocator("iframe").locator("h1").textContent()).length > 0);
await badges.locator("[data-copied]").first().click();
await badges.locator("[data-copied]", { hasText: "Copied" }).waitFor();
holds("and a button copies the code", (await badges.evaluate(() => navigator.clipboard.readText())).startsWith("[!["));
await accessible(badges, "badges");
await shot(badges, "badges");
const month = await (await open("/history")).textContent("main");
holds("a month lists its maintenance", month.includes("Database upgrade"), month);
const database = await open(`/monitors/${covered.id}`);
holds("and so does the page of an affected monitor", await database.locator("#open h2", { hasText: "Database upgrade" }).isVisible());
holds("and no other", (await database.locator("#open article").count()) === 1);

// With many monitors, groups that are up are collapsed, others are expanded.
const many = [];
for (let n = 0; n < 13; n++) many.push(await make({ name: `Shelf ${n}`, groupName: "Shelves", url: told.target }));
const large = await open("");
const shelves = large.locator("details.group", { hasText: "Shelves" }), jobs = large.locator("details.group", { hasText: "Jobs" });
await eventually("a group that is up is collapsed, and shows its status", async () => {
  await large.reload();
  return !(await shelves.evaluate((it) => it.open)) && (await shelves.locator("summary .state").first().textContent()) === "Up";
}, 120);
holds("a group with trouble is expanded", await jobs.evaluate((it) => it.open));
holds("a group's summary is a heading with its name", (await large.getByRole("heading", { name: "Shelves" }).count()) === 1);
await shot(large, "groups");
await accessible(large, "folded groups");
await large.evaluate(() => { window.same = true; });
// Expand by keyboard, collapse by mouse.
await shelves.locator("summary").first().focus();
await large.keyboard.press("Enter");
await jobs.locator("summary").first().click();
await shelves.locator("summary").first().focus();
const opened = (await api("POST", "/incidents", { title: "Shelf fell over", impact: "degraded", monitorIds: [many[0].id], message: "We look.", notify: false })).incident;
await large.waitForFunction(() => document.querySelector("#headline h2").textContent === "Shelf fell over", null, { timeout: 60000 });
holds("a refresh keeps expanded groups", await large.evaluate(() => window.same === true) && await shelves.evaluate((it) => it.open));
holds("and collapsed ones", !(await jobs.evaluate((it) => it.open)));
holds("and a focused group keeps the focus", await shelves.locator("summary").first().evaluate((it) => it === document.activeElement));
await api("POST", `/incidents/${opened.id}/updates`, { status: "resolved", message: "Over.", notify: false });
// A group that the visitor has not toggled expands when it has trouble.
const still = await open("");
await eventually("it is collapsed for another visitor", async () => { await still.reload(); return !(await still.locator("details.group", { hasText: "Shelves" }).evaluate((it) => it.open)); });
await api("POST", "/incidents", { kind: "maintenance", title: "Shelves are painted", startsAt: at(1e3), endsAt: at(hour), monitorIds: [many[1].id], message: "Under way.", notify: false });
await still.waitForFunction(() => [...document.querySelectorAll("details.group")].some((it) => it.open && it.textContent.includes("Shelves") && it.querySelector("summary .maint")), null, { timeout: 60000 });
holds("a collapsed group expands when it has trouble", true);
const onPaper = await open("");
await onPaper.emulateMedia({ media: "print" });
holds("print shows each group with its monitors", (await onPaper.locator(".group h2:visible").count()) === 3 && await onPaper.getByText("Old shop").first().isVisible());
for (const it of many) await api("DELETE", `/monitors/${it.id}`);

await done();
