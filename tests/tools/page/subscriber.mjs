// The way of a subscriber from the form to the last mail. How it is called: browser.mjs, with "mail", the folder of mails, beside;
// the page has a monitor "Web shop".

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
holds("whoever asks is sent to the mailbox", (await visitor.textContent("h2")) === "Look into your mailbox", await visitor.textContent("main"));
await shot(visitor, "form-mailed");
await accessible(visitor, "asked");
const first = await mail("a mail with a link comes", ["To: ann@example.com", "/confirm?t="]);
const link = /https?:\/\/[^\s"<>]*\/confirm\?t=[^\s"<>&]+/.exec(first)[0];
await visitor.goto(link);
await shot(visitor, "form-confirm");
await accessible(visitor, "to confirm");
holds("which services is folded away", !(await visitor.locator(".choice label").first().isVisible()));
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
holds("and who leaves is let go", (await visitor.textContent("h2")) === "You are unsubscribed");
await visitor.goto(`${told.page}/subscribe`);
await shot(visitor, "form-subscribe");
await accessible(visitor, "the form by itself");
// What a browser lets pass and the service does not.
await visitor.fill("#email", "ann@example");
await visitor.locator("form button").first().click();
const faulty = visitor.locator("#email");
holds("what is wrong is said of its field", (await faulty.getAttribute("aria-invalid")) === "true" && (await visitor.locator(`[id="${await faulty.getAttribute("aria-describedby")}"]`).textContent()) === "Please enter a valid email address.");
holds("where whoever typed it stands", await faulty.evaluate((it) => it === document.activeElement));
await shot(visitor, "form-fault");
await accessible(visitor, "the form with a fault");
await visitor.locator("details.way > summary").click();
await visitor.fill("#url", "http://127.0.0.1/hook");
await visitor.locator("details.way button").click();
holds("the webhook's form stays open where something is wrong with it", await visitor.locator("#url").evaluate((it) => it === document.activeElement && it.getAttribute("aria-invalid") === "true"));
await shot(visitor, "form-fault-webhook");
const small = await open("/subscribe", { viewport: { width: 390, height: 844 }, colorScheme: "dark" });
await narrow(small, "the form on a phone");
await shot(small, "form-subscribe-390-dark");
await accessible(small, "the form on a phone, dark");
await api("POST", `/incidents/${broken.id}/updates`, { status: "resolved", message: "Over." });
const calm = await open("");
holds("what is over is not in the headline", (await headline(calm)) !== "Checkout is slow", await headline(calm));
holds("nor open", (await calm.locator("#open", { hasText: "Checkout is slow" }).count()) === 0);
const today = await calm.locator("#past .day").first().textContent();
holds("but of its day, with how long it took", /Checkout is slow resolved after /.test(today), today);
await shot(calm, "calm");

await done();
