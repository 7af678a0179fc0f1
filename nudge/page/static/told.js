// Told: what each session was told, why, and whether it was used; what one would be told now; bans.

import {html, nothing} from './vendor/lit-html.js';
import {get, part, post} from './api.js';
import * as bans from './bans.js';
import {Newest} from './list.js';
import {ago, badge, clean, count, empty, failure, line, reading, when} from './ui.js';

const MOST = 200; // lines in the document
const MOMENTS = {
  start: 'At its start',
  prompt: 'With a prompt',
  failure: 'When a command failed',
  file: 'With a file',
  edit: 'With an edit',
  attempt: 'About an attempt',
};
const UNUSED = {before: 'done before it was told', repeated: 'another line that says the same was used'};

const state = {
  ...{sessions: null, chosen: null, lines: null, total: 0, next: null, never: []},
  ...{trial: {repo: '', cwd: '', branch: '', prompt: ''}, said: null, problem: null},
};
const newest = new Newest();
const update = () => told.host.update();

const loadSessions = () =>
  told.host.run(async () => {
    state.sessions = await get('sessions', {limit: 100});
    update();
  });

const loadLines = (isMore = false) =>
  told.host.run(async () => {
    const before = isMore ? state.next : undefined;
    const question = {session_id: state.chosen || undefined, before, limit: 100};
    const found = await newest.ask((signal) => get('told', question, signal));
    if (!found) return;
    const lines = isMore ? [...state.lines, ...found.lines].slice(-MOST) : found.lines;
    Object.assign(state, {lines, total: found.total, next: found.next, never: found.never});
    update();
  });

// The lines

function fate(one) {
  if (one.used_at) return badge('used', 'good');
  if (one.is_shadow) return badge('not told: comparison');
  return badge(one.unused ? `not used: ${UNUSED[one.unused]}` : 'not used');
}

function lineRow(one) {
  const isBanned = state.never.includes(one.name);
  return html`<li class="told-line ${isBanned ? 'banned' : ''}">
    <div>
      <bdi>${clean(one.text)}</bdi>
      <small>
        ${fate(one)} ${badge(one.kind)}
        <span>why: <bdi>${clean(one.reason)}</bdi></span>
        <a href="#/known/${part(one.name)}">${clean(one.name)}</a>
      </small>
    </div>
    ${
      isBanned
        ? html`<button @click=${() => bans.allow(one)}>Allow again</button>`
        : html`<button class="danger" @click=${() => bans.ban(one)}>Never tell this again</button>`
    }
  </li>`;
}

/** The lines of one session and moment together. */
function groups() {
  const found = [];
  for (const one of state.lines) {
    const last = found.at(-1);
    if (last && last[0].moment === one.moment && last[0].session_id === one.session_id) last.push(one);
    else found.push([one]);
  }
  return found.map(group);
}

function group(lines) {
  const [{moment, session_id: session, project, client, timestamp}] = lines;
  const whose = clean([project || 'no repo', client].filter(Boolean).join(', '));
  return html`<section class="moment">
    <h3>
      ${MOMENTS[moment] || moment}
      <small>
        ${state.chosen ? nothing : html`<a href="#/told/session/${part(session)}"><bdi>${whose}</bdi></a>`}
        ${when(timestamp)}
      </small>
    </h3>
    <ul class="lines">
      ${lines.map(lineRow)}
    </ul>
  </section>`;
}

function shown() {
  if (state.lines === null) return reading();
  if (state.lines.length) return groups();
  return empty('Nothing was told', state.chosen ? 'This session was told nothing.' : 'No agent was told anything yet.');
}

function never(session) {
  if (!state.never.length) return nothing;
  const allow = (name) => bans.allow({name, project: session?.project});
  return html`<h3>Never told</h3>
    <p class="never">
      ${state.never.map(
        (name) =>
          html`<span class="chip">
            <bdi>${line(name)}</bdi>
            <button class="quiet" aria-label="Allow ${clean(name)} again" @click=${() => allow(name)}>×</button>
          </span>`,
      )}
    </p>`;
}

// What one would be told now

async function tryOut(event) {
  event.preventDefault();
  const {prompt, ...place} = state.trial;
  const context = Object.fromEntries(Object.entries(place).filter(([, text]) => text));
  try {
    const atStart = await post('inject', {context, explain: true});
    const atPrompt = prompt ? await post('inject', {context, prompt}) : null;
    Object.assign(state, {said: {atStart, atPrompt}, problem: null});
  } catch (error) {
    if (error.status === 401) told.host.fail(error);
    state.problem = error;
  }
  update();
}

function trial() {
  const set = (name) => (event) => {
    state.trial[name] = event.target.value;
  };
  const input = (name, label, hint, kind = '') =>
    html`<label class=${kind}>
      <span>${label}</span>
      <input
        name="trial-${name}"
        placeholder=${hint}
        spellcheck="false"
        autocomplete="off"
        .value=${state.trial[name]}
        @input=${set(name)}
      />
    </label>`;
  return html`<form class="place trial" @submit=${tryOut}>
    <details ?open=${Boolean(state.said)}>
      <summary>What would a session be told now?</summary>
      <div class="fields">
        ${input('cwd', 'directory', '/home/me/api')}${input('repo', 'repo', 'as the directory says')}
        ${input('branch', 'branch', 'as the directory says')}${input('prompt', 'about this prompt', 'optional', 'grow')}
        <button type="submit">Try</button>
      </div>
      ${failure(state.problem)} ${state.said ? said(state.said) : nothing}
    </details>
  </form>`;
}

function said({atStart, atPrompt}) {
  return html`<h3>At its start</h3>
    ${text(atStart.text)} ${atStart.items?.length ? reasons(atStart.items) : nothing}
    ${
      atPrompt
        ? html`<h3>With the prompt</h3>
            ${text(atPrompt.text)}`
        : nothing
    }
    <p class="quiet">A trial: nothing was recorded as told.</p>`;
}

const text = (content) =>
  content ? html`<pre class="value"><bdi>${clean(content)}</bdi></pre>` : html`<p class="quiet">Nothing.</p>`;

const reasons = (items) =>
  html`<details>
    <summary>why each line</summary>
    <ul class="lines">
      ${items.map(
        (one) =>
          html`<li>
            ${badge(one.kind)} <bdi>${line(one.title)}</bdi>
            <small
              ><bdi>${clean((one.matches?.reasons || []).join('; '))}</bdi>, score
              ${(one.score?.total ?? 0).toFixed(2)}</small
            >
          </li>`,
      )}
    </ul>
  </details>`;

// The sessions

function card(one) {
  const isChosen = one.session_id === state.chosen;
  return html`<li class=${isChosen ? 'selected' : ''}>
    <a href="#/told/session/${part(one.session_id)}" aria-current=${isChosen ? 'true' : 'false'}>
      <strong><bdi>${clean(one.project || 'no repo')}</bdi></strong
      ><span>${clean(one.client)}</span>
    </a>
    <small class="clip"><bdi>${ago(one.started_at)} · ${line(one.summary?.intent || one.session_id)}</bdi></small>
  </li>`;
}

function aside() {
  return html`<aside aria-label="Sessions">
    <div class="head"><h2>Sessions</h2></div>
    <ul class="cards">
      <li class=${state.chosen ? '' : 'selected'}>
        <a href="#/told" aria-current=${state.chosen ? 'false' : 'true'}><strong>All sessions</strong></a>
      </li>
      ${(state.sessions || []).map(card)}
    </ul>
  </aside>`;
}

export const told = {
  name: 'told',
  title: 'Told',

  enter(parts, _query, isNew) {
    const chosen = parts[0] === 'session' ? parts.slice(1).join('/') : null;
    if (!isNew && chosen === state.chosen) return;
    Object.assign(state, {chosen, said: null});
    loadSessions().then(() => {
      const session = state.sessions?.find((one) => one.session_id === chosen);
      if (session) Object.assign(state.trial, {cwd: session.cwd || '', repo: '', branch: ''});
      update();
    });
    loadLines();
  },

  notice(message, isOpen) {
    if (!isOpen || !(message.told?.length || message.changed?.includes('told'))) return;
    clearTimeout(state.timer);
    state.timer = setTimeout(() => loadLines(), 200);
  },

  /** A ban was made or taken back, here or in another view. */
  refresh() {
    if (state.lines) loadLines();
  },

  key(key) {
    if (key === 'Escape') this.host.go('/told');
    if (key !== 'j' && key !== 'k') return key === 'Escape';
    const sessions = state.sessions || [];
    const place = sessions.findIndex((one) => one.session_id === state.chosen) + (key === 'j' ? 1 : -1);
    const next = sessions[Math.max(0, Math.min(sessions.length - 1, place))];
    if (next) this.host.go(`/told/session/${part(next.session_id)}`);
    return true;
  },

  render() {
    const session = state.sessions?.find((one) => one.session_id === state.chosen);
    const whom = session && clean(session.project || session.session_id);
    return html`<div class="sided">
      ${aside()}
      <section class="main" aria-label="Lines">
        <div class="head">
          <h2 class="large">${session ? html`Told to <bdi>${whom}</bdi>` : 'What agents were told'}</h2>
          <span class="num">${count(state.total, 'line')}</span>
        </div>
        ${trial()} ${shown()}
        ${state.next ? html`<p><button @click=${() => loadLines(true)}>Older</button></p>` : nothing} ${never(session)}
      </section>
    </div>`;
  },
};
