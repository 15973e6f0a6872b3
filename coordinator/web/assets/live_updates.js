// Live updates of pages and embeds: shows the age, refreshes the content, and warns when it can't.
const liveUpdates = (() => {
  "use strict";
  const root = document.documentElement;
  const outdatedNotice = document.getElementById("claim");
  const written = document.getElementById("written");

  // A response that a cache kept for longer means that the service is unreachable (milliseconds).
  const MAX_CACHE_AGE = 120e3;
  // Age after which the page is marked as out of date (milliseconds).
  const OUTDATED_AFTER = 180e3;

  // British date formats for English, as on the server.
  const lang = root.lang === "en" ? "en-GB" : root.lang;

  const all = (selector, from = document) => [...from.querySelectorAll(selector)];

  // Screen readers announce changes of a live region: never write the same text again.
  const setText = (node, text) => {
    if (node.textContent !== text) node.textContent = text;
  };

  const roundedUnit = (seconds) => {
    if (seconds < 90) return [seconds, "second"];
    if (seconds < 5400) return [Math.round(seconds / 60), "minute"];
    if (seconds < 129600) return [Math.round(seconds / 3600), "hour"];
    return [Math.round(seconds / 86400), "day"];
  };
  const relativeTime = (millis) => {
    const seconds = Math.round(Math.abs(millis) / 1000);
    if (!seconds) return outdatedNotice.dataset.now;
    const [count, unit] = roundedUnit(seconds);
    return new Intl.RelativeTimeFormat(lang).format(millis < 0 ? count : -count, unit);
  };

  // Ages use the server's clock, since the visitor's may be wrong.
  let clockSkew = 0;
  const age = (time) => relativeTime(Math.max(0, Date.now() - clockSkew - new Date(time.dateTime)));

  const withUnit = (count, unit) => {
    if (!count) return "";
    return new Intl.NumberFormat(lang, { style: "unit", unit, unitDisplay: "short" }).format(count);
  };
  // Time until a window begins (one unit) or ends (two units); empty once it has passed.
  const timeUntil = (time) => {
    const left = new Date(time.dateTime) - Date.now() + clockSkew;
    const minutes = Math.ceil(left / 60e3);
    const hours = Math.floor(minutes / 60);
    const days = Math.floor(hours / 24);
    const template = time.dataset.says;
    if (!(minutes > 0)) return "";
    if (!template) return relativeTime(-left);
    const parts = days
      ? [withUnit(days, "day"), withUnit(hours % 24, "hour")]
      : [withUnit(hours, "hour"), withUnit(minutes % 60, "minute")];
    return template.replace("{0}", parts.join(" ").trim());
  };
  const updateTimes = () => {
    for (const time of all("time[data-f=ago]")) setText(time, age(time));
    for (const time of all("time[data-f=in]")) setText(time, timeUntil(time));
  };

  const replaceParts = liveParts("main>[data-part]");

  // Time when the content was last confirmed, by the visitor's clock.
  let confirmedAt = Math.min(Date.now(), Date.parse(written.dateTime));
  let path = location.pathname + location.search;
  let etag = "";
  let isLoading = false;
  let isChangedMeanwhile = false;
  let timer = 0;
  let aroundChange = (change) => change();

  const updateNotice = () => {
    const since = new Date(confirmedAt);
    const isOutdated = Date.now() - confirmedAt > OUTDATED_AFTER;
    const isToday = since.toDateString() === new Date().toDateString();
    const format = isToday
      ? { hourCycle: "h23", timeStyle: "medium" }
      : { hourCycle: "h23", dateStyle: "medium", timeStyle: "short" };
    root.classList.toggle("old", isOutdated);
    const text = outdatedNotice.dataset.says.replace("{0}", since.toLocaleString(lang, format));
    setText(outdatedNotice, isOutdated ? text : "");
  };

  // Assets of a document, without those added by browser extensions.
  const assetsOf = (from) => {
    const elements = all("script[src],link[rel=stylesheet]", from);
    return elements.map((element) => element.getAttribute("src") ?? element.getAttribute("href"));
  };
  const ownAssets = assetsOf(document);

  const request = async (url, knownEtag) => {
    const headers = knownEtag ? { "If-None-Match": knownEtag } : {};
    const response = await fetch(url, { headers, cache: "no-cache", signal: AbortSignal.timeout?.(20000) });
    if (!response.ok && response.status !== 304) throw new Error(response.statusText);
    const fresh = response.ok && new DOMParser().parseFromString(await response.text(), "text/html");
    // A proxy or captive portal may respond instead of the service.
    if (fresh && !fresh.getElementById("written")) throw new Error("it is another page");
    return [response, fresh];
  };
  const apply = ([response, fresh], isChosen) => {
    const date = Date.parse(response.headers.get("date"));
    const cacheAge = (Number(response.headers.get("age")) || 0) * 1000;
    if (date) clockSkew = Date.now() - date - cacheAge;
    const writtenAt = date ? new Date(date).toISOString() : written.dateTime;
    // A cache may return an older version than the displayed one.
    if (cacheAge > MAX_CACHE_AGE && !isChosen && writtenAt <= written.dateTime) return;
    // A new release has other assets.
    if (fresh && !assetsOf(fresh).every((asset) => ownAssets.includes(asset))) {
      location.reload();
      return;
    }
    aroundChange(() => {
      if (fresh) {
        replaceParts(fresh);
        etag = response.headers.get("etag") || "";
      }
      written.dateTime = writtenAt;
      written.title = fresh ? fresh.getElementById("written").textContent : new Date(writtenAt).toUTCString();
    });
    const generatedAt = Date.now() - cacheAge;
    confirmedAt = isChosen ? generatedAt : Math.max(confirmedAt, generatedAt);
  };

  const refresh = async () => {
    // The current request may predate the change.
    if (isLoading) {
      isChangedMeanwhile = true;
      return;
    }
    isLoading = true;
    isChangedMeanwhile = false;
    const requestedPath = path;
    try {
      const answer = await request(requestedPath, etag);
      if (requestedPath === path) apply(answer);
      else timer = setTimeout(refresh);
    } catch {
      // Retried later.
    }
    isLoading = false;
    if (isChangedMeanwhile) refreshSoon();
    updateNotice();
  };
  // Replaces the content with another document of the same kind.
  const openInPlace = async (href) => {
    const answer = await request(href, "");
    history.replaceState(null, "", href);
    path = location.pathname + location.search;
    apply(answer, true);
    updateNotice();
  };
  // Spreads requests after a change over three seconds.
  const refreshSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(refresh, Math.random() * 3000);
  };
  // Polls every 30 to 60 seconds: some values change without events, and event streams may fail.
  const poll = () => {
    const next = async () => {
      if (!document.hidden) await refresh();
      poll();
    };
    setTimeout(next, 30000 + Math.random() * 30000);
  };

  // Starts live updates; `around` wraps each change.
  const start = (around = aroundChange) => {
    aroundChange = around;
    poll();
    setInterval(updateTimes, 1000);
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && Date.now() - confirmedAt > 30000) refresh();
    });
    addEventListener("online", refresh);
    // A document older than its lifetime was sent while a new one was being rendered.
    const documentAge = Date.now() - confirmedAt;
    if (documentAge > OUTDATED_AFTER) refresh();
    else if (documentAge > document.body.dataset.live * 1000) refreshSoon();
  };

  return { all, lang, setText, age, timeUntil, updateTimes, openInPlace, refreshSoon, start };
})();
