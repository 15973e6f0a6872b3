// A subscriber's path from the form to the last mail. Arguments: browser.mjs, and "mail", the folder of mails; the
// page has a monitor "Web shop".

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { accessible, api, done, eventually, headline, holds, narrow, open, shot, told } from "./browser.mjs";

const up = (await api("GET", "/monitors")).monitors.find((it) => it.name === "Web shop");

const mails = () => { try { return readdirSync(told.mail).filter((name) => name.endsWith(".eml")).map((name) => readFileSync(join(told.mail, name), "utf8").replace(/=\r?\n/g, "").replace(/=3D/g, "=")); } catch { return []; } };
const mail = (what, words) => eventually(what, () => mails().find((text) => words.every((word) => text.includes(word))));
const visitor = await open("");
await visitor.locator(".pop summary").click();
await visitor.fill("#mail", "ann@example.com");
await visitor.locator(".panel button").click();
holds("the form asks the visitor to check the inbox", (await visitor.textContent("h2")) === "Check your inbox", await visitor.textContent("main"));
await shot(visitor, "form-mailed");
await accessible(visitor, "asked");
const first = await mail("a mail with a link comes", ["To: ann@example.com", "/confirm?t="]);
const link = /https?:\/\/[^\s"<>]*\/confirm\?t=[^\s"<>&]+/.exec(first)[0];
await visitor.goto(link);
await shot(visitor, "form-confirm");
await accessible(visitor, "to confirm");
holds("the choice of services is collapsed", !(await visitor.locator(".choice label").first().isVisible()));
await visitor.locator(".choice summary").click();
await visitor.locator(".choice label", { hasText: "Web shop" }).locator("input").check();
await visitor.locator(".form button").click();
holds("it is confirmed", (await visitor.textContent("h2")) === "Done", await visitor.textContent("main"));
await accessible(visitor, "confirmed");
const broken = (await api("POST", "/incidents", { title: "Checkout is slow", impact: "degraded", monitorIds: [up.id], message: "We look." })).incident;
const news = await mail("what happens is told", ["Checkout is slow", "To: ann@example.com"]);
const leave = /https?:\/\/[^\s"<>]*\/unsubscribe\?t=[^\s"<>&]+/.exec(news)[0];
await visitor.goto(leave);
await shot(visitor, "form-leave");
await accessible(visitor, "to leave");
await visitor.locator(".form button").click();
holds("and they can unsubscribe", (await visitor.textContent("h2")) === "You have been unsubscribed");
await visitor.goto(`${told.page}/subscribe`);
await shot(visitor, "form-subscribe");
await accessible(visitor, "the form by itself");
// An address that browsers accept and the service rejects with 400, which the browser logs.
const typist = await open("/subscribe", { forgiven: ["400 (Bad Request)"] });
await typist.fill("#email", "ann@example");
await typist.locator("form button").first().click();
await typist.locator('#email[aria-invalid="true"]').waitFor();
const faulty = typist.locator("#email");
holds("the error is shown at its field", (await faulty.getAttribute("aria-invalid")) === "true" && (await typist.locator(`[id="${await faulty.getAttribute("aria-describedby")}"]`).textContent()) === "Please enter a valid email address.");
holds("and the field has the focus", await faulty.evaluate((it) => it === document.activeElement));
await shot(typist, "form-fault");
await accessible(typist, "the form with a fault");
await typist.locator("details.way > summary").click();
await typist.fill("#url", "http://127.0.0.1/hook");
await typist.locator("details.way button").click();
// The document before the click has the same fields.
await typist.locator('#url[aria-invalid="true"]').waitFor();
holds("the webhook form stays open after an error", await typist.locator("#url").evaluate((it) => it === document.activeElement && it.getAttribute("aria-invalid") === "true"));
await shot(typist, "form-fault-webhook");
const small = await open("/subscribe", { viewport: { width: 390, height: 844 }, colorScheme: "dark" });
await narrow(small, "the form on a phone");
await shot(small, "form-subscribe-390-dark");
await small.evaluate(() => localStorage.setItem("theme", "light"));
await small.reload();
holds("a form has the visitor's theme", (await small.evaluate(() => document.documentElement.dataset.theme)) === "light");
await small.evaluate(() => localStorage.removeItem("theme"));
await small.reload();
await accessible(small, "the form on a phone, dark");
await api("POST", `/incidents/${broken.id}/updates`, { status: "resolved", message: "Over." });
const calm = await open("");
holds("a resolved incident is not in the headline", (await headline(calm)) !== "Checkout is slow", await headline(calm));
holds("nor in the open ones", (await calm.locator("#open", { hasText: "Checkout is slow" }).count()) === 0);
const today = await calm.locator("#past .day").first().textContent();
holds("but on its day, with its duration", /Checkout is slow resolved after /.test(today), today);
await shot(calm, "calm");

await done();
