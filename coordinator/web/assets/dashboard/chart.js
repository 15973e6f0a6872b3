// Charts of response times: a line with the values of a time, by pointer and by arrow keys. A period that is dragged
// over, or marked by two clicks or with Shift, is opened as the same screen with that period in its address.
(() => {
  "use strict";
  const { all } = dashboard;
  // Movement after which a press is a drag (pixels), and the shortest period (milliseconds).
  const DRAG = 6;
  const SHORTEST = 300e3;
  const HINT = "Point at the chart or use the arrow keys to read values. Drag, or hold Shift, to zoom in.";
  const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e4, End: 1e4 };

  // What clears the line and the marks of each chart.
  const clears = new WeakMap();

  const make = (name, parent, className) => {
    const node = document.createElement(name);
    node.className = className;
    parent.append(node);
    return node;
  };
  const setUp = (plane) => {
    const figure = plane.closest("figure");
    const names = all("thead th", figure).slice(1).map((cell) => cell.textContent);
    const rows = all("tbody tr", figure);
    const readout = figure.querySelector(".readout");
    if (!rows.length || plane.querySelector(".reader")) return;
    const [from, to] = [plane.dataset.from, plane.dataset.to].map((time) => Date.parse(time));
    const width = (to - from) / rows.length;
    const reader = make("div", plane, "reader");
    const line = make("i", reader, "at");
    const zone = make("i", reader, "zone");
    let at = -1;
    let anchor = -1;
    // A period with both ends stays until the next click, so that its link can be reached.
    let isFixed = false;
    let press = null;

    const clamp = (index) => Math.max(0, Math.min(rows.length - 1, index));
    const indexAt = (event) => {
      const box = reader.getBoundingClientRect();
      return clamp(Math.floor(((event.clientX - box.left) / box.width) * rows.length));
    };
    const percent = (index) => (index / rows.length) * 100;
    const period = () => {
      let [first, last] = [Math.min(anchor, at), Math.max(anchor, at) + 1];
      while ((last - first) * width < SHORTEST && last - first < rows.length) {
        if (last < rows.length) last += 1;
        else first -= 1;
      }
      return [first, last];
    };
    const address = () => {
      const url = new URL(plane.dataset.chart, location.href);
      ["from", "to"].forEach((name, end) => {
        const time = new Date(Math.round(from + period()[end] * width));
        url.searchParams.set(name, `${time.toISOString().slice(0, 19)}Z`);
      });
      return url.href;
    };
    const isMarked = () => anchor >= 0 && anchor !== at;
    const timeOf = (index) => rows[index].querySelector("time").textContent;
    const deploys = () =>
      all("[data-at]", plane)
        .filter((mark) => Math.abs(mark.dataset.at - percent(at + 0.5)) <= percent(1))
        .map((mark) => `deploy ${mark.textContent}`);
    const show = () => {
      line.hidden = at < 0;
      // A live part with a mark is not renewed.
      reader.classList.toggle("marked", anchor >= 0);
      zone.hidden = !isMarked();
      readout.replaceChildren();
      if (at < 0) {
        readout.textContent = HINT;
        return;
      }
      line.style.left = `${percent(at + 0.5)}%`;
      const cells = all("td", rows[at]).map((cell, no) => `${names[no]} ${cell.textContent}`);
      const text = [...cells, ...deploys()];
      make("b", readout, "").textContent = timeOf(at);
      readout.append(` ${text.join(" · ")} `);
      reader.setAttribute("aria-valuenow", at);
      let spoken = `${timeOf(at)}: ${text.join(", ")}`;
      if (isMarked()) {
        const [first, last] = period();
        zone.style.left = `${percent(first)}%`;
        zone.style.width = `${percent(last) - percent(first)}%`;
        const link = make("a", readout, "");
        link.href = address();
        link.textContent = `Zoom to ${timeOf(first)} – ${timeOf(last - 1)}`;
        spoken += `. Enter zooms to ${timeOf(first)} to ${timeOf(last - 1)}`;
      }
      reader.setAttribute("aria-valuetext", spoken);
    };
    const read = (index) => {
      at = clamp(index);
      show();
    };
    const clear = () => {
      [at, anchor, isFixed, press] = [-1, -1, false, null];
      show();
    };
    clears.set(reader, clear);

    reader.tabIndex = 0;
    reader.setAttribute("role", "slider");
    reader.setAttribute("aria-label", "Response times by time. Shift with an arrow key marks a period to zoom to");
    reader.setAttribute("aria-valuemin", 0);
    reader.setAttribute("aria-valuemax", rows.length - 1);
    reader.setAttribute("aria-valuenow", 0);
    reader.setAttribute("aria-valuetext", timeOf(0));
    readout.hidden = false;
    show();

    // The focus is for the keyboard.
    reader.addEventListener("mousedown", (event) => event.preventDefault());
    reader.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      press = { x: event.clientX, index: indexAt(event), isDrag: false };
      reader.setPointerCapture(event.pointerId);
    });
    reader.addEventListener("pointermove", (event) => {
      if (press && Math.abs(event.clientX - press.x) > DRAG) {
        press.isDrag = true;
        [anchor, isFixed] = [press.index, false];
      }
      if (!isFixed) read(indexAt(event));
    });
    reader.addEventListener("pointerup", (event) => {
      if (!press) return;
      const { isDrag } = press;
      press = null;
      if (isDrag) {
        if (isMarked()) location.href = address();
        return;
      }
      // The first click marks a time, the second a period, the third begins again.
      const index = indexAt(event);
      if (anchor < 0 || isFixed) [anchor, isFixed] = [index, false];
      else isFixed = index !== anchor;
      read(index);
    });
    // The page scrolls instead.
    reader.addEventListener("pointercancel", clear);
    reader.addEventListener("pointerleave", () => {
      if (!press && anchor < 0 && reader !== document.activeElement) clear();
    });
    reader.addEventListener("keydown", (event) => {
      if (event.key === "Escape") clear();
      if (event.key === "Enter" && isMarked()) location.href = address();
      const step = steps[event.key];
      if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      if (!event.shiftKey) anchor = -1;
      else if (anchor < 0) anchor = Math.max(0, at);
      isFixed = event.shiftKey;
      read(at < 0 ? rows.length - 1 : at + step);
    });
    reader.addEventListener("focus", () => {
      if (at < 0 && reader.matches(":focus-visible")) read(rows.length - 1);
    });
  };
  // Marks go with a press elsewhere, and with Escape anywhere.
  const unmark = (pressed) => {
    for (const reader of all(".reader.marked")) if (!reader.closest("figure").contains(pressed)) clears.get(reader)();
  };
  document.addEventListener("pointerdown", (event) => unmark(event.target));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") unmark(null);
  });
  const setUpAll = () => all("[data-chart]").forEach(setUp);
  document.addEventListener("renewed", setUpAll);
  setUpAll();
})();
