/** Requests to the server, and answers that go on: Server-Sent Events read with fetch. */

const FIRST_WAIT = 500;
const LONGEST_WAIT = 5000;

/** An error of the server, with a hint and a place if it has them. */
export class ApiError extends Error {
  constructor(error, status) {
    super(error.message);
    Object.assign(this, { hint: error.hint, line: error.line, column: error.column, status });
  }
}

/** The error that a reply tells: in the words of the API, or as a problem (RFC 9457). */
const problemOf = (found, status) =>
  new ApiError(found.error ?? { message: found.title ?? `the server says ${status}`, hint: found.hint }, status);

/** @param {...string} parts the parts of a path; names may hold anything */
export const path = (...parts) => parts.map(encodeURIComponent).join("/");

export class Api {
  /** @type {number | null} the transaction as of which everything is shown; null is now */
  at = null;

  constructor(base = "api/") {
    this.base = base;
    this.onstate = (_connected) => {};
    this.token = sessionStorage.getItem("graphtide-token");
  }

  get(where, parameters = {}) {
    return this.#send("GET", where, parameters);
  }

  post(where, body) {
    return this.#send("POST", where, {}, this.at === null ? body : { ...body, at: this.at });
  }

  remove(where) {
    return this.#send("DELETE", where, {});
  }

  async #send(method, where, parameters, body) {
    const response = await this.#fetch(method, where, parameters, body);
    const found = await response.json().catch(() => ({}));
    if (response.ok) return found;
    throw problemOf(found, response.status);
  }

  async #fetch(method, where, parameters, body, signal) {
    const given = new URLSearchParams(parameters);
    if (this.at !== null && body === undefined) given.set("at", String(this.at));
    const used = this.token;
    const headers = used ? { authorization: `Bearer ${used}` } : {};
    if (body !== undefined) headers["content-type"] = "application/json";
    const response = await fetch(`${this.base}${where}?${given}`, {
      method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body),
    });
    if (response.status !== 401) return response;
    if (used === this.token) { // another request may have asked meanwhile
      const token = window.prompt("This server asks for a token");
      if (!token) return response;
      this.token = token;
      sessionStorage.setItem("graphtide-token", token);
    }
    return this.#fetch(method, where, parameters, body, signal);
  }

  /**
   * Call back with an answer now and whenever it changes; of the past, once.
   * @returns {() => void} ends it
   */
  follow(where, onData, onError = (_error) => {}) {
    const ends = new AbortController();
    if (this.at !== null) {
      this.get(where).then((found) => ends.signal.aborted || onData(found), onError);
    } else {
      this.#follow(where, onData, onError, ends.signal);
    }
    return () => ends.abort();
  }

  async #follow(where, onData, onError, signal) {
    let wait = FIRST_WAIT;
    while (!signal.aborted) {
      try {
        const response = await this.#fetch("GET", `${where}/events`, {}, undefined, signal);
        if (!response.ok) {
          const found = await response.json().catch(() => ({}));
          if (!signal.aborted) onError(problemOf(found, response.status));
          if (response.status < 500) return;
        } else {
          this.onstate(true);
          wait = FIRST_WAIT;
          for await (const event of eventsOf(response.body)) {
            if (signal.aborted) return;
            if (event.name === "gone") return onError(new ApiError(event.data, 404));
            if (event.name === "message") onData(event.data);
          }
        }
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof TypeError)) throw error; // a TypeError is a lost connection
      }
      if (signal.aborted) return;
      this.onstate(false);
      await new Promise((resolve) => setTimeout(resolve, wait));
      wait = Math.min(2 * wait, LONGEST_WAIT);
    }
  }
}

/** The events of a stream of bytes. */
async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  while (true) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (waiting + value).split("\n\n");
    waiting = blocks.pop() ?? "";
    for (const block of blocks) {
      const lines = block.split("\n");
      const named = lines.find((line) => line.startsWith("event: "));
      const data = lines.filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
      if (data) yield { name: named ? named.slice(7) : "message", data: JSON.parse(data) };
    }
  }
}
