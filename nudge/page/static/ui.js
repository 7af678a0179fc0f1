// What the views share: how text, times and numbers are shown, and small parts.

import {html, nothing, svg} from './vendor/lit-html.js';

// Text

const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\uffff]|[\ud800-\udfff](?![\udc00-\udfff])/g;

/** Stored text as it can be looked at: what would be invisible, or turn the text around, is spelled out. */
export function clean(text) {
  return String(text ?? '').replace(HIDDEN, (char) => {
    if (/[\ud800-\udbff]/.test(char)) return char;
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

export const line = (text) =>
  clean(
    String(text ?? '')
      .split('\n')
      .find((part) => part.trim()) || '',
  ).slice(0, 400);

/** The end of a path, which is what tells files apart. */
export const shorten = (path) => line(path).replace(/^.*\/(?=[^/]+\/[^/]+$)/, '…/');

export function value(content) {
  if (typeof content === 'string') return content;
  return content?.cmd ?? content?.abs ?? content?.body ?? JSON.stringify(content, null, 2);
}

// Numbers

export const number = (value) => (value ?? 0).toLocaleString('en');
export const count = (value, noun) => `${number(value)} ${noun}${value === 1 ? '' : 's'}`;

export function size(bytes) {
  const units = ['B', 'KB', 'MB', 'GB'];
  let unit = 0;
  while (bytes >= 1024 && unit < 3) [bytes, unit] = [bytes / 1024, unit + 1];
  return `${(bytes ?? 0).toLocaleString('en', {maximumFractionDigits: 1})} ${units[unit]}`;
}

// Times

const LENGTHS = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
];
const seconds = (time) => (typeof time === 'string' ? Date.parse(time) / 1000 : time);
const two = (value) => String(value).padStart(2, '0');

export function duration(length) {
  const [unit, one] = LENGTHS.find(([, least]) => length >= least) || ['s', 1];
  return `${Math.floor(length / one)}${unit}`;
}

/** The age of something: `now`, `40s`, `3d`. */
export function ago(time) {
  if (!time) return '';
  const age = Math.max(Date.now() / 1000 - seconds(time), 0);
  return age < 5 ? 'now' : duration(age);
}

export function clock(time) {
  const date = new Date(seconds(time) * 1000);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':');
}

export function exact(time) {
  if (!time) return '';
  const date = new Date(seconds(time) * 1000);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(time)}`;
}

/** The time of day of what happened today, the day of what did not. */
export function stamp(time) {
  const date = new Date(seconds(time) * 1000);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? clock(time) : date.toLocaleDateString('en', {day: 'numeric', month: 'short'});
}

export const when = (time) => html`<time title=${exact(time)}>${ago(time)}</time>`;

/** Date and age, for a table. */
export const dated = (time) => {
  const age = ago(time);
  return time ? html`${exact(time)} <span class="quiet">${age === 'now' ? 'just now' : `${age} ago`}</span>` : '';
};

// Parts

export const badge = (text, kind = '') => html`<span class="badge ${kind}">${clean(text)}</span>`;
export const typeBadge = (type) => badge(type.replaceAll('_', ' '), type === 'command_error' ? 'bad' : '');
export const KINDS = {hint: 'is-hint', fact: 'is-fact'};

/** A bar of a score between 0 and 1. */
export function bar(name, share, text) {
  const width = Math.max(0, Math.min(1, share)) * 100;
  return html`<div class="bar">
    <span>${name}</span>
    <svg viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label="${name} ${text}">
      <rect class="track" width="100" height="6" rx="1"></rect>
      ${svg`<rect class="fill" width=${width} height="6" rx="1"></rect>`}
    </svg>
    <span class="num">${text}</span>
  </div>`;
}

export const empty = (title, hint) =>
  html`<div class="empty">
    <strong>${title}</strong>
    <p>${hint}</p>
  </div>`;
export const reading = () => html`<p class="quiet wait">Reading…</p>`;

export function failure(error) {
  return error ? html`<p class="problem" role="alert">${clean(error.message)}</p>` : nothing;
}

/** Names with their values; what has none is left out. */
export function table(rows, kind = '') {
  const shown = rows.filter(([, content]) => content !== '' && content !== undefined && content !== null);
  return html`<table class="plain ${kind}">
    <tbody>
      ${shown.map(
        ([label, content]) =>
          html`<tr>
            <th scope="row">${label}</th>
            <td><bdi>${content}</bdi></td>
          </tr>`,
      )}
    </tbody>
  </table>`;
}

/** What is shown beside a list; it takes the focus when it opens, and `close` is an address or a function. */
export function panel(label, title, close, body) {
  const closer =
    typeof close === 'string'
      ? html`<a class="button quiet" href=${close} aria-label="Close" title="Close (Esc)">×</a>`
      : html`<button class="quiet" aria-label="Close" title="Close (Esc)" @click=${close}>×</button>`;
  return html`<section class="detail" tabindex="-1" aria-label=${label}>
    <div class="head">${title}${closer}</div>
    ${body}
  </section>`;
}

export const focusPanel = () =>
  requestAnimationFrame(() => document.querySelector('.panel .detail')?.focus({preventScroll: true}));

/** A choice of a filter, from the counts of a facet. */
export function facet(label, name, chosen, pairs, onPick) {
  const options = [...(pairs || [])];
  if (chosen && !options.some(([one]) => one === chosen)) options.push([chosen, 0]);
  return html`<label class="facet">
    <span>${label}</span>
    <select name=${name} @change=${(event) => onPick(event.target.value)}>
      <option value="" ?selected=${!chosen}>any</option>
      ${options.map(
        ([one, total]) =>
          html`<option value=${one} ?selected=${one === chosen}>
            ${clean(one) || 'none'}${total ? ` (${number(total)})` : ''}
          </option>`,
      )}
    </select>
  </label>`;
}

const PARTIAL = html`<small title="To count all of them takes more than a second">counts in part</small>`;

/** How many there are, beside the filters. */
export function total(value, isPartial) {
  return html`<span class="total" role="status">
    <span class="num">${value === null ? '' : html`<b>${number(value)}</b> found`}</span>
    ${isPartial ? PARTIAL : nothing}
  </span>`;
}
