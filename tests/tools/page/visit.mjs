// Visits the demo page: every state, by mouse and keyboard, on a phone, in dark mode, in print, and without scripts.
// Arguments: browser.mjs.

import { accessible, api, done, eventually, headline, holds, minute, narrow, open, part, pdf, shot, together, told, unfolded } from "./browser.mjs";

// Set up a page with every feature.
const monitors = (await api("GET", "/monitors")).monitors;
// Resolve the demo's automatic incidents: the visit expects one incident, opened by a person.
await api("PATCH", "/alerts", { automaticIncidents: false });
for (const open of (await api("GET", "/incidents?open=true")).incidents.filter((it) => it.kind === "incident")) {
  await api("POST", `/incidents/${open.id}/updates`, { status: "resolved", message: "Put aside." });
}
await api("PATCH", "", { showDeploys: true, uptimeTarget: 99.9, supportUrl: "mailto:help@example.com" });
const payload = "<img src=x onerror=alert(1)>'\"><script>alert(2)</script>";
const nasty = (await api("POST", "/monitors", { name: payload, groupName: payload, url: "127.0.0.1:1" })).monitor;
const incident = (await api("POST", "/incidents", {
  title: "Images fail from Asia", impact: "partial", monitorIds: [monitors[3].id],
  message: `A carrier drops our traffic. **We move** to [another](https://example.com/).\n\n${payload}`,
})).incident;
await api("POST", `/incidents/${incident.id}/updates`, { status: "identified", message: `One carrier in *Singapore*.\n\n\`\`\`\ntraceroute ${"10.0.0.1 ".repeat(60)}\n\`\`\`` });
const hour = 3600e3, at = (ahead) => new Date(Date.now() + ahead).toISOString();
await api("POST", "/incidents", { kind: "maintenance", title: "Database upgrade", startsAt: at(48 * hour), endsAt: at(49.5 * hour), monitorIds: [monitors[6].id], message: "Planned." });
await api("POST", "/deploys", { version: "v4.12.1", url: "https://example.com/r", at: at(-60e3) });

// The demo's history begins 90 days before; only the heartbeat, which got no ping, has no data.
const unpinged = `[id="${monitors.find((it) => it.type === "heartbeat").id}"] .strip`;
const plain = await open("");
holds("a page with a history shows 90 days by default", (await plain.locator(".strip").first().locator("a").count()) === 90);
await shot(plain, "page-plain");
const page = await open("?range=90d");
holds("the headline shows the incident", (await headline(page)) === "Images fail from Asia");
holds("it shows the regions and the age of the check", /Checked from 6 regions, (just now|\d+ seconds? ago)\./.test(await page.textContent("#headline p")), await page.textContent("#headline p"));
for (const words of ["Up", "Slow from Oceania", "Down", "Down from Asia"]) {
  holds(`a status as text: ${words}`, (await page.locator(".mon .state", { hasText: new RegExp(`^${words}$`) }).count()) > 0);
}
holds("each state has an icon", (await page.locator(".mon .state").count()) === (await page.locator(".mon .state svg use").count()));
holds("no data is shown as that", (await page.locator(unpinged).locator("a.n").count()) > 80);
await shot(page, "page-light");
await accessible(page, "light");

const strips = await page.locator(".strip").count();
holds("each row of bars is one tab stop", (await page.locator('.strip a[tabindex="0"]').count()) === strips);
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
const words = (day) => day.evaluate((it) => { const words = getComputedStyle(it, "::after"); return words.display === "none" ? "" : words.content; });
const said = () => words(page.locator(":focus"));
holds("a focused day shows its tooltip", (await said()) === JSON.stringify(today), [await said(), today]);
await page.keyboard.press("Escape");
holds("Escape hides it", (await said()) === "", await said());
await page.keyboard.press("Tab");
holds("Tab leaves the row of bars", !(await page.evaluate(() => document.activeElement.matches(".strip a"))));

await page.evaluate(() => { window.same = true; });
const cells = (page) => page.locator(".strip").first().locator("a:visible").count();
for (const [name, count] of [["24 hours", 24], ["7 days", 28], ["30 days", 30], ["90 days", 90]]) {
  await page.locator(".spans a", { hasText: name }).click();
  await page.waitForFunction((count) => document.querySelector(".strip").children.length === count, count);
  holds(`${name} can be chosen without a reload`, await page.evaluate(() => window.same === true));
  holds(`its URL contains it: ${name}`, new URL(page.url()).search === `?range=${name.replace(" hours", "h").replace(" days", "d")}`, page.url());
  holds("and the chosen link keeps the focus", (await page.evaluate(() => document.activeElement.textContent)) === name);
  await part(page, `range-${count}`);
}
const day = page.locator(unpinged).locator("a").nth(3);
// The page may refresh between the two.
await eventually("hovering a day shows its tooltip", async () => {
  await day.hover();
  return (await day.evaluate((it) => getComputedStyle(it, "::after").content)).includes("no data");
});
await part(page, "tooltip");
await page.locator(".strip").first().locator("a").last().hover();
await part(page, "tooltip-today");

await page.locator(`[id="${monitors[0].id}"] .strip a[tabindex="0"]`).focus();
await page.keyboard.press("ArrowLeft");
const stood = await here();
await api("PATCH", `/incidents/${incident.id}`, { title: "Images fail from all of Asia" });
await page.waitForFunction(() => document.querySelector("#headline h2").textContent.includes("all of Asia"), null, { timeout: 60000 });
holds("a change is shown without a reload", await page.evaluate(() => window.same === true));
holds("a focused day keeps the focus", (await here()) === stood, `${await here()} / ${stood}`);

await page.click("#theme");
await page.click("#theme");
holds("the dark theme can be chosen", (await page.evaluate(() => document.documentElement.dataset.theme)) === "dark");
await page.reload();
holds("and is remembered", (await page.evaluate(() => document.documentElement.dataset.theme)) === "dark");
const early = await open("", { robbed: true, first: async (page) => {
  await page.addInitScript(() => localStorage.setItem("theme", "dark"));
  await page.route("**/assets/page-*.js", (route) => route.abort());
} });
holds("before the page's script is loaded, so nothing flashes", (await early.evaluate(() => document.documentElement.dataset.theme)) === "dark");
await page.locator(".pop summary").click();
const ways = await page.locator(".panel a").evaluateAll((links) => links.map((it) => it.getAttribute("href").split("/").pop()));
holds("the dialog has every alternative to mail", ["subscribe", "feed.atom", "feed.rss", "maintenance.ics"].every((it) => ways.includes(it)), ways);
await accessible(page, "dark by choice, with the dialog open");
await part(page, "updates");

const inTheDark = async () => {
  const dark = await open("", { colorScheme: "dark" });
  await shot(dark, "page-dark");
  await accessible(dark, "dark");
};
const onAPhone = (width) => async () => {
  const phone = await open("?range=90d", { viewport: { width, height: 844 }, hasTouch: true, isMobile: true });
  await narrow(phone, `${width} px`);
  await shot(phone, `page-${width}`);
  await accessible(phone, `${width} px`);
  await phone.locator(".pop summary").click();
  const { left, right } = await phone.locator(".panel").evaluate((it) => it.getBoundingClientRect().toJSON());
  holds(`the dialog is within ${width} px`, left >= 0 && right <= width, [left, right]);
  await part(phone, `updates-${width}`);
  await phone.keyboard.press("Escape");
  holds("a phone shows fewer days, not thinner ones", (await phone.locator(".strip").first().locator("a:visible").count()) === 45);
};
const byFinger = async () => {
  const phone = await open("?range=90d", { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  const strip = phone.locator(".strip").first(), days = strip.locator("a:visible");
  await strip.scrollIntoViewIfNeeded();
  const told = () => strip.locator("a").evaluateAll((days) => days.filter((it) => getComputedStyle(it, "::after").display !== "none").map((it) => it.getAttribute("aria-label")));
  const name = (n) => days.nth(n).getAttribute("aria-label");
  const before = phone.url();
  await days.nth(20).tap();
  holds("a tap on a day shows its tooltip only", (await told()).join() === (await name(20)) && phone.url() === before, await told());
  await part(phone, "tap");
  const finger = await phone.context().newCDPSession(phone);
  // A refresh may move the bars under the finger.
  await eventually("dragging shows the tooltip under the finger", async () => {
    const box = await strip.boundingBox(), y = box.y + box.height / 2;
    const touch = (type, x) => finger.send("Input.dispatchTouchEvent", { type, touchPoints: x === null ? [] : [{ x: box.x + x, y }] });
    await touch("touchStart", box.width * 0.3);
    for (let part = 0.32; part < 0.9; part += 0.02) await touch("touchMove", box.width * part);
    await touch("touchEnd", null);
    const moved = await told();
    return moved.length === 1 && (await Promise.all([37, 38, 39, 40].map(name))).includes(moved[0]) && phone.url() === before;
  });
  await phone.locator("footer").tap({ position: { x: 2, y: 2 } });
  holds("a tap elsewhere hides it", (await told()).length === 0, await told());
  await days.nth(20).tap();
  await Promise.all([phone.waitForURL(/\/monitors\//), days.nth(20).tap()]);
  holds("the second tap opens the day", phone.url().includes("#d"), phone.url());
};
const inLargeText = async () => {
  // Twice the usual font size of the browser settings.
  for (const [width, path] of [[1280, ""], [390, ""], [390, `/monitors/${monitors[3].id}`], [390, `/incidents/${incident.id}`], [390, "/subscribe"]]) {
    const large = await open(path, { viewport: { width, height: 844 }, first: async (page) => {
      await (await page.context().newCDPSession(page)).send("Page.setFontSizes", { fontSizes: { standard: 32 } });
    } });
    holds("the font size is the visitor's", (await large.evaluate(() => getComputedStyle(document.body).fontSize)) === "32px");
    await narrow(large, `${path || "the page"} in large text, ${width} px`);
    holds("the skip link is hidden", (await large.locator(".skip").count() === 0) || (await large.evaluate(() => document.querySelector(".skip").getBoundingClientRect().bottom)) <= 0);
    await shot(large, `large-${width}${path.replaceAll("/", "-").slice(0, 12)}`);
  }
};
const onADesk = async () => {
  const desk = await open("", { viewport: { width: 1440, height: 900 } });
  await narrow(desk, "1440 px");
  await part(desk, "page-1440");
  const wide = await open("", { viewport: { width: 2200, height: 1200 } });
  await narrow(wide, "2200 px");
};
const unfoldedToo = async () => {
  for (const path of ["", `/monitors/${monitors[3].id}`, `/incidents/${incident.id}`, "/subscribe"]) {
    await unfolded(path, `everything opened of ${path || "the page"}`);
  }
};
const onPaper = async () => {
  const tokyo = await open("", { timezoneId: "Asia/Tokyo" });
  holds("times are the visitor's", (await tokyo.textContent("#zone")) === "Times in your time zone (Asia/Tokyo), days in UTC");
  await tokyo.emulateMedia({ media: "print" });
  // Read at once, before the page refreshes itself.
  holds("print shows the URL", (await tokyo.locator("header .at:visible").allTextContents()).join() === told.page);
  const dated = await tokyo.evaluate(() => { dispatchEvent(new Event("beforeprint")); return document.querySelector("#headline p").textContent; });
  holds("and when that was", /Checked from 6 regions, \d+ \w+ \d{4}, \d\d:\d\d\./.test(dated), dated);
  holds("and has no controls", (await tokyo.locator("button:visible, :not(.group) > summary:visible, footer a:visible").count()) === 0);
  await shot(tokyo, "print");
  await pdf(tokyo, "print");
  await pdf(await open(`/monitors/${monitors[3].id}`), "print-monitor");
};
const inForcedColours = async () => {
  const forced = await open("", { forcedColors: "active" });
  // Without colours, bad must differ from good by shape, and nothing may blend into the background.
  const seen = await forced.evaluate(() => {
    const of = (element, pseudo) => getComputedStyle(element, pseudo), ground = of(document.documentElement).backgroundColor;
    const bar = (name) => { const it = of(document.querySelector(`.legend .${name}`), "::before"); return [it.backgroundColor, it.clipPath]; };
    const bad = document.querySelector(".strip .d") || document.querySelector(".strip .p");
    const line = of(document.querySelector("#headline"));
    return {
      isForced: matchMedia("(forced-colors:active)").matches, ground, bars: [..."uspdmn"].map(bar),
      strip: of(bad, "::before").backgroundColor,
      headline: [line.borderTopStyle, line.borderTopWidth, line.color === line.backgroundColor],
      range: of(document.querySelector(".spans [aria-current]")).outlineStyle,
      deploy: of(document.querySelector("b.dep")).backgroundColor,
    };
  });
  holds("forced colours are active", seen.isForced);
  holds("each kind of bar is visible by its shape", seen.bars.every(([colour]) => colour !== seen.ground && colour !== "rgba(0, 0, 0, 0)") && new Set(seen.bars.map(([, shape]) => shape)).size === 6, seen);
  holds("an outage differs most", seen.bars[2][0] === seen.bars[3][0] && seen.bars[3][0] !== seen.bars[0][0] && seen.strip === seen.bars[3][0], seen);
  holds("a deploy's dot is visible", seen.deploy === seen.bars[0][0], seen);
  holds("the headline has a border and text", seen.headline[0] === "solid" && seen.headline[1] === "2px" && !seen.headline[2], seen);
  holds("the current range is marked", seen.range === "solid", seen);
  await shot(forced, "page-forced-colors");
};
const withoutScript = async () => {
  const bare = await open("", { javaScriptEnabled: false });
  holds("without scripts it shows the same", (await headline(bare)) === "Images fail from all of Asia");
  holds("and when that was", /Checked from 6 regions, \d\d:\d\d:\d\d UTC\./.test(await bare.textContent("#headline p")), await bare.textContent("#headline p"));
  await bare.emulateMedia({ media: "print" });
  holds("and print shows the URL", (await bare.locator("header .at:visible").allTextContents()).join() === told.page);
  await bare.emulateMedia({ media: "screen" });
  holds("and shows no button that does nothing", !(await bare.locator("#theme").isVisible()));
  await shot(bare, "page-without-script");
  await bare.locator(".spans a", { hasText: "24 hours" }).click();
  await bare.waitForURL("**?range=24h");
  holds("and a range is chosen by its link", (await cells(bare)) === 24 && bare.url().endsWith("?range=24h"), bare.url());
  await bare.locator(".mon h3 a").first().click();
  await bare.waitForURL("**/monitors/**");
  holds("which its monitors keep", (await cells(bare)) === 24 && (await bare.locator(".spans [aria-current]").textContent()) === "24 hours");
};
await together(inTheDark, onAPhone(390), onAPhone(320), byFinger, inLargeText, onADesk, unfoldedToo, onPaper, inForcedColours, withoutScript);

const withoutStream = async () => {
  // Without the event stream the page polls.
  const polling = await open("", { robbed: true, first: async (page) => { await page.clock.install(); await page.route("**/events", (route) => route.abort()); } });
  await api("PATCH", `/incidents/${incident.id}`, { title: "Images fail again" });
  // Responses take real time, and a worse status may come in between.
  await eventually("without the stream a change is shown within a minute", async () => {
    await minute(polling);
    return (await headline(polling)) === "Images fail again";
  }, 60);
};
const near = [["monitor", `/monitors/${monitors[3].id}`], ["incident", `/incidents/${incident.id}`], ["history", "/history"], ["nasty", `/monitors/${nasty.id}`]].map(([name, path]) => async () => {
  const other = await open(path);
  await shot(other, name);
  await accessible(other, name);
  const phone = await open(path, { viewport: { width: 390, height: 844 }, colorScheme: "dark" });
  await narrow(phone, `${name} on a phone`);
  await shot(phone, `${name}-390-dark`);
  await accessible(phone, `${name} on a phone, dark`);
});
const aChart = async () => {
  const close = await open(`/monitors/${monitors[3].id}?range=24h`);
  await close.locator(".data summary").click();
  holds("the chart is also a table", (await close.locator(".data tbody tr").count()) >= 15 && (await close.locator(".data thead th").count()) >= 2);
  await shot(close, "monitor-24h");
  await accessible(close, "a chart as a table");
  await close.locator(".spans a", { hasText: "90 days" }).click();
  await close.waitForFunction(() => document.querySelector(".strip").children.length === 90);
  await close.locator(".strip a").last().click();
  await close.locator("#days li:target").waitFor();
  holds("a day links to its row", await close.locator("#days li:target").isVisible());
  holds("which links to its events", (await close.locator("#days li:target a").getAttribute("href")).includes("/history/"));
  await close.locator("#days li:target a").click();
  await close.locator(".month:target").waitFor();
  holds("on the page of its month", await close.locator(".month:target").isVisible());
};
await together(withoutStream, ...near, aChart);

await done();
