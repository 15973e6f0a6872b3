// Live screens: one stream a browser says which pages changed; each tab renews the parts that it shows.
(() => {
  "use strict";
  const { all, setText, enhance } = dashboard;
  const mark = document.getElementById("live");
  const notice = document.getElementById("lost");
  if (!mark || !window.EventSource) return;

  // Silence after which the stream counts as lost; the server sends a beat every 10 seconds (milliseconds).
  const LOST_AFTER = 15e3;
  // Longest delay of a renewal after a change, so that tabs don't ask at once (milliseconds).
  const SPREAD = 900;
  // Delay after a renewal or a stream that failed (milliseconds).
  const RETRY_AFTER = 5e3;
  // Interval of renewals without a change (milliseconds).
  const RENEW_EVERY = 300e3;
  // Message of a stream that was opened: changes may have been missed before.
  const OPENED = "*";

  let heardAt = Date.now();
  // Time at which the figures were those of now.
  let confirmedAt = Math.min(Date.parse(mark.querySelector("time").dateTime), Date.now());
  // Screens of the installation and of all pages change with any page.
  const [, , area, id] = location.pathname.split("/");
  const page = area === "pages" ? id : "";
  // A screen that answers a form has another address than its own.
  const address = document.querySelector("[data-address]")?.dataset.address ?? location.href;

  // A part that someone uses stays as it is, and is owed.
  const inUse = "details.pop[open],#floating,input:checked:not([data-all])";
  let isComplete = true;
  const isBusy = (part) => {
    const isUsed = part.contains(document.activeElement) || !!part.querySelector(inUse);
    if (isUsed) isComplete = false;
    return isUsed;
  };
  const keepGroups = (fresh, shown) => {
    const wasOpen = shown ? all("details.group", shown).map((group) => group.open) : [];
    all("details.group", fresh).forEach((group, at) => {
      group.open = wasOpen[at] ?? group.open;
    });
    enhance(fresh);
  };
  const showParts = liveParts("[data-part]", isBusy, keepGroups);
  const show = (fresh) => {
    // The screen below may lack icons of the fresh one.
    for (const symbol of all(".sprite symbol", fresh)) {
      if (!document.getElementById(symbol.id)) document.querySelector(".sprite").append(symbol);
    }
    const icon = fresh.querySelector("link[rel=icon]");
    if (icon) document.querySelector("link[rel=icon]").href = icon.href;
    isComplete = true;
    showParts(fresh);
    return isComplete;
  };

  // Changes that were heard of, and those that are shown: a renewal is owed until all are.
  let heard = 0;
  let shown = 0;
  let isLoading = false;
  let timer = 0;
  const isOwed = () => shown < heard;
  const renewWithin = (millis, spread = 0) => {
    clearTimeout(timer);
    timer = setTimeout(renew, millis + Math.random() * spread);
  };
  const renew = async () => {
    timer = 0;
    // A hidden tab renews when it is shown; the present request is followed by another.
    if (isLoading || document.hidden) return;
    isLoading = true;
    const upTo = heard;
    const startedAt = Date.now();
    try {
      const response = await fetch(address, { cache: "no-store", signal: AbortSignal.timeout?.(15000) });
      if (response.redirected) location.reload();
      const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
      if (response.ok && fresh.getElementById("live") && show(fresh)) {
        shown = upTo;
        confirmedAt = Math.max(confirmedAt, startedAt);
      }
    } catch {
      // Retried below.
    }
    isLoading = false;
    if (isOwed() && !timer) renewWithin(heard > upTo ? 0 : RETRY_AFTER, SPREAD);
  };
  const owe = () => {
    heard += 1;
    if (!document.hidden) renewWithin(0, SPREAD);
  };
  // Parts that someone used were left as they are.
  const retry = () => {
    if (isOwed()) renewWithin(0, SPREAD);
  };
  document.addEventListener("focusout", retry);
  document.addEventListener("toggle", retry, true);

  const age = (millis) => {
    const seconds = Math.max(0, Math.round(millis / 1000));
    return seconds < 90 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
  };
  let isLost = false;
  const update = () => {
    const now = Date.now();
    const wasLost = isLost;
    isLost = now - heardAt > LOST_AFTER;
    if (wasLost && !isLost) owe();
    mark.classList.toggle("on", !isLost);
    mark.classList.toggle("lost", isLost);
    if (!isLost && !isOwed()) confirmedAt = Math.max(confirmedAt, heardAt);
    setText(mark, isLost ? "Not live" : `Live, ${age(now - confirmedAt)} ago`);
    const at = new Date(confirmedAt).toLocaleTimeString("en-GB");
    const text = `Reconnecting. Figures are from ${at}, ${age(now - confirmedAt)} ago.`;
    // Announced once, not each second.
    if (isLost && !wasLost) notice.innerHTML = "<div class='notice slow'><p></p></div>";
    if (!isLost && wasLost) notice.textContent = "";
    if (isLost) notice.querySelector("p").textContent = text;
  };

  const channel = window.BroadcastChannel ? new BroadcastChannel("parallax") : null;
  const hear = (data) => {
    heardAt = Date.now();
    const changed = data.split(" ").filter(Boolean);
    if (changed.length && (!page || changed.includes(OPENED) || changed.includes(page))) owe();
  };
  if (channel) channel.onmessage = (event) => hear(event.data);

  // The tab with the lock holds the stream, and gives it up when it is hidden.
  let close = null;
  let isQueued = false;
  const hold = () =>
    new Promise((done) => {
      isQueued = false;
      if (document.hidden) {
        done();
        return;
      }
      const stream = new EventSource("/app/live");
      close = () => {
        stream.close();
        close = null;
        done();
      };
      const take = (data) => {
        hear(data);
        channel?.postMessage(data);
      };
      stream.onopen = () => take(OPENED);
      stream.onmessage = (event) => take(event.data);
      stream.addEventListener("beat", () => take(""));
      // The browser reconnects by itself, unless the answer was an error.
      stream.onerror = () => {
        if (stream.readyState !== EventSource.CLOSED) return;
        close?.();
        setTimeout(join, RETRY_AFTER);
      };
    });
  const join = () => {
    if (close || isQueued || document.hidden) return;
    isQueued = true;
    if (navigator.locks) navigator.locks.request("parallax-live", hold);
    else hold();
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      close?.();
      return;
    }
    heardAt = Date.now();
    join();
    owe();
  });
  join();
  update();
  setInterval(update, 1000);
  // Response times change without events.
  setInterval(() => {
    if (!document.hidden) owe();
  }, RENEW_EVERY);
})();
