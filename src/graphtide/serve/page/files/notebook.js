/** The views of the page in a notebook. The kernel sends the other modules, and answers requests. */

const PAUSE = 500;

/** Import a module from texts: each becomes an address of its own, in which those it imports are replaced. */
function importFrom(texts, name) {
  const urls = {};
  const resolve = (from, to) => new URL(to, `http://x/${from}`).pathname.slice(1);
  const urlOf = (path) => {
    if (!urls[path]) {
      const text = texts[path].replace(/from "(\.[^"]+)"/g, (_, to) => `from "${urlOf(resolve(path, to))}"`);
      urls[path] = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    }
    return urls[path];
  };
  return import(urlOf(name));
}

/** What `api.js` gives the page, over the messages of a widget. */
class KernelApi {
  at = null;
  #waiting = new Map();
  #number = 0;

  constructor(model) {
    this.model = model;
    model.on("msg:custom", (reply) => {
      const { resolve, reject } = this.#waiting.get(reply.id) ?? {};
      this.#waiting.delete(reply.id);
      if (reply.error) reject?.(Object.assign(new Error(reply.error.message), reply.error));
      else resolve?.(reply.found);
    });
  }

  #send(method, path, body) {
    this.#number += 1;
    const id = this.#number;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.model.send({ id, method, path, body });
    });
  }

  get = (path, parameters = {}) => this.#send("GET", `${path}?${new URLSearchParams(parameters)}`);
  post = (path, body) => this.#send("POST", path, body);
  remove = (path) => this.#send("DELETE", path);

  follow(path, onData, onError = () => {}) {
    let ended = false;
    let last = "";
    const look = async () => {
      if (ended) return;
      try {
        const found = await this.get(path);
        const text = JSON.stringify(found);
        if (!ended && text !== last) onData(found);
        last = text;
      } catch (error) {
        if (!ended) onError(error);
        return;
      }
      setTimeout(look, PAUSE);
    };
    look();
    return () => { ended = true; };
  }
}

async function render({ model, el }) {
  const root = el.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(model.get("style_sheet").replaceAll(":root", ":host").replace("min-height: 100vh", ""));
  root.adoptedStyleSheets = [sheet];
  const main = document.createElement("main");
  root.append(main);
  const texts = model.get("modules");
  const api = new KernelApi(model);
  const names = model.get("names");
  let end = () => {};

  async function show(kind, name) {
    end();
    main.replaceChildren();
    if (kind !== "overview") {
      const view = (await importFrom(texts, `views/${kind}.js`))[kind];
      end = view(main, api, name);
      return;
    }
    const { overview } = await importFrom(texts, "views/overview.js");
    end = overview(main, (draw) => api.follow("overview", (found) =>
      draw({ ...found, queries: found.queries.filter((each) => names === null || names.includes(each.name)) })));
  }

  main.addEventListener("click", (event) => {
    const chosen = event.target.closest("a[href^='#/']");
    if (!chosen) return;
    event.preventDefault();
    const [, kind, name] = chosen.getAttribute("href").split("/");
    show(kind, decodeURIComponent(name)).then(() => {
      const back = document.createElement("button");
      back.textContent = "Back";
      back.addEventListener("click", () => show("overview"));
      main.prepend(back);
    });
  });
  await show(model.get("kind"), names?.[0]);
  return () => end();
}

export default { render };
