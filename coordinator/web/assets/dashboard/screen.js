// Script of every screen of the dashboard. Everything works without it.
const dashboard = (() => {
  "use strict";

  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  // Screen readers announce changes of a live region: never write the same text again.
  const setText = (node, text) => {
    if (node && node.textContent !== text) node.textContent = text;
  };

  // Says a text to screen readers: that of a change that the focus doesn't follow.
  const voice = document.createElement("p");
  voice.className = "vh";
  voice.setAttribute("role", "status");
  document.body.append(voice);
  const announce = (text) => setText(voice, text);
  // The screen may lack icons of a fresh document.
  const addIcons = (fresh) => {
    const sprite = document.querySelector(".sprite");
    for (const symbol of all(".sprite symbol", fresh)) {
      if (!document.getElementById(symbol.id)) sprite.append(symbol);
    }
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

  // Times in the person's zone, without the date of today. The title is in UTC.
  const lang = document.documentElement.lang === "en" ? "en-GB" : document.documentElement.lang;
  const showTimes = (from = document) => {
    for (const time of all("time[data-f]", from)) {
      const at = new Date(time.dateTime);
      if (isNaN(at)) continue;
      time.title = at.toISOString().replace("T", " ").replace(".000Z", " UTC");
      const now = new Date();
      const isToday = at.toDateString() === now.toDateString() && time.dataset.f !== "d";
      const isOtherYear = at.getFullYear() !== now.getFullYear();
      setText(time, localTime(at, time.dataset.f, lang, isOtherYear, isToday));
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
    for (const name of ["undo", "done", "count"]) address.searchParams.delete(name);
    history.replaceState(null, "", address);
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) setTimeout(dismiss, 10000);
  }

  // A select in a list saves at once when it is chosen by pointer. Arrow keys choose at each step: after a key, its
  // button appears and saves.
  for (const form of all("form[data-saves]")) {
    const button = form.querySelector("button");
    let isByPointer = false;
    button.hidden = true;
    form.addEventListener("pointerdown", () => (isByPointer = true));
    form.addEventListener("keydown", () => (isByPointer = false));
    form.addEventListener("change", () => {
      if (isByPointer) form.requestSubmit();
      else button.hidden = false;
    });
  }

  // A double click sends a form once.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post" || event.defaultPrevented) return;
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "1";
  });
  addEventListener("pageshow", () => {
    for (const form of all("form[data-sent]")) delete form.dataset.sent;
  });

  // Leaving a form with unsaved changes asks first. One that came back as an answer has what was typed before.
  let isTouched = !!document.querySelector("form[data-guard=typed]");
  document.addEventListener("input", (event) => {
    if (event.target.closest("form[data-guard]")) isTouched = true;
  });
  // Only its own buttons save a form: those of another one leave it.
  document.addEventListener("submit", (event) => {
    if (!event.defaultPrevented && event.target.matches("form[data-guard]")) isTouched = false;
  });
  addEventListener("beforeunload", (event) => {
    if (isTouched) event.preventDefault();
  });

  showTimes();
  showCopyButtons();
  const enhance = (part) => {
    showTimes(part);
    showCopyButtons(part);
    part.dispatchEvent(new CustomEvent("renewed", { bubbles: true }));
  };
  return { all, setText, announce, addIcons, closeMenus, enhance };
})();
