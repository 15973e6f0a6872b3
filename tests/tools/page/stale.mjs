// A page whose monitors are no longer checked: it says so, and shows nothing as up. Arguments: browser.mjs.

import { accessible, api, done, eventually, headline, holds, minute, open, shot } from "./browser.mjs";

const monitors = (await api("GET", "/monitors")).monitors;
// No event reports lost agents: the page polls every minute of its fake clock.
const page = await open("", { first: (page) => page.clock.install() });
await eventually("a page without checks shows that, without a reload", async () => {
  await minute(page);
  return (await headline(page)) === "Monitoring is currently unavailable";
}, 150);
holds("and the time of the last check", /Last checked .* ago\./.test(await page.textContent("#headline p")), await page.textContent("#headline p"));
holds("and no state is green", (await page.locator(".mon .state.up").count()) === 0);
holds("nor is the headline", !(await page.evaluate(() => document.getElementById("headline").classList.contains("up"))));
await shot(page, "stale");
await accessible(page, "stale");
const one = await open(`/monitors/${monitors[0].id}`);
holds("a monitor's page shows it too", /Not being checked right now/.test(await one.textContent("main")));
holds("and is not green", (await one.locator(".state.up").count()) === 0);
await shot(one, "stale-monitor");
await accessible(one, "a stale monitor");

await done();
