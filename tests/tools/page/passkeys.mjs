// Passkeys in Chromium with a virtual authenticator: registered, used to sign in by button and from the email field, to
// confirm, and removed. Arguments: dashboard.mjs; "base" is at localhost, since an address has no passkeys.

import { done, eventually, holds, told } from "./browser.mjs";
import { base, inspectHere, signIn, tab } from "./dashboard.mjs";

const storageState = await signIn();
const page = await tab({ storageState });
const cdp = await page.context().newCDPSession(page);
await cdp.send("WebAuthn.enable", { enableUI: false });
const { authenticatorId } = await cdp.send("WebAuthn.addVirtualAuthenticator", {
  options: {
    protocol: "ctap2",
    transport: "internal",
    hasResidentKey: true,
    hasUserVerification: true,
    isUserVerified: true,
    automaticPresenceSimulation: true,
  },
});
const verifies = (isUserVerified) => cdp.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified });
const credentials = async () => (await cdp.send("WebAuthn.getCredentials", { authenticatorId })).credentials;
const security = `${base}/app/account/security`;
const wrong = [];
const look = async (name) => wrong.push(...await inspectHere(page, name));

// Registered.
await page.goto(security);
await page.click("text=Add passkey");
await page.waitForURL(/passkeys\/new/);
await look("passkey-new");
holds("the name is the browser's", /Chrome/.test(await page.inputValue("#name")), await page.inputValue("#name"));
await page.fill("#name", "Test device");
await page.click("text=Create passkey");
await page.waitForURL(/done=passkey-added/);
holds("it is in the list", await page.locator("#passkeys b", { hasText: "Test device" }).count() === 1);
const [made] = await credentials();
holds("the device can find it by itself", made.isResidentCredential && made.rpId === "localhost", made);
await look("security-passkey");

// The same device again is refused in words.
page.expected = /./;
await page.goto(`${security}/passkeys/new`);
await page.click("text=Create passkey");
await page.locator("[role=alert]", { hasText: "one of your passkeys already" }).waitFor();
page.expected = null;

// Signed out, then in by the button.
const signOut = async () => {
  await page.context().clearCookies();
  await page.goto(`${base}/sign-in?next=%2Fapp%2Faccount%2Fsecurity`);
};
const answers = (enabled) => cdp.send("WebAuthn.setAutomaticPresenceSimulation", { authenticatorId, enabled });
const signInByButton = async () => {
  // Without an answer to the offer in the email field: it would be given at once.
  await answers(false);
  await signOut();
  await page.locator("form[data-passkey]:visible").waitFor();
  await look("sign-in-passkey");
  await answers(true);
  await page.click("text=Sign in with a passkey");
};
await signInByButton();
await page.waitForURL(security);
holds("a passkey signs in, and is marked as used", /last used/.test(await page.textContent("#passkeys")));
const cookies = await page.context().cookies();
const session = cookies.find((it) => it.name === "plx-local");
holds("the session is kept", session.expires > Date.now() / 1000 + 86400, session);

// From the email field, without a click.
await signOut();
await page.waitForURL(security);
holds("the offer in the email field signs in", true);

// Confirmed.
await page.click("text=Remove");
await page.waitForURL(/\/remove$/);
holds("a fresh sign-in is confirmed", await page.locator("button.danger").count() === 1);

// A device that does not verify its owner gets nowhere.
await verifies(false);
page.expected = /./;
await signInByButton();
await page.locator("[role=alert]:visible").waitFor();
holds("it says what to do", /Try again/.test(await page.textContent("[role=alert]")));
page.expected = null;
await verifies(true);

// Removed.
await signInByButton();
await page.waitForURL(security);
await page.click("text=Remove");
await look("passkey-remove");
await page.click("button.danger");
await page.waitForURL(/done=passkey-removed/);
page.expected = /status of 400/;
await signInByButton();
await page.locator("[role=alert]:visible", { hasText: "not known here" }).waitFor();
holds("a removed passkey works no more", true);
page.expected = null;
await page.context().close();

// Without script the password is the way in.
const plain = await tab({ javaScriptEnabled: false });
await plain.goto(`${base}/sign-in`);
holds("without script no passkey is offered", await plain.locator("text=Sign in with a passkey").isHidden());
await plain.context().close();
await eventually("all screens are whole", () => wrong.length === 0, 1);
await done();
