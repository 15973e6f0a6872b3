// Checks on request: a fragment arrives whenever a region answers, then the screen with the result.
(() => {
  "use strict";
  const { announce, addIcons, enhance, setText } = dashboard;
  // Media type of an answer in fragments, and the end of a fragment.
  const MEDIA = "application/x-html-fragments";
  const END = "\x1e";
  const parse = (html) => new DOMParser().parseFromString(html, "text/html");

  // Sends a form, passes each fragment on, and returns the screen.
  dashboard.postForFragments = async (address, body, onFragment, signal) => {
    const url = new URL(address);
    url.hash = "";
    url.searchParams.set("fragments", "1");
    const response = await fetch(url, { method: "POST", body, signal });
    if (response.headers.get("content-type") !== MEDIA) return parse(await response.text());
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) throw new Error("the answer ended early");
      const fragments = (rest + decoder.decode(value, { stream: true })).split(END);
      rest = fragments.pop();
      for (const fragment of fragments) {
        const fresh = parse(fragment);
        addIcons(fresh);
        if (fresh.querySelector("main")) return fresh;
        onFragment(fresh);
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
    const id = form.dataset.fragments;
    const section = () => document.getElementById(id);
    if (event.defaultPrevented || !id || !section()) return;
    event.preventDefault();
    const button = document.querySelector("[data-fragments] button");
    const label = button.lastChild.textContent;
    const bringIntoView = () => section().scrollIntoView({ block: "nearest" });
    const show = (fresh) => {
      const shown = section();
      const next = fresh.getElementById(id);
      if (!next) throw new Error("it is another page");
      const hadFocus = shown.contains(document.activeElement);
      shown.replaceWith(next);
      enhance(next);
      if (shown.hidden) bringIntoView();
      if (!hadFocus) return;
      next.tabIndex = -1;
      (next.querySelector("button") ?? next).focus({ preventScroll: true });
    };
    // What fills in is not read out, only the result.
    const showProgress = (fresh) => {
      show(fresh);
      dashboard.setLabel(button, section().dataset.button);
    };
    button.setAttribute("aria-disabled", "true");
    dashboard.setLabel(button, "Checking…");
    // The same result would not be announced again.
    announce("");
    try {
      show(await dashboard.postForFragments(form.action, new URLSearchParams(new FormData(form)), showProgress));
      announce(section().dataset.verdict);
    } catch {
      const note = document.createElement("p");
      setText(note, "The check could not run. “Check now” tries again.");
      section().hidden = false;
      section().className = "card pad";
      section().replaceChildren(note);
      announce(note.textContent);
    }
    bringIntoView();
    button.removeAttribute("aria-disabled");
    dashboard.setLabel(button, label);
    delete form.dataset.sent;
  });
})();
