// What a page and a frame have in common: each tells its age by the second, renews itself, and says so where it can't.
const renewal = (() => {
  "use strict";
  const root = document.documentElement, claim = document.getElementById("claim"), written = document.getElementById("written");
  const $ = (selector, from = document) => [...from.querySelectorAll(selector)];
  // What is written in a live region is read out: nothing is written twice.
  const write = (node, text) => { if (node.textContent !== text) node.textContent = text; };

  // English here is written as in Britain, by the service too.
  const lang = root.lang === "en" ? "en-GB" : root.lang;

  // An answer that a cache has kept for longer stands for a service that gives none.
  const AGED = 120e3;
  // What nobody has confirmed for so long is not called new.
  const UNRENEWED = 180e3;

  const ago = (millis) => {
    const seconds = Math.round(Math.abs(millis) / 1000);
    if (!seconds) return claim.dataset.now;
    const [count, unit] = seconds < 90 ? [seconds, "second"] : seconds < 5400 ? [Math.round(seconds / 60), "minute"]
      : seconds < 129600 ? [Math.round(seconds / 3600), "hour"] : [Math.round(seconds / 86400), "day"];
    return new Intl.RelativeTimeFormat(lang).format(millis < 0 ? count : -count, unit);
  };
  // The visitor's clock may be wrong: ages go by the server's.
  let skew = 0;
  const age = (time) => ago(Math.max(0, Date.now() - skew - new Date(time.dateTime)));
  const counted = (count, name) => count ? new Intl.NumberFormat(lang, { style: "unit", unit: name, unitDisplay: "short" }).format(count) : "";
  // How long until a window begins, in one round number, or is over, in two; nothing once that has come.
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

  // Each part as it came: scripts have changed what is shown since.
  const parts = (from) => $("main>[data-part]", from);
  const came = new Map(parts(document).map((part) => [part.id, part.outerHTML]));
  // The sentence of the headline is read out where it changes, so it stays the element that it was.
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

  // When what is shown was last known to be so, by the visitor's clock.
  let good = Math.min(Date.now(), Date.parse(written.dateTime));
  let path = location.pathname + location.search, tag = "", busy = false, missed = false, again = 0, around = (change) => change();
  const settle = () => {
    const since = new Date(good), isOld = Date.now() - good > UNRENEWED;
    const shape = since.toDateString() === new Date().toDateString() ? { hourCycle: "h23", timeStyle: "medium" } : { hourCycle: "h23", dateStyle: "medium", timeStyle: "short" };
    root.classList.toggle("old", isOld);
    write(claim, isOld ? claim.dataset.says.replace("{0}", since.toLocaleString(lang, shape)) : "");
  };
  // What a document is built of. What a browser's extensions add to this one does not count.
  const built = (from) => $("script[src],link[rel=stylesheet]", from).map((it) => it.getAttribute("src") ?? it.getAttribute("href"));
  const ours = built(document);
  const ask = async (asked, known) => {
    const headers = known ? { "If-None-Match": known } : {};
    const got = await fetch(asked, { headers, cache: "no-cache", signal: AbortSignal.timeout?.(20000) });
    if (!got.ok && got.status !== 304) throw new Error(got.statusText);
    const fresh = got.ok && new DOMParser().parseFromString(await got.text(), "text/html");
    // Whoever stands between may answer in the service's place.
    if (fresh && !fresh.getElementById("written")) throw new Error("it is another page");
    return [got, fresh];
  };
  const take = ([got, fresh], isChosen) => {
    const date = Date.parse(got.headers.get("date")), kept = (Number(got.headers.get("age")) || 0) * 1000;
    if (date) skew = Date.now() - date - kept;
    const at = date ? new Date(date).toISOString() : written.dateTime;
    // A cache that stands in may have an older one than is shown.
    if (kept > AGED && !isChosen && at <= written.dateTime) return;
    // A newer build has another style and another script.
    if (fresh && !built(fresh).every((it) => ours.includes(it))) { location.reload(); return; }
    around(() => {
      if (fresh) { put(fresh); tag = got.headers.get("etag") || ""; }
      written.dateTime = at;
      written.title = fresh ? fresh.getElementById("written").textContent : new Date(at).toUTCString();
    });
    good = isChosen ? Date.now() - kept : Math.max(good, Date.now() - kept);
  };
  const load = async () => {
    // What is under way may be of before the change that was told.
    if (busy) { missed = true; return; }
    busy = true;
    missed = false;
    const asked = path;
    try {
      const answer = await ask(asked, tag);
      if (asked === path) take(answer); else again = setTimeout(load);
    } catch { /* It is tried again. */ }
    busy = false;
    if (missed) soon();
    settle();
  };
  // Another document of the kind takes this one's place.
  const go = async (href) => {
    const answer = await ask(href, "");
    history.replaceState(null, "", href);
    path = location.pathname + location.search;
    take(answer, true);
    settle();
  };
  // Whoever hears of a change comes within three seconds, not all in one.
  const soon = () => { clearTimeout(again); again = setTimeout(load, Math.random() * 3000); };
  // Figures and ages change without events, and streams may fail: half a minute to a minute apart.
  const poll = () => setTimeout(async () => { if (!document.hidden) await load(); poll(); }, 30000 + Math.random() * 30000);
  // From now on; `around` is given each change, and makes it.
  const begin = (given = around) => {
    around = given;
    poll();
    setInterval(tick, 1000);
    document.addEventListener("visibilitychange", () => { if (!document.hidden && Date.now() - good > 30000) load(); });
    addEventListener("online", load);
    // What lay for longer than such a document is good for went out while another was drawn.
    const lain = Date.now() - good;
    if (lain > UNRENEWED) load(); else if (lain > document.body.dataset.live * 1000) soon();
  };
  return { $, lang, write, age, until, tick, go, soon, begin };
})();
