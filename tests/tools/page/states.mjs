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
holds("maintenance is told, under way and planned", kinds.includes("Maintenance under way") && kinds.includes("Planned maintenance"), kinds);
holds("what was never seen is shown as no data", (await page.locator(`[id="${fresh.id}"] .strip .n`).count()) === 90);
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
holds("a month without incidents says so", /No incidents/.test(await (await open("/history")).textContent("main")) || (await (await open("/history")).locator(".card").count()) > 0);

await done();
