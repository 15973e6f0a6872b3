// Shows a notice in the corner of a website during incidents, or when the status is unknown:
//   <script src="https://status.example/widget.js" async></script>
// Options: data-theme (light, dark), data-position (left), data-seconds (polling interval, default 60).
// Stores nothing in the browser, and shows nothing if the status page is unreachable.
(() => {
  "use strict";
  const script = document.currentScript;
  if (!script || !window.fetch || !Element.prototype.attachShadow) return;
  const pageUrl = new URL(script.src).href.replace(/\/widget\.js.*$/, "");
  const interval = Math.max(15, Number(script.dataset.seconds) || 60) * 1000;
  // The style sheet, filled in by the build.
  const style = STYLE;
  // Texts in the page's language, filled in by the server.
  const texts = WORDS;
  let region;
  let dismissed = "";
  let shown = "";

  const create = (name, text, properties) => {
    const element = Object.assign(document.createElement(name), properties);
    if (text) element.textContent = text;
    return element;
  };

  // Live regions must exist before their text, or screen readers ignore it.
  const createRegion = () => {
    const host = create("parallax-status");
    const shadow = host.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(style);
    shadow.adoptedStyleSheets = [sheet];
    const theme = ["light", "dark"].includes(script.dataset.theme) ? script.dataset.theme : "auto";
    const side = script.dataset.position === "left" ? "left" : "";
    region = create("div", "", { className: `${theme} ${side}` });
    region.setAttribute("role", "status");
    region.setAttribute("aria-live", "polite");
    shadow.append(region);
    document.body.append(host);
  };

  // The newest of the worst incidents (newest first); those without impact don't count.
  const ranks = ["minor", "major", "critical"];
  const worst = (incidents) => {
    const ofRank = (rank) => incidents.find((incident) => incident.impact === rank);
    return ranks.reduce((found, rank) => ofRank(rank) || found, undefined);
  };
  const currentOf = (indicator, incidents, windows) => {
    if (indicator === "maintenance") return windows.find((one) => one.status === "in_progress");
    return indicator !== "unknown" && worst(incidents);
  };

  const hide = () => {
    if (shown) region.replaceChildren();
    shown = "";
  };
  const notice = (indicator, title, summary) => {
    const box = create("section", "", { className: indicator });
    box.lang = texts.lang;
    box.setAttribute("aria-label", texts.label);
    const paragraph = create("p");
    const line = create("span");
    const link = create("a", texts.see, { href: pageUrl, target: "_blank", rel: "noopener" });
    line.append(summary, link);
    paragraph.append(create("strong", title), line);
    const onclick = () => {
      dismissed = shown;
      hide();
    };
    const close = create("button", "\u00d7", { type: "button", onclick });
    close.setAttribute("aria-label", texts.dismiss);
    box.append(paragraph, close);
    return box;
  };
  const show = ({ status, incidents = [], scheduled_maintenances: windows = [] }) => {
    const isUnknown = status.parallax_indicator === "unknown";
    const indicator = isUnknown ? "unknown" : String(status.indicator);
    const current = currentOf(indicator, incidents, windows);
    const description = texts[indicator] || status.description;
    const title = (current && current.name) || description;
    const key = indicator === "none" ? "" : `${indicator} ${title}`;
    if (!key || key === dismissed) {
      hide();
      if (!key) dismissed = "";
      return;
    }
    if (key === shown) return;
    shown = key;
    region.replaceChildren(notice(indicator, title, current ? `${description}${texts.stop} ` : ""));
  };

  const update = async () => {
    if (document.hidden) return;
    try {
      const options = { credentials: "omit", referrerPolicy: "no-referrer" };
      const response = await fetch(`${pageUrl}/api/v2/summary.json`, options);
      if (response.ok) show(await response.json());
    } catch {
      // Unreachable: show nothing.
    }
  };
  const start = () => {
    createRegion();
    update();
    setInterval(update, interval);
    document.addEventListener("visibilitychange", update);
  };
  if (document.body) start();
  else document.addEventListener("DOMContentLoaded", start);
})();
