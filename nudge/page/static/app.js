// The frame of the page: signing in, the views and their addresses, keys, the stream, and what can be undone.

import {html, nothing, render} from './vendor/lit-html.js';
import {Refused, forgetSecret, get, signIn} from './api.js';
import * as bans from './bans.js';
import {health} from './health.js';
import {history as past} from './history.js';
import {known} from './known.js';
import {now} from './now.js';
import {Stream} from './stream.js';
import {told} from './told.js';
import {clean} from './ui.js';

const VIEWS = [now, known, told, past, health];
const KEYS = [
  ['/', 'search'],
  ['j  k', 'next, previous'],
  ['Enter', 'open'],
  ['Esc', 'close'],
  ['x', 'choose (Known)'],
  ['n', 'new hint (Known)'],
  ['e', 'edit what is open (Known)'],
  ['u', 'undo'],
  ['1  –  5', 'views'],
  ['?', 'these keys'],
];
const THEMES = {auto: 'as the system', light: 'light', dark: 'dark'};
const SHADES = {auto: 'M8 2a6 6 0 0 1 0 12z', light: '', dark: 'M8 2a6 6 0 0 1 0 12A6 6 0 0 1 8 2z'}; // of its icon
const PATIENCE = 1_500; // milliseconds without a server before that is said: another one may be taking over
const UNDO = 20_000; // milliseconds in which a change can be taken back
const AGES = 20_000; // milliseconds between two times that the ages on the page are renewed

const page = {
  ...{view: now, online: true, isSignedOut: false, problem: null, toasts: [], status: null},
  theme: localStorage.getItem('nudge-theme') || 'auto',
};
const root = document.getElementById('app');
let isDue = false;

function update() {
  if (isDue) return;
  isDue = true;
  queueMicrotask(() => {
    isDue = false;
    render(frame(), root);
  });
}

/** What views do with the page around them. */
const host = {
  update,
  go(address) {
    location.hash = address;
  },
  /** Say what was done; `undo` takes it back. */
  say(text, undo) {
    const toast = {text, undo};
    page.toasts = [...page.toasts.slice(-2), toast];
    setTimeout(() => drop(toast), undo ? UNDO : 6_000);
    update();
  },
  fail(error) {
    if (error instanceof Refused && error.status === 401) signedOut();
    else host.say(error.message);
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
  async loadStatus() {
    page.status = await get('status').catch(() => page.status);
    update();
  },
  get status() {
    return page.status;
  },
};

function drop(toast) {
  page.toasts = page.toasts.filter((one) => one !== toast);
  update();
}

async function undo(toast) {
  drop(toast);
  await host.run(toast.undo);
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

const link = (view) =>
  html`<a href="#/${view.name}" aria-current=${view === page.view ? 'page' : 'false'}>${view.title}</a>`;

function frame() {
  document.documentElement.dataset.theme = page.theme;
  if (page.isSignedOut) return door();
  return html`<a class="skip" href="#main" @click=${skip}>Skip to the content</a>
    <header>
      <span class="brand"><img src="/page/icon.svg" alt="" width="20" height="20" /><span>Nudge</span></span>
      <nav aria-label="Views">${VIEWS.map(link)}</nav>
      <span class="state" role="status">
        <i class="dot ${page.online ? '' : 'off'}"></i><span>${page.online ? 'live' : 'no server'}</span>
      </span>
      <button
        class="quiet"
        title="Theme: ${THEMES[page.theme]}"
        aria-label="Theme: ${THEMES[page.theme]}"
        @click=${nextTheme}
      >
        <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
          <circle cx="8" cy="8" r="6"></circle>
          <path d=${SHADES[page.theme]}></path>
        </svg>
      </button>
      <button class="quiet" aria-label="Keys" title="Keys (?)" @click=${help}>?</button>
    </header>
    ${
      page.online
        ? nothing
        : html`<p class="strip" role="alert">
            No server answers. The next agent or command starts one, or you do: <code>nudge serve</code>. This page goes
            on by itself.
          </p>`
    }
    <main id="main" tabindex="-1">
      <h1 class="hidden">${page.view.title}</h1>
      ${page.view.render()}
    </main>
    <div class="toasts" aria-live="polite">${page.toasts.map(toastShown)}</div>
    <dialog class="sheet" aria-label="Keys" @click=${(event) => event.target === event.currentTarget && help()}>
      ${keys()}
    </dialog>`;
}

const toastShown = (toast) =>
  html`<div class="toast">
    <span>${clean(toast.text)}</span>
    ${toast.undo ? html`<button title="Undo (u)" @click=${() => undo(toast)}>Undo</button>` : nothing}
    <button class="quiet" aria-label="Close" @click=${() => drop(toast)}>×</button>
  </div>`;

function door() {
  return html`<main class="door">
    <img src="/page/icon.svg" alt="" width="40" height="40" />
    <h1>Nudge</h1>
    ${page.problem ? html`<p class="problem" role="alert">${clean(page.problem)}</p>` : nothing}
    <p>This page shows what your coding agents know and are told. To get in, run in a terminal:</p>
    <p><code>nudge open</code></p>
    <p class="quiet">It opens this page with a code that works once. Over ssh: <code>nudge open --print</code></p>
  </main>`;
}

function keys() {
  const row = ([key, does]) =>
    html`<div>
      <dt>${key.split('  ').map((one) => (one === '–' ? '– ' : html`<kbd>${one}</kbd> `))}</dt>
      <dd>${does}</dd>
    </div>`;
  return html`<h2>Keys</h2>
    <dl class="keys">${KEYS.map(row)}</dl>
    <button @click=${help}>Close</button>`;
}

function help() {
  const dialog = document.querySelector('dialog');
  if (dialog.open) dialog.close();
  else dialog.showModal();
}

function skip(event) {
  event.preventDefault();
  document.getElementById('main').focus();
}

function nextTheme() {
  const themes = Object.keys(THEMES);
  page.theme = themes[(themes.indexOf(page.theme) + 1) % themes.length];
  localStorage.setItem('nudge-theme', page.theme);
  update();
}

// Keys

/** What a key does in the page, whatever the view. Returns whether it does anything. */
function pressed(key) {
  const last = page.toasts.findLast((toast) => toast.undo);
  if (key === '?') help();
  else if (key === '/') document.querySelector('input[type=search]')?.focus();
  else if (key === 'u' && last) undo(last);
  else if (/^[1-5]$/.test(key)) host.go(`/${VIEWS[key - 1].name}`);
  else return false;
  return true;
}

addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || page.isSignedOut || document.querySelector('dialog')?.open)
    return;
  const field = event.target.closest?.('input:not([type=checkbox]), textarea, select');
  if (field) {
    if (event.key === 'Escape') field.closest('form.edit') ? page.view.key?.('Escape') : field.blur();
    else if (event.key !== 'ArrowDown' || field.type !== 'search' || !page.view.key?.('j')) return;
  } else {
    if (event.key === 'Enter' && event.target.closest?.('button, a, summary')) return;
    if (!pressed(event.key) && !page.view.key?.(event.key)) return;
  }
  event.preventDefault();
});

// The stream

let offline = 0;
const stream = new Stream(
  (message) => {
    for (const view of VIEWS) view.notice?.(message, view === page.view);
    update();
  },
  (isOnline, status) => {
    if (status === 401) return signedOut();
    if (!isOnline) {
      offline ||= setTimeout(() => {
        page.online = false;
        update();
      }, PATIENCE);
      return undefined;
    }
    clearTimeout(offline);
    offline = 0;
    if (!page.online) host.loadStatus();
    page.online = true;
    return update();
  },
);

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
    Object.assign(page, {isSignedOut: true, problem: error.message});
    return update();
  }
  for (const view of VIEWS) view.host = host;
  bans.setUp(host, () => {
    told.refresh();
    update();
  });
  const first = await get('changes', {limit: 100}).catch(() => ({at: {}}));
  stream.at = first.at;
  now.first(first);
  addEventListener('hashchange', route);
  route();
  stream.start();
  setInterval(() => document.hidden || page.isSignedOut || update(), AGES);
  return undefined;
}

begin();
