// Form of a monitor: once its target is left, the test runs by itself, and again a second after each change.
(() => {
  "use strict";
  const { all, enhance, setText } = dashboard;
  const form = document.querySelector("form[data-test]");
  if (!form) return;

  // Time without a key after which a changed target is tested again (milliseconds).
  const DELAY = 1000;
  const names = form.dataset.test.split(" ");
  const targets = () => names.map((name) => form.elements[name]).filter(Boolean);
  const values = () => targets().map((field) => field.value.trim());
  const isNew = form.action.endsWith("/new");
  let tested = isNew && !document.querySelector("#test .state") ? "" : values().join("\n");
  let running = null;
  let timer = 0;

  const say = (text) => setText(document.querySelector("#test p"), text);
  const show = (fresh) => {
    const result = fresh.getElementById("test");
    if (!result) throw new Error("no result");
    const shown = document.getElementById("test");
    // The same element stays: screen readers announce what changes in it.
    shown.replaceChildren(...result.childNodes);
    enhance(shown);
    const from = fresh.getElementById("suggestion");
    const to = document.getElementById("suggestion");
    if (from && to) to.replaceChildren(...from.childNodes);
    const button = fresh.querySelector(".save .main-act");
    for (const it of all(".main-act,button.vh", form)) setText(it, button.textContent);
  };
  const run = async () => {
    clearTimeout(timer);
    const target = values();
    if (target.includes("") || target.join("\n") === tested) return;
    tested = target.join("\n");
    running?.abort();
    running = new AbortController();
    say("Testing…");
    try {
      const body = new URLSearchParams(new FormData(form));
      const response = await fetch(`${form.action}/test`, { method: "POST", body, signal: running.signal });
      show(new DOMParser().parseFromString(await response.text(), "text/html"));
    } catch (error) {
      // A later test took its place.
      if (error.name !== "AbortError") say("The test could not run. “Test” tries again.");
    }
  };

  form.addEventListener("change", (event) => {
    if (names.includes(event.target.name)) run();
  });
  form.addEventListener("input", (event) => {
    // The first time it waits until the field is left.
    if (!names.includes(event.target.name) || !running) return;
    clearTimeout(timer);
    timer = setTimeout(run, DELAY);
  });
  // The form is on its way: a test would only hold it up.
  form.addEventListener("submit", () => {
    clearTimeout(timer);
    running?.abort();
  });
  // The form came with a target.
  run();
})();
