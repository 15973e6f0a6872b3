// Puts a page's notice and frame into another site's page, and looks at that in Chromium while a monitor goes down.
//
//   node embed.mjs '{"page": URL, "api": URL, "key": KEY, "id": PAGE, "shots": FOLDER, "modules": FOLDER}'
//
// Prints a line for each thing that holds, and ends with status 1 at the first that does not.

import { createRequire } from "node:module";
import { createServer } from "node:http";
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
const api = async (method, path, body) => {
  const answer = await fetch(`${told.api}/pages/${told.id}${path}`, {
    method, headers: { authorization: `Bearer ${told.key}`, "content-type": "application/json" }, body: body && JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
};
const eventually = async (what, seconds, look) => {
  for (let turn = 0; turn < seconds; turn += 1) {
    if (await look()) return holds(what, true);
    await new Promise((wake) => setTimeout(wake, 1000));
  }
  holds(what, false);
};

// Another site: its own page, as strict as one can be, and what our monitor checks.
const origin = new URL(told.page).origin;
let well = true;
const html = (script, theme) => `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Shop</title><meta name="viewport" content="width=device-width">
<script src="${script}" data-seconds="15" data-theme="${theme}" async></script></head>
<body><main><h1>Shop</h1><p>Buy things.</p><iframe src="${told.page}/embed?theme=${theme}" title="Status" width="500" height="420"></iframe></main></body></html>`;
const site = createServer((request, response) => {
  if (request.url === "/checked") { response.writeHead(well ? 200 : 500).end(); return; }
  const dark = request.url === "/dark", away = request.url === "/away";
  const from = away ? "http://127.0.0.1:9" : origin;
  response.setHeader("content-type", "text/html");
  response.setHeader("content-security-policy", `default-src 'none'; script-src ${from}; connect-src ${from}; frame-src ${origin}`);
  response.end(html(away ? "http://127.0.0.1:9/widget.js" : `${told.page}/widget.js`, dark ? "dark" : "light"));
});
await new Promise((ready) => site.listen(0, "127.0.0.1", ready));
const host = `http://127.0.0.1:${site.address().port}`;

const monitor = (await api("POST", "/monitors", { name: "Checkout <b>", url: `${host}/checked` })).monitor;
const status = async () => (await api("GET", `/monitors/${monitor.id}`)).monitor.status;
await eventually("the monitor is up", 60, async () => (await status()) === "up");

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
const faults = [];
const open = async (path) => {
  const context = await browser.newContext({ viewport: { width: 800, height: 700 } });
  const page = await context.newPage();
  // That axe asks a frame which does not answer is no fault of the page.
  const isFault = (line) => ["error", "warning"].includes(line.type()) && path !== "/away" && !line.text().includes("'postMessage'");
  page.on("console", (line) => { if (isFault(line)) faults.push(`${path}: ${line.text()}`); });
  page.on("pageerror", (error) => faults.push(`${path}: ${error}`));
  await page.goto(host + path, { waitUntil: "load" });
  return page;
};
const accessible = async (page, what) => {
  // The page's own policy keeps scripts out; the debugger's are let in.
  await page.evaluate(axe);
  const found = await page.evaluate((tags) => axe.run(document, { runOnly: { type: "tag", values: tags } }), RULES);
  const broken = found.violations.map((it) => [it.id, it.nodes.slice(0, 3).map((node) => [node.target.join(" "), node.failureSummary])]);
  holds(`axe finds nothing: ${what}`, broken.length === 0, broken);
};

const page = await open("/");
const notice = page.locator("parallax-status section");
const asked = page.waitForResponse((answer) => answer.url().endsWith("/api/v2/summary.json"), { timeout: 20000 });
await asked;
holds("all is well, and nothing is shown", (await notice.count()) === 0);
const frame = page.frameLocator("iframe");
holds("the frame is shown on another origin", (await frame.locator("h1").textContent()).includes("Page under test"));
holds("and names the monitor as text", (await frame.locator("h3").textContent()) === "Checkout <b>");
holds("and says that it is up", (await frame.locator(".state").textContent()) === "Up");
await accessible(page, "well");

well = false;
await eventually("the monitor is down", 60, async () => (await status()) === "down");
await notice.waitFor({ timeout: 30000 });
holds("a notice is shown by itself", (await notice.textContent()).includes("Checkout <b>"), await notice.textContent());
holds("it is read out politely", (await page.locator("parallax-status div").getAttribute("aria-live")) === "polite");
holds("it leads to the page", (await notice.locator("a").getAttribute("href")) === told.page);
await page.screenshot({ path: join(told.shots, "notice-light.png") });
await accessible(page, "a notice");
const dark = await open("/dark");
await dark.locator("parallax-status section").waitFor({ timeout: 20000 });
await dark.screenshot({ path: join(told.shots, "notice-dark.png") });
await accessible(dark, "a notice in the dark");
holds("nothing is kept in the browser", (await page.context().cookies()).length === 0 && (await page.evaluate(() => localStorage.length + sessionStorage.length)) === 0);
await notice.locator("button").click();
holds("it can be dismissed", (await notice.count()) === 0);
await page.waitForResponse((answer) => answer.url().endsWith("/api/v2/summary.json"), { timeout: 20000 });
holds("and stays so", (await notice.count()) === 0);

const away = await open("/away");
await away.waitForTimeout(500);
holds("where the status page can't be reached nothing is shown", (await away.locator("parallax-status section").count()) === 0);
const refused = await (await browser.newContext()).newPage();
const blocked = [];
refused.on("console", (line) => blocked.push(line.text()));
await refused.setContent(`<iframe src="${told.page}"></iframe>`);
await eventually("the page itself is not framed", 20, () => blocked.some((line) => line.includes("frame-ancestors")));

well = true;
await eventually("the monitor is up again", 90, async () => (await status()) === "up");
const notices = dark.locator("parallax-status section");
await eventually("the notice goes by itself", 40, async () => (await notices.count()) === 0);
holds("nothing complained", faults.length === 0, faults);
await browser.close();
site.close();
