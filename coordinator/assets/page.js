// Progressive enhancement of a page: live updates, local times, keyboard navigation of uptime bars, and a theme switch.
(() => {
  "use strict";
  const root = document.documentElement, body = document.body;
  const { $, lang, write } = renewal;

  // Theme: the owner's or the system's, unless the visitor chose another.
  const own = root.dataset.own ?? root.dataset.theme;
  const theme = document.getElementById("theme");
  const store = {
    get: (key) => { try { return localStorage.getItem(key); } catch { return null; } },
    set: (key, value) => { try { value ? localStorage.setItem(key, value) : localStorage.removeItem(key); } catch { /* private mode */ } },
  };
  const themes = ["", "light", "dark"], says = theme?.dataset || {};
  const names = { "": own ? says.page : says.system, light: says.light, dark: says.dark };
  const paint = (name) => {
    if (name || own) root.dataset.theme = name || own; else delete root.dataset.theme;
    if (theme) { theme.title = says.label.replace("{0}", names[name]); theme.querySelector(".vh").textContent = theme.title; }
  };
  let chosen = themes.includes(store.get("theme")) ? store.get("theme") : "";
  paint(chosen);
  if (theme) {
    theme.hidden = false;
    theme.onclick = () => {
      chosen = themes[(themes.indexOf(chosen) + 1) % themes.length];
      store.set("theme", chosen);
      paint(chosen);
    };
  }

  // Times in the visitor's time zone.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const year = new Date().getFullYear();
  const times = (from, onPaper = false) => {
    for (const time of $("time[data-f]", from)) {
      const at = new Date(time.dateTime), shape = time.dataset.f;
      if (isNaN(at)) continue;
      if (shape === "in") { write(time, renewal.until(time)); continue; }
      if (!time.title) time.title = time.textContent;
      if (shape === "ago" && !onPaper) { write(time, renewal.age(time)); continue; }
      // t: date and time; w: with the weekday; c: time only; d: date only.
      const options = shape === "c" ? {} : { day: "numeric", month: "short" };
      if (shape !== "c" && (onPaper || (shape !== "d" && at.getFullYear() !== year))) options.year = "numeric";
      if (shape === "w") options.weekday = "short";
      if (shape !== "d") Object.assign(options, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
      write(time, at.toLocaleString(lang, options));
    }
    const said = document.getElementById("zone");
    if (said && zone && zone !== said.dataset.zone) write(said, said.dataset.own.replace("{0}", zone));
  };
  times(document);

  // Printed pages show times instead of ages.
  addEventListener("beforeprint", () => times(document, true));
  addEventListener("afterprint", () => times(document));

  // Touch has no hover: the first tap on a bar, or moving along the bars, shows its label; the next tap opens it.
  let shown = null, touch = null;
  const show = (bar) => {
    shown?.classList.remove("shown");
    shown = bar;
    bar?.classList.add("shown");
    body.classList.toggle("quiet", !!bar);
  };
  document.addEventListener("pointerdown", (event) => {
    const bar = event.target.closest?.(".strip a"), isNext = !!bar && bar === shown;
    if (shown && !isNext) show(null);
    touch = null;
    if (!bar || event.pointerType !== "touch") return;
    const { clientX: x, clientY: y } = event, { top, bottom } = bar.parentNode.getBoundingClientRect();
    // The label belongs to its bar and is much wider: moving over it must not select another bar.
    touch = { x, y, strip: bar.parentNode, isNext, isOff: y < top || y > bottom };
  });
  document.addEventListener("pointermove", (event) => {
    if (event.pointerType !== "touch") { show(null); return; }
    if (!touch || touch.isOff) return;
    const along = Math.abs(event.clientX - touch.x);
    if (!touch.isAlong && (along < 8 || along < Math.abs(event.clientY - touch.y))) return;
    touch.isAlong = true;
    // An update may have replaced the bars.
    const strip = touch.strip.isConnected ? touch.strip : shown?.parentNode;
    if (!strip) return;
    touch.strip = strip;
    const { top, height } = strip.getBoundingClientRect();
    const bar = document.elementFromPoint(event.clientX, top + height / 2)?.closest(".strip a");
    if (bar && bar !== shown && bar.parentNode === strip) { touch.isNext = false; show(bar); }
  }, { passive: true });
  // The page scrolls instead.
  document.addEventListener("pointercancel", () => { touch = null; show(null); });
  document.addEventListener("click", (event) => {
    // A click by keyboard always opens the bar.
    const bar = touch && event.detail > 0 && event.target.closest?.(".strip a");
    if (bar && !touch.isNext) { event.preventDefault(); show(bar); }
    touch = null;
  });

  // The bars are one tab stop; arrow keys move within them. Escape hides the label until another bar is focused.
  const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -7, PageDown: 7, Home: -1000, End: 1000 };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { show(null); body.classList.add("quiet"); $("details.pop[open]").forEach((it) => { it.open = false; it.firstElementChild.focus(); }); return; }
    const strip = event.target.closest?.(".strip"), move = moves[event.key];
    if (!strip || !move || event.altKey || event.ctrlKey || event.metaKey) return;
    const days = $("a", strip).filter((day) => day.getClientRects().length);
    const at = days.indexOf(event.target.closest("a"));
    const next = days[Math.min(days.length - 1, Math.max(0, at + move))];
    if (!next) return;
    event.preventDefault();
    show(null);
    days[at].tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
  document.addEventListener("focusin", (event) => { if (!shown && event.target.matches(".strip a")) body.classList.remove("quiet"); });
  document.addEventListener("click", (event) => {
    for (const pop of $("details.pop[open]")) if (!pop.contains(event.target)) pop.open = false;
  });

  // Initial state of collapsible sections, and the visitor's changes, which survive updates.
  const name = (it) => `${it.closest("[id]").id} ${it.className}`;
  const folds = () => $("details.more,details.group");
  const came = new Map(folds().map((it) => [name(it), it.open])), chose = new Map();

  // Expand a linked day.
  const target = () => {
    const day = location.hash.startsWith("#d") && document.getElementById(location.hash.slice(1));
    const folded = day && day.closest("details");
    if (folded) { folded.open = true; day.scrollIntoView({ block: "center" }); }
  };
  addEventListener("hashchange", target);
  target();

  // Copy buttons of snippets.
  if (navigator.clipboard) for (const button of $("[data-copied]")) {
    button.hidden = false;
    const text = button.previousElementSibling, says = button.textContent;
    button.onclick = () => navigator.clipboard.writeText(text.textContent).then(() => {
      button.textContent = button.dataset.copied;
      setTimeout(() => { button.textContent = says; }, 3000);
    }, () => getSelection().selectAllChildren(text));
  }

  if (!("live" in body.dataset)) { setInterval(renewal.tick, 1000); return; }

  // Keep expanded sections, the selection and the focus across updates.
  // Focused element: the nearest ancestor with an id, and the path from there.
  const place = (held) => {
    const near = held?.closest?.("main [id]");
    if (!near || held === near) return null;
    const way = held.matches(".strip a") ? `.strip a:nth-child(${[...held.parentNode.children].indexOf(held) + 1})`
      : held.matches("summary") ? `${held.parentNode.className.split(" ").map((it) => `.${it}`).join("")}>summary`
      : held.matches(".spans a") ? ".spans [aria-current]" : held.matches("a[href]") ? `a[href="${CSS.escape(held.getAttribute("href"))}"]` : null;
    return way && [near.id, way];
  };
  const find = ([id, way]) => document.getElementById(id)?.querySelector(way);
  renewal.begin((change) => {
    for (const it of folds()) if (chose.has(name(it)) || it.open !== came.get(name(it))) chose.set(name(it), it.open);
    const held = document.activeElement, stood = place(held), told = place(shown);
    change();
    for (const it of folds()) { came.set(name(it), it.open); it.open = chose.get(name(it)) ?? it.open; }
    if (told && !shown.isConnected) show(find(told));
    if (stood && document.activeElement !== held) {
      const next = find(stood);
      if (next?.matches(".strip a")) { $("a", next.parentNode).forEach((it) => { it.tabIndex = -1; }); next.tabIndex = 0; }
      next?.focus({ preventScroll: true });
    }
    times(document);
  });
  // Load another range in place; on failure, navigate to it.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.(".spans a");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    const href = link.getAttribute("href");
    renewal.go(href).catch(() => { location.href = href; });
  });
  let source, silent = 0;
  const listen = () => {
    source?.close();
    if (document.hidden || !window.EventSource) return;
    source = new EventSource(`${body.dataset.root}/events`);
    source.onmessage = renewal.soon;
    // Events may have been missed during an interruption.
    source.onerror = () => { silent = 1; };
    source.onopen = () => { if (silent) { silent = 0; renewal.soon(); } };
  };
  listen();
  document.addEventListener("visibilitychange", listen);
})();
