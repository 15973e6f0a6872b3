// A page that nobody checks any more: it says so, and shows nothing as well. How it is called: browser.mjs.

import { accessible, api, done, eventually, headline, holds, minute, open, shot } from "./browser.mjs";

const monitors = (await api("GET", "/monitors")).monitors;
// No event tells that agents are gone: the page asks by itself, each minute of a clock that is put forward here.
const page = await open("", { first: (page) => page.clock.install() });
await eventually("a page that nobody looks at says so, without a reload", async () => {
  await minute(page);
  return (await headline(page)) === "Monitoring is currently unavailable";
}, 150);
holds("and when that was", /Last checked .* ago\./.test(await page.textContent("#headline p")), await page.textContent("#headline p"));
holds("and no state is green", (await page.locator(".mon .state.up").count()) === 0);
holds("nor is the headline", !(await page.evaluate(() => document.getElementById("headline").classList.contains("up"))));
await shot(page, "stale");
await accessible(page, "stale");
const one = await open(`/monitors/${monitors[0].id}`);
holds("a monitor's page says it too", /Not being checked right now/.test(await one.textContent("main")));
holds("and is not green", (await one.locator(".state.up").count()) === 0);
await shot(one, "stale-monitor");
await accessible(one, "a stale monitor");

await done();
