// Visits a password-protected page in Chromium: by keyboard, on a phone, in dark mode, without scripts. Arguments:
// page/browser.mjs, and "canary", a text on the page. The password is "open sesame".

import { accessible, done, holds, narrow, open as opened, shot, told } from "./page/browser.mjs";

// The form itself is served with 403, which the browser logs as an error.
const open = (path, options) => opened(path, { forgiven: ["403"], ...options });

const page = await open("/history");
holds("the form asks for the password", (await page.textContent("h1")) === "Password required");
holds("and reveals nothing of the page", !(await page.content()).includes(told.canary));
await page.waitForFunction(() => document.activeElement.id === "password");
holds("the field has the focus", true);
await shot(page, "door-light");
await accessible(page, "light");
await page.keyboard.type("sesame");
await page.keyboard.press("Enter");
await page.waitForSelector("#fault");
holds("a wrong password is reported", (await page.textContent("#fault")) === "Wrong password.");
holds("and the field is marked invalid", (await page.getAttribute("#password", "aria-describedby")) === "fault");
await shot(page, "door-wrong");
await accessible(page, "after a wrong password");
await page.keyboard.type("open sesame");
await page.keyboard.press("Enter");
await page.waitForURL("**/history");
holds("the right one redirects to the requested page", new URL(page.url()).pathname.endsWith("/history"));
await page.goto(told.page);
holds("the page is shown", (await page.content()).includes(told.canary));
const kept = await page.context().cookies();
holds("the cookie is not readable by scripts", kept.length === 1 && kept[0].httpOnly && kept[0].sameSite === "Lax", kept);
await shot(page, "door-inside");
await accessible(page, "inside");
await page.getByRole("button", { name: "Sign out" }).click();
await page.waitForSelector("#password");
holds("the button signs out", (await page.context().cookies()).length === 0);

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
await bare.waitForSelector("#headline");
holds("it works without scripts", (await bare.content()).includes(told.canary));
await done();
