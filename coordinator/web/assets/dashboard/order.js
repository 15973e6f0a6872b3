// Order of monitors: buttons, Alt with an arrow key, a typed number and dragging move a row, and all numbers follow.
(() => {
  "use strict";
  const { all, announce } = dashboard;
  const list = document.querySelector("[data-reorder]");
  if (!list) return;

  const rows = () => [...list.children];
  // A typed number that moved no row stays: the service says what is wrong with it.
  const renumber = () => {
    rows().forEach((row, at, list) => {
      const number = row.querySelector("[inputmode]");
      const isTyped = number.value.trim() !== number.name.slice("at.".length);
      number.name = `at.${at + 1}`;
      if (!isTyped) number.value = at + 1;
      row.querySelector("[name=up]").disabled = at === 0;
      row.querySelector("[name=down]").disabled = at === list.length - 1;
    });
  };
  const changed = (row) => {
    renumber();
    const [at, count] = [rows().indexOf(row) + 1, rows().length];
    announce(`${row.querySelector("b").textContent}: position ${at} of ${count}`);
    list.dispatchEvent(new Event("input", { bubbles: true }));
  };
  // Moves a row to a place, from 0.
  const move = (row, to) => {
    const from = rows().indexOf(row);
    const other = rows()[to];
    if (!other || from === to) return;
    const focused = document.activeElement;
    if (to < from) other.before(row);
    else other.after(row);
    changed(row);
    // A moved element loses the focus, and so does a button that is disabled.
    if (row.contains(focused)) (focused.disabled ? row.querySelector("button:enabled") : focused).focus();
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

  // Distance from an edge of the window at which it scrolls, clear of the bars there, and its step a frame (pixels).
  const EDGE = 110;
  const STEP = 12;
  // Movement after which a press is a drag (pixels): a press near an edge alone does not scroll.
  const DRAG = 6;
  // The row that is dragged, its place before, and the height of the pointer: where it was pressed, and now.
  let drag = null;
  const isAbove = (row, y) => {
    const { top, height } = row.getBoundingClientRect();
    return y > top + height / 2;
  };
  // The others make way: the dragged row stays in the document, and keeps pointer and focus.
  const follow = () => {
    const { row, y } = drag;
    while (row.nextElementSibling && isAbove(row.nextElementSibling, y)) row.before(row.nextElementSibling);
    while (row.previousElementSibling && !isAbove(row.previousElementSibling, y)) row.after(row.previousElementSibling);
  };
  const scroll = () => {
    if (!drag) return;
    const isLow = drag.y > innerHeight - EDGE;
    if (isLow || drag.y < EDGE) {
      scrollBy(0, isLow ? STEP : -STEP);
      follow();
    }
    requestAnimationFrame(scroll);
  };
  const drop = (isKept) => {
    if (!drag) return;
    const { row, from } = drag;
    drag = null;
    row.classList.remove("dragged");
    const to = rows().indexOf(row);
    if (to === from) return;
    if (isKept) {
      changed(row);
      return;
    }
    const other = rows()[from];
    if (from < to) other.before(row);
    else other.after(row);
    announce("Put back");
  };
  for (const grip of all("[data-grip]", list)) grip.hidden = false;
  list.addEventListener("pointerdown", (event) => {
    const grip = event.target.closest("[data-grip]");
    if (!grip || event.button || drag) return;
    // No text is selected.
    event.preventDefault();
    grip.setPointerCapture(event.pointerId);
    const row = grip.closest("li");
    row.classList.add("dragged");
    drag = { row, from: rows().indexOf(row), start: event.clientY, y: event.clientY, isMoved: false };
  });
  list.addEventListener("pointermove", (event) => {
    if (!drag) return;
    drag.y = event.clientY;
    if (!drag.isMoved && Math.abs(drag.y - drag.start) < DRAG) return;
    follow();
    if (!drag.isMoved) requestAnimationFrame(scroll);
    drag.isMoved = true;
  });
  list.addEventListener("pointerup", () => drop(true));
  // The system took the pointer, such as for a gesture of its own.
  list.addEventListener("lostpointercapture", () => drop(false));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") drop(false);
  });
})();
