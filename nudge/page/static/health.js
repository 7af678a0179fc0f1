// Health: the server, the checks with their fixes, settings in force, and counts by week.

import {html, nothing} from './vendor/lit-html.js';
import {get} from './api.js';
import {badge, clean, count, number, size} from './ui.js';
import {weekly} from './plots.js';

const state = {status: null, findings: null, settings: [], weeks: [], notes: null, archive: null, problem: null};
const TITLES = {told: 'Told', used: 'Used', met_again: 'Failures met again', answered: 'Failures answered'};

function duration(seconds) {
  const parts = [['d', 86400], ['h', 3600], ['m', 60]].filter(([, length]) => seconds >= length);
  if (!parts.length) return `${Math.round(seconds)}s`;
  const [unit, length] = parts[0];
  return `${Math.floor(seconds / length)}${unit}`;
}

export const health = {
  name: 'health',
  title: 'Health',

  enter() {
    this.load();
  },

  async load() {
    await this.host.run(async () => {
      const [status, settings, stats, notes, archive] = await Promise.all([
        get('status'), get('settings'), get('told/stats'), get('stats'), get('archive/stats'),
      ]);
      Object.assign(state, {status, settings: settings.settings, weeks: stats.weeks, notes, archive});
      this.host.update();
    });
    await this.check();
  },

  async check() {
    state.findings = null;
    this.host.update();
    await this.host.run(async () => {
      state.findings = (await get('doctor')).findings;
    });
    this.host.update();
  },

  render() {
    if (!state.status) return html`<p class="quiet wait">Asking the server…</p>`;
    return html`<div class="health">
      <section><div class="head"><h2 class="large">By week</h2></div><div class="plots">
        ${Object.entries(TITLES).map(([name, title]) => weekly(title, state.weeks, name, this.scale(name)))}</div>
        ${state.weeks.length ? nothing : html`<p class="quiet">No agent was told anything yet.</p>`}</section>
      <div class="columns">
        <section><div class="head"><h2>Server</h2></div>${facts(state.status)}</section>
        <section><div class="head"><h2>Stored</h2></div>${sizes()}</section>
      </div>
      <section><div class="head"><h2>Checks</h2><button @click=${() => this.check()}>Check again</button></div>${checks()}</section>
      <section><div class="head"><h2>Settings in force</h2></div>${settings()}</section></div>`;
  },

  scale(name) {
    const pairs = [['told', 'used'], ['met_again', 'answered']];
    const own = pairs.find((pair) => pair.includes(name));
    return Math.max(1, ...state.weeks.flatMap((week) => own.map((one) => week[one] || 0)));
  },
};

function rows(pairs) {
  return html`<table class="plain"><tbody>${pairs.filter(([, text]) => text !== undefined && text !== null && text !== '')
    .map(([label, text, isNumber]) => html`<tr><th scope="row">${label}</th><td class=${isNumber ? 'num' : ''}><bdi>${text}</bdi></td></tr>`)}</tbody></table>`;
}

function facts(status) {
  const warnings = status.warnings || [];
  return html`${rows([
    ['role', `${status.role} (pid ${status.pid})`],
    ['version', status.version],
    ['started by', clean([status.owner, status.client].filter(Boolean).join(', '))],
    ['up for', duration(status.uptime)],
    ['port', String(status.port)],
    ['session', `${clean(status.session?.id)}, ${duration(status.session?.age || 0)} old`],
    ['clients', clean((status.members || []).map((one) => `${one.client} (${one.pid})`).join(', ')) || 'none'],
    ['durability', clean(status.durability)],
    ['last error', clean(status.last_error || '')],
  ])}${warnings.map((text) => html`<p class="problem">${clean(text)}</p>`)}`;
}

function sizes() {
  const {status, notes, archive} = state;
  return rows([
    ['hints', number(status.hints), true],
    ['notes', number(notes.total), true],
    ['archived notes', number(archive.count), true],
    ['links', number(notes.links_count), true],
    ['database', size(notes.db_size_bytes), true],
    ['change log', size(status.log_bytes), true],
    ['events waiting', number(status.spool?.files), true],
    ['calls answered', number(status.calls), true],
  ]);
}

function checks() {
  if (state.findings === null) return html`<p class="quiet">Checking…</p>`;
  const levels = {ok: 'good', warn: 'warn', fail: 'bad'};
  const order = ['fail', 'warn', 'ok'];
  const sorted = [...state.findings].sort((one, other) => order.indexOf(one.level) - order.indexOf(other.level));
  const bad = sorted.filter((one) => one.level !== 'ok');
  const good = sorted.filter((one) => one.level === 'ok');
  const row = (one) => html`<tr><td>${badge(one.level, levels[one.level])}</td><th scope="row">${clean(one.check)}</th>
    <td><bdi>${clean(one.message)}</bdi>${one.fix ? html`<div class="fix">fix: <code>${clean(one.fix)}</code></div>` : nothing}${one.look
      ? html`<div class="fix">look: <code>${clean(one.look)}</code></div>` : nothing}</td></tr>`;
  return html`${bad.length ? html`<table class="checks"><tbody>${bad.map(row)}</tbody></table>` : html`<p class="good">No problems found.</p>`}
    <details><summary>${count(good.length, 'check')} passed</summary><table class="checks"><tbody>${good.map(row)}</tbody></table></details>`;
}

function settings() {
  const text = (value) => (value === '' || value === null ? '–' : typeof value === 'object' ? JSON.stringify(value) : String(value));
  return html`<div class="wide"><table class="settings"><thead><tr><th scope="col">setting</th><th scope="col">value</th><th scope="col">from</th><th scope="col">variable</th></tr></thead>
    <tbody>${state.settings.map((one) => html`<tr title=${clean(one.description)}><th scope="row">${one.name}</th>
      <td><bdi>${clean(text(one.value))}</bdi></td><td>${one.from === 'default' ? html`<span class="quiet">default</span>` : one.from}</td>
      <td><code>${one.variable}</code></td></tr>`)}</tbody></table></div>`;
}
