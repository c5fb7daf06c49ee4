/** The page that the address asks for: `#/kind/name`. */

export const link = (kind, name) => `#/${kind}${name === undefined ? "" : `/${encodeURIComponent(name)}`}`;

/** @returns {{kind: string, name: string}} */
export function place() {
  const [, kind = "", name = ""] = location.hash.split("/");
  return { kind, name: decodeURIComponent(name) };
}

/**
 * Show the view of the address, and again when it changes. A view is `(root, api, name) => end`.
 * @param {Record<string, Function>} views
 */
export function route(root, views, api) {
  let end = () => {};
  let shown = null;
  function show() {
    if (location.hash && !location.hash.startsWith("#/")) return; // a place within the page
    end();
    const { kind, name } = place();
    const view = views[kind] ?? views[""];
    root.replaceChildren();
    root.scrollTop = 0;
    end = view(root, api, name) ?? (() => {});
    for (const each of document.querySelectorAll("a[href^='#/']")) {
      const here = each.getAttribute("href") === (location.hash || "#/");
      if (here) each.setAttribute("aria-current", "page");
      else each.removeAttribute("aria-current");
    }
    if (shown !== null && shown !== location.hash) root.focus({ preventScroll: true });
    shown = location.hash;
  }
  window.addEventListener("hashchange", show);
  show();
  return show;
}
