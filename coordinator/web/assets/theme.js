// Applies the visitor's theme before the first paint; the page's script has the switch. Without local storage there is
// no chosen theme.
(() => {
  const root = document.documentElement;
  root.dataset.own = root.dataset.theme || "";
  try {
    const chosen = localStorage.getItem("theme");
    if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  } catch {
    // Private mode.
  }
})();
