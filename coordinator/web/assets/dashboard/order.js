// Order of monitors: Alt with an arrow key moves the focused row, and the numbers follow.
(() => {
  "use strict";
  const list = document.querySelector("[data-reorder]");
  if (!list) return;

  const renumber = () => {
    for (const [at, row] of [...list.children].entries()) {
      const number = row.querySelector("[inputmode]");
      number.name = `at.${at + 1}`;
      number.value = at + 1;
    }
  };

  list.addEventListener("keydown", (event) => {
    const row = event.target.closest("li");
    const isUp = event.key === "ArrowUp";
    if (!row || !event.altKey || (!isUp && event.key !== "ArrowDown")) return;
    event.preventDefault();
    const other = isUp ? row.previousElementSibling : row.nextElementSibling;
    if (!other) return;
    if (isUp) other.before(row);
    else other.after(row);
    renumber();
    event.target.focus();
  });
})();
