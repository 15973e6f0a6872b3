// Looks at a public page as its visitors do: in Chromium, by mouse, keys, on a phone, in the dark and without script.
//
//   node page.mjs '{"page": URL, "api": URL, "key": KEY, "id": PAGE, "shots": FOLDER, "modules": FOLDER}'
//
// Prints a line for each thing that holds, and ends with status 1 at the first that does not.

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
const api = async (method, path, body) => {
  const answer = await fetch(`${told.api}/pages/${told.id}${path}`, {
    method, headers: { authorization: `Bearer ${told.key}`, "content-type": "application/json" }, body: body && JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer.status === 204 ? null : answer.json();
};

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
const faults = [];
const origin = new URL(told.page).origin;
// A page as one visitor has it. Whatever it loads from elsewhere, complains of or pops up is a fault.
const open = async (path, options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1100, height: 900 }, locale: "en-GB", ...options });
  const page = await context.newPage();
  page.on("console", (line) => { if (["error", "warning"].includes(line.type())) faults.push(`${path}: ${line.text()}`); });
  page.on("pageerror", (error) => faults.push(`${path}: ${error}`));
  page.on("dialog", (dialog) => { faults.push(`${path}: a dialog: ${dialog.message()}`); dialog.dismiss(); });
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

// What a page can hold at once.
const monitors = (await api("GET", "/monitors")).monitors;
// What the demo's own outages opened by themselves is put aside: one incident is looked at, and it is a person's.
await api("PATCH", "/alerts", { automaticIncidents: false });
for (const open of (await api("GET", "/incidents?open=true")).incidents.filter((it) => it.kind === "incident")) {
  await api("POST", `/incidents/${open.id}/updates`, { status: "resolved", message: "Put aside." });
}
await api("PATCH", "", { showDeploys: true, uptimeTarget: 99.9, supportUrl: "mailto:help@example.com" });
const payload = "<img src=x onerror=alert(1)>'\"><script>alert(2)</script>";
const nasty = (await api("POST", "/monitors", { name: payload, group: payload, url: "127.0.0.1:1" })).monitor;
const incident = (await api("POST", "/incidents", {
  title: "Images fail from Asia", impact: "partial", monitorIds: [monitors[3].id],
  message: `A carrier drops our traffic. **We move** to [another](https://example.com/).\n\n${payload}`,
})).incident;
await api("POST", `/incidents/${incident.id}/updates`, { status: "identified", message: "One carrier in *Singapore*." });
const hour = 3600e3, at = (ahead) => new Date(Date.now() + ahead).toISOString();
await api("POST", "/incidents", { kind: "maintenance", title: "Database upgrade", startsAt: at(48 * hour), endsAt: at(49.5 * hour), monitorIds: [monitors[6].id], message: "Planned." });
await api("POST", "/deploys", { version: "v4.12.1", url: "https://example.com/r", at: at(-2 * hour) });

const page = await open("");
holds("the headline says what is wrong", (await page.textContent("#headline h2")) === "Images fail from Asia");
holds("it says from where and how long ago", /Checked from 6 regions, \d+ seconds? ago\./.test(await page.textContent("#headline p")), await page.textContent("#headline p"));
for (const words of ["Up", "Slow", "Down", "Down from Asia"]) {
  holds(`a state in words: ${words}`, (await page.locator(".mon .state", { hasText: new RegExp(`^${words}$`) }).count()) > 0);
}
holds("each state has an icon", (await page.locator(".mon .state").count()) === (await page.locator(".mon .state svg use").count()));
holds("no data is shown as that", (await page.locator(".strip").first().locator("a.n").count()) > 80);
await shot(page, "page-light");
await accessible(page, "light");

const strips = await page.locator(".strip").count();
holds("one stop of the tab key a strip", (await page.locator('.strip a[tabindex="0"]').count()) === strips);
const here = () => page.evaluate(() => document.activeElement.getAttribute("aria-label"));
await page.locator('.strip a[tabindex="0"]').first().focus();
const today = await here();
await page.keyboard.press("ArrowLeft");
const yesterday = await here();
await page.keyboard.press("PageUp");
const before = await here();
await page.keyboard.press("Home");
const first = await here();
holds("arrows, page keys and Home move within it", new Set([today, yesterday, before, first]).size === 4, [today, yesterday, before, first]);
await page.keyboard.press("End");
holds("End goes to today", (await here()) === today);
holds("a day is named", /^\d+ \w+ \d{4}: /.test(today), today);
const said = () => page.evaluate(() => getComputedStyle(document.activeElement, "::after").display);
holds("a focused day shows its words", (await said()) !== "none");
await page.keyboard.press("Escape");
holds("Escape hides them", (await said()) === "none");
await page.keyboard.press("Tab");
holds("Tab leaves the strip", !(await page.evaluate(() => document.activeElement.matches(".strip a"))));

await page.locator("label[for=r30]").click();
holds("thirty days can be chosen", (await page.locator(".strip").first().locator("a:visible").count()) === 30);
await page.locator(".strip").first().locator("a:visible").nth(3).hover();
await page.screenshot({ path: join(told.shots, "tooltip.png") });
await page.locator("label[for=r90]").click();

await page.evaluate(() => { window.same = true; });
await page.locator(`[id="${monitors[0].id}"] .strip a[tabindex="0"]`).focus();
await page.keyboard.press("ArrowLeft");
const stood = await here();
await api("PATCH", `/incidents/${incident.id}`, { title: "Images fail from all of Asia" });
await page.waitForFunction(() => document.querySelector("#headline h2").textContent.includes("all of Asia"), null, { timeout: 20000 });
holds("a change is shown without a reload", await page.evaluate(() => window.same === true));
holds("whoever stands on a day still does", (await here()) === stood, `${await here()} / ${stood}`);

await page.click("#theme");
await page.click("#theme");
holds("the dark theme can be chosen", (await page.evaluate(() => document.documentElement.dataset.theme)) === "dark");
await page.reload();
holds("and is remembered", (await page.evaluate(() => document.documentElement.dataset.theme)) === "dark");
await page.locator(".pop summary").click();
await accessible(page, "dark by choice, with the dialog open");
await page.screenshot({ path: join(told.shots, "updates.png") });

const dark = await open("", { colorScheme: "dark" });
await shot(dark, "page-dark");
await accessible(dark, "dark");
for (const width of [390, 320]) {
  const phone = await open("", { viewport: { width, height: 844 }, hasTouch: true, isMobile: true });
  await narrow(phone, `${width} px`);
  await shot(phone, `page-${width}`);
  await accessible(phone, `${width} px`);
  holds("a phone shows fewer days, not thinner ones", (await phone.locator(".strip").first().locator("a:visible").count()) === 45);
}
const wide = await open("", { viewport: { width: 2200, height: 1200 } });
await narrow(wide, "2200 px");
const tokyo = await open("", { timezoneId: "Asia/Tokyo" });
holds("times are the visitor's", (await tokyo.textContent("#zone")) === "Times in your zone (Asia/Tokyo)");
await tokyo.emulateMedia({ media: "print" });
await shot(tokyo, "print");

const bare = await open("", { javaScriptEnabled: false });
holds("without script it says the same", (await bare.textContent("#headline h2")) === "Images fail from all of Asia");
holds("and when that was", /Checked from 6 regions, \d\d:\d\d:\d\d UTC\./.test(await bare.textContent("#headline p")), await bare.textContent("#headline p"));
holds("and shows no button that does nothing", !(await bare.locator("#theme").isVisible()));
await shot(bare, "page-without-script");

for (const [name, path] of [["monitor", `/monitors/${monitors[3].id}`], ["incident", `/incidents/${incident.id}`], ["history", "/history"], ["nasty", `/monitors/${nasty.id}`]]) {
  const other = await open(path);
  await shot(other, name);
  await accessible(other, name);
  const phone = await open(path, { viewport: { width: 390, height: 844 }, colorScheme: "dark" });
  await narrow(phone, `${name} on a phone`);
  await shot(phone, `${name}-390-dark`);
  await accessible(phone, `${name} on a phone, dark`);
}
const day = await open(`/monitors/${monitors[0].id}`);
await day.locator(".strip a").last().click();
holds("a day leads to its line", await day.locator("#days li:target").isVisible());

holds("nothing complained, asked elsewhere or popped up", faults.length === 0, faults);
await browser.close();
