// Hostile texts in names, titles, messages, deploys and vendors' outage descriptions. Arguments: browser.mjs.

import { createServer } from "node:http";
import { accessible, api, done, eventually, holds, narrow, open, shot } from "./browser.mjs";

const make = async (body) => (await api("POST", "/monitors", body)).monitor;
const before = (await api("GET", "/monitors")).monitors.length;

// None may run, load resources, or break the layout.
const TEXTS = [
  "<img src=x onerror=alert(1)>", "\"><script>alert(1)</script>", "'><svg/onload=alert(1)>", "</title><script>alert(1)</script>",
  "{{7*7}} ${7*7} <%= 7*7 %>", "javascript:alert(1)", "</a></div></main><h1>x</h1>", "<!--", "]]>", "&lt;script&gt;alert(1)&lt;/script&gt;",
  "<style>*{display:none}</style>", "<base href=https://evil.example/>", "<meta http-equiv=refresh content=0;url=https://evil.example>",
  "\" onmouseover=\"alert(1)", "`;alert(1)//", "\u202egnp.exe", "Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334\u0319\u0324\u031e\u0349\u035a\u032f\u031e\u0320\u034d",
  "W".repeat(80), "\u{1f469}\u200d\u{1f469}\u200d\u{1f467}\u200d\u{1f466}".repeat(8), "a\u2028b\u2029c", "<iframe srcdoc=\"<script>alert(1)</script>\">",
];
const MARKDOWN = [
  "[x](javascript:alert(1))", "![x](https://evil.example/p.gif)", "<form action=https://evil.example><input name=a></form>", "<b style=position:fixed;inset:0>x</b>",
  "```\n</code></pre><script>alert(1)</script>\n```", "[x](https://a.example \"\\\" onclick=\\\"alert(1)\")", "<math><mtext></mtext><mglyph><style></math><img src onerror=alert(1)>",
  "> ".repeat(60) + "deep", "- ".repeat(60) + "deep", "| a |\n|---|\n| " + "W".repeat(300) + " |",
];
await api("PATCH", "", { description: TEXTS[0] + TEXTS[1], showDeploys: true });
const held = [];
// Markup that no text may create.
const look = (seen) => seen.evaluate(() => ({
  scripts: document.querySelectorAll("script:not([src])").length + document.querySelectorAll("script[src]").length - 2,
  more: document.querySelectorAll("main img,iframe,object,embed,base,main style,main form,main input,[onclick],[onerror],[onmouseover],[style]").length,
  h1: document.querySelectorAll("h1").length, wide: document.documentElement.scrollWidth - innerWidth,
  links: [...document.querySelectorAll("a[href]")].filter((a) => !/^(https?:|mailto:)/.test(a.href)).length,
}));
const isSound = (found) => found.scripts === 0 && found.more === 0 && found.h1 === 1 && found.wide <= 0 && found.links === 0;

// Vendors with an outage described by these texts, which become the reason of the monitor's outage.
const vendors = [];
for (const words of [...TEXTS.slice(0, 4), TEXTS[6], TEXTS[9], TEXTS[13], MARKDOWN[0], MARKDOWN[6]]) {
  const summary = JSON.stringify({
    page: { id: "x", name: words }, status: { indicator: "critical", description: words }, components: [], scheduled_maintenances: [],
    incidents: [{ id: "i", name: words, status: "investigating", impact: "critical" }],
  });
  const server = createServer((request, answer) => {
    const isIt = request.url === "/api/v2/summary.json";
    answer.writeHead(isIt ? 200 : 404, { "content-type": "application/json" }).end(isIt ? summary : "{}");
  });
  await new Promise((up) => server.listen(0, "127.0.0.1", up));
  const monitor = await make({ name: "A vendor", type: "component", vendorUrl: `http://127.0.0.1:${server.address().port}/` });
  vendors.push({ words, server, monitor });
}
for (const [n, text] of TEXTS.entries()) {
  // Control and separator characters are rejected.
  if (/[\u2028\u2029\u202e]/.test(text)) {
    const refused = await make({ name: text, type: "heartbeat", periodMinutes: 60 }).then((it) => held.push(it), (error) => /40\d|42\d/.test(error.message));
    holds(`text is accepted or rejected: ${JSON.stringify(text)}`, refused);
    continue;
  }
  if (n < 6) held.push(await make({ name: text, groupName: [...text].slice(0, 60).join(""), type: "heartbeat", periodMinutes: 60 }));
  else await api("PATCH", `/monitors/${held[n % 6].id}`, { name: text, groupName: [...text].slice(0, 60).join("") });
  const opened = (await api("POST", "/incidents", { title: text, impact: "degraded", monitorIds: [held[n % 6].id], message: MARKDOWN[n % MARKDOWN.length], notify: false })).incident;
  await api("POST", "/deploys", { version: [...text].slice(0, 40).join(""), note: text, url: "https://example.com/\"onclick=alert(1)" });
  const seen = await open("", n % 2 ? {} : { viewport: { width: 390, height: 844 } });
  const found = await look(seen);
  holds(`text stays text: ${JSON.stringify(text.slice(0, 30))}`, isSound(found), { text, found });
  if (n === 1 || n === 18) { await shot(seen, `texts-${n}`); await accessible(seen, `texts ${n}`); }
  await seen.context().close();
  if (n >= TEXTS.length - 3) {
    const whole = await open(`/incidents/${opened.id}`, { viewport: { width: 390, height: 844 } });
    await narrow(whole, `an incident with text ${n}`);
    await whole.context().close();
  }
  await api("POST", `/incidents/${opened.id}/updates`, { status: "resolved", message: MARKDOWN[(n + 3) % MARKDOWN.length], notify: false });
}
// The outage's reason, and the automatic incident.
for (const { words, monitor, server } of vendors) {
  await eventually(`a vendor's outage is detected: ${JSON.stringify(words.slice(0, 30))}`, async () => (await api("GET", `/monitors/${monitor.id}`)).monitor.status === "down", 150);
  const seen = await open(`/monitors/${monitor.id}`, { viewport: { width: 390, height: 844 } });
  const reason = await seen.locator("#outages td").nth(2).textContent();
  holds("its text is the outage's reason", reason.includes(words), [reason, words]);
  const found = await look(seen);
  holds("which stays text", isSound(found), { words, found });
  await seen.context().close();
  server.close();
}
const down = await open("");
const told = await look(down);
holds("and on the page itself", isSound(told), told);
for (const { incident } of await Promise.all((await api("GET", "/incidents?open=true")).incidents.map((it) => api("GET", `/incidents/${it.id}`)))) {
  const told = await open(`/incidents/${incident.id}`);
  const found = await look(told);
  holds(`and in the automatic incident: ${JSON.stringify(incident.title.slice(0, 30))}`, isSound(found), found);
  await told.context().close();
}
const past = await open("/history", { viewport: { width: 390, height: 844 } });
await narrow(past, "a month of such texts");
await shot(past, "texts-history-390");
const later = await open("");
holds("and with all of them resolved the page is as it was", (await later.locator(".mon").count()) === before + held.length + vendors.length);
for (const it of [...held, ...vendors.map(({ monitor }) => monitor)]) await api("DELETE", `/monitors/${it.id}`);
await api("PATCH", "", { description: "Shop, payments and the public API" });

await done();
