// What a page can do beyond being read: keep itself new, speak the visitor's time, strips by arrow keys, a theme.
(() => {
  "use strict";
  const root = document.documentElement, body = document.body;
  const $ = (selector, from = document) => [...from.querySelectorAll(selector)];

  // The theme: the owner's, else the system's, until another is chosen.
  const own = root.dataset.theme;
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

  // Times in the visitor's zone.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const year = new Date().getFullYear();
  const ago = (millis) => {
    const seconds = Math.max(0, Math.round(millis / 1000));
    const [count, unit] = seconds < 90 ? [seconds, "second"] : seconds < 5400 ? [Math.round(seconds / 60), "minute"]
      : seconds < 129600 ? [Math.round(seconds / 3600), "hour"] : [Math.round(seconds / 86400), "day"];
    return new Intl.RelativeTimeFormat(root.lang).format(-count, unit);
  };
  // The visitor's clock may be wrong: ages go by the server's.
  let skew = 0;
  const times = (from, onPaper = false) => {
    for (const time of $("time[data-f]", from)) {
      const at = new Date(time.dateTime), shape = time.dataset.f;
      if (isNaN(at)) continue;
      if (!time.title) time.title = time.textContent;
      if (shape === "ago" && !onPaper) { time.textContent = ago(Date.now() - skew - at); continue; }
      // t: date and time; c: the time alone; d: the date alone.
      const options = shape === "c" ? {} : { day: "numeric", month: "short" };
      if (shape !== "c" && (onPaper || (shape === "t" && at.getFullYear() !== year))) options.year = "numeric";
      if (shape !== "d") Object.assign(options, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
      time.textContent = at.toLocaleString(root.lang, options);
    }
    const said = document.getElementById("zone");
    if (said && zone) said.textContent = said.dataset.own.replace("{0}", zone);
  };
  times(document);

  // Paper says no age: it is read later.
  addEventListener("beforeprint", () => times(document, true));
  addEventListener("afterprint", () => times(document));

  // A strip is one stop of the tab key; arrows move within it. Escape hides its words, until another day is looked at.
  const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -7, PageDown: 7, Home: -1000, End: 1000 };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { body.classList.add("quiet"); $("details.pop[open]").forEach((it) => { it.open = false; it.firstElementChild.focus(); }); return; }
    const strip = event.target.closest?.(".strip"), move = moves[event.key];
    if (!strip || !move || event.altKey || event.ctrlKey || event.metaKey) return;
    const days = $("a", strip).filter((day) => day.getClientRects().length);
    const at = days.indexOf(event.target.closest("a"));
    const next = days[Math.min(days.length - 1, Math.max(0, at + move))];
    if (!next) return;
    event.preventDefault();
    body.classList.remove("quiet");
    days[at].tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
  document.addEventListener("pointermove", () => body.classList.remove("quiet"), { passive: true });
  document.addEventListener("click", (event) => {
    for (const pop of $("details.pop[open]")) if (!pop.contains(event.target)) pop.open = false;
  });

  // What was folded or not as the page came, and what the visitor has opened or closed since, which stays so.
  const name = (it) => `${it.closest("[id]").id} ${it.className}`;
  const folds = () => $("details.more,details.group");
  const came = new Map(folds().map((it) => [name(it), it.open])), chose = new Map();

  // A day that is linked to is shown.
  const target = () => {
    const day = location.hash.startsWith("#d") && document.getElementById(location.hash.slice(1));
    const folded = day && day.closest("details");
    if (folded) { folded.open = true; day.scrollIntoView({ block: "center" }); }
  };
  addEventListener("hashchange", target);
  target();

  if (!("live" in body.dataset)) return;

  // The page as it is now takes the place of what it was; what the visitor opened, chose or stands on stays.
  let path = location.pathname + location.search, tag = "", good = Date.now(), busy = false, again = 0;
  // Where the visitor stands: the nearest element with an id, and the way from there.
  const place = (held) => {
    const near = held?.closest?.("main [id]");
    if (!near || held === near) return null;
    const way = held.matches(".strip a") ? `.strip a:nth-child(${[...held.parentNode.children].indexOf(held) + 1})`
      : held.matches("summary") ? `${held.parentNode.className.split(" ").map((it) => `.${it}`).join("")}>summary`
      : held.matches(".spans a") ? ".spans [aria-current]" : held.matches("a[href]") ? `a[href="${CSS.escape(held.getAttribute("href"))}"]` : null;
    return way && [near.id, way];
  };
  const swap = (fresh) => {
    for (const it of folds()) if (chose.has(name(it)) || it.open !== came.get(name(it))) chose.set(name(it), it.open);
    const held = document.activeElement, stood = place(held);
    const parts = (from) => $("main>[data-part]", from);
    for (const old of parts(document)) if (!fresh.getElementById(old.id)) old.remove();
    let before = null;
    for (const now of parts(fresh)) {
      const old = document.getElementById(now.id);
      if (!old) { if (before) before.after(now); else document.getElementById("main").prepend(now); before = now; continue; }
      before = old;
      // The headline is spoken where it changes, so it stays the element that it was.
      if (old.getAttribute("role") === "status") { old.className = now.className; if (old.innerHTML !== now.innerHTML) old.innerHTML = now.innerHTML; } else { old.replaceWith(now); before = now; }
    }
    document.title = fresh.title;
    for (const it of folds()) { came.set(name(it), it.open); it.open = chose.get(name(it)) ?? it.open; }
    if (stood && document.activeElement !== held) {
      const next = document.getElementById(stood[0])?.querySelector(stood[1]);
      if (next?.matches(".strip a")) { $("a", next.parentNode).forEach((it) => { it.tabIndex = -1; }); next.tabIndex = 0; }
      next?.focus({ preventScroll: true });
    }
    times(document);
  };
  const load = async () => {
    if (busy) return;
    busy = true;
    try {
      const asked = path;
      const got = await fetch(asked, { headers: tag ? { "If-None-Match": tag } : {}, cache: "no-cache" });
      if (asked !== path) again = setTimeout(load);
      else if (got.status === 200) {
        const date = Date.parse(got.headers.get("date"));
        if (date) skew = Date.now() - date;
        tag = got.headers.get("etag") || "";
        swap(new DOMParser().parseFromString(await got.text(), "text/html"));
      }
      if (got.ok || got.status === 304) { good = Date.now(); root.classList.remove("old"); }
    } catch { /* tried again below */ }
    busy = false;
  };
  // Another range, without leaving the page; where that fails, by leaving it.
  document.addEventListener("click", async (event) => {
    const link = event.target.closest?.(".spans a");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    const href = link.getAttribute("href");
    try {
      const got = await fetch(href);
      if (!got.ok) throw new Error();
      tag = got.headers.get("etag") || "";
      const fresh = new DOMParser().parseFromString(await got.text(), "text/html");
      history.replaceState(null, "", href);
      path = location.pathname + location.search;
      swap(fresh);
    } catch { location.href = href; }
  });
  // Whoever hears of a change comes within three seconds, not all in one.
  const soon = () => { clearTimeout(again); again = setTimeout(load, Math.random() * 3000); };
  let source, silent = 0;
  const listen = () => {
    source?.close();
    if (document.hidden || !window.EventSource) return;
    source = new EventSource(`${body.dataset.root}/events`);
    source.onmessage = soon;
    // After an interruption something may have been missed.
    source.onerror = () => { silent = 1; };
    source.onopen = () => { if (silent) { silent = 0; soon(); } };
  };
  listen();
  document.addEventListener("visibilitychange", () => { listen(); if (!document.hidden && Date.now() - good > 30000) soon(); });
  // Figures and ages change without events, and streams may fail: half a minute to a minute apart.
  const poll = () => setTimeout(async () => { if (!document.hidden) await load(); poll(); }, 30000 + Math.random() * 30000);
  poll();
  setInterval(() => {
    for (const time of $("time[data-f=ago]")) time.textContent = ago(Date.now() - skew - new Date(time.dateTime));
    // What can't be fetched any more is not called new.
    if (Date.now() - good > 180000 && !document.hidden && !root.classList.contains("old")) {
      root.classList.add("old");
      const words = document.querySelector("#headline p,.whole>.meta");
      if (words) words.textContent = body.dataset.renewed.replace("{0}", new Date(good).toLocaleTimeString(root.lang));
    }
  }, 1000);
})();
