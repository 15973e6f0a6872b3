// Progressive enhancement of the API reference: copy buttons, a search field for operations, and collapsed contents on
// narrow screens.
(() => {
  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  if (navigator.clipboard) {
    for (const block of all(".code")) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "Copy";
      button.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText(one("code", block).textContent);
          button.textContent = "Copied";
        } catch {
          button.textContent = "Not copied";
        }
        setTimeout(() => {
          button.textContent = "Copy";
        }, 2000);
      });
      block.append(button);
    }
  }

  const menu = one(".menu");
  const narrow = matchMedia("(max-width: 60em)");
  const fold = () => {
    menu.open = !narrow.matches;
  };
  fold();
  narrow.addEventListener("change", fold);
  menu.addEventListener("click", (event) => {
    if (narrow.matches && event.target.closest("a")) menu.open = false;
  });

  const find = one("#find");
  one(".find").hidden = false;
  find.addEventListener("input", () => {
    const wanted = find.value.trim().toLowerCase();
    for (const list of all(".operations")) {
      let shown = 0;
      for (const item of all("li", list)) {
        const id = one("a", item).hash.slice(1);
        const path = one(".request code", document.getElementById(id)).textContent;
        item.hidden = !`${item.textContent} ${id} ${path}`.toLowerCase().includes(wanted);
        shown += item.hidden ? 0 : 1;
      }
      list.hidden = list.previousElementSibling.hidden = shown === 0;
    }
  });
})();
