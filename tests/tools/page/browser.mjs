// Shared by all visits: Chromium, fault detection, axe, screenshots, and the API.
//
// Usage: `node NAME.mjs '{"page": URL, "api": URL, "key": KEY, "id": PAGE, "shots": FOLDER, "modules": FOLDER}'`;
// scripts that do not use the API need no "api", "key" and "id". Prints a line for each assertion that holds, and
// exits with status 1 at the first that does not.

import { createRequire } from "node:module";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const told = JSON.parse(process.argv[2]);
const require = createRequire(join(told.modules, "x.js"));
const { chromium } = require("playwright-core");
export const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
export const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
mkdirSync(told.shots, { recursive: true });

export const holds = (what, it, found = "") => {
  if (!it) { console.log(`NOT SO: ${what} ${typeof found === "string" ? found : JSON.stringify(found, null, 1)}`); process.exit(1); }
  console.log(`holds: ${what}`);
};
export const api = async (method, path, body) => {
  const ask = () => fetch(`${told.api}/pages/${told.id}${path}`, {
    method, headers: { authorization: `Bearer ${told.key}`, "content-type": "application/json" }, body: body && JSON.stringify(body),
  });
  let answer = await ask();
  // Keys have a rate limit; the response says when to retry.
  while (answer.status === 429) {
    const seconds = Number(answer.headers.get("retry-after"));
    await new Promise((done) => setTimeout(done, seconds * 1000));
    answer = await ask();
  }
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer.status === 204 ? null : answer.json();
};

export const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
export const faults = [];
// Pending fetch requests of each page.
const asked = new WeakMap();
// Opens a page as one visitor, at a site (by default the status page). Requests to other origins, console errors and
// warnings, and dialogs are faults. Console messages are ignored if the test breaks something on purpose (`robbed`),
// or if they contain one of the texts in `forgiven`. `first` runs before the page is loaded.
export const open = async (path, { first, robbed, site = told.page, elsewhere = [], forgiven = [], ...options } = {}) => {
  const context = await browser.newContext({ viewport: { width: 1100, height: 900 }, locale: "en-GB", ...options });
  // A full-page screenshot of a long document takes long on a busy host.
  context.setDefaultTimeout(120000);
  const page = await context.newPage();
  const known = [told.page, site, ...elsewhere].map((url) => new URL(url).origin);
  const isForgiven = (line) => robbed || forgiven.some((words) => line.text().includes(words));
  page.on("console", (line) => { if (["error", "warning"].includes(line.type()) && !isForgiven(line)) faults.push(`${path}: ${line.text()}`); });
  page.on("pageerror", (error) => faults.push(`${path}: ${error}`));
  page.on("dialog", (dialog) => { faults.push(`${path}: a dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => { if (!known.includes(new URL(request.url()).origin)) faults.push(`${path}: asks ${request.url()}`); });
  const under = new Set();
  asked.set(page, under);
  page.on("request", (request) => { if (request.resourceType() === "fetch") under.add(request); });
  for (const end of ["requestfinished", "requestfailed"]) page.on(end, (request) => under.delete(request));
  if (first) await first(page);
  await page.goto(site + path, { waitUntil: "load" });
  return page;
};
export const shot = (page, name) => page.screenshot({ path: join(told.shots, `${name}.png`), fullPage: true });
export const part = (page, name) => page.screenshot({ path: join(told.shots, `${name}.png`) });
export const pdf = (page, name) => page.pdf({ path: join(told.shots, `${name}.pdf`), format: "A4" });
// Only violations are collected: listing passes takes most of the time on a page with a thousand bars.
export const accessible = async (page, what) => {
  await page.evaluate(axe);
  const found = await page.evaluate((tags) => axe.run(document, { runOnly: { type: "tag", values: tags }, resultTypes: ["violations"] }), RULES);
  const broken = found.violations.map((it) => [it.id, it.nodes.slice(0, 3).map((node) => [node.target.join(" "), node.failureSummary])]);
  holds(`axe finds nothing: ${what}`, broken.length === 0, broken);
};
// The same with all disclosure elements opened.
export const unfolded = async (path, what) => {
  const page = await open(path);
  await page.locator("details").evaluateAll((all) => all.forEach((it) => { it.open = true; }));
  await accessible(page, what);
};
export const narrow = async (page, what) => {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  holds(`no horizontal overflow: ${what}`, wide <= 0, String(wide));
};
export const headline = (page) => page.textContent("#headline h2");
// Advances a page's fake clock by a minute, in steps between which its requests complete: advanced at once, they would
// time out before the service receives them.
export const minute = async (page) => {
  for (let n = 0; n < 13; n++) {
    await page.clock.runFor(5000);
    for (const end = Date.now() + 20000; asked.get(page).size > 0 && Date.now() < end;) await new Promise((done) => setTimeout(done, 10));
  }
};
// Polls until the result is truthy; the service runs on real time.
export const eventually = async (what, look, seconds = 60) => {
  for (const end = Date.now() + seconds * 1000; Date.now() < end;) {
    const found = await look();
    if (found) { console.log(`holds: ${what}`); return found; }
    await new Promise((done) => setTimeout(done, 250));
  }
  return holds(what, false, `within ${seconds} s`);
};
// Runs visits that do not affect each other, two at a time to suit a small host.
export const together = async (...looks) => {
  const turn = async () => { for (let look; (look = looks.shift());) await look(); };
  await Promise.all([turn(), turn()]);
};
export const done = async () => {
  holds("no console errors, foreign requests or dialogs", faults.length === 0, faults);
  await browser.close();
};
