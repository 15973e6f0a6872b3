// Keyboard: Ctrl K or / search, g and a letter go to a section, j, k, x and Enter in lists, ? lists the keys.
(() => {
  "use strict";
  const { all } = dashboard;
  if (!("keys" in document.body.dataset)) return;

  // Letters after g, by the text of the entry in the navigation.
  const sections = {
    o: "Overview",
    m: "Monitors",
    i: "Incidents",
    w: "Maintenance",
    a: "Alerts",
    p: "Status page",
    s: "Mesh",
  };
  const goTo = (name) => {
    const entry = all(".side a.nav").find((link) => link.textContent.trim().startsWith(name));
    if (entry) location.href = entry.href;
  };

  const rows = () => all("main li").filter((row) => row.offsetParent && row.querySelector("a"));
  const current = () => rows().findIndex((row) => row.contains(document.activeElement));
  const move = (step) => {
    const list = rows();
    const next = list[Math.min(list.length - 1, Math.max(0, current() + step))];
    next?.querySelector(".who a,a").focus();
  };
  const select = () => rows()[current()]?.querySelector("input.pick")?.click();

  const help = () => {
    const dialog = document.createElement("dialog");
    dialog.className = "dialog";
    dialog.setAttribute("aria-label", "Keyboard");
    const lines = [
      ["Ctrl K", "search"],
      ["/", "filter"],
      ["g o", "overview, m monitors, i incidents, w maintenance, a alerts, p page, s mesh"],
      ["j k", "next and previous row"],
      ["x", "select a row"],
      ["n", "new"],
      ["Esc", "close"],
    ];
    const title = document.createElement("h2");
    title.textContent = "Keyboard";
    dialog.append(title);
    for (const [key, text] of lines) {
      const line = document.createElement("p");
      const sign = document.createElement("kbd");
      sign.textContent = key;
      line.append(sign, ` ${text}`);
      dialog.append(line);
    }
    dialog.onclose = () => dialog.remove();
    document.body.append(dialog);
    dialog.showModal();
  };

  const isTyping = (node) => node.closest("input:not([type=checkbox]),select,textarea,[contenteditable]");
  const search = () => document.querySelector(".find").click();
  let prefix = "";
  const actions = {
    "/": () => (document.querySelector("[data-filter]") ?? document.querySelector(".find")).focus(),
    "?": help,
    j: () => move(1),
    k: () => move(-1),
    x: select,
    n: () => document.querySelector(".head a.main-act")?.click(),
  };
  // The main button decides what a form does: without it, an update of an incident would notify everybody.
  const submitForm = (form) => form?.querySelector("button.main-act")?.click();
  document.addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]")) return;
    const isSearch = event.key === "k" && (event.ctrlKey || event.metaKey);
    if (isSearch) {
      event.preventDefault();
      search();
    }
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      submitForm(event.target.closest("form"));
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const was = prefix;
    prefix = event.key === "g" ? "g" : "";
    const action = was === "g" ? sections[event.key] && (() => goTo(sections[event.key])) : actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
})();
