// Looks at a page that has a password as its visitors do: in Chromium, by keys, on a phone, in the dark, without script.
//
//   node guarded.mjs '{"page": URL, "canary": TEXT, "shots": FOLDER, "modules": FOLDER}'
//
// The password is "open sesame". Prints a line for each thing that holds, and ends with status 1 at the first that does not.

import { createRequire } from "node:module";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const told = JSON.parse(process.argv[2]);
const require = createRequire(join(told.modules, "x.js"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
mkdirSync(told.shots, { recursive: true });

const holds = (what, it, found = "") => {
  if (!it) { console.log(`NOT SO: ${what} ${typeof found === "string" ? found : JSON.stringify(found, null, 1)}`); process.exit(1); }
  console.log(`holds: ${what}`);
};
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
const origin = new URL(told.page).origin;
const faults = [];
const open = async (path, options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1100, height: 800 }, locale: "en-GB", ...options });
  const page = await context.newPage();
  // That the form's own answer is no success is what browsers are told on purpose.
  page.on("console", (line) => { if (["error", "warning"].includes(line.type()) && !line.text().includes("403")) faults.push(`${path}: ${line.text()}`); });
  page.on("pageerror", (error) => faults.push(`${path}: ${error}`));
  page.on("request", (request) => { if (new URL(request.url()).origin !== origin) faults.push(`${path}: asks ${request.url()}`); });
  await page.goto(told.page + path, { waitUntil: "load" });
  return page;
};
const shot = (page, name) => page.screenshot({ path: join(told.shots, `${name}.png`), fullPage: true });
const accessible = async (page, what) => {
  await page.evaluate(axe);
  const found = await page.evaluate((tags) => axe.run(document, { runOnly: { type: "tag", values: tags } }), RULES);
  const broken = found.violations.map((it) => [it.id, it.nodes.slice(0, 3).map((node) => [node.target.join(" "), node.failureSummary])]);
  holds(`axe finds nothing: ${what}`, broken.length === 0, broken);
};
const narrow = async (page, what) => {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  holds(`nothing sticks out: ${what}`, wide <= 0, String(wide));
};

const page = await open("/history");
holds("the form asks for the password", (await page.textContent("h1")) === "Password needed");
holds("and says nothing of what is behind", !(await page.content()).includes(told.canary));
holds("the field has the focus", await page.evaluate(() => document.activeElement.id === "password"));
await shot(page, "door-light");
await accessible(page, "light");
await page.keyboard.type("sesame");
await page.keyboard.press("Enter");
await page.waitForSelector("#fault");
holds("a wrong password is said to be that", (await page.textContent("#fault")) === "That is not the password.");
holds("and the field is called invalid", (await page.getAttribute("#password", "aria-describedby")) === "fault");
await shot(page, "door-wrong");
await accessible(page, "after a wrong password");
await page.keyboard.type("open sesame");
await page.keyboard.press("Enter");
await page.waitForURL("**/history");
holds("the right one leads to where one wanted to go", new URL(page.url()).pathname.endsWith("/history"));
await page.goto(told.page);
holds("the page is there", (await page.content()).includes(told.canary));
const kept = await page.context().cookies();
holds("the pass is no script's", kept.length === 1 && kept[0].httpOnly && kept[0].sameSite === "Lax", kept);
await shot(page, "door-inside");
await accessible(page, "inside");
await page.getByRole("button", { name: "Sign out" }).click();
await page.waitForSelector("#password");
holds("the button leads out", (await page.context().cookies()).length === 0);

const dark = await open("", { colorScheme: "dark" });
await shot(dark, "door-dark");
await accessible(dark, "dark");
for (const width of [390, 320]) {
  const phone = await open("", { viewport: { width, height: 844 }, hasTouch: true, isMobile: true });
  await narrow(phone, `${width} px`);
  await shot(phone, `door-${width}`);
  await accessible(phone, `${width} px`);
}
const bare = await open("", { javaScriptEnabled: false });
await bare.fill("#password", "open sesame");
await bare.click("text=Continue");
holds("without script it opens too", (await bare.content()).includes(told.canary));
holds("nothing was loaded from elsewhere, and nothing complained", faults.length === 0, faults);
await browser.close();
