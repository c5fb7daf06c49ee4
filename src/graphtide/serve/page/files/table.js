/** A table of any length: only the rows that are seen are asked for and drawn. */

import { h, ntriples, number, term } from "./dom.js";

const ROW = 30;
const BLOCK = 100;
const SPARE = 6;
const FADE = 900;

/** What tells a row from others. */
export const keyOf = (row) => Object.entries(row).map(([name, value]) => `${name} ${ntriples(value)}`).sort().join("\n");

export class Table {
  #blocks = new Map();
  #asked = new Map();
  #fresh = new Set();
  #generation = 0;
  #focused = 0;

  /**
   * @param {string[]} columns
   * @param {(offset: number, limit: number) => Promise<{rows: object[], total: number}>} load
   * @param {(row: object) => void} [onRow] called when a row is chosen
   */
  constructor(columns, load, onRow) {
    Object.assign(this, { columns, load, onRow, total: 0 });
    this.head = h("div", { class: "tr head", role: "row" },
      columns.map((name) => h("div", { class: "td", role: "columnheader" }, `?${name}`)));
    this.body = h("div", { class: "tbody", role: "rowgroup" });
    this.space = h("div", { class: "space" }, this.body);
    this.root = h("div", {
      class: "table", role: "table", "aria-label": "Rows of the answer", tabindex: 0,
      onscroll: () => this.#draw(), onkeydown: (event) => this.#key(event),
    }, this.head, this.space);
    this.root.style.setProperty("--columns", String(Math.max(columns.length, 1)));
    new ResizeObserver(() => this.#draw()).observe(this.root);
  }

  /** The rows may be others now. `added` come in green, `removed` go out red. */
  async refresh(total, added = [], removed = []) {
    const gone = new Set(removed.map(keyOf));
    added.forEach((row) => this.#fresh.add(keyOf(row)));
    const leaving = [...this.body.children].filter((line) => gone.has(line.dataset.key));
    if (leaving.length) {
      leaving.forEach((line) => line.classList.add("gone"));
      await new Promise((resolve) => setTimeout(resolve, FADE));
    }
    this.#generation += 1;
    this.#asked.clear();
    this.#resize(total);
    await this.#draw();
    setTimeout(() => this.#fresh.clear(), FADE);
  }

  #resize(total) {
    this.total = total;
    this.space.style.height = `${total * ROW}px`;
    this.root.setAttribute("aria-rowcount", String(total + 1));
    this.root.style.height = `${Math.max(2, total + 1) * ROW + 14}px`; // the style bounds it
  }

  async #draw() {
    const top = this.root.scrollTop;
    const first = Math.max(0, Math.floor(top / ROW) - SPARE);
    const last = Math.min(this.total, Math.ceil((top + this.root.clientHeight) / ROW) + SPARE);
    const wanted = [];
    for (let block = Math.floor(first / BLOCK); block * BLOCK < last; block += 1) wanted.push(block);
    this.#render(first, last);
    const generation = this.#generation;
    await Promise.all(wanted.map((block) => this.#block(block)));
    if (generation === this.#generation) this.#render(first, last);
  }

  #block(block) {
    if (!this.#asked.has(block)) {
      this.#asked.set(block, this.load(block * BLOCK, BLOCK).then(({ rows, total }) => {
        this.#blocks.set(block, rows);
        for (const old of this.#blocks.keys()) if (this.#blocks.size > 20 && old !== block) this.#blocks.delete(old);
        if (total !== this.total) this.#resize(total);
      }, () => this.#asked.delete(block)));
    }
    return this.#asked.get(block);
  }

  #render(first, last) {
    const lines = [];
    for (let at = first; at < Math.min(last, this.total); at += 1) {
      const row = this.#blocks.get(Math.floor(at / BLOCK))?.[at % BLOCK];
      lines.push(row ? this.#line(row, at) : h("div", { class: "tr", role: "row" }, h("div", { class: "td" }, "…")));
    }
    this.body.style.transform = `translateY(${first * ROW}px)`;
    const held = this.body.contains(document.activeElement);
    this.body.replaceChildren(...lines);
    if (held) this.#focus(this.#focused);
  }

  #line(row, at) {
    const key = keyOf(row);
    const choose = this.onRow ? () => this.onRow(row) : null;
    const line = h("div", {
      class: this.#fresh.has(key) ? "tr fresh" : "tr", role: "row", "aria-rowindex": at + 2,
      tabindex: this.onRow ? -1 : null, onclick: choose, onfocus: () => { this.#focused = at; },
      title: this.onRow ? `row ${number(at + 1)}: why is it here?` : null,
    }, this.columns.map((name) => h("div", { class: "td", role: "cell" }, term(row[name]))));
    line.dataset.key = key;
    line.dataset.at = String(at);
    return line;
  }

  #focus(at) {
    const line = this.body.querySelector(`[data-at="${at}"]`);
    if (line) line.focus({ preventScroll: true });
  }

  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    const inside = this.body.contains(document.activeElement);
    if (event.key === "Enter" && inside) document.activeElement.click();
    if (!step || !this.onRow) return;
    event.preventDefault();
    const next = Math.min(this.total - 1, Math.max(0, inside ? this.#focused + step : this.#focused));
    const top = next * ROW;
    const room = this.root.clientHeight - 2 * ROW;
    if (top < this.root.scrollTop) this.root.scrollTop = top;
    else if (top > this.root.scrollTop + room) this.root.scrollTop = top - room;
    this.#focused = next;
    this.#draw().then(() => this.#focus(next));
  }
}
