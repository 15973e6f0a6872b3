// What the visits in this folder share: Chromium, what counts as a fault, axe, screenshots, and the API.
//
// Each script is called as `node NAME.mjs '{"page": URL, "api": URL, "key": KEY, "id": PAGE, "shots": FOLDER, "modules": FOLDER}'`.
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
  const answer = await fetch(`${told.api}/pages/${told.id}${path}`, {
    method, headers: { authorization: `Bearer ${told.key}`, "content-type": "application/json" }, body: body && JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer.status === 204 ? null : answer.json();
};

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
const faults = [];
const origin = new URL(told.page).origin;
// A page as one visitor has it. Whatever it loads from elsewhere, complains of or pops up is a fault; what it complains of
// alone is none where a test takes something away from it (`robbed`).
export const open = async (path, { robbed, ...options } = {}) => {
  const context = await browser.newContext({ viewport: { width: 1100, height: 900 }, locale: "en-GB", ...options });
  const page = await context.newPage();
  page.on("console", (line) => { if (["error", "warning"].includes(line.type()) && !robbed) faults.push(`${path}: ${line.text()}`); });
  page.on("pageerror", (error) => faults.push(`${path}: ${error}`));
  page.on("dialog", (dialog) => { faults.push(`${path}: a dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => { if (new URL(request.url()).origin !== origin) faults.push(`${path}: asks ${request.url()}`); });
  if (robbed) await robbed(page);
  await page.goto(told.page + path, { waitUntil: "load" });
  return page;
};
export const shot = (page, name) => page.screenshot({ path: join(told.shots, `${name}.png`), fullPage: true });
export const part = (page, name) => page.screenshot({ path: join(told.shots, `${name}.png`) });
export const pdf = (page, name) => page.pdf({ path: join(told.shots, `${name}.pdf`), format: "A4" });
export const accessible = async (page, what) => {
  await page.evaluate(axe);
  const found = await page.evaluate((tags) => axe.run(document, { runOnly: { type: "tag", values: tags } }), RULES);
  const broken = found.violations.map((it) => [it.id, it.nodes.slice(0, 3).map((node) => [node.target.join(" "), node.failureSummary])]);
  holds(`axe finds nothing: ${what}`, broken.length === 0, broken);
};
export const narrow = async (page, what) => {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  holds(`nothing sticks out: ${what}`, wide <= 0, String(wide));
};
export const headline = (page) => page.textContent("#headline h2");
// Waits for an answer that is something; the service works on its own time.
export const eventually = async (what, look, seconds = 60) => {
  for (const end = Date.now() + seconds * 1000; Date.now() < end;) {
    const found = await look();
    if (found) { console.log(`holds: ${what}`); return found; }
    await new Promise((done) => setTimeout(done, 250));
  }
  return holds(what, false, `within ${seconds} s`);
};
export const done = async () => {
  holds("nothing complained, asked elsewhere or popped up", faults.length === 0, faults);
  await browser.close();
};
