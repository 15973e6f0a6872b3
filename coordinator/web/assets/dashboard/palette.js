// Palette: the search in a dialog, with the results of the search screen.
(() => {
  "use strict";
  const { all } = dashboard;
  const link = document.querySelector(".find");
  if (!link || !window.HTMLDialogElement) return;

  let dialog = null;
  let wanted = "";
  const hits = () => all("#hits a");
  const choose = (at) => {
    const list = hits();
    for (const hit of list) hit.removeAttribute("aria-selected");
    const next = list[Math.max(0, Math.min(list.length - 1, at))];
    next?.setAttribute("aria-selected", "true");
    next?.scrollIntoView({ block: "nearest" });
  };
  const chosen = () => hits().findIndex((hit) => hit.hasAttribute("aria-selected"));

  const find = async (text) => {
    wanted = text;
    const response = await fetch(`/app/search?q=${encodeURIComponent(text)}`);
    const found = new DOMParser().parseFromString(await response.text(), "text/html");
    const results = found.getElementById("results");
    // A later search may have answered first.
    if (wanted !== text || !dialog || !results) return;
    // The screen below may lack the icons of the results.
    const sprite = document.querySelector(".sprite");
    for (const symbol of all(".sprite symbol", found)) {
      if (!document.getElementById(symbol.id)) sprite.append(symbol);
    }
    document.getElementById("hits").replaceChildren(...results.childNodes);
    choose(0);
  };

  const open = () => {
    if (dialog) return;
    dialog = document.createElement("dialog");
    dialog.className = "palette";
    dialog.setAttribute("aria-label", "Search");
    const field = document.createElement("input");
    field.type = "search";
    field.setAttribute("aria-label", "Search monitors, pages and settings");
    field.placeholder = "Search monitors, pages and settings";
    const list = document.createElement("div");
    list.id = "hits";
    dialog.append(field, list);
    field.oninput = () => find(field.value);
    field.onkeydown = (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) {
        event.preventDefault();
        choose(chosen() + step);
      }
      if (event.key === "Enter") hits()[chosen()]?.click();
    };
    dialog.onclick = (event) => {
      if (event.target === dialog) dialog.close();
    };
    dialog.onclose = () => {
      dialog.remove();
      dialog = null;
    };
    document.body.append(dialog);
    dialog.showModal();
    field.focus();
    find("");
  };
  for (const opener of all(".find,.top a[href='/app/search']")) {
    opener.addEventListener("click", (event) => {
      event.preventDefault();
      open();
    });
  }
})();
