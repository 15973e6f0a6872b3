// What visits share: Chromium, what counts as a fault, axe, screenshots, and the API.
//
// Each script is called as `node NAME.mjs '{"page": URL, "api": URL, "key": KEY, "id": PAGE, "shots": FOLDER, "modules": FOLDER}'`;
// one that does not use the API needs no address, key and id of it.
// It prints a line for each thing that holds, and ends with status 1 at the first that does not.

import { createRequire } from "node:module";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const told = JSON.parse(process.argv[2]);
const require = createRequire(join(told.modules, "x.js"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
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
  // A key has so many requests a minute, and the service says when the next are good.
  while (answer.status === 429) {
    const seconds = Number(answer.headers.get("retry-after"));
    await new Promise((done) => setTimeout(done, seconds * 1000));
    answer = await ask();
  }
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer.status === 204 ? null : answer.json();
};

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
const faults = [];
// What each page has asked for by script and has no answer to.
const asked = new WeakMap();
// A page as one visitor has it, at a site (the status page, if no other is named). Whatever it loads from elsewhere,
// complains of or pops up is a fault. What it complains of alone is none where a test takes something away from it
// (`robbed`), or where it has one of the words that are `forgiven`. What is to be done before it is loaded is `first`.
export const open = async (path, { first, robbed, site = told.page, elsewhere = [], forgiven = [], ...options } = {}) => {
  const context = await browser.newContext({ viewport: { width: 1100, height: 900 }, locale: "en-GB", ...options });
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
// What holds is not listed: of a page with a thousand bars that takes most of the time.
export const accessible = async (page, what) => {
  await page.evaluate(axe);
  const found = await page.evaluate((tags) => axe.run(document, { runOnly: { type: "tag", values: tags }, resultTypes: ["violations"] }), RULES);
  const broken = found.violations.map((it) => [it.id, it.nodes.slice(0, 3).map((node) => [node.target.join(" "), node.failureSummary])]);
  holds(`axe finds nothing: ${what}`, broken.length === 0, broken);
};
// The same of a page with everything opened that can be folded.
export const unfolded = async (path, what) => {
  const page = await open(path);
  await page.locator("details").evaluateAll((all) => all.forEach((it) => { it.open = true; }));
  await accessible(page, what);
};
export const narrow = async (page, what) => {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  holds(`nothing sticks out: ${what}`, wide <= 0, String(wide));
};
export const headline = (page) => page.textContent("#headline h2");
// A minute of a page's own clock, in steps between which its requests are answered: put forward at once, the clock would let
// each of them run out of time before the service hears of it.
export const minute = async (page) => {
  for (let n = 0; n < 13; n++) {
    await page.clock.runFor(5000);
    for (const end = Date.now() + 20000; asked.get(page).size > 0 && Date.now() < end;) await new Promise((done) => setTimeout(done, 10));
  }
};
// Waits for an answer that is something; the service works on its own time.
export const eventually = async (what, look, seconds = 60) => {
  for (const end = Date.now() + seconds * 1000; Date.now() < end;) {
    const found = await look();
    if (found) { console.log(`holds: ${what}`); return found; }
    await new Promise((done) => setTimeout(done, 250));
  }
  return holds(what, false, `within ${seconds} s`);
};
// Looks of which none changes what another sees, so many at once as a small host has cores.
export const together = async (...looks) => {
  const turn = async () => { for (let look; (look = looks.shift());) await look(); };
  await Promise.all([turn(), turn()]);
};
export const done = async () => {
  holds("nothing complained, asked elsewhere or popped up", faults.length === 0, faults);
  await browser.close();
};
