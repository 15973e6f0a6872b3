// Shared by the visits of the dashboard: sign-in, one page that is shown in every width and theme, and its inspection.
// Arguments: browser.mjs, and "base", "email" and "password"; "setup" is the one-time link of a new account.

import { axe, browser, faults, holds, told, RULES } from "./browser.mjs";
import { join } from "node:path";

export const base = told.base;
const WIDE = { width: 1280, height: 900 }, PHONE = { width: 390, height: 844 }, SMALL = { width: 320, height: 640 };

// Opens a tab in a new context. Console messages, policy violations, dialogs and requests to other origins are faults.
export const tab = async (options = {}) => {
  const context = await browser.newContext({ viewport: WIDE, locale: "en-GB", reducedMotion: "reduce", ...options });
  context.setDefaultTimeout(30000);
  await context.addInitScript(() => addEventListener("securitypolicyviolation", (it) =>
    console.error(`policy: ${it.violatedDirective} ${it.blockedURI}`)));
  const page = await context.newPage();
  const fault = (text) => faults.push(`${page.url()}: ${text}`);
  page.on("console", (line) => {
    const isFault = ["error", "warning"].includes(line.type()) && !page.expected?.test(line.text());
    if (isFault) fault(line.text());
  });
  page.on("pageerror", (error) => fault(String(error)));
  // The browser's question before unsaved changes are left: answered by leaving, and told to who waits for it.
  page.on("dialog", (dialog) => {
    if (dialog.type() !== "beforeunload") fault(`a dialog: ${dialog.message()}`);
    page.asked?.(dialog);
    if (dialog.type() === "beforeunload") dialog.accept();
    else dialog.dismiss();
  });
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.protocol !== "data:" && url.origin !== new URL(base).origin) fault(`asks ${url}`);
  });
  return page;
};

// Signs in and returns the state of the browser's cookies, for further contexts.
export const signIn = async () => {
  const page = await tab();
  await page.goto(told.setup ?? `${base}/sign-in`);
  if (await page.locator("#email:not([readonly])").count()) await page.fill("#email", told.email);
  if (await page.locator("#url").count()) await page.fill("#url", told.site);
  await page.fill("#password", told.password);
  await page.click("button.main-act");
  await page.waitForURL(`${base}/app*`);
  const storageState = await page.context().storageState();
  await page.context().close();
  return storageState;
};

// Violations of accessibility. The second theme differs in colours alone.
const violations = async (page, isWhole) => {
  if (!await page.evaluate(() => !!window.axe)) await page.evaluate(axe);
  const found = await page.evaluate(([tags, isWhole]) => {
    const runOnly = isWhole ? { type: "tag", values: tags } : { type: "rule", values: ["color-contrast"] };
    return axe.run(document, { runOnly, resultTypes: ["violations"] });
  }, [RULES, isWhole]);
  const of = (node) => `${node.target.join(" ")}: ${node.failureSummary.split("\n")[1]?.trim()}`;
  return found.violations.map((it) => `${it.id}: ${it.nodes.slice(0, 3).map(of).join("; ")}`);
};
const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

// Inspects what a tab shows in its themes at 1280 and 390 pixels, and its width at 320; returns what is wrong.
export const inspectHere = async (page, name, themes = ["light", "dark"]) => {
  const wrong = [], note = (what) => wrong.push(`${name} (${new URL(page.url()).pathname}) ${what}`);
  const headings = await page.locator("h1").count();
  if (headings !== 1) note(`has ${headings} h1`);
  for (const [size, viewport] of [["1280", WIDE], ["390", PHONE]]) {
    await page.setViewportSize(viewport);
    for (const colorScheme of themes) {
      await page.emulateMedia({ colorScheme });
      for (const text of await violations(page, colorScheme === "light")) note(`at ${size}, ${colorScheme}: ${text}`);
      if (themes.length === 1 || (size === "1280") === (colorScheme === "light")) {
        await page.screenshot({ path: join(told.shots, `dashboard-${name}-${size}.png`), fullPage: true });
      }
    }
    if (await overflow(page) > 0) note(`is ${await overflow(page)} px too wide at ${size}`);
  }
  await page.setViewportSize(SMALL);
  if (await overflow(page) > 0) note(`is ${await overflow(page)} px too wide at 320`);
  await page.setViewportSize(WIDE);
  await page.emulateMedia({ colorScheme: "light" });
  return wrong;
};

// Opens an address and inspects it.
const inspect = async (page, [name, path, status = 200], themes) => {
  page.expected = status === 200 ? null : /status of 4\d\d/;
  const response = await page.goto(base + path, { waitUntil: "load" });
  const wrong = await inspectHere(page, name, themes);
  return response.status() === status ? wrong : [`${path} answers ${response.status()}`, ...wrong];
};

// Opens an address without script in both widths; returns what is wrong.
const inspectPlain = async (page, path, status = 200) => {
  const wrong = [];
  page.expected = status === 200 ? null : /status of 4\d\d/;
  const response = await page.goto(base + path, { waitUntil: "load" });
  if (response.status() !== status) wrong.push(`${path} answers ${response.status()} without script`);
  for (const viewport of [WIDE, PHONE]) {
    await page.setViewportSize(viewport);
    if (await overflow(page) > 0) wrong.push(`${path} is too wide without script at ${viewport.width} px`);
  }
  return wrong;
};

// Inspects addresses (name, path, and the status if it isn't 200), two at a time, then without script.
export const inspectAll = async (storageState, screens, prefix = "", themes = undefined) => {
  const wrong = [];
  const walk = async (list, options, look) => {
    const page = await tab({ storageState, ...options });
    for (let it; (it = list.shift());) wrong.push(...await look(page, it));
    await page.context().close();
  };
  const list = [...screens];
  const scripted = () => walk(list, {}, (page, [name, ...rest]) => inspect(page, [prefix + name, ...rest], themes));
  await Promise.all([scripted(), scripted()]);
  await walk([...screens], { javaScriptEnabled: false }, (page, [, path, status]) => inspectPlain(page, path, status));
  holds(`${screens.length} screens are whole`, wrong.length === 0, wrong);
};
