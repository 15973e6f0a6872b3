// Form of a monitor, or of the first site: once its target is left, the test runs by itself, and again a second after
// each change.
(() => {
  "use strict";
  const { all, addIcons, enhance, postForFragments, setLabel, setText } = dashboard;
  const form = document.querySelector("form[data-test]");
  if (!form) return;

  // Time without a key after which a changed target is tested again (milliseconds).
  const DELAY = 1000;
  const names = form.dataset.test.split(" ");
  const targets = () => names.map((name) => form.elements[name]).filter(Boolean);
  const values = () => targets().map((field) => field.value.trim());
  // A stored monitor was tested when it was saved.
  const isStored = "loaded" in form.elements;
  let tested = isStored || document.querySelector("#test .state") ? values().join("\n") : "";
  let running = null;
  let timer = 0;

  const result = () => document.getElementById("test");
  const say = (text) => {
    const line = document.createElement("p");
    line.textContent = text;
    result().replaceChildren(...all("h2", result()), line);
  };
  const testButton = form.querySelector("[formaction$='/test']");
  // What fills in is not read out, only the result.
  const showProgress = (fresh) => {
    const section = fresh.getElementById("test");
    result().setAttribute("aria-live", "off");
    result().replaceChildren(...section.childNodes);
    setLabel(testButton, section.dataset.button);
  };
  const show = (fresh) => {
    const section = fresh.getElementById("test");
    if (!section) throw new Error("no result");
    addIcons(fresh);
    result().setAttribute("aria-live", "polite");
    const fault = fresh.querySelector(".fault");
    if (fault) {
      say(fault.textContent);
      return;
    }
    // The same element stays: screen readers announce what changes in it.
    result().replaceChildren(...section.childNodes);
    enhance(result());
    const from = fresh.getElementById("suggestion");
    const to = document.getElementById("suggestion");
    if (from && to) to.replaceChildren(...from.childNodes);
    const button = fresh.querySelector("form[data-test] .main-act");
    for (const it of all(".main-act,button.vh", form)) setText(it, button.textContent);
  };
  const run = async () => {
    clearTimeout(timer);
    const target = values();
    if (target.includes("") || target.join("\n") === tested) return;
    tested = target.join("\n");
    running?.abort();
    const own = new AbortController();
    running = own;
    say("Testing…");
    try {
      const body = new URLSearchParams(new FormData(form));
      // A test needs no password.
      body.delete("password");
      show(await postForFragments(`${form.action}/test`, body, showProgress, own.signal));
    } catch (error) {
      // A later test took its place.
      if (error.name !== "AbortError") say("The test could not run. Change the address to try again.");
    }
    if (running === own) setLabel(testButton, "Test");
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
  // A test by its button stays on the screen, too. Any other button sends the form: a test would only hold it up.
  form.addEventListener("submit", (event) => {
    clearTimeout(timer);
    if (event.submitter && event.submitter === testButton && !values().includes("")) {
      event.preventDefault();
      tested = "";
      run();
    } else running?.abort();
  });
  // The form came with a target.
  run();
})();
