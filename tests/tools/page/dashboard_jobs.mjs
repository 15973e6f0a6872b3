// Jobs of the dashboard's users with their clicks counted: a job that takes more than its bound fails. On wide screens they
// are done by the keyboard alone, on phones everything they need is at least reached by it.
// Arguments: dashboard.mjs, and "api", "key", "id" of the demo's page.

import { api, done, holds, told } from "./browser.mjs";
import { base, signIn, tab } from "./dashboard.mjs";

const home = `${base}/app/pages/${told.id}`;
const storageState = await signIn();
const { monitors } = await api("GET", "/monitors");
// The demo's receiver, which takes everything; the API masks the path.
const { destinations } = await api("GET", "/destinations");
const hook = new URL("/alerts", destinations.find((it) => it.type === "webhook").url).href;
const down = monitors.find((it) => it.status === "down" && it.downFrom);
const legacy = monitors.find((it) => it.status === "down" && !it.downFrom);

// Most stops of the Tab key on one screen: ours have some 200.
const STOPS = 400;

// Moves the focus to an element by the Tab key alone, as who uses no pointer does, and sees that the focus shows.
const reach = async (page, element) => {
  await element.waitFor();
  const isThere = () => element.evaluate((it) => document.activeElement === it);
  for (let stop = 0; stop < STOPS && !await isThere(); stop += 1) await page.keyboard.press("Tab");
  const shows = () => element.evaluate((it) => it.matches(":focus-visible") && getComputedStyle(it).outlineStyle !== "none");
  const isReached = await isThere();
  if (!isReached || !await shows()) {
    holds(`${isReached ? "the focus shows on" : "the Tab key reaches"} ${await element.evaluate((it) => it.outerHTML)}`, false);
  }
};

// A person who does a job in a new tab, with a counter of their clicks and typed fields. A key is no click.
const person = async (path, options) => {
  const page = await tab({ storageState, ...options });
  const count = { clicks: 0, fields: 0 };
  await page.goto(home + path);
  const by = (where) => (typeof where === "string" ? page.locator(where) : where).first();
  return {
    page,
    count,
    // Not the first button of a form, which the Enter key presses: it is hidden.
    button: (name) => page.locator("button:not(.vh)", { hasText: new RegExp(`^\\s*${name}\\s*$`) }),
    link: (name) => page.getByRole("link", { name, exact: true }),
    click: async (where) => {
      count.clicks += 1;
      await reach(page, by(where));
      if (options) await by(where).tap();
      else await page.keyboard.press(await by(where).getAttribute("type") === "checkbox" ? "Space" : "Enter");
    },
    type: async (where, text) => {
      count.fields += 1;
      await reach(page, by(where));
      await page.keyboard.press("Control+a");
      await page.keyboard.insertText(text);
    },
    choose: async (where, name) => {
      count.fields += 1;
      await reach(page, by(where));
      await page.keyboard.type(name);
    },
    sees: async (where, what) => { await by(where).waitFor(); holds(what, true); },
  };
};
const job = async (name, bound, path, act, options) => {
  const it = await person(path, options);
  await act(it);
  const { clicks, fields } = it.count;
  holds(`${name}: ${clicks} clicks of at most ${bound[0]}, ${fields} fields of at most ${bound[1]}`,
    clicks <= bound[0] && fields <= bound[1]);
  await it.page.context().close();
};
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };

await job("see what is down", [0, 0], `/monitors/${down.id}`, async ({ page, sees }) => {
  await sees(page.locator(".headline", { hasText: "Down from Asia for" }), "the headline says where and since when");
  await sees(page.locator(".headline", { hasText: /seen by two networks in Asia/ }), "and why");
  await sees(page.locator("#why .proof tbody tr", { hasText: "Asia" }), "with what the agents saw");
  const top = await page.locator(".headline").evaluate((it) => it.getBoundingClientRect().bottom);
  holds("all on the first screen of a phone", top < 844, String(top));
}, PHONE);

await job("check now", [1, 0], `/monitors/${down.id}`, async ({ page, click, button, sees }) => {
  await click(button("Check now"));
  await sees(page.locator("#check .fall li").nth(5), "each of six regions answers");
  await sees(page.locator("#check", { hasText: "This check does not change the state." }), "and nothing changes");
}, PHONE);

await job("silence for an hour", [2, 0], `/monitors/${legacy.id}`, async ({ page, click, button, link, sees }) => {
  await click(link("Maintenance"));
  await click(button("1 h"));
  await sees(page.locator(".head", { hasText: "In maintenance" }), "the window runs");
}, PHONE);

await job("tell customers from a template", [3, 0], `/monitors/${down.id}`, async (it) => {
  const { page, click, button, link, sees } = it;
  await click(link("Post update"));
  await click(button("Investigating"));
  await page.waitForFunction(() => document.querySelector("#message")?.value.length > 20);
  holds("the template is in the message", true);
  await click(page.locator("button[name=notify][value=true]"));
  await sees(page.locator("[data-toast]"), "it is posted");
}, PHONE);

await job("write, preview and post an update", [3, 1], "/incidents", async ({ page, click, type, button, sees }) => {
  await click(page.locator("main .rows a.strong"));
  await sees(page.getByText(/\d+ by email, \d+ by webhook/), "how many get it is said before");
  await type("#message", "We found the **cause**.");
  await click(button("Preview"));
  await sees(page.locator(".md strong", { hasText: "cause" }), "the preview shows it as readers will see it");
  await click(page.locator("button[name=notify][value=true]"));
  await sees(page.locator("[data-toast]"), "it is posted");
});

await job("add a monitor with a test", [2, 1], "/monitors", async ({ page, click, type, button, link, sees }) => {
  await click(link("New monitor"));
  await type("#url", new URL(monitors.find((it) => it.type === "http" && it.status === "up").url).href);
  await page.keyboard.press("Tab");
  await sees(page.locator("#test .fall li").nth(5), "the test runs by itself, from six regions");
  await click(button("Create monitor"));
  await sees(page.locator("[data-toast]", { hasText: "Monitor created" }), "it is created");
});

await job("add a destination with a test", [4, 2], "/alerts", async ({ page, click, type, button, link, sees }) => {
  await click(link("New destination"));
  await click(page.locator("a.kind", { hasText: "Webhook" }));
  await type("#url", hook);
  await type("#name", "Team");
  await click(button("Create destination"));
  await click(button("Send test"));
  await sees(page.getByText(/Delivered|answered 200/), "the test arrives");
});

await job("pause a group", [3, 0], "/monitors", async ({ page, click, button, sees }) => {
  await click(page.getByRole("checkbox", { name: "Select Infrastructure" }));
  await click(button("Pause"));
  await sees(page.locator("[data-toast]", { hasText: /5 monitors paused/ }), "five monitors are paused");
});

await job("find a monitor", [0, 1], "", async ({ page }) => {
  await page.keyboard.press("Control+k");
  await page.locator("dialog.palette input").pressSequentially("check");
  await page.locator("#hits a[aria-selected]", { hasText: "Checkout" }).waitFor();
  await page.keyboard.press("Enter");
  await page.locator("h1", { hasText: "Checkout" }).waitFor();
});

await job("get the line for a new agent", [2, 3], "/../../mesh", async (it) => {
  const { page, click, type, choose, button, link, sees } = it;
  await click(link("Add agent"));
  await type("#name", "cpt1");
  await choose("#region", "Africa");
  await type("#network", "AS64508");
  await click(button("Invite agent"));
  await sees(page.locator("code,pre", { hasText: "parallax-agent join" }), "the line is there to copy");
});

await done();
