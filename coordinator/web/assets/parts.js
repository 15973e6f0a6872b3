// Live parts: elements with an id that a fresh version of the document replaces, adds and removes. `isBusy` keeps one
// that is in use, `onShown` gets a fresh one with the one that it replaced.
const liveParts = (selector, isBusy = () => false, onShown = () => {}) => {
  const partsOf = (from) => [...from.querySelectorAll(selector)];
  const find = (id) => document.getElementById(id);
  const parsed = (html) => new DOMParser().parseFromString(html, "text/html").body.firstElementChild;
  // Hidden fields have another key each time, which is no change.
  const htmlOf = (part) => part.outerHTML.replace(/<input type="hidden"[^>]*>/g, "");
  // Original HTML of each part, since scripts modify the displayed one.
  const originalHtml = new Map(partsOf(document).map((part) => [part.id, htmlOf(part)]));

  // The headline is a live region, so its element is kept and only what differs changes. A part within it is renewed by
  // itself.
  const updateHeadline = (shown, fresh, previous) => {
    const own = (headline, tag) =>
      [...headline.querySelectorAll(tag)].filter((node) => node.closest("[data-part]") === headline);
    shown.className = fresh.className;
    own(shown, "svg")[0]?.replaceWith(...own(fresh, "svg").slice(0, 1));
    const [[title], [freshTitle]] = [own(shown, "h2"), own(fresh, "h2")];
    if (title.textContent !== freshTitle.textContent) title.textContent = freshTitle.textContent;
    const [before, after] = [own(previous, "p"), own(fresh, "p")];
    let last = title;
    own(shown, "p").forEach((text, at) => {
      if (!after[at]) text.remove();
      else if (before[at]?.outerHTML !== after[at].outerHTML) text.replaceWith(after[at]);
      else after[at] = text;
      last = after[at] ?? last;
    });
    last.after(...after.filter((text) => !shown.contains(text)));
  };
  // A new part stands after the nearest element before it that is displayed. Without one it is the last of its parent,
  // or the first if it is the first in the fresh version.
  const insert = (part, fresh) => {
    let before = part.previousElementSibling;
    while (before && !find(before.id)) before = before.previousElementSibling;
    if (before) find(before.id).after(fresh);
    else if (part.previousElementSibling) find(part.parentNode.id)?.append(fresh);
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
      const html = htmlOf(part);
      const previousHtml = originalHtml.get(part.id);
      // Nothing in a headline is replaced that someone could use.
      const isHeadline = part.id === "headline";
      if (shown && (previousHtml === html || (!isHeadline && isBusy(shown)))) continue;
      const fresh = part.cloneNode(true);
      originalHtml.set(part.id, html);
      if (shown && isHeadline) {
        updateHeadline(shown, fresh, parsed(previousHtml ?? html));
        onShown(shown, shown);
        continue;
      }
      if (shown) shown.replaceWith(fresh);
      else insert(part, fresh);
      onShown(fresh, shown);
    }
    document.title = freshDocument.title;
  };
};
