// Progressive enhancement of a page: live updates, local times, keyboard navigation of uptime bars, and a theme switch.
(() => {
  "use strict";
  const root = document.documentElement;
  const body = document.body;
  const { all, lang, setText } = liveUpdates;

  // Theme: the owner's or the system's, unless the visitor chose another.
  const ownersTheme = root.dataset.own ?? root.dataset.theme;
  const themeButton = document.getElementById("theme");
  const themes = ["", "light", "dark"];
  const labels = themeButton?.dataset || {};
  const themeNames = {
    "": ownersTheme ? labels.page : labels.system,
    light: labels.light,
    dark: labels.dark,
  };
  const storedTheme = () => {
    try {
      return localStorage.getItem("theme");
    } catch {
      return null;
    }
  };
  const storeTheme = (theme) => {
    try {
      if (theme) localStorage.setItem("theme", theme);
      else localStorage.removeItem("theme");
    } catch {
      // Private mode.
    }
  };
  const applyTheme = (theme) => {
    if (theme || ownersTheme) root.dataset.theme = theme || ownersTheme;
    else delete root.dataset.theme;
    if (themeButton) {
      themeButton.title = labels.label.replace("{0}", themeNames[theme]);
      themeButton.querySelector(".vh").textContent = themeButton.title;
    }
  };
  let chosenTheme = themes.includes(storedTheme()) ? storedTheme() : "";
  applyTheme(chosenTheme);
  if (themeButton) {
    themeButton.hidden = false;
    themeButton.onclick = () => {
      chosenTheme = themes[(themes.indexOf(chosenTheme) + 1) % themes.length];
      storeTheme(chosenTheme);
      applyTheme(chosenTheme);
    };
  }

  // Times in the visitor's time zone.
  const timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const showLocalTimes = (onPaper = false) => {
    for (const time of all("time[data-f]")) {
      const at = new Date(time.dateTime);
      const format = time.dataset.f;
      if (isNaN(at)) continue;
      if (format === "in") {
        setText(time, liveUpdates.timeUntil(time));
        continue;
      }
      if (!time.title) time.title = time.textContent;
      const isAge = format === "ago" && !onPaper;
      setText(time, isAge ? liveUpdates.age(time) : localTime(at, format, lang, onPaper));
    }
    const note = document.getElementById("zone");
    if (note && timeZone && timeZone !== note.dataset.zone) {
      setText(note, note.dataset.own.replace("{0}", timeZone));
    }
  };
  showLocalTimes();

  // Printed pages show times instead of ages.
  addEventListener("beforeprint", () => showLocalTimes(true));
  addEventListener("afterprint", () => showLocalTimes());

  // Touch has no hover: the first tap on a bar, or moving along the bars, shows its label; the next tap opens it.
  let labeledBar = null;
  let touch = null;
  const barOf = (target) => target.closest?.(".strip a");
  const showLabel = (bar) => {
    labeledBar?.classList.remove("shown");
    labeledBar = bar;
    bar?.classList.add("shown");
    body.classList.toggle("quiet", !!bar);
  };
  document.addEventListener("pointerdown", (event) => {
    const bar = barOf(event.target);
    const isSecondTap = !!bar && bar === labeledBar;
    if (labeledBar && !isSecondTap) showLabel(null);
    touch = null;
    if (!bar || event.pointerType !== "touch") return;
    const { clientX: x, clientY: y } = event;
    const { top, bottom } = bar.parentNode.getBoundingClientRect();
    // The label belongs to its bar and is much wider: moving over it must not select another bar.
    const isOnLabel = y < top || y > bottom;
    touch = { x, y, strip: bar.parentNode, isSecondTap, isOnLabel };
  });
  const moveTouch = (event) => {
    if (event.pointerType !== "touch") {
      showLabel(null);
      return;
    }
    if (!touch || touch.isOnLabel) return;
    const distance = Math.abs(event.clientX - touch.x);
    const isAlong = distance >= 8 && distance >= Math.abs(event.clientY - touch.y);
    if (!touch.isAlong && !isAlong) return;
    touch.isAlong = true;
    // An update may have replaced the bars.
    const strip = touch.strip.isConnected ? touch.strip : labeledBar?.parentNode;
    if (!strip) return;
    touch.strip = strip;
    const { top, height } = strip.getBoundingClientRect();
    const bar = document.elementFromPoint(event.clientX, top + height / 2)?.closest(".strip a");
    if (bar && bar !== labeledBar && bar.parentNode === strip) {
      touch.isSecondTap = false;
      showLabel(bar);
    }
  };
  document.addEventListener("pointermove", moveTouch, { passive: true });
  // The page scrolls instead.
  document.addEventListener("pointercancel", () => {
    touch = null;
    showLabel(null);
  });
  document.addEventListener("click", (event) => {
    // A click by keyboard always opens the bar.
    const bar = touch && event.detail > 0 && barOf(event.target);
    if (bar && !touch.isSecondTap) {
      event.preventDefault();
      showLabel(bar);
    }
    touch = null;
  });

  // The bars are one tab stop; arrow keys move within them. Escape hides the label until another bar is focused.
  const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -7, PageDown: 7, Home: -1000, End: 1000 };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      showLabel(null);
      body.classList.add("quiet");
      for (const panel of all("details.pop[open]")) {
        panel.open = false;
        panel.firstElementChild.focus();
      }
      return;
    }
    const strip = event.target.closest?.(".strip");
    const move = moves[event.key];
    if (!strip || !move || event.altKey || event.ctrlKey || event.metaKey) return;
    const bars = all("a", strip).filter((bar) => bar.getClientRects().length);
    const current = bars.indexOf(event.target.closest("a"));
    const next = bars[Math.min(bars.length - 1, Math.max(0, current + move))];
    if (!next) return;
    event.preventDefault();
    showLabel(null);
    bars[current].tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
  document.addEventListener("focusin", (event) => {
    if (!labeledBar && event.target.matches(".strip a")) body.classList.remove("quiet");
  });
  document.addEventListener("click", (event) => {
    for (const panel of all("details.pop[open]")) {
      if (!panel.contains(event.target)) panel.open = false;
    }
  });

  // Initial state of collapsible sections, and the visitor's changes, which survive updates.
  const sections = () => all("details.more,details.group");
  const keyOf = (section) => `${section.closest("[id]").id} ${section.className}`;
  const initiallyOpen = new Map(sections().map((section) => [keyOf(section), section.open]));
  const openByVisitor = new Map();

  // Expand a linked day.
  const openLinkedDay = () => {
    const day = location.hash.startsWith("#d") && document.getElementById(location.hash.slice(1));
    const section = day && day.closest("details");
    if (section) {
      section.open = true;
      day.scrollIntoView({ block: "center" });
    }
  };
  addEventListener("hashchange", openLinkedDay);
  openLinkedDay();

  // Copy buttons of snippets.
  const setUpCopyButton = (button) => {
    button.hidden = false;
    const snippet = button.previousElementSibling;
    const label = button.textContent;
    const showCopied = () => {
      button.textContent = button.dataset.copied;
      setTimeout(() => {
        button.textContent = label;
      }, 3000);
    };
    const select = () => getSelection().selectAllChildren(snippet);
    button.onclick = () => navigator.clipboard.writeText(snippet.textContent).then(showCopied, select);
  };
  if (navigator.clipboard) all("[data-copied]").forEach(setUpCopyButton);

  if (!("live" in body.dataset)) {
    setInterval(liveUpdates.updateTimes, 1000);
    return;
  }

  // Keep expanded sections, the selection and the focus across updates: an element is found again by its nearest
  // ancestor with an id, and a selector from there.
  const selectorOf = (element) => {
    const parent = element.parentNode;
    if (element.matches(".strip a")) return `.strip a:nth-child(${[...parent.children].indexOf(element) + 1})`;
    if (element.matches("summary")) return `.${parent.className.split(" ").join(".")}>summary`;
    if (element.matches(".spans a")) return ".spans [aria-current]";
    if (element.matches("a[href]")) return `a[href="${CSS.escape(element.getAttribute("href"))}"]`;
    return null;
  };
  const placeOf = (element) => {
    const ancestor = element?.closest?.("main [id]");
    if (!ancestor || element === ancestor) return null;
    const selector = selectorOf(element);
    return selector && [ancestor.id, selector];
  };
  const find = ([id, selector]) => document.getElementById(id)?.querySelector(selector);
  const restoreFocus = (element) => {
    if (element?.matches(".strip a")) {
      for (const bar of all("a", element.parentNode)) bar.tabIndex = -1;
      element.tabIndex = 0;
    }
    element?.focus({ preventScroll: true });
  };
  liveUpdates.start((change) => {
    for (const section of sections()) {
      const key = keyOf(section);
      if (openByVisitor.has(key) || section.open !== initiallyOpen.get(key)) openByVisitor.set(key, section.open);
    }
    const focused = document.activeElement;
    const focusedPlace = placeOf(focused);
    const labeledPlace = placeOf(labeledBar);
    change();
    for (const section of sections()) {
      initiallyOpen.set(keyOf(section), section.open);
      section.open = openByVisitor.get(keyOf(section)) ?? section.open;
    }
    if (labeledPlace && !labeledBar.isConnected) showLabel(find(labeledPlace));
    if (focusedPlace && document.activeElement !== focused) restoreFocus(find(focusedPlace));
    showLocalTimes();
  });

  // Load another range in place; on failure, navigate to it.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.(".spans a");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    const href = link.getAttribute("href");
    liveUpdates.openInPlace(href).catch(() => {
      location.href = href;
    });
  });

  let source;
  let isInterrupted = false;
  const listen = () => {
    source?.close();
    if (document.hidden || !window.EventSource) return;
    source = new EventSource(`${body.dataset.root}/events`);
    source.onmessage = liveUpdates.refreshSoon;
    // Events may have been missed during an interruption.
    source.onerror = () => {
      isInterrupted = true;
    };
    source.onopen = () => {
      if (isInterrupted) {
        isInterrupted = false;
        liveUpdates.refreshSoon();
      }
    };
  };
  listen();
  document.addEventListener("visibilitychange", listen);
})();
