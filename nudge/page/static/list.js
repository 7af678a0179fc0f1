// Long lists, of which only a part is in the document; and questions of which only the newest counts.

import {html} from './vendor/lit-html.js';

/** Shows rows of one height, and has only those around the visible ones in the document. */
export class List {
  static most = 150; // rows in the document

  /** `row` renders an item, `more` fetches what comes after the last one, `update` renders the page. */
  constructor({height, row, more, update, label}) {
    Object.assign(this, {height, row, more, update, label, top: 0, room: 800, selected: -1});
  }

  render(items) {
    const around = Math.max(Math.floor((List.most - this.room / this.height) / 2), 5);
    const first = Math.max(Math.min(Math.floor(this.top / this.height) - around, items.length - 1), 0);
    const last = Math.min(first + List.most, items.length);
    return html`<div
      class="list"
      tabindex="0"
      role="list"
      aria-label=${this.label}
      @scroll=${(event) => this.scrolled(event.target, items)}
    >
      <div .style=${`height: ${first * this.height}px`}></div>
      ${items.slice(first, last).map((item, place) => this.#shown(item, first + place, items.length))}
      <div .style=${`height: ${(items.length - last) * this.height}px`}></div>
    </div>`;
  }

  #shown(item, index, total) {
    return html`<div
      role="listitem"
      class="row ${index === this.selected ? 'selected' : ''}"
      aria-setsize=${total}
      aria-posinset=${index + 1}
      .style=${`height: ${this.height}px`}
      data-index=${index}
    >
      ${this.row(item, index)}
    </div>`;
  }

  scrolled(element, items) {
    const moved = Math.abs(element.scrollTop - this.top) > this.height * 10;
    this.room = element.clientHeight;
    if (element.scrollTop + element.clientHeight > (items.length - 20) * this.height) this.more?.();
    if (moved) {
      this.top = element.scrollTop;
      this.update();
    }
  }

  /** Select the row that is so many rows further, show it, and give it the focus. */
  move(step, items) {
    if (!items.length) return;
    this.selected = Math.max(0, Math.min(items.length - 1, this.selected + step));
    const element = document.querySelector('.list');
    if (element) {
      const at = this.selected * this.height;
      if (at < element.scrollTop) element.scrollTop = at;
      const most = at + this.height - element.clientHeight;
      if (most > element.scrollTop) element.scrollTop = most;
      this.scrolled(element, items);
    }
    this.update();
    this.focus();
  }

  focus() {
    requestAnimationFrame(() => document.querySelector(`.row[data-index="${this.selected}"] a`)?.focus());
  }

  /** Go back to the top: the list is another one. */
  reset() {
    this.selected = -1;
    this.top = 0;
    const element = document.querySelector('.list');
    if (element) element.scrollTop = 0;
  }
}

/** Runs the newest of several questions: an answer that comes late is dropped. */
export class Newest {
  /** No answer counts any more. */
  cancel() {
    this.abort?.abort();
  }

  async ask(question) {
    this.cancel();
    const abort = (this.abort = new AbortController());
    try {
      const answer = await question(abort.signal);
      return abort.signal.aborted ? undefined : answer;
    } catch (error) {
      if (abort.signal.aborted) return undefined;
      throw error;
    }
  }
}
