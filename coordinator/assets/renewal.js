// Live updates of pages and embeds: shows the age, refreshes the content, and warns when it can't.
const renewal = (() => {
  "use strict";
  const root = document.documentElement, claim = document.getElementById("claim"), written = document.getElementById("written");
  const $ = (selector, from = document) => [...from.querySelectorAll(selector)];
  // Screen readers announce changes of a live region: never write the same text again.
  const write = (node, text) => { if (node.textContent !== text) node.textContent = text; };

  // British date formats for English, as on the server.
  const lang = root.lang === "en" ? "en-GB" : root.lang;

  // A response that was cached for longer means that the service is unreachable.
  const AGED = 120e3;
  // Age after which the page is marked as out of date.
  const UNRENEWED = 180e3;

  const ago = (millis) => {
    const seconds = Math.round(Math.abs(millis) / 1000);
    if (!seconds) return claim.dataset.now;
    const [count, unit] = seconds < 90 ? [seconds, "second"] : seconds < 5400 ? [Math.round(seconds / 60), "minute"]
      : seconds < 129600 ? [Math.round(seconds / 3600), "hour"] : [Math.round(seconds / 86400), "day"];
    return new Intl.RelativeTimeFormat(lang).format(millis < 0 ? count : -count, unit);
  };
  // Ages use the server's clock, since the visitor's may be wrong.
  let skew = 0;
  const age = (time) => ago(Math.max(0, Date.now() - skew - new Date(time.dateTime)));
  const counted = (count, name) => count ? new Intl.NumberFormat(lang, { style: "unit", unit: name, unitDisplay: "short" }).format(count) : "";
  // Time until a window begins (one unit) or ends (two units); empty once it has passed.
  const until = (time) => {
    const left = new Date(time.dateTime) - Date.now() + skew, minutes = Math.ceil(left / 60e3), hours = Math.floor(minutes / 60), days = Math.floor(hours / 24), { says } = time.dataset;
    if (!(minutes > 0)) return "";
    if (!says) return ago(-left);
    const parts = days ? [counted(days, "day"), counted(hours % 24, "hour")] : [counted(hours, "hour"), counted(minutes % 60, "minute")];
    return says.replace("{0}", parts.join(" ").trim());
  };
  const tick = () => {
    for (const time of $("time[data-f=ago]")) write(time, age(time));
    for (const time of $("time[data-f=in]")) write(time, until(time));
  };

  // Original HTML of each part, since scripts modify the displayed one.
  const parts = (from) => $("main>[data-part]", from);
  const came = new Map(parts(document).map((part) => [part.id, part.outerHTML]));
  // The headline is a live region, so its element is kept and only its text changes.
  const speak = (old, now) => {
    old.className = now.className;
    for (const it of $("svg,p", old)) it.replaceWith(now.querySelector(it.localName) ?? "");
    write(old.querySelector("h2"), now.querySelector("h2").textContent);
  };
  const put = (fresh) => {
    for (const old of parts(document)) if (!fresh.getElementById(old.id)) { old.remove(); came.delete(old.id); }
    let before = claim;
    for (const now of parts(fresh)) {
      const old = document.getElementById(now.id), html = now.outerHTML, isSame = came.get(now.id) === html;
      if (!old) before.after(now);
      else if (!isSame) now.id === "headline" ? speak(old, now) : old.replaceWith(now);
      came.set(now.id, html);
      before = document.getElementById(now.id);
    }
    document.title = fresh.title;
  };

  // Time when the content was last confirmed, by the visitor's clock.
  let good = Math.min(Date.now(), Date.parse(written.dateTime));
  let path = location.pathname + location.search, tag = "", busy = false, missed = false, again = 0, around = (change) => change();
  const settle = () => {
    const since = new Date(good), isOld = Date.now() - good > UNRENEWED;
    const shape = since.toDateString() === new Date().toDateString() ? { hourCycle: "h23", timeStyle: "medium" } : { hourCycle: "h23", dateStyle: "medium", timeStyle: "short" };
    root.classList.toggle("old", isOld);
    write(claim, isOld ? claim.dataset.says.replace("{0}", since.toLocaleString(lang, shape)) : "");
  };
  // Assets of a document, without those added by browser extensions.
  const built = (from) => $("script[src],link[rel=stylesheet]", from).map((it) => it.getAttribute("src") ?? it.getAttribute("href"));
  const ours = built(document);
  const ask = async (asked, known) => {
    const headers = known ? { "If-None-Match": known } : {};
    const got = await fetch(asked, { headers, cache: "no-cache", signal: AbortSignal.timeout?.(20000) });
    if (!got.ok && got.status !== 304) throw new Error(got.statusText);
    const fresh = got.ok && new DOMParser().parseFromString(await got.text(), "text/html");
    // A proxy or captive portal may respond instead of the service.
    if (fresh && !fresh.getElementById("written")) throw new Error("it is another page");
    return [got, fresh];
  };
  const take = ([got, fresh], isChosen) => {
    const date = Date.parse(got.headers.get("date")), kept = (Number(got.headers.get("age")) || 0) * 1000;
    if (date) skew = Date.now() - date - kept;
    const at = date ? new Date(date).toISOString() : written.dateTime;
    // A cache may return an older version than the displayed one.
    if (kept > AGED && !isChosen && at <= written.dateTime) return;
    // A new release has other assets.
    if (fresh && !built(fresh).every((it) => ours.includes(it))) { location.reload(); return; }
    around(() => {
      if (fresh) { put(fresh); tag = got.headers.get("etag") || ""; }
      written.dateTime = at;
      written.title = fresh ? fresh.getElementById("written").textContent : new Date(at).toUTCString();
    });
    good = isChosen ? Date.now() - kept : Math.max(good, Date.now() - kept);
  };
  const load = async () => {
    // The current request may predate the change.
    if (busy) { missed = true; return; }
    busy = true;
    missed = false;
    const asked = path;
    try {
      const answer = await ask(asked, tag);
      if (asked === path) take(answer); else again = setTimeout(load);
    } catch { /* Retried later. */ }
    busy = false;
    if (missed) soon();
    settle();
  };
  // Replaces the content with another document of the same kind.
  const go = async (href) => {
    const answer = await ask(href, "");
    history.replaceState(null, "", href);
    path = location.pathname + location.search;
    take(answer, true);
    settle();
  };
  // Spreads requests after a change over three seconds.
  const soon = () => { clearTimeout(again); again = setTimeout(load, Math.random() * 3000); };
  // Polls every 30 to 60 seconds: some values change without events, and event streams may fail.
  const poll = () => setTimeout(async () => { if (!document.hidden) await load(); poll(); }, 30000 + Math.random() * 30000);
  // Starts live updates; `around` wraps each change.
  const begin = (given = around) => {
    around = given;
    poll();
    setInterval(tick, 1000);
    document.addEventListener("visibilitychange", () => { if (!document.hidden && Date.now() - good > 30000) load(); });
    addEventListener("online", load);
    // A document older than its lifetime was sent while a new one was being rendered.
    const lain = Date.now() - good;
    if (lain > UNRENEWED) load(); else if (lain > document.body.dataset.live * 1000) soon();
  };
  return { $, lang, write, age, until, tick, go, soon, begin };
})();
