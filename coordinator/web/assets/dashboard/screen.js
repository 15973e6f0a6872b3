// Script of every screen of the dashboard. Everything works without it.
const dashboard = (() => {
  "use strict";

  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  // Screen readers announce changes of a live region: never write the same text again.
  const setText = (node, text) => {
    if (node && node.textContent !== text) node.textContent = text;
  };

  // One menu at a time; Escape, a click elsewhere and leaving it with the keyboard close it.
  const openMenus = () => all("details.pop[open]");
  const closeMenus = (except) => {
    for (const menu of openMenus()) if (menu !== except) menu.open = false;
    if (!except) document.getElementById("floating")?.remove();
  };
  document.addEventListener("click", (event) => {
    if (!event.target.closest("#floating,[data-menu]")) closeMenus(event.target.closest("details.pop"));
  });
  document.addEventListener("focusin", (event) => {
    for (const menu of openMenus()) if (!menu.contains(event.target)) menu.open = false;
  });
  const moveInMenu = (event) => {
    const menu = event.target.closest(".menu");
    const items = all("a,button", menu).filter((item) => item.offsetParent);
    const at = items.indexOf(document.activeElement);
    const step = event.key === "ArrowDown" ? 1 : items.length - 1;
    items[(at + step) % items.length]?.focus();
    event.preventDefault();
  };
  document.addEventListener("keydown", (event) => {
    const isArrow = event.key === "ArrowDown" || event.key === "ArrowUp";
    if (isArrow && event.target.closest(".menu")) moveInMenu(event);
    if (event.key !== "Escape") return;
    const [menu] = openMenus();
    closeMenus();
    menu?.querySelector("summary").focus();
  });

  // Times in the person's zone: `at` and `t` as a clock for today, with the date otherwise. The title is in UTC.
  const localTime = (at) => {
    const isToday = at.toDateString() === new Date().toDateString();
    const clock = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
    const options = isToday ? clock : { day: "numeric", month: "short", ...clock };
    return at.toLocaleString(document.documentElement.lang === "en" ? "en-GB" : undefined, options);
  };
  const showTimes = (from = document) => {
    for (const time of all("time[data-f]", from)) {
      const at = new Date(time.dateTime);
      time.title = at.toISOString().replace("T", " ").replace(".000Z", " UTC");
      setText(time, localTime(at));
    }
  };

  // Values to copy.
  const showCopyButtons = (from = document) => {
    if (!navigator.clipboard) return;
    for (const button of all("[data-copy] button", from)) button.hidden = false;
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy] button");
    if (!button) return;
    const value = button.closest("[data-copy]").querySelector("code,pre").textContent;
    await navigator.clipboard.writeText(value);
    const label = button.lastChild;
    const before = label.textContent;
    label.textContent = "Copied";
    setTimeout(() => {
      label.textContent = before;
    }, 2000);
  });

  // A toast goes after 10 seconds, and stays while it is hovered, focused, or motion is reduced.
  const toast = document.querySelector("[data-toast]");
  const dismiss = () => {
    if (toast.matches(":hover,:focus-within")) setTimeout(dismiss, 2000);
    else toast.remove();
  };
  if (toast) {
    const address = new URL(location);
    address.searchParams.delete("done");
    address.searchParams.delete("count");
    history.replaceState(null, "", address);
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) setTimeout(dismiss, 10000);
  }

  // A double click sends a form once.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post") return;
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "1";
  });
  addEventListener("pageshow", () => {
    for (const form of all("form[data-sent]")) delete form.dataset.sent;
  });

  showTimes();
  showCopyButtons();
  const enhance = (part) => {
    showTimes(part);
    showCopyButtons(part);
    part.dispatchEvent(new CustomEvent("renewed", { bubbles: true }));
  };
  return { all, setText, closeMenus, enhance };
})();
