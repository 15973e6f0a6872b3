// Company sign-in with a real OpenID Connect provider in Chromium: an owner sets it up, a newcomer signs in, and nobody
// does whose address the provider did not verify. Arguments: base, account, email, password, shots, modules.

import { createServer } from "node:http";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { browser, holds, shot, told } from "./browser.mjs";

const { default: Provider } = await import(pathToFileURL(join(told.modules, "oidc-provider/lib/index.js")));
const callback = `${told.base}/sign-in/oidc/${told.account}/callback`;
const server = createServer();
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const issuer = `http://127.0.0.1:${server.address().port}`;
const provider = new Provider(issuer, {
  clients: [{ client_id: "parallax", client_secret: "a secret of the test", redirect_uris: [callback] }],
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
  pkce: { required: () => true },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@shop.example`, email_verified: id !== "eve", name: `${id} of the shop` }),
  }),
});
server.on("request", provider.callback());

const newPage = async () => (await browser.newContext({ viewport: { width: 1100, height: 900 } })).newPage();
const fill = async (page, fields) => {
  for (const [name, value] of Object.entries(fields)) await page.fill(`main [name=${name}]`, value);
};

const owner = await newPage();
await owner.goto(`${told.base}/sign-in?next=/app/account/company`);
await fill(owner, { email: told.email, password: told.password });
await owner.click("button.main-act");
await owner.waitForSelector("#provider");
holds("the address to give the provider is shown", (await owner.textContent("#provider")).includes(callback));
await fill(owner, { issuer, clientId: "parallax", clientSecret: "a secret of the test" });
await owner.click("text=Save provider");
await owner.waitForLoadState();
await owner.click("form[action$='/test'] button");
await owner.waitForSelector("text=The provider’s configuration works");
holds("the provider passes the test", true);
holds("the domain is proved", (await owner.textContent("#domains")).includes("Proved"));
await shot(owner, "company");

// Signs in at the provider, and returns the page that the browser ends at.
const signIn = async (name) => {
  const page = await newPage();
  await page.goto(`${told.base}/sign-in?next=/app/account/security`);
  await page.fill("[name=email]", `${name}@shop.example`);
  await page.click("text=Company sign-in");
  await page.waitForSelector("[name=login]");
  holds("the browser went on to the provider by itself", page.url().startsWith(issuer), page.url());
  await page.fill("[name=login]", name);
  await page.fill("[name=password]", "any");
  await page.click("button[type=submit]");
  await page.waitForSelector("text=Authorize");
  await page.click("button[type=submit]");
  await page.waitForURL((url) => url.href.startsWith(told.base));
  return page;
};

const ann = await signIn("ann");
holds("a newcomer is signed in", ann.url() === `${told.base}/app/account/security`, ann.url());
const text = await ann.textContent("body");
holds("as a viewer, by company sign-in", text.includes("viewer") && text.includes("You signed in by company sign-in"));
await shot(ann, "company-security");
const eve = await signIn("eve");
const refused = await eve.textContent("main");
holds("an address that is not verified is refused", refused.includes("is verified (email_verified)"), refused);
holds("without a session", (await eve.context().cookies(told.base)).every(({ name }) => name !== "plx-local"));
await browser.close();
server.closeAllConnections();
server.close();
