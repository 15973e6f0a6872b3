// Lists: filters that apply at once, ticks with ranges, the bar for many, and the menu of a row.
(() => {
  "use strict";
  const { all, setText, closeMenus } = dashboard;

  const filters = document.querySelector("form.filters");
  if (filters) {
    filters.querySelector("[data-apply]").hidden = true;
    filters.addEventListener("change", (event) => {
      if (event.target.matches("[data-submit]")) filters.requestSubmit();
    });
    // Empty fields would only lengthen the address.
    filters.addEventListener("submit", () => {
      for (const field of filters.elements) if (!field.value) field.disabled = true;
    });
    // The browser's "back" may show the screen as it was left.
    addEventListener("pageshow", () => {
      for (const field of filters.elements) field.disabled = false;
    });
  }

  const bar = document.querySelector("[data-bulk]");
  const ticks = () => all("input.pick[name=id]");
  const ticked = () => ticks().filter((tick) => tick.checked);
  const updateBar = () => {
    const count = ticked().length;
    bar.hidden = !count;
    setText(bar.querySelector("[data-count]"), `${count} selected`);
    for (const tick of all("[data-all]")) {
      tick.checked = count > 0 && count === ticks().length;
      tick.indeterminate = count > 0 && !tick.checked;
    }
  };
  const setTicks = (list, isOn) => {
    for (const tick of list) tick.checked = isOn;
    updateBar();
  };

  // Shift ticks all rows from the last ticked one on.
  let last = null;
  const tickRange = (event) => {
    const list = ticks();
    const [from, to] = [list.indexOf(last), list.indexOf(event.target)].sort((one, other) => one - other);
    if (event.shiftKey && from >= 0) setTicks(list.slice(from, to + 1), event.target.checked);
    last = event.target;
    updateBar();
  };

  const showTicks = () => {
    for (const tick of all("[data-all]")) tick.hidden = false;
    for (const group of all("details.group")) {
      if (group.previousElementSibling?.matches(".group-tick")) continue;
      // Beside the summary, not in it: a summary is a control itself.
      const place = document.createElement("div");
      const tick = document.createElement("input");
      place.className = "group-tick";
      tick.type = "checkbox";
      tick.className = "pick";
      tick.dataset.group = "";
      tick.setAttribute("aria-label", `Select ${group.querySelector("h2").firstChild.textContent}`);
      place.append(tick);
      group.before(place);
    }
  };
  if (bar) {
    showTicks();
    bar.querySelector("[data-clear]").hidden = false;
    for (const button of all("[data-select]")) {
      button.hidden = false;
      button.onclick = () => document.body.classList.toggle("selecting");
    }
    bar.addEventListener("reset", () => setTicks(ticks(), false));
    document.addEventListener("click", (event) => {
      const tick = event.target;
      if (!tick.matches("input.pick")) return;
      if (tick.matches("[data-all]")) setTicks(ticks(), tick.checked);
      else if (tick.matches("[data-group]")) {
        const group = tick.parentElement.nextElementSibling;
        setTicks(all("input.pick[name=id]", group), tick.checked);
      } else tickRange(event);
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && ticked().length) setTicks(ticks(), false);
    });
    document.addEventListener("renewed", () => {
      showTicks();
      updateBar();
    });
    updateBar();
  }

  // Distance of a menu from the end of the window, for the bar and the tabs (pixels).
  const MENU_MARGIN = 80;

  // The menu of a row is made when it is opened, so that a long list stays small.
  const template = document.getElementById("row-menu");
  const openRowMenu = (link) => {
    closeMenus();
    const row = link.closest("li");
    const menu = template.content.firstElementChild.cloneNode(true);
    menu.id = "floating";
    for (const item of all("a,button", menu)) {
      for (const name of ["href", "formaction", "value"]) {
        const value = item.getAttribute(name);
        if (value) item.setAttribute(name, value.replace("ID", row.id));
      }
    }
    const marks = [link.dataset.menu, row.classList.contains("off") ? "off" : ""];
    for (const item of all("[data-not],[data-only]", menu)) {
      const isShown = item.dataset.only ? marks.includes(item.dataset.only) : !marks.includes(item.dataset.not);
      if (!isShown) item.remove();
    }
    link.after(menu);
    menu.classList.toggle("above", menu.getBoundingClientRect().bottom > innerHeight - MENU_MARGIN);
    menu.querySelector("a,button").focus();
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-menu]");
    if (!link || !template || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    if (link.nextElementSibling?.id === "floating") closeMenus();
    else openRowMenu(link);
  });
})();
