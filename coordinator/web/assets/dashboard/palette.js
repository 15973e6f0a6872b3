// Palette: the search in a dialog, with the results of the search screen.
(() => {
  "use strict";
  const { all, addIcons } = dashboard;
  const link = document.querySelector(".find");
  if (!link || !window.HTMLDialogElement) return;

  // Delay of a search after the last key (milliseconds).
  const DELAY = 150;

  let dialog = null;
  let field = null;
  let wanted = "";
  // Text of the results that are displayed; and whether Enter waits for those of the typed one.
  let found = null;
  let isEntered = false;
  let timer = 0;
  const hits = () => all("#hits a");
  const choose = (at) => {
    const list = hits();
    for (const hit of list) hit.setAttribute("aria-selected", "false");
    const next = list[Math.max(0, Math.min(list.length - 1, at))];
    next?.setAttribute("aria-selected", "true");
    next?.scrollIntoView({ block: "nearest" });
    if (next) field.setAttribute("aria-activedescendant", next.id);
    else field.removeAttribute("aria-activedescendant");
  };
  const chosen = () => hits().findIndex((hit) => hit.getAttribute("aria-selected") === "true");

  // The field keeps the focus: screen readers follow the chosen option.
  const describe = (list) => {
    const options = hits();
    field.setAttribute("aria-expanded", String(options.length > 0));
    if (options.length) list.setAttribute("role", "listbox");
    else list.removeAttribute("role");
    for (const title of all("h2", list)) {
      title.setAttribute("role", "presentation");
      title.nextElementSibling.setAttribute("role", "group");
      title.nextElementSibling.setAttribute("aria-label", title.textContent);
    }
    for (const item of all("li", list)) item.setAttribute("role", "presentation");
    options.forEach((option, at) => {
      option.id = `hit-${at}`;
      option.tabIndex = -1;
      option.setAttribute("role", "option");
    });
  };
  const act = () => (hits()[chosen()] ?? hits()[0])?.click();
  const show = (text, answer) => {
    const results = answer.getElementById("results");
    if (!results) throw new Error("it is another page");
    addIcons(answer);
    const list = document.getElementById("hits");
    list.replaceChildren(...results.childNodes);
    describe(list);
    choose(0);
    found = text;
    if (isEntered) act();
  };
  const find = async (text) => {
    const address = `/app/search?q=${encodeURIComponent(text)}`;
    try {
      const response = await fetch(address);
      const answer = new DOMParser().parseFromString(await response.text(), "text/html");
      // A later search may have answered first.
      if (wanted === text && dialog) show(text, answer);
    } catch {
      if (wanted !== text || !dialog) return;
      isEntered = false;
      const note = document.createElement("p");
      note.className = "empty";
      note.textContent = "The search did not answer. Type again to retry.";
      document.getElementById("hits").replaceChildren(note);
      describe(document.getElementById("hits"));
      choose(0);
    }
  };
  const findSoon = () => {
    wanted = field.value;
    isEntered = false;
    clearTimeout(timer);
    timer = setTimeout(find, DELAY, wanted);
  };

  const open = () => {
    if (dialog) return;
    dialog = document.createElement("dialog");
    dialog.className = "palette";
    dialog.setAttribute("aria-label", "Search");
    field = document.createElement("input");
    field.type = "search";
    field.setAttribute("role", "combobox");
    field.setAttribute("aria-autocomplete", "list");
    field.setAttribute("aria-controls", "hits");
    field.setAttribute("aria-expanded", "false");
    field.setAttribute("aria-label", "Search monitors, pages and settings");
    field.placeholder = "Search monitors, pages and settings";
    const list = document.createElement("div");
    list.id = "hits";
    list.setAttribute("aria-label", "Results");
    dialog.append(field, list);
    field.oninput = findSoon;
    field.onkeydown = (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) {
        event.preventDefault();
        choose(chosen() + step);
      }
      // Enter also ends the composition of a word.
      if (event.key !== "Enter" || event.isComposing) return;
      isEntered = found !== wanted;
      if (!isEntered) act();
    };
    dialog.onclick = (event) => {
      if (event.target === dialog) dialog.close();
    };
    dialog.onclose = () => {
      clearTimeout(timer);
      dialog.remove();
      dialog = null;
    };
    document.body.append(dialog);
    dialog.showModal();
    field.focus();
    wanted = "";
    found = null;
    isEntered = false;
    find("");
  };
  for (const opener of all(".find,.top a[href='/app/search']")) {
    opener.addEventListener("click", (event) => {
      // With a key held, the link opens the search screen in a tab or window of its own.
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
      event.preventDefault();
      open();
    });
  }
})();
