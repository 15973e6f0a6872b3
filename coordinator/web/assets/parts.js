// Live parts: elements with an id that a fresh version of the document replaces, adds and removes. `isBusy` keeps one
// that is in use, `onShown` gets a fresh one with the one that it replaced.
const liveParts = (selector, isBusy = () => false, onShown = () => {}) => {
  const partsOf = (from) => [...from.querySelectorAll(selector)];
  const find = (id) => document.getElementById(id);
  // Original HTML of each part, since scripts modify the displayed one.
  const originalHtml = new Map(partsOf(document).map((part) => [part.id, part.outerHTML]));

  // The headline is a live region, so its element is kept and only its text changes.
  const updateHeadline = (shown, fresh) => {
    shown.className = fresh.className;
    for (const part of shown.querySelectorAll("svg,p")) part.replaceWith(fresh.querySelector(part.localName) ?? "");
    const [title, freshTitle] = [shown, fresh].map((headline) => headline.querySelector("h2"));
    if (title.textContent !== freshTitle.textContent) title.textContent = freshTitle.textContent;
  };
  // A new part stands after the nearest element before it that is displayed, or first in its parent.
  const insert = (part, fresh) => {
    let before = part.previousElementSibling;
    while (before && !find(before.id)) before = before.previousElementSibling;
    if (before) find(before.id).after(fresh);
    else find(part.parentNode.id)?.prepend(fresh);
  };
  return (freshDocument) => {
    for (const part of partsOf(document)) {
      if (freshDocument.getElementById(part.id) || isBusy(part)) continue;
      part.remove();
      originalHtml.delete(part.id);
    }
    for (const part of partsOf(freshDocument)) {
      const shown = find(part.id);
      const html = part.outerHTML;
      if (shown && (originalHtml.get(part.id) === html || isBusy(shown))) continue;
      const fresh = part.cloneNode(true);
      if (!shown) insert(part, fresh);
      else if (part.id === "headline") updateHeadline(shown, fresh);
      else shown.replaceWith(fresh);
      originalHtml.set(part.id, html);
      onShown(fresh, shown);
    }
    document.title = freshDocument.title;
  };
};
