// Tests the widget script and the embedded frame on another site in Chromium, while a monitor goes down. Arguments:
// see page/browser.mjs.

import { createServer } from "node:http";
import { accessible, api, done, eventually, holds, minute, narrow, open as opened, part, told } from "./page/browser.mjs";

// The other site: a page with a strict content security policy, and the target of the monitor.
const origin = new URL(told.page).origin, NOWHERE = "http://127.0.0.1:9";
let well = true;
const html = (script, theme) => `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Shop</title><meta name="viewport" content="width=device-width">
<script src="${script}" data-seconds="15" data-theme="${theme}" async></script></head>
<body><main><h1>Shop</h1><p>Buy things.</p><iframe src="${told.page}/embed?theme=${theme}" title="Status" width="500" height="420"></iframe></main></body></html>`;
const site = createServer((request, response) => {
  if (request.url === "/bare") { response.end(); return; }
  if (request.url === "/checked") { response.writeHead(well ? 200 : 500).end(); return; }
  const dark = request.url === "/dark", away = request.url === "/away";
  const from = away ? NOWHERE : origin;
  response.setHeader("content-type", "text/html");
  response.setHeader("content-security-policy", `default-src 'none'; script-src ${from}; connect-src ${from}; frame-src ${origin}`);
  response.end(html(away ? `${NOWHERE}/widget.js` : `${told.page}/widget.js`, dark ? "dark" : "light"));
});
await new Promise((ready) => site.listen(0, "127.0.0.1", ready));
const host = `http://127.0.0.1:${site.address().port}`;

const monitor = (await api("POST", "/monitors", { name: "Checkout <b>", url: `${host}/checked` })).monitor;
const status = async () => (await api("GET", `/monitors/${monitor.id}`)).monitor.status;
await eventually("the monitor is up", async () => (await status()) === "up");

// axe logs an error for a frame that does not answer it; that is no fault of the page.
const open = (path, options) => opened(path, { site: host, forgiven: ["'postMessage'"], viewport: { width: 800, height: 700 }, ...options });

const page = await open("/");
const notice = page.locator("parallax-status section");
const asked = page.waitForResponse((answer) => answer.url().endsWith("/api/v2/summary.json"), { timeout: 60000 });
await asked;
holds("with everything up no banner is shown", (await notice.count()) === 0);
const frame = page.frameLocator("iframe");
holds("the frame is shown on another origin", (await frame.locator("h1").textContent()).includes("Page under test"));
holds("and names the monitor as text", (await frame.locator("h3").textContent()) === "Checkout <b>");
holds("and says that it is up", (await frame.locator(".state").textContent()) === "Up");
holds("with an icon", (await frame.locator(".state use").getAttribute("href")) === "#i-up");
await accessible(page, "well");

// The frame as a top-level page, since axe can't inspect it from outside.
const small = await opened("/embed", { viewport: { width: 500, height: 420 }, first: (page) => page.clock.install() });
await small.evaluate(() => { window.same = true; });
await eventually("it shows the regions and the age of the check, by the service's clock", async () => {
  await minute(small);
  return /Checked from \d regions?, (just now|\d+ seconds? ago)\./.test(await small.textContent("#headline p"));
});
await accessible(small, "the frame");
await part(small, "embed-light");
for (const [name, options] of [["embed-dark", { colorScheme: "dark" }], ["embed-390-dark", { colorScheme: "dark", viewport: { width: 390, height: 420 } }]]) {
  const other = await opened("/embed", { viewport: { width: 500, height: 420 }, ...options });
  await narrow(other, name);
  await accessible(other, name);
  await part(other, name);
}
// A sandboxed frame has no origin, and still refreshes itself.
const walled = await opened("/bare", { site: host, elsewhere: [told.page], first: (page) => page.clock.install() });
await walled.setContent(`<iframe src="${told.page}/embed" title="Status" sandbox="allow-scripts"></iframe>`);
await walled.frameLocator("iframe").locator("#headline").waitFor();
await eventually("a sandboxed frame refreshes itself", async () => {
  await minute(walled);
  return (await walled.frameLocator("iframe").locator("#written").getAttribute("title")) !== null;
}, 90);

well = false;
await eventually("the monitor is down", async () => (await status()) === "down");
// The script polls every 15 s, and the browser may serve a cached response for 30 s and one stale response after that.
await notice.waitFor({ timeout: 120000 });
holds("the banner appears automatically", (await notice.textContent()).includes("Checkout <b>"), await notice.textContent());
holds("it is a polite live region", (await page.locator("parallax-status div").getAttribute("aria-live")) === "polite");
holds("it links to the page", (await notice.locator("a").getAttribute("href")) === told.page);
await eventually("the frame shows it too, without a reload", async () => {
  await minute(small);
  return (await small.locator(".state").textContent()) === "Down" && (await small.evaluate(() => window.same === true));
});
await accessible(small, "the frame of what is down");
await part(small, "embed-down");
await part(page, "notice-light");
await accessible(page, "a notice");
await api("POST", "/incidents", { title: "A word beside it", impact: "none", message: "Nothing is wrong with this.", notify: false });
const dark = await open("/dark");
await dark.locator("parallax-status section").waitFor({ timeout: 60000 });
holds("an incident without impact is not the headline", (await dark.textContent("parallax-status section strong")).includes("Checkout <b>"));
await part(dark, "notice-dark");
await accessible(dark, "a notice in the dark");
holds("nothing is stored in the browser", (await page.context().cookies()).length === 0 && (await page.evaluate(() => localStorage.length + sessionStorage.length)) === 0);
await notice.locator("button").click();
holds("it can be dismissed", (await notice.count()) === 0);
await page.waitForResponse((answer) => answer.url().endsWith("/api/v2/summary.json"), { timeout: 60000 });
holds("and stays so", (await notice.count()) === 0);

// By the time the page is loaded, the script request has failed.
const away = await open("/away", { robbed: true, elsewhere: [NOWHERE] });
holds("if the status page is unreachable nothing is shown", (await away.locator("parallax-status section").count()) === 0);
const refused = await open("/bare", { robbed: true });
const blocked = refused.waitForEvent("console", { predicate: (line) => line.text().includes("frame-ancestors"), timeout: 60000 });
await refused.setContent(`<iframe src="${told.page}"></iframe>`);
holds("the page itself is not framed", await blocked);

well = true;
await eventually("the monitor is up again", async () => (await status()) === "up", 90);
const notices = dark.locator("parallax-status section");
await eventually("the banner disappears automatically", async () => (await notices.count()) === 0, 120);
await api("PATCH", `/monitors/${monitor.id}`, { paused: true });
await notices.waitFor({ timeout: 120000 });
holds("unknown status is shown too", (await notices.textContent()).includes("No data"), await notices.textContent());
await accessible(dark, "nothing is known");
await done();
site.close();
