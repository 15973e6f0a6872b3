// Live screens: one stream a browser says which pages changed; each tab renews the parts that it shows.
(() => {
  "use strict";
  const { all, setText, addIcons, enhance } = dashboard;
  const mark = document.getElementById("live");
  const notice = document.getElementById("lost");
  if (!mark || !window.EventSource) return;

  // Silence after which the stream counts as lost; the server sends a beat every 10 seconds (milliseconds).
  const LOST_AFTER = 15e3;
  // Failed renewals in a row after which the figures count as old.
  const LOST_FAILURES = 2;
  // Longest delay of a renewal after a change, so that tabs don't ask at once (milliseconds).
  const SPREAD = 900;
  // Delays after a renewal or a stream that failed: the first, which each further failure doubles, and the longest
  // (milliseconds).
  const RETRY_AFTER = 5e3;
  const LONGEST_RETRY = 300e3;
  const backoff = (failures) => Math.min(RETRY_AFTER * 2 ** (failures - 1), LONGEST_RETRY);
  // Delay after a renewal that left out a part in use, if nothing reports the end of its use (milliseconds).
  const RETRY_UNUSED = 30e3;
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

  // A part that someone uses stays as it is, and is owed: one with an open menu, a field with the focus or with another
  // value than it was drawn with, or a focused button. A link or a tick box with the focus is found again.
  const FOUND_AGAIN = "a[href],[type=checkbox]";
  const isChanged = (field) => {
    if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
    if (field.localName !== "select") return field.value !== field.defaultValue;
    const drawn = [...field.options].findIndex((option) => option.defaultSelected);
    return field.selectedIndex !== Math.max(0, drawn);
  };
  const hasChanges = (part) => all("input:not([data-all],[data-group]),textarea,select", part).some(isChanged);
  const isInUse = (part) => {
    const focused = part.contains(document.activeElement) && !document.activeElement.matches(FOUND_AGAIN);
    return focused || !!part.querySelector("details.pop[open],#floating,.reader.marked") || hasChanges(part);
  };
  let isComplete = true;
  const isBusy = (part) => {
    const isUsed = isInUse(part);
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
  // What has the focus and is replaced gives it to the one in its place.
  const nameOf = (it) => it.getAttribute("href") ?? (it.name ? `${it.name} ${it.value}` : it.ariaLabel);
  const keepFocus = (change) => {
    const focused = document.activeElement;
    const partId = focused?.matches(FOUND_AGAIN) && focused.closest("[data-part]")?.id;
    const alike = () =>
      all(FOUND_AGAIN, document.getElementById(partId) ?? focused).filter((it) => nameOf(it) === nameOf(focused));
    const place = partId ? alike().indexOf(focused) : -1;
    change();
    if (place >= 0 && !focused.isConnected) alike()[place]?.focus({ preventScroll: true });
  };
  // Counts and states beside the screen.
  const showFrame = (fresh) => {
    const [shown, entries] = [document, fresh].map((from) => all(".nav,.tab,summary.switch", from));
    if (shown.length !== entries.length) return;
    shown.forEach((entry, at) => {
      if (entry.innerHTML !== entries[at].innerHTML) entry.replaceChildren(...entries[at].cloneNode(true).childNodes);
    });
  };
  const showParts = liveParts("[data-part]", isBusy, keepGroups);
  // Areas that stand or fall with what they show: scripts work on them from the start of the screen on.
  const areas = (from) => all("[data-area]", from).map((area) => area.id).join();
  // Not a reload, which would send a form again whose answer is shown. Without a fragment it is another document.
  const reload = () => {
    const there = new URL(address, location.href);
    there.hash = "";
    location.replace(there);
  };
  const show = (fresh) => {
    if (areas(fresh) !== areas(document)) {
      if (!hasChanges(document.getElementById("main"))) reload();
      return false;
    }
    addIcons(fresh);
    const [icon, freshIcon] = [document, fresh].map((from) => from.querySelector("link[rel=icon]"));
    if (icon && freshIcon && icon.href !== freshIcon.href) icon.href = freshIcon.href;
    showFrame(fresh);
    isComplete = true;
    keepFocus(() => showParts(fresh));
    return isComplete;
  };

  // Changes that were heard of, and those that are shown: a renewal is owed until all are.
  let heard = 0;
  let shown = 0;
  let failures = 0;
  // Reason that the screen is not renewed any more.
  let ended = "";
  let isLoading = false;
  let timer = 0;
  const isOwed = () => shown < heard;
  const renewWithin = (millis, spread = 0) => {
    clearTimeout(timer);
    timer = setTimeout(renew, millis + Math.random() * spread);
  };
  const load = async () => {
    const response = await fetch(address, { cache: "no-store", signal: AbortSignal.timeout?.(15000) });
    // Signed out, most likely: what was typed stays.
    if (response.redirected) {
      ended = "This screen leads elsewhere now: you may be signed out.";
      if (!hasChanges(document)) reload();
    }
    if ([403, 404, 410].includes(response.status)) {
      ended = "This screen was removed, or you may no longer see it.";
    }
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    if (!ended && response.ok && fresh.getElementById("live")) return fresh;
    throw new Error("it is another page");
  };
  const renew = async () => {
    timer = 0;
    // A hidden tab renews when it is shown; the present request is followed by another.
    if (isLoading || ended || document.hidden) return;
    isLoading = true;
    const upTo = heard;
    const startedAt = Date.now();
    try {
      const fresh = await load();
      failures = 0;
      if (show(fresh)) {
        shown = upTo;
        confirmedAt = Math.max(confirmedAt, startedAt);
      }
    } catch {
      failures += 1;
    }
    isLoading = false;
    if (!isOwed() || timer) return;
    if (failures) renewWithin(backoff(failures), SPREAD);
    else if (heard > upTo) renewWithin(0, SPREAD);
    else renewWithin(RETRY_UNUSED, SPREAD);
  };
  const owe = () => {
    heard += 1;
    // After a failure the next try has its time already: changes don't hasten it.
    if (!document.hidden && !failures) renewWithin(0, SPREAD);
  };
  const renewAgain = () => {
    failures = 0;
    owe();
  };
  // Parts that someone used were left as they are.
  const retry = () => {
    if (isOwed() && !failures) renewWithin(0, SPREAD);
  };
  document.addEventListener("focusout", retry);
  document.addEventListener("change", retry);
  document.addEventListener("toggle", retry, true);

  const age = (millis) => {
    const seconds = Math.max(0, Math.round(millis / 1000));
    return seconds < 90 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
  };
  let isLost = false;
  const update = () => {
    const now = Date.now();
    const wasLost = isLost;
    isLost = !!ended || failures > LOST_FAILURES || now - heardAt > LOST_AFTER;
    if (wasLost && !isLost) renewAgain();
    mark.classList.toggle("on", !isLost);
    mark.classList.toggle("lost", isLost);
    if (!isLost && !isOwed()) confirmedAt = Math.max(confirmedAt, heardAt);
    setText(mark, isLost ? "Not live" : `Live, ${age(now - confirmedAt)} ago`);
    const at = new Date(confirmedAt).toLocaleTimeString("en-GB");
    const figures = `Figures are from ${at}, ${age(now - confirmedAt)} ago.`;
    const text = `${ended || "Reconnecting."} ${figures}`;
    // Announced once, not each second.
    if (isLost && !wasLost) notice.innerHTML = "<div class='notice slow'><p></p></div>";
    if (!isLost && wasLost) notice.textContent = "";
    if (isLost) setText(notice.querySelector("p"), text);
  };

  const channel = window.BroadcastChannel ? new BroadcastChannel("parallax") : null;
  const hear = (data) => {
    heardAt = Date.now();
    const changed = data.split(" ").filter(Boolean);
    // The stream is ours: the reason may be gone, such as a proxy's answer or another tab's sign-out.
    if (changed.includes(OPENED)) {
      ended = "";
      renewAgain();
    } else if (changed.length && (!page || changed.includes(page))) owe();
  };
  if (channel) channel.onmessage = (event) => hear(event.data);

  // The tab with the lock holds the stream, and gives it up when it is hidden.
  let close = null;
  let isQueued = false;
  let refusals = 0;
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
      stream.onopen = () => {
        refusals = 0;
        take(OPENED);
      };
      stream.onmessage = (event) => take(event.data);
      stream.addEventListener("beat", () => take(""));
      // The browser reconnects by itself, unless the answer was an error.
      stream.onerror = () => {
        if (stream.readyState !== EventSource.CLOSED) return;
        close?.();
        refusals += 1;
        setTimeout(join, backoff(refusals));
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
    ended = "";
    join();
    renewAgain();
  });
  join();
  update();
  setInterval(update, 1000);
  // Response times change without events.
  setInterval(() => {
    if (!document.hidden) owe();
  }, RENEW_EVERY);
})();
