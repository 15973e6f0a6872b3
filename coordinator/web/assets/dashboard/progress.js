// Checks on request: the answer arrives in parts, one whenever a region answers, then the screen with the result.
(() => {
  "use strict";
  const { announce, addIcons, enhance, setText } = dashboard;
  // Media type of an answer in parts, and the end of a part.
  const MEDIA = "application/x-html-parts";
  const END = "\x1e";
  const parse = (html) => new DOMParser().parseFromString(html, "text/html");

  // Sends a form, passes each part on, and returns the screen.
  dashboard.postInParts = async (address, body, onPart, signal) => {
    const url = new URL(address);
    url.hash = "";
    url.searchParams.set("parts", "1");
    const response = await fetch(url, { method: "POST", body, signal });
    if (response.headers.get("content-type") !== MEDIA) return parse(await response.text());
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) throw new Error("the answer ended early");
      const parts = (rest + decoder.decode(value, { stream: true })).split(END);
      rest = parts.pop();
      for (const part of parts) {
        const fresh = parse(part);
        addIcons(fresh);
        if (fresh.querySelector("main")) return fresh;
        onPart(fresh);
      }
    }
  };
  // Text of a button without its icon.
  dashboard.setLabel = (button, text) => {
    const label = button?.lastChild;
    if (label && label.textContent !== text) label.textContent = text;
  };

  // Check now: the section of the result takes its place at once, and the rest of the screen stays.
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    const id = form.dataset.parts;
    if (event.defaultPrevented || !id || !document.getElementById(id)) return;
    event.preventDefault();
    const button = document.querySelector("[data-parts] button");
    const label = button.lastChild.textContent;
    const show = (fresh) => {
      const part = fresh.getElementById(id);
      const shown = document.getElementById(id);
      if (!part) throw new Error("it is another page");
      const hadFocus = shown.contains(document.activeElement);
      shown.replaceWith(part);
      enhance(part);
      if (!hadFocus) return;
      part.tabIndex = -1;
      (part.querySelector("button") ?? part).focus({ preventScroll: true });
    };
    const showPart = (fresh) => {
      const isFirst = document.getElementById(id).hidden;
      show(fresh);
      const part = document.getElementById(id);
      dashboard.setLabel(button, part.dataset.button);
      announce(part.querySelector(".meta").textContent);
      if (isFirst) part.scrollIntoView({ block: "nearest" });
    };
    button.setAttribute("aria-disabled", "true");
    dashboard.setLabel(button, "Checking…");
    try {
      show(await dashboard.postInParts(form.action, new URLSearchParams(new FormData(form)), showPart));
      announce("Checked.");
    } catch {
      const note = document.createElement("p");
      const section = document.getElementById(id);
      setText(note, "The check could not run. “Check now” tries again.");
      section.hidden = false;
      section.className = "card pad";
      section.replaceChildren(note);
      announce(note.textContent);
    }
    button.removeAttribute("aria-disabled");
    dashboard.setLabel(button, label);
    delete form.dataset.sent;
  });
})();
