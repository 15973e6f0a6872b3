// Checks that fill in region by region, dragging, charts that are read and zoomed, and forced colours: each by pointer and
// by keyboard alone. Arguments: dashboard.mjs, and "api", "key", "id" of the demo's page.

import { createServer } from "node:http";
import { api, done, eventually, holds, part, told } from "./browser.mjs";
import { base, signIn, tab } from "./dashboard.mjs";

const home = `${base}/app/pages/${told.id}`;
const storageState = await signIn();
const open = async (path, options = {}) => {
  const page = await tab({ storageState, ...options });
  await page.goto(home + path, { waitUntil: "load" });
  return page;
};
const text = (page, selector) => async () => (await page.locator(selector).first().textContent()).trim();
const says = (page, selector, words) => async () => words.test(await text(page, selector)());

// A site that answers one check after the other, when it is told to.
const held = [];
const site = createServer((_, response) => held.push(response));
await new Promise((ready) => site.listen(0, "127.0.0.1", ready));
const address = `http://127.0.0.1:${site.address().port}/`;
const answer = () => held.shift().end("fine");

// The test of a new monitor: the button and the line count the regions.
const form = await open("/monitors/new");
await form.fill("#url", address);
await form.keyboard.press("Tab");
const regions = await eventually("a test asks each region", async () => {
  const found = /^0 of (\d) answered$/.exec(await text(form, "#test .meta")().catch(() => ""));
  return found && held.length === Number(found[1]) && Number(found[1]);
}, 20);
const button = "[formaction$='/test']";
holds("its button counts", (await text(form, button)()) === `Checking 0 of ${regions}`, await text(form, button)());
answer();
await eventually("the line of a region appears as it answers", says(form, "#test .meta", /^1 of \d answered$/), 20);
const lines = () => form.locator("#test .fall li .code").allTextContents();
holds("one has a result, the others wait", (await lines()).filter((it) => it.trim() === "waits").length === regions - 1);
holds("so does its button", (await text(form, button)()) === `Checking 1 of ${regions}`);
await part(form, "dashboard-testing-1280");
await form.setViewportSize({ width: 390, height: 844 });
await part(form, "dashboard-testing-390");
while (held.length) answer();
await eventually("the verdict is the last", says(form, "#test p", new RegExp(`^${regions} of ${regions} regions would be up$`)), 20);
holds("and the button is as before", (await text(form, button)()) === "Test", await text(form, button)());
holds("nothing that was typed is lost", (await form.inputValue("#url")) === address);
await form.locator(button).focus();
await form.keyboard.press("Enter");
await eventually("Enter on the button tests again", () => held.length === regions, 20);
while (held.length) answer();
await eventually("with the same result", says(form, "#test p", /regions would be up$/), 20);
await form.context().close();

// Check now, by keyboard: the screen stays, and the section of the result fills in.
const { monitor: made } = await api("POST", "/monitors", { type: "http", name: "Held", url: address });
const release = setInterval(() => { while (held.length) answer(); }, 50);
const checked = await open(`/monitors/${made.id}`);
await eventually("the monitor is checked", async () => (await api("GET", `/monitors/${made.id}`)).monitor.status === "up", 60);
clearInterval(release);
const url = checked.url();
await checked.evaluate(() => {
  window.said = [];
  const voice = document.querySelector("p.vh[role=status]");
  const hear = () => voice.textContent && window.said.push(voice.textContent);
  new MutationObserver(hear).observe(voice, { childList: true });
});
const said = () => checked.evaluate(() => window.said);
const check = checked.locator(".head button", { hasText: "Check now" });
await check.focus();
await checked.keyboard.press("Enter");
await eventually("Check now counts at its button", says(checked, ".head [data-fragments] button", /^Checking \d of \d$/), 20);
await eventually("and in its section", says(checked, "#check .meta", /^\d of \d answered$/), 20);
const answering = setInterval(() => { while (held.length) answer(); }, 50);
await eventually("the result takes the place", says(checked, "#check h2", /^Checked by you at/), 30);
holds("the address stays, so a reload checks nothing", checked.url() === url, checked.url());
holds("the button is as before", /Check now/.test(await text(checked, ".head [data-fragments] button")()));
holds("and keeps the focus", await check.evaluate((it) => it === document.activeElement));
holds("it can be pressed again", (await checked.locator(".head form[data-sent]").count()) === 0);
const [verdict, ...more] = await said();
holds("its result alone is announced", /^Checked: passed in (\d) of \1 regions?\.$/.test(verdict) && !more.length, await said());
await checked.setViewportSize({ width: 1280, height: 420 });
await checked.evaluate(() => scrollTo(0, document.body.scrollHeight));
await checked.keyboard.press("Enter");
await eventually("a check that is refused says why", says(checked, "#check p", /wait|seconds|soon/i), 30);
const reason = await text(checked, "#check p")();
await eventually("aloud, too", async () => (await said()).join("|") === `${verdict}|${reason}`, 20);
const isSeen = () => checked.locator("#check").evaluate((it) => {
  const { top, bottom } = it.getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight;
});
await eventually("where it is seen", isSeen, 20);
clearInterval(answering);
await checked.context().close();
await api("DELETE", `/monitors/${made.id}`);
site.closeAllConnections();
site.close();

// Dragging: rows make way, the drop is announced, Escape puts back, and the window scrolls at its edges.
const order = await open("/monitors?order=edit");
const ids = () => order.locator("[data-reorder] [name=id]").evaluateAll((all) => all.map((it) => it.value));
const before = await ids();
const middle = async (page, at) => {
  const box = await page.locator("[data-grip]").nth(at).boundingBox();
  return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
};
const drag = async (from, to, end) => {
  const [start, stop] = [await middle(order, from), await middle(order, to)];
  await order.mouse.move(start.x, start.y);
  await order.mouse.down();
  await order.mouse.move(stop.x, stop.y + Math.sign(to - from) * 10, { steps: 8 });
  await end();
  await order.mouse.up();
};
await drag(0, 2, () => part(order, "dashboard-dragging-1280"));
const moved = [before[1], before[2], before[0], ...before.slice(3)];
holds("a row is dropped in another place", JSON.stringify(await ids()) === JSON.stringify(moved), await ids());
const numbers = await order.locator("[data-reorder] [inputmode]").evaluateAll((all) => all.map((it) => it.value));
holds("all numbers follow", numbers.every((it, at) => Number(it) === at + 1), numbers);
const spoken = (page) => page.locator("p.vh[role=status]").textContent();
holds("the drop is announced", new RegExp(`: position 3 of ${before.length}$`).test(await spoken(order)), await spoken(order));
await drag(2, 0, () => order.keyboard.press("Escape"));
holds("Escape puts a row back", JSON.stringify(await ids()) === JSON.stringify(moved), await ids());
await order.setViewportSize({ width: 1280, height: Math.round((await middle(order, 0)).y) + 100 });
const low = await middle(order, 0);
await order.mouse.move(low.x, low.y);
await order.mouse.down();
const frames = () => new Promise((ready) => requestAnimationFrame(() => requestAnimationFrame(ready)));
await order.evaluate(frames);
holds("a press near an edge does not scroll", (await order.evaluate(() => scrollY)) === 0, await order.evaluate(() => scrollY));
await order.mouse.up();
holds("or move a row", JSON.stringify(await ids()) === JSON.stringify(moved), await ids());
await order.setViewportSize({ width: 1280, height: 420 });
await order.evaluate(() => scrollTo(0, 0));
const grip = await middle(order, 0);
await order.mouse.move(grip.x, grip.y);
await order.mouse.down();
await order.mouse.move(grip.x, 410, { steps: 5 });
await eventually("the window scrolls at its edge", async () => (await order.evaluate(() => scrollY)) > 100, 20);
await order.mouse.up();
holds("and the row goes with it", (await ids()).indexOf(moved[0]) > 3, await ids());
order.asked = () => {};
await order.context().close();

const phone = await open("/monitors?order=edit", { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
const touches = await phone.context().newCDPSession(phone);
const touch = (type, at) => touches.send("Input.dispatchTouchEvent", { type, touchPoints: at ? [at] : [] });
await phone.locator("[data-grip]").first().scrollIntoViewIfNeeded();
const [start, stop] = [await middle(phone, 0), await middle(phone, 1)];
await touch("touchStart", start);
for (let step = 1; step <= 6; step += 1) {
  await touch("touchMove", { x: start.x, y: start.y + ((stop.y + 40 - start.y) * step) / 6 });
}
await part(phone, "dashboard-dragging-390");
await touch("touchEnd");
const first = () => phone.locator("[data-reorder] [name=id]").first().inputValue();
holds("a finger moves a row, too", (await first()) === before[1], await first());
phone.asked = () => {};
await phone.context().close();

// Charts: read by arrow keys and pointer, zoomed by Shift and Enter, by two clicks and by dragging.
const { monitors } = await api("GET", "/monitors");
const read = monitors.find((it) => it.type === "http" && it.status === "up");
const chart = await open(`/monitors/${read.id}`);
const reader = chart.locator(".reader");
await reader.focus();
await chart.keyboard.press("Home");
await chart.keyboard.press("ArrowRight");
const value = () => reader.getAttribute("aria-valuetext");
holds("arrow keys read the values of each region", /^\d\d:\d\d: .*(Europe|Asia)/.test(await value()), await value());
const shown = await text(chart, ".readout")();
holds("which stand under the chart", /\d\d:\d\d/.test(shown), shown);
for (let step = 0; step < 5; step += 1) await chart.keyboard.press("ArrowRight");
for (let step = 0; step < 8; step += 1) await chart.keyboard.press("Shift+ArrowRight");
holds("Shift marks a period", (await chart.locator(".reader .zone").isVisible()) && /Enter zooms/.test(await value()), await value());
await part(chart, "dashboard-chart-1280");
await chart.keyboard.press("Enter");
await chart.waitForURL(/from=.*&to=/);
const zoomed = chart.url();
const length = (address) => {
  const query = new URL(address).searchParams;
  return Date.parse(query.get("to")) - Date.parse(query.get("from"));
};
holds("Enter opens that period", length(zoomed) > 0 && length(zoomed) < 864e5, zoomed);
await chart.reload();
holds("its address works again", (await chart.locator("#graphs a", { hasText: "Back to 24 h" }).count()) === 1);
await chart.locator("#graphs a", { hasText: "Back to 24 h" }).click();
await chart.waitForURL(/\?range=24h$/);
// A point of the chart in the middle of the window. In one step: the chart may be renewed at any time.
const at = (share) => chart.evaluate((share) => {
  const it = document.querySelector(".reader");
  it.scrollIntoView({ block: "center" });
  const box = it.getBoundingClientRect();
  return [box.x + box.width * share, box.y + box.height / 2];
}, share);
await eventually("the pointer reads, too", async () => {
  await chart.mouse.move(...await at(0.5));
  return /\d\d:\d\d/.test((await chart.locator(".readout b").allTextContents()).join());
}, 20);
const marks = () => chart.locator(".reader.marked").count();
for (const [name, unmark] of [["Escape", () => chart.keyboard.press("Escape")], ["a click elsewhere", () => chart.click("h1")]]) {
  await chart.mouse.click(...await at(0.6));
  holds("a click marks a time", (await marks()) === 1);
  await unmark();
  holds(`${name} takes the mark away`, (await marks()) === 0);
}
await chart.mouse.click(...await at(0.6));
await chart.mouse.click(...await at(0.8));
const link = chart.locator(".readout a");
holds("two clicks mark a period", /^Zoom to \d\d:\d\d – \d\d:\d\d$/.test(await link.textContent()), await link.textContent());
await link.click();
await chart.waitForURL(/from=.*&to=/);
await chart.goBack();
await chart.locator(".reader").waitFor();
await chart.mouse.move(...await at(0.2));
await chart.mouse.down();
await chart.mouse.move(...await at(0.4), { steps: 5 });
await chart.mouse.up();
await chart.waitForURL(/from=.*&to=/);
holds("dragging opens the period", length(chart.url()) > 0, chart.url());
await chart.setViewportSize({ width: 390, height: 844 });
await chart.emulateMedia({ colorScheme: "dark" });
await part(chart, "dashboard-zoomed-390");
await chart.context().close();
const wrong = await tab({ storageState });
wrong.expected = /status of 400/;
const refused = await wrong.goto(`${home}/monitors/${read.id}?from=yesterday&to=now`);
holds("a period that is no time is refused in words", refused.status() === 400
  && /From must be a time/i.test(await wrong.textContent("main")), await wrong.textContent("main"));
await wrong.context().close();

// Forced colours: the focus has a ring, and each state a shape and words.
const forced = await tab({ storageState });
await forced.emulateMedia({ forcedColors: "active" });
const screens = [["overview", ""], ["monitors", "/monitors"], ["monitor", `/monitors/${read.id}`], ["incidents", "/incidents"],
  ["alerts", "/alerts"], ["look", "/settings/look"]];
for (const [name, path] of screens) {
  await forced.goto(home + path, { waitUntil: "load" });
  const unseen = [];
  for (let step = 0; step < 25; step += 1) {
    await forced.keyboard.press("Tab");
    const found = await forced.evaluate(() => {
      const it = document.activeElement;
      if (!it || it === document.body) return null;
      const ring = [it, it.closest("label"), it.closest(".kind")].filter(Boolean)
        .some((node) => getComputedStyle(node).outlineStyle !== "none" && parseFloat(getComputedStyle(node).outlineWidth) >= 1);
      return ring ? null : it.outerHTML.slice(0, 120);
    });
    if (found) unseen.push(found);
  }
  holds(`forced colours show the focus: ${name}`, unseen.length === 0, unseen);
  const bare = await forced.evaluate(() => [...document.querySelectorAll("main .state,main .tiles a")]
    .filter((it) => it.offsetParent && !/[a-z]{2}/i.test(it.textContent + (it.ariaLabel ?? ""))).map((it) => it.outerHTML));
  holds(`no state is a colour alone: ${name}`, bare.length === 0, bare);
  const plain = await forced.evaluate(() => [...document.querySelectorAll("[aria-current],[aria-pressed=true]")]
    .filter((it) => it.offsetParent && it.matches(".nav,.tab,.chip,.kind,.subnav a,.seg a"))
    .filter((it) => getComputedStyle(it).outlineStyle === "none").map((it) => it.outerHTML.slice(0, 120)));
  holds(`what is current has a line: ${name}`, plain.length === 0, plain);
  await part(forced, `dashboard-forced-${name}-1280`);
}
await forced.context().close();

await done();
