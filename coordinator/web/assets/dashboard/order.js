// Order of monitors: buttons, Alt with an arrow key and a typed number move a row, and all numbers follow.
(() => {
  "use strict";
  const list = document.querySelector("[data-reorder]");
  if (!list) return;

  const rows = () => [...list.children];
  // A typed number that moved no row stays: the service says what is wrong with it.
  const renumber = () => {
    rows().forEach((row, at, all) => {
      const number = row.querySelector("[inputmode]");
      const isTyped = number.value.trim() !== number.name.slice("at.".length);
      number.name = `at.${at + 1}`;
      if (!isTyped) number.value = at + 1;
      row.querySelector("[name=up]").disabled = at === 0;
      row.querySelector("[name=down]").disabled = at === all.length - 1;
    });
  };
  // Moves a row to a place, from 0.
  const move = (row, to) => {
    const from = rows().indexOf(row);
    const other = rows()[to];
    if (!other || from === to) return;
    const focused = document.activeElement;
    if (to < from) other.before(row);
    else other.after(row);
    renumber();
    // A moved element loses the focus, and so does a button that is disabled.
    if (row.contains(focused)) (focused.disabled ? row.querySelector("button:enabled") : focused).focus();
    list.dispatchEvent(new Event("input", { bubbles: true }));
  };

  list.addEventListener("keydown", (event) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const row = event.target.closest("li");
    if (!row || !event.altKey || !step) return;
    event.preventDefault();
    move(row, rows().indexOf(row) + step);
  });
  list.addEventListener("click", (event) => {
    const button = event.target.closest("[name=up],[name=down]");
    if (!button) return;
    event.preventDefault();
    const row = button.closest("li");
    move(row, rows().indexOf(row) + (button.name === "up" ? -1 : 1));
  });
  // What is no position stays as typed: the service says so.
  list.addEventListener("change", (event) => {
    if (event.target.matches("[inputmode]")) move(event.target.closest("li"), Number(event.target.value) - 1);
  });
})();
