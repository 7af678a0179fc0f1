// What the views share: how text, times and numbers are shown, lists that hold a part of their rows, toasts.

import {html, nothing, svg} from './vendor/lit-html.js';

// Text

const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\uffff]|[\ud800-\udfff](?![\udc00-\udfff])/g;

/** Stored text as it can be looked at: what would be invisible, or turn the text around, is spelled out. */
export function clean(text) {
  return String(text ?? '').replace(HIDDEN, (char) => {
    if (/[\ud800-\udbff]/.test(char)) return char;
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

export const line = (text) => clean(String(text ?? '').split('\n').find((part) => part.trim()) || '').slice(0, 400);

export function count(number, noun) {
  return `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`;
}

export const number = (value) => (value ?? 0).toLocaleString('en');

export function size(bytes) {
  const units = ['B', 'KB', 'MB', 'GB'];
  let unit = 0;
  while (bytes >= 1024 && unit < 3) [bytes, unit] = [bytes / 1024, unit + 1];
  return `${bytes.toLocaleString('en', {maximumFractionDigits: 1})} ${units[unit]}`;
}

const seconds = (time) => (typeof time === 'string' ? Date.parse(time) / 1000 : time);

export function ago(time) {
  if (!time) return '';
  const age = Math.max(Date.now() / 1000 - seconds(time), 0);
  for (const [unit, length] of [['d', 86400], ['h', 3600], ['m', 60]]) if (age >= length) return `${Math.floor(age / length)}${unit}`;
  return age < 5 ? 'now' : `${Math.floor(age)}s`;
}

export const exact = (time) => (time ? new Date(seconds(time) * 1000).toLocaleString() : '');
export const clock = (time) => (time ? new Date(seconds(time) * 1000).toLocaleTimeString([], {hour12: false}) : '');
export const when = (time) => html`<time title=${exact(time)}>${ago(time)}</time>`;

export function value(content) {
  if (typeof content === 'string') return content;
  return content?.cmd ?? content?.abs ?? content?.body ?? JSON.stringify(content, null, 2);
}

// Parts

export const badge = (text, kind = '') => html`<span class="badge ${kind}">${clean(text)}</span>`;

const FAILED = new Set(['command_error']);
export const typeBadge = (type) => badge(type.replaceAll('_', ' '), FAILED.has(type) ? 'bad' : '');

export const KINDS = {hint: 'is-hint', fact: 'is-fact'};

/** A bar of a score between 0 and 1. */
export function bar(name, share, text) {
  const width = Math.max(0, Math.min(1, share)) * 100;
  return html`<div class="bar"><span>${name}</span>
    <svg viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label="${name} ${text}">
      <rect class="track" width="100" height="6" rx="1"></rect>${svg`<rect class="fill" width=${width} height="6" rx="1"></rect>`}
    </svg><span class="num">${text}</span></div>`;
}

export const empty = (title, hint) => html`<div class="empty"><strong>${title}</strong><p>${hint}</p></div>`;

export function failure(error) {
  return error ? html`<p class="problem" role="alert">${clean(error.message)}</p>` : nothing;
}

/** A choice of a filter, from the counts of a facet. */
export function facet(label, name, chosen, pairs, onPick) {
  const options = [...(pairs || [])];
  if (chosen && !options.some(([one]) => one === chosen)) options.push([chosen, 0]);
  return html`<label class="facet"><span>${label}</span>
    <select name=${name} @change=${(event) => onPick(event.target.value)}>
      <option value="" ?selected=${!chosen}>any</option>
      ${options.map(([one, total]) => html`<option value=${one} ?selected=${one === chosen}>
        ${clean(one) || 'none'}${total ? ` (${number(total)})` : ''}</option>`)}
    </select></label>`;
}

// Lists

/** Shows rows of one height, and has only those around the visible ones in the document. */
export class List {
  constructor({height, row, more, update, label}) {
    Object.assign(this, {height, row, more, update, label, top: 0, room: 800, selected: -1});
  }

  static most = 150; // rows in the document

  render(items) {
    const around = Math.max(Math.floor((List.most - this.room / this.height) / 2), 5);
    const first = Math.max(Math.min(Math.floor(this.top / this.height) - around, items.length - 1), 0);
    const last = Math.min(first + List.most, items.length);
    return html`<div class="list" tabindex="0" role="list" aria-label=${this.label} @scroll=${(event) => this.scrolled(event.target, items)}>
      <div .style=${`height: ${first * this.height}px`}></div>
      ${items.slice(first, last).map((item, place) => {
        const index = first + place;
        return html`<div role="listitem" class="row ${index === this.selected ? 'selected' : ''}"
          aria-setsize=${items.length} aria-posinset=${index + 1} .style=${`height: ${this.height}px`} data-index=${index}>${this.row(item, index)}</div>`;
      })}
      <div .style=${`height: ${(items.length - last) * this.height}px`}></div></div>`;
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

  move(step, items) {
    if (!items.length) return;
    this.selected = Math.max(0, Math.min(items.length - 1, this.selected + step));
    const element = document.querySelector('.list');
    if (element) {
      const at = this.selected * this.height;
      if (at < element.scrollTop) element.scrollTop = at;
      if (at + this.height > element.scrollTop + element.clientHeight) element.scrollTop = at + this.height - element.clientHeight;
      this.scrolled(element, items);
    }
    this.update();
  }
}

/** Runs the newest of several questions: an answer that comes late is dropped. */
export class Newest {
  async ask(question) {
    this.abort?.abort();
    const abort = (this.abort = new AbortController());
    try {
      const answer = await question(abort.signal);
      return abort.signal.aborted ? undefined : answer;
    } catch (error) {
      if (error.name === 'AbortError') return undefined;
      throw error;
    }
  }
}
