// The theme that the visitor chose, before anything is painted; the page's script offers the others. Where the browser keeps
// nothing, none was chosen.
(() => {
  const root = document.documentElement;
  root.dataset.own = root.dataset.theme || "";
  try {
    const chosen = localStorage.getItem("theme");
    if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  } catch { /* private mode */ }
})();
