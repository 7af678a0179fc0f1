// The frame of the page: signing in, the views and their addresses, keys, the stream, and what can be undone.

import {html, nothing, render} from './vendor/lit-html.js';
import {Refused, forgetSecret, get, signIn} from './api.js';
import {Stream} from './stream.js';
import {clean} from './ui.js';
import {now} from './now.js';
import {known} from './known.js';
import {told} from './told.js';
import {past} from './history.js';
import {health} from './health.js';

const VIEWS = [now, known, told, past, health];
const KEYS = [
  ['/', 'search'], ['j  k', 'next, previous'], ['Enter', 'open'], ['Esc', 'close'], ['x', 'choose (Known)'],
  ['n', 'new hint (Known)'], ['1 – 5', 'views'], ['?', 'these keys'],
];

const page = {
  view: now, online: true, isSignedOut: false, problem: null, toasts: [], isHelpOpen: false, status: null,
  theme: localStorage.getItem('nudge-theme') || 'auto',
};
const root = document.getElementById('app');
let isDue = false;

export function update() {
  if (isDue) return;
  isDue = true;
  queueMicrotask(() => {
    isDue = false;
    render(frame(), root);
  });
}

/** What views do with the page around them. */
export const host = {
  update,
  go(address) {
    location.hash = address;
  },
  /** Say what was done; `undo` takes it back. */
  say(text, undo) {
    const toast = {text, undo};
    page.toasts = [...page.toasts.slice(-2), toast];
    setTimeout(() => drop(toast), undo ? 15_000 : 5_000);
    update();
  },
  fail(error) {
    if (error instanceof Refused && error.status === 401) signedOut();
    else host.say(error.message || 'the server does not answer');
  },
  /** Run a change; an error is said. */
  async run(work) {
    try {
      return await work();
    } catch (error) {
      host.fail(error);
      return undefined;
    }
  },
  get status() {
    return page.status;
  },
};

function drop(toast) {
  page.toasts = page.toasts.filter((one) => one !== toast);
  update();
}

function signedOut() {
  forgetSecret();
  stream.stop();
  page.isSignedOut = true;
  update();
}

// The address

function route() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
  const [name, ...parts] = path.split('/').map(decodeURIComponent);
  const view = VIEWS.find((one) => one.name === name) || now;
  const isNew = view !== page.view || !view.isEntered;
  page.view = view;
  document.title = `${view.title} · Nudge`;
  view.enter(parts, new URLSearchParams(query || ''), isNew);
  view.isEntered = true;
  update();
}

// Frame

function frame() {
  document.documentElement.dataset.theme = page.theme;
  if (page.isSignedOut) return door();
  return html`
    <a class="skip" href="#main" @click=${skip}>Skip to the content</a>
    <header>
      <span class="brand"><img src="/page/icon.svg" alt="" width="20" height="20">Nudge</span>
      <nav aria-label="Views">${VIEWS.map((view) => html`<a href="#/${view.name}"
        aria-current=${view === page.view ? 'page' : 'false'}>${view.title}</a>`)}</nav>
      <span class="state" role="status">${page.online ? html`<i class="dot"></i>live` : html`<i class="dot off"></i>no server`}</span>
      <button class="quiet" title="Light, dark, or as the system" @click=${nextTheme}>${page.theme}</button>
      <button class="quiet" aria-label="Keys" title="Keys (?)" @click=${help}>?</button>
    </header>
    <main id="main" tabindex="-1"><h1 class="hidden">${page.view.title}</h1>${page.view.render()}</main>
    <div class="toasts" aria-live="polite">${page.toasts.map((toast) => html`<div class="toast"><span>${clean(toast.text)}</span>
      ${toast.undo ? html`<button @click=${() => undo(toast)}>Undo</button>` : nothing}
      <button class="quiet" aria-label="Close" @click=${() => drop(toast)}>×</button></div>`)}</div>
    ${page.isHelpOpen ? keys() : nothing}`;
}

function door() {
  return html`<main class="door"><img src="/page/icon.svg" alt="" width="40" height="40"><h1>Nudge</h1>
    ${page.problem ? html`<p class="problem" role="alert">${clean(page.problem)}</p>` : nothing}
    <p>This page shows what your coding agents know and are told. To get in, run in a terminal:</p>
    <p><code>nudge open</code></p>
    <p class="quiet">It opens this page with a code that works once. Over ssh: <code>nudge open --print</code></p></main>`;
}

function keys() {
  return html`<div class="shade" @click=${help}><section class="sheet" role="dialog" aria-modal="true" aria-label="Keys">
    <h2>Keys</h2><dl class="keys">${KEYS.map(([key, does]) => html`<div><dt>${key.split('  ').map((one) => html`<kbd>${one}</kbd> `)}</dt><dd>${does}</dd></div>`)}</dl>
    <button @click=${help}>Close</button></section></div>`;
}

function help() {
  page.isHelpOpen = !page.isHelpOpen;
  update();
}

function skip(event) {
  event.preventDefault();
  document.getElementById('main').focus();
}

function nextTheme() {
  const themes = ['auto', 'light', 'dark'];
  page.theme = themes[(themes.indexOf(page.theme) + 1) % themes.length];
  localStorage.setItem('nudge-theme', page.theme);
  update();
}

async function undo(toast) {
  drop(toast);
  await host.run(toast.undo);
}

// Keys

addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || page.isSignedOut) return;
  const isTyping = event.target.closest?.('input, textarea, select, [contenteditable]');
  if (event.key === 'Escape') {
    if (page.isHelpOpen) help();
    else if (isTyping) event.target.blur();
    else page.view.key?.('Escape');
    return;
  }
  if (isTyping) return;
  if (event.key === 'Enter' && event.target.closest?.('button, a, summary')) return;
  const place = '12345'.indexOf(event.key);
  if (event.key === '?') help();
  else if (event.key === '/') document.querySelector('input[type=search]')?.focus();
  else if (place >= 0 && event.key.length === 1) host.go(`/${VIEWS[place].name}`);
  else if (!page.view.key?.(event.key)) return;
  event.preventDefault();
});

// The stream

const stream = new Stream(
  (message) => {
    for (const view of VIEWS) view.notice?.(message, view === page.view);
    if (page.view.notice) update();
  },
  (online, status) => {
    if (status === 401) return signedOut();
    if (online && !page.online) loadStatus();
    page.online = online;
    update();
    return undefined;
  },
);
export const connections = () => stream.connects;

async function loadStatus() {
  page.status = await get('status').catch(() => page.status);
  update();
}

async function begin() {
  try {
    await signIn();
  } catch (error) {
    page.problem = error.message;
  }
  try {
    page.status = await get('status');
  } catch (error) {
    if (error.status === 401) return signedOut();
    page.problem = error.message;
  }
  for (const view of VIEWS) view.host = host;
  const first = await get('changes', {limit: 100}).catch(() => ({observations: [], told: [], at: {}}));
  stream.at = first.at;
  now.first(first);
  addEventListener('hashchange', route);
  route();
  stream.start();
  return undefined;
}

begin();
