// The API reference: light and dark, wide and narrow, by keyboard, in print, and without scripts. Arguments:
// browser.mjs; `page` is the service's base URL.

import { accessible, done, holds, narrow, open, part, pdf, shot, together, unfolded } from "./browser.mjs";

const PATH = "/api/v1/docs";

await together(
  async () => {
    const page = await open(PATH, { colorScheme: "light" });
    await part(page, "reference-light");
    await accessible(page, "the reference in light");
    await narrow(page, "the reference");
    holds("the contents are expanded on wide screens", await page.locator(".menu[open]").count() === 1);
    await page.fill("#find", "deploys");
    const found = await page.locator(".operations li:visible").allInnerTexts();
    holds("the field finds operations by path", found.length === 3 && found.every((it) => it.includes("deploy")), found);
    await page.fill("#find", "");
    await page.click("nav a[href='#createMonitor']");
    const top = await page.locator("#createMonitor").evaluate((it) => it.getBoundingClientRect().top);
    holds("a link goes to its operation", top > -1 && top < 200, String(top));
    await part(page, "reference-operation");
    await page.locator("#verify").scrollIntoViewIfNeeded();
    await page.click(".sample >> nth=0");
    await part(page, "reference-verify");
    await pdf(page, "reference");
  },
  async () => {
    const page = await open(PATH, { colorScheme: "dark" });
    await part(page, "reference-dark");
    await accessible(page, "the reference in dark");
  },
  async () => {
    const page = await open(PATH, { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
    await narrow(page, "the reference on a phone");
    await part(page, "reference-phone");
    holds("the contents are collapsed on a phone", await page.locator(".menu[open]").count() === 0);
    await page.click(".menu > summary");
    await part(page, "reference-phone-contents");
    await page.click("nav a[href='#listMonitors']");
    holds("they collapse again after a link", await page.locator(".menu[open]").count() === 0);
    await page.locator("#createMonitor").scrollIntoViewIfNeeded();
    await part(page, "reference-phone-operation");
    await accessible(page, "the reference on a phone");
  },
  async () => {
    const page = await open(PATH, { javaScriptEnabled: false });
    await shot(page, "reference-plain");
    holds("everything is shown without scripts", (await page.locator("article.operation").count()) > 40);
    holds("no button is shown that does nothing", (await page.locator("button:visible, input:visible").count()) === 0);
  },
  async () => unfolded(PATH, "the reference, unfolded"),
);
await done();
