// Live screens: one stream a browser tells which pages changed; each tab renews the parts that it shows.
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
  // Interval of renewals without a change (milliseconds).
  const RENEW_EVERY = 300e3;

  const loadedAt = Date.parse(mark.querySelector("time").dateTime);
  let heardAt = Date.now();
  let confirmedAt = Math.min(loadedAt, Date.now());
  const page = location.pathname.split("/")[3];

  // Parts as the server sent them: scripts change what is shown.
  const parts = (from) => all("[data-part]", from);
  const sent = new Map(parts(document).map((part) => [part.id, part.outerHTML]));
  const isBusy = (part) => part.querySelector("details.pop[open],#floating,input:checked:not([data-all])") ||
    part.contains(document.activeElement);
  const openGroups = (part) => all("details.group", part).map((group) => group.open);
  const replace = (shown, fresh) => {
    const groups = openGroups(shown);
    shown.replaceWith(fresh);
    all("details.group", fresh).forEach((group, at) => {
      if (groups.length > at) group.open = groups[at];
    });
    enhance(fresh);
  };
  const show = (fresh) => {
    for (const part of parts(fresh)) {
      const shown = document.getElementById(part.id);
      const html = part.outerHTML;
      if (!shown) {
        location.reload();
        return;
      }
      if (sent.get(part.id) === html || isBusy(shown)) continue;
      sent.set(part.id, html);
      replace(shown, part);
    }
    document.title = fresh.title;
    const icon = fresh.querySelector("link[rel=icon]");
    if (icon) document.querySelector("link[rel=icon]").href = icon.href;
  };

  let isLoading = false;
  let isWaiting = false;
  const renew = async () => {
    if (isLoading) {
      isWaiting = true;
      return;
    }
    isLoading = true;
    isWaiting = false;
    try {
      const response = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout?.(15000) });
      if (response.redirected) location.reload();
      const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
      if (response.ok && fresh.getElementById("live")) {
        show(fresh);
        confirmedAt = Date.now();
      }
    } catch {
      // The next change or the return of the stream tries again.
    }
    isLoading = false;
    if (isWaiting) renewSoon();
  };
  let timer = 0;
  const renewSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(renew, Math.random() * SPREAD);
  };

  const age = (millis) => {
    const seconds = Math.max(0, Math.round(millis / 1000));
    return seconds < 90 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
  };
  let isLost = false;
  const update = () => {
    const now = Date.now();
    const wasLost = isLost;
    isLost = now - heardAt > LOST_AFTER;
    mark.classList.toggle("on", !isLost);
    mark.classList.toggle("lost", isLost);
    if (!isLost) confirmedAt = Math.max(confirmedAt, heardAt);
    setText(mark, isLost ? "Not live" : `Live, ${age(now - confirmedAt)} ago`);
    const at = new Date(confirmedAt).toLocaleTimeString("en-GB");
    const text = `Reconnecting. Figures are from ${at}, ${age(now - confirmedAt)} ago.`;
    // Announced once, not each second.
    if (isLost && !wasLost) notice.innerHTML = "<div class='notice slow'><p></p></div>";
    if (!isLost && wasLost) notice.textContent = "";
    if (isLost) notice.querySelector("p").textContent = text;
    if (wasLost && !isLost) renewSoon();
  };

  const channel = window.BroadcastChannel ? new BroadcastChannel("parallax") : null;
  const hear = (data) => {
    heardAt = Date.now();
    const changed = data.split(" ").filter(Boolean);
    if (!changed.length || document.hidden) return;
    if (!page || changed.includes(page)) renewSoon();
  };
  if (channel) channel.onmessage = (event) => hear(event.data);

  // The tab with the lock holds the stream, and gives it up when it is hidden.
  let close = null;
  const hold = () =>
    new Promise((done) => {
      const stream = new EventSource("/app/live");
      close = () => {
        stream.close();
        close = null;
        done();
      };
      const take = (event) => {
        hear(event.data);
        channel?.postMessage(event.data);
      };
      stream.onmessage = take;
      stream.addEventListener("beat", () => take({ data: "" }));
      if (document.hidden) close();
    });
  const join = () => {
    if (close) return;
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
    renewSoon();
  });
  join();
  update();
  setInterval(update, 1000);
  // Response times change without events.
  setInterval(() => {
    if (!document.hidden) renewSoon();
  }, RENEW_EVERY);
})();
