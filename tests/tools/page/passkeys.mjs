// Passkeys in Chromium with a virtual authenticator: registered, used to sign in by button and from the email field, as
// second step after a password, to confirm, and removed. Arguments: dashboard.mjs; "base" is at localhost, since an
// address has no passkeys.

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

// The second step after a password, once the account needs one.
const need = async (needed) => {
  await page.goto(`${base}/app/account/members`);
  const form = page.locator("form[action='/app/account/members/second-factor']");
  holds(`the button turns the need ${needed}`, await form.locator("[name=needed]").inputValue() === needed);
  await form.locator("button").click();
  await page.waitForURL(/done=/);
};
await need("on");
await page.goto(security);
const hint = await page.textContent("#passkeys");
holds("it is the only second factor", /only second factor/.test(hint), hint);
await answers(false);
await signOut();
await page.fill("#email", told.email);
await page.fill("#password", told.password);
await page.click("form[action='/sign-in'] button.main-act");
await page.waitForURL(/\/sign-in\/code/);
await page.locator("form[data-passkey]:visible").waitFor();
await look("second-step-passkey");
// The form of a confirmation, too, which nobody sees within ten minutes of a sign-in: drawn from this one below.
const secondStep = await (await page.request.get(page.url())).text();
await answers(true);
await page.click("text=Use a passkey");
await page.waitForURL(security);
holds("a passkey is the second step", true);

// A confirmation.
const formToken = await page.locator("[name=form_token]").first().inputValue();
const confirmation = secondStep
  .replaceAll("/sign-in/code/passkey", "/confirm/passkey")
  .replace("<input type=\"hidden\" name=\"next\"", `<input type="hidden" name="form_token" value="${formToken}">$&`);
await page.route(/\/confirm\?next=/, (route) => route.fulfill({ contentType: "text/html", body: confirmation }));
await page.goto(`${base}/confirm?next=x`);
const [asked, sent] = await Promise.all([
  page.waitForResponse(/\/confirm\/passkey\/options$/),
  page.waitForResponse(/\/confirm\/passkey$/),
  page.click("text=Use a passkey"),
]);
holds("a challenge for a confirmation is made", asked.status() === 200, asked.status());
holds("a passkey confirms", sent.status() === 303, sent.status());
await page.waitForURL(security);
await page.unroute(/\/confirm\?next=/);
await need("off");

// A device that does not verify its owner gets nowhere.
await verifies(false);
page.expected = /./;
await signInByButton();
await page.locator("[role=alert]:visible").waitFor();
// The offer in the email field would be answered, too, and fail again and again.
await answers(false);
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
const refused = page.waitForResponse((it) => it.url().endsWith("/sign-in/passkey") && it.status() === 400);
await signInByButton();
await refused;
await answers(false);
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
