// Told: what each session was told, why, and whether it was used; what one would be told now; bans.

import {html, nothing} from './vendor/lit-html.js';
import {Newest, ago, badge, clean, count, empty, line, when} from './ui.js';
import {get, part, post} from './api.js';

const MOMENTS = {start: 'At its start', prompt: 'With a prompt', failure: 'When a command failed', file: 'With a file', edit: 'With an edit', attempt: 'About an attempt'};
const UNUSED = {before: 'done before it was told', repeated: 'another line that says the same was used'};

const state = {sessions: [], chosen: null, lines: [], total: 0, next: null, never: [], trial: {repo: '', cwd: '', branch: '', prompt: ''}, said: null, problem: null, isSure: true};
const newest = new Newest();

async function loadSessions() {
  await told.host.run(async () => {
    state.sessions = await get('sessions', {limit: 100});
    told.host.update();
  });
}

async function loadLines(isMore = false) {
  await told.host.run(async () => {
    const found = await newest.ask((signal) => get('told', {session_id: state.chosen || undefined, before: isMore ? state.next : undefined, limit: 100}, signal));
    if (!found) return;
    Object.assign(state, {lines: isMore ? [...state.lines, ...found.lines].slice(-200) : found.lines, total: found.total, next: found.next, never: found.never});
    told.host.update();
  });
}

async function tryOut(event) {
  event?.preventDefault();
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
  told.host.update();
}

function lineRow(one) {
  const used = one.used_at ? badge('used', 'good') : one.is_shadow ? badge('not told: comparison', '') : badge(one.unused ? `not used: ${UNUSED[one.unused]}` : 'not used');
  const isBanned = state.never.includes(one.name);
  return html`<li class="told-line ${isBanned ? 'banned' : ''}"><div><bdi>${clean(one.text)}</bdi>
    <small>${badge(one.kind)} ${used} why: <bdi>${clean(one.reason)}</bdi> · ${when(one.timestamp)}${state.chosen ? nothing : html` · <a href="#/told/session/${part(one.session_id)}">${clean(one.project || 'no repo')}</a>`}</small></div>
    ${isBanned ? html`<button @click=${() => told.allow(one)}>Allow again</button>` : html`<button class="danger" @click=${() => told.ban(one)}>Never tell this again</button>`}</li>`;
}

function groups() {
  const found = [];
  for (const one of state.lines) {
    const last = found.at(-1);
    if (last && last.moment === one.moment && last.session === one.session_id) last.lines.push(one);
    else found.push({moment: one.moment, session: one.session_id, timestamp: one.timestamp, lines: [one]});
  }
  return found;
}

function trial() {
  const input = (name, label, hint) => html`<label><span>${label}</span><input name="trial-${name}" placeholder=${hint} spellcheck="false" autocomplete="off" .value=${state.trial[name]}
    @input=${(event) => { state.trial[name] = event.target.value.trim(); }}></label>`;
  return html`<form class="place trial" @submit=${tryOut}><details ?open=${Boolean(state.said)}><summary>What would a session be told now?</summary>
    <div class="fields">${input('repo', 'repo', 'git:github.com/acme/api')}${input('branch', 'branch', 'main')}${input('cwd', 'directory', '/home/me/api')}
      <label class="grow"><span>about this prompt</span><input name="trial-prompt" placeholder="optional" .value=${state.trial.prompt} @input=${(event) => { state.trial.prompt = event.target.value; }}></label>
      <button type="submit">Try</button></div>
    ${state.problem ? html`<p class="problem" role="alert">${clean(state.problem.message)}</p>` : nothing}
    ${state.said ? html`<h3>At its start</h3>${said(state.said.atStart.text, state.said.atStart.items)}
      ${state.said.atPrompt ? html`<h3>With the prompt</h3>${said(state.said.atPrompt.text)}` : nothing}
      <p class="quiet">Nothing was recorded as told.</p>` : nothing}</details></form>`;
}

function said(text, items = []) {
  if (!text) return html`<p class="quiet">Nothing.</p>`;
  return html`<pre class="value"><bdi>${clean(text)}</bdi></pre>
    ${items.length ? html`<details><summary>why each line</summary><ul class="lines">${items.map((one) => html`<li>${badge(one.kind)} <bdi>${line(one.title)}</bdi>
      <small><bdi>${clean((one.matches?.reasons || []).join('; '))}</bdi>, score ${(one.score?.total ?? 0).toFixed(2)}</small></li>`)}</ul></details>` : nothing}`;
}

export const told = {
  name: 'told',
  title: 'Told',

  enter(parts, _query, isNew) {
    const chosen = parts[0] === 'session' ? parts.slice(1).join('/') : null;
    if (!isNew && chosen === state.chosen) return;
    state.chosen = chosen;
    loadSessions();
    loadLines();
  },

  notice(message, isOpen) {
    if (!isOpen || !(message.told?.length || message.changed?.includes('told'))) return;
    clearTimeout(state.timer);
    state.timer = setTimeout(() => loadLines(), 200);
  },

  key(key) {
    if (key !== 'j' && key !== 'k') return false;
    const place = state.sessions.findIndex((one) => one.session_id === state.chosen) + (key === 'j' ? 1 : -1);
    const next = state.sessions[Math.max(0, Math.min(state.sessions.length - 1, place))];
    if (next) this.host.go(`/told/session/${part(next.session_id)}`);
    return true;
  },

  async ban(one, never = true) {
    await this.host.run(async () => {
      await post('told/never', {line: String(one.id), never});
      const undo = async () => {
        await post('told/never', {line: one.name, project: one.project || null, never: !never});
        loadLines();
      };
      this.host.say(`${one.name} ${never ? 'is never told again' : 'may be told again'} in ${one.project || 'any repo'}`, undo);
      if (state.lines.length) loadLines();
    });
  },

  async allow(one) {
    await this.host.run(async () => {
      await post('told/never', {line: one.name, project: one.project || null, never: false});
      this.host.say(`${one.name} may be told again`, () => this.ban(one));
      loadLines();
    });
  },

  render() {
    const session = state.sessions.find((one) => one.session_id === state.chosen);
    return html`<div class="sided"><aside aria-label="Sessions"><div class="head"><h2>Sessions</h2></div>
      <ul class="cards"><li class=${state.chosen ? '' : 'selected'}><a href="#/told" aria-current=${state.chosen ? 'false' : 'true'}><strong>All sessions</strong></a></li>
      ${state.sessions.map((one) => html`<li class=${one.session_id === state.chosen ? 'selected' : ''}><a href="#/told/session/${part(one.session_id)}" aria-current=${one.session_id === state.chosen ? 'true' : 'false'}>
        <strong><bdi>${clean(one.project || 'no repo')}</bdi></strong><span>${clean(one.client)}</span></a><small class="clip"><bdi>${ago(one.started_at)} · ${line(one.summary?.intent || one.session_id)}</bdi></small></li>`)}</ul></aside>
      <section class="main"><div class="head"><h2 class="large">${session ? html`Told to <bdi>${clean(session.project || session.session_id)}</bdi>` : 'What agents were told'}</h2>
        <span class="num">${count(state.total, 'line')}</span></div>
        ${trial()}
        ${state.lines.length ? groups().map((group) => html`<section class="moment"><h3>${MOMENTS[group.moment] || group.moment} <small>${when(group.timestamp)}</small></h3>
          <ul class="lines">${group.lines.map(lineRow)}</ul></section>`) : empty('Nothing was told', state.chosen ? 'This session was told nothing.' : 'No agent was told anything yet.')}
        ${state.next ? html`<button @click=${() => loadLines(true)}>Older</button>` : nothing}
        ${state.never.length ? html`<h3>Never told</h3><p class="never">${state.never.map((name) => html`<span class="chip"><bdi>${line(name)}</bdi>
          <button class="quiet" aria-label="Allow ${clean(name)} again" @click=${() => told.allow({name, project: session?.project, id: name})}>×</button></span>`)}</p>` : nothing}</section></div>`;
  },
};
