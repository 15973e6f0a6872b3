// Refresh of an open page: screen reader announcements, stale caches, tabs that return to the foreground, and the
// message while the service is unreachable. Arguments: browser.mjs; an incident must be open.

import { accessible, api, done, eventually, headline, holds, minute, open, part, told } from "./browser.mjs";

const incident = (await api("GET", "/incidents?open=true")).incidents.find((it) => it.kind === "incident");
// A visitor with a fake clock, counting changes of the live regions and refreshes of the page.
const visitor = async (first = () => {}) => {
  const page = await open("", { robbed: true, first: async (page) => { await page.clock.install(); await first(page); } });
  await page.evaluate(() => {
    // A script added by a browser extension must not count as a new build of the page.
    document.head.append(Object.assign(document.createElement("script"), { type: "text/plain", src: "/of-an-extension.js" }));
    const region = document.querySelector("#headline [role=status]");
    Object.assign(window, { renewals: 0, claims: 0, region, said: [region.textContent] });
    const count = (node, name, options) => new MutationObserver((seen) => { window[name] += seen.length; }).observe(node, options);
    const all = { subtree: true, childList: true, characterData: true, attributes: true };
    new MutationObserver(() => window.said.push(region.textContent)).observe(region, all);
    count(document.getElementById("claim"), "claims", all);
    count(document.getElementById("written"), "renewals", { attributeFilter: ["datetime"] });
  });
  return page;
};
const of = (page, name) => page.evaluate((name) => window[name], name);
const isOld = (page) => page.evaluate(() => document.documentElement.classList.contains("old"));
const claim = (page) => page.textContent("#claim");
const words = (page) => page.textContent("#headline p");
const isAsked = (request) => request.resourceType() === "fetch" && request.url().split("?")[0] === told.page;
const renewed = async (page, what = "it is renewed") => {
  const before = await of(page, "renewals");
  return eventually(what, async () => { await minute(page); return (await of(page, "renewals")) > before; }, 90);
};
const hide = (page, hidden) => page.evaluate((hidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}, hidden);

// Only changes are announced.
const heard = await visitor();
const age = await words(heard);
for (let n = 0; n < 3; n++) await renewed(heard, `it is renewed, ${n + 1}`);
await eventually("its age advances", async () => { await heard.clock.runFor(1000); return (await words(heard)) !== age; }, 90);
// A flapping monitor may change the sentence meanwhile.
const isSaidOnce = () => heard.evaluate(() => window.said.every((text, n) => text !== window.said[n - 1]));
holds("and none of that was announced", (await isSaidOnce()) && (await of(heard, "claims")) === 0, await of(heard, "said"));
await api("PATCH", `/incidents/${incident.id}`, { title: "Images fail from half of Asia" });
await eventually("a change arrives", async () => { await minute(heard); return (await headline(heard)) === "Images fail from half of Asia"; }, 90);
holds("and is announced by the existing live region", (await of(heard, "said")).includes("Images fail from half of Asia") && (await heard.evaluate(() => window.region.isConnected)));
holds("and once", await isSaidOnce(), await of(heard, "said"));

// A page that was stale when it loaded refreshes at once, long before its regular interval.
let asks = 0;
const lain = await visitor(async (page) => {
  page.on("request", (request) => { if (isAsked(request)) asks += 1; });
  await page.route("**/events", (route) => route.abort());
  await page.clock.setSystemTime(Date.now() + 60e3);
});
await lain.clock.runFor(3000);
await eventually("a page that is a minute old is refreshed within seconds", () => asks === 1, 10);

// A cache answers instead of the service: the content is as old as its Age header says.
let kept = 600;
const cached = await visitor(async (page) => {
  await page.clock.setSystemTime(Date.now() + 26 * 3600e3);
  await page.route((url) => url.href.split("?")[0] === told.page, async (route) => {
    if (!isAsked(route.request())) return route.continue();
    const answer = await route.fetch();
    return route.fulfill({ response: answer, headers: { ...answer.headers(), ...(kept ? { age: String(kept) } : {}) } });
  });
});
await eventually("a stale page refreshes at once, and is marked as old", () => isOld(cached), 90);
holds("it shows the time of the last update", /Last updated/.test(await claim(cached)), await claim(cached));
await cached.clock.runFor(1000);
holds("and how old the check is, whatever the visitor's clock says", /(9|10|11) minutes ago\./.test(await words(cached)), await words(cached));
await accessible(cached, "a page that can't be renewed");
await part(cached, "kept-by-a-cache");
kept = 0;
await renewed(cached, "once the service answers it is renewed");
holds("and is no longer marked as old", !(await isOld(cached)) && (await claim(cached)) === "", await claim(cached));

// A captive portal answers instead of the service.
const between = await visitor((page) => page.route((url) => url.href.split("?")[0] === told.page, (route) => isAsked(route.request())
  ? route.fulfill({ status: 200, contentType: "text/html", body: "<!doctype html><title>Back soon</title><h1>Back soon</h1>" }) : route.continue()));
const whole = await between.evaluate(() => [document.title, document.querySelectorAll("main>[data-part]").length]);
await eventually("another page in its place does not count as a refresh", async () => { await minute(between); return isOld(between); }, 90);
holds("and removes nothing", JSON.stringify(await between.evaluate(() => [document.title, document.querySelectorAll("main>[data-part]").length])) === JSON.stringify(whole), whole);

// A background tab reports no failure before it has tried to refresh.
let held = null, isHeld = false;
const back = await visitor((page) => page.route((url) => url.href.split("?")[0] === told.page, async (route) => {
  if (isHeld && isAsked(route.request())) await new Promise((go) => { held = go; });
  await route.continue();
}));
await hide(back, true);
await back.clock.runFor(600000);
isHeld = true;
const asked = back.waitForRequest(isAsked, { timeout: 90000 });
await hide(back, false);
await asked;
holds("a tab that returns to the foreground refreshes at once", true);
await back.clock.runFor(5000);
holds("and no failure is reported while it is in progress", !(await isOld(back)) && (await claim(back)) === "");
isHeld = false;
await eventually("the response is delayed", () => held, 90);
held();
await eventually("it is renewed", async () => (await of(back, "renewals")) > 0, 90);
holds("and no failure was reported", (await of(back, "claims")) === 0);

// A failure is announced once, and withdrawn on recovery.
await hide(back, true);
await back.context().setOffline(true);
await back.clock.runFor(600000);
await hide(back, false);
await eventually("a failed refresh is reported", () => isOld(back), 90);
const said = await claim(back);
holds("with the time of the last update", /Last updated .*\d\d:\d\d/.test(said), said);
holds("with the last known data", /Checked from .* ago\./.test(await words(back)), await words(back));
const claims = await of(back, "claims");
await back.clock.runFor(200000);
holds("and is announced once", (await of(back, "claims")) === claims && (await claim(back)) === said, await claim(back));
await part(back, "offline");
await back.context().setOffline(false);
await eventually("back online it is up to date again", async () => !(await isOld(back)) && (await claim(back)) === "", 90);

await done();
