// Shows a notice in the corner of a website during incidents, or when the status is unknown:
//   <script src="https://status.example/widget.js" async></script>
// Options: data-theme (light, dark), data-position (left), data-seconds (polling interval, default 60).
// Stores nothing in the browser, and shows nothing if the status page is unreachable.
(() => {
  "use strict";
  const me = document.currentScript;
  if (!me || !window.fetch || !Element.prototype.attachShadow) return;
  const home = new URL(me.src).href.replace(/\/widget\.js.*$/, "");
  const every = Math.max(15, Number(me.dataset.seconds) || 60) * 1000;
  const css = `:host{all:initial}
div{position:fixed;bottom:16px;right:16px;z-index:2147483000;box-sizing:border-box;max-width:min(360px,calc(100vw - 32px));
font:15px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;--bg:#fff;--ink:#15181d;--soft:#59606b;--line:#d5d7d4}
div.left{right:auto;left:16px}
section{display:flex;gap:12px;align-items:flex-start;background:var(--bg);color:var(--ink);border:1px solid var(--line);border-left:5px solid var(--c);
border-radius:10px;padding:12px 14px;box-shadow:0 10px 30px -10px #0006}
.unknown{--c:#868d96}.minor{--c:#c07e04}.major{--c:#d9642a}.critical{--c:#cf3f2b}.maintenance{--c:#6d8be0}
p{margin:0}strong{display:block;font-weight:650;overflow-wrap:anywhere}span{color:var(--soft)}
a{color:inherit;text-underline-offset:2px}
button{font:inherit;line-height:1;min-width:28px;min-height:28px;margin:-4px -6px 0 auto;border:0;border-radius:6px;background:none;color:var(--soft);cursor:pointer}
:focus-visible{outline:2px solid #6d8be0;outline-offset:2px}
.dark{--bg:#16191e;--ink:#eceef1;--soft:#a7aeb9;--line:#333943}
@media(prefers-color-scheme:dark){.auto{--bg:#16191e;--ink:#eceef1;--soft:#a7aeb9;--line:#333943}}`;
  // Texts in the page's language, filled in by the server.
  const says = WORDS;
  let place, dismissed = "", shown = "";

  const make = (name, text, more) => {
    const element = Object.assign(document.createElement(name), more);
    if (text) element.textContent = text;
    return element;
  };
  // Live regions must exist before their text, or screen readers ignore it.
  const settle = () => {
    const host = make("parallax-status");
    const shadow = host.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(css);
    shadow.adoptedStyleSheets = [sheet];
    const theme = ["light", "dark"].includes(me.dataset.theme) ? me.dataset.theme : "auto";
    place = make("div", "", { className: `${theme} ${me.dataset.position === "left" ? "left" : ""}` });
    place.setAttribute("role", "status");
    place.setAttribute("aria-live", "polite");
    shadow.append(place);
    document.body.append(host);
  };
  // The newest of the worst incidents (newest first); those without impact don't count.
  const ranks = ["minor", "major", "critical"];
  const worst = (incidents) => ranks.reduce((found, rank) => incidents.find((one) => one.impact === rank) || found, undefined);
  const show = ({ status, incidents = [], scheduled_maintenances: planned = [] }) => {
    const unknown = status.parallax_indicator === "unknown";
    const indicator = unknown ? "unknown" : String(status.indicator);
    const current = indicator === "maintenance" ? planned.find((one) => one.status === "in_progress") : !unknown && worst(incidents);
    const whole = says[indicator] || status.description;
    const title = (current && current.name) || whole;
    const said = indicator === "none" ? "" : `${indicator} ${title}`;
    if (said === dismissed || !said) { if (shown) place.replaceChildren(); shown = ""; if (!said) dismissed = ""; return; }
    if (said === shown) return;
    shown = said;
    const box = make("section", "", { className: indicator });
    box.lang = says.lang;
    box.setAttribute("aria-label", says.label);
    const words = make("p");
    const link = make("a", says.see, { href: home, target: "_blank", rel: "noopener" });
    const line = make("span");
    line.append(current ? `${whole}${says.stop} ` : "", link);
    words.append(make("strong", title), line);
    const close = make("button", "\u00d7", { type: "button", onclick: () => { dismissed = said; shown = ""; place.replaceChildren(); } });
    close.setAttribute("aria-label", says.dismiss);
    box.append(words, close);
    place.replaceChildren(box);
  };
  const look = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(`${home}/api/v2/summary.json`, { credentials: "omit", referrerPolicy: "no-referrer" });
      if (answer.ok) show(await answer.json());
    } catch { /* Unreachable: show nothing. */ }
  };
  const begin = () => { settle(); look(); setInterval(look, every); document.addEventListener("visibilitychange", look); };
  if (document.body) begin(); else document.addEventListener("DOMContentLoaded", begin);
})();
