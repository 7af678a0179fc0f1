// Health: what was told and used by week, the server, the checks with their fixes, and the settings in force.

import {html, nothing} from './vendor/lit-html.js';
import {get} from './api.js';
import {weekly, whole} from './plots.js';
import {repoFiles} from './repofiles.js';
import {badge, clean, count, duration, number, reading, size, table} from './ui.js';

const state = {status: null, findings: null, settings: [], weeks: [], notes: null, archive: null, files: null};
const PLOTS = [
  ['told', 'Told', 'used'],
  ['used', 'Used', 'told'],
  ['met_again', 'Failures met again', 'answered'],
  ['answered', 'Failures answered', 'met_again'],
];
const LEVELS = {fail: 'bad', warn: 'warn', ok: 'good'};
const ORDER = Object.keys(LEVELS);

function plots() {
  if (!state.weeks.length) return html`<p class="quiet">No agent was told anything yet.</p>`;
  return html`<div class="plots">
    ${PLOTS.map(([name, title, beside]) => {
      const most = Math.max(1, ...state.weeks.flatMap((week) => [week[name] || 0, week[beside] || 0]));
      return weekly(title, state.weeks, name, most);
    })}
  </div>`;
}

function model(one) {
  return one ? clean([one.name, one.state, one.why, one.sends].filter(Boolean).join('; ')) : '';
}

function server(status) {
  const {session} = status;
  return html`${table([
    ['role', `${status.role} (pid ${status.pid})`],
    ['version', status.version],
    ['started by', clean([status.owner, status.client].filter(Boolean).join(', '))],
    ['up for', duration(status.uptime)],
    ['port', String(status.port)],
    ['session', session ? `${clean(session.id)}, ${duration(session.age || 0)} old` : ''],
    ['clients', clean((status.members || []).map((one) => `${one.client} (${one.pid})`).join(', ')) || 'none'],
    ['durability', clean(status.durability)],
    ['language model', model(status.model)],
    ['last error', clean(status.last_error || '')],
  ])}
  ${(status.warnings || []).map((text) => html`<p class="problem">${clean(text)}</p>`)}`;
}

function stored() {
  const {status, notes, archive} = state;
  return table(
    [
      ['hints', number(status.hints)],
      ['notes', number(notes.total)],
      ['archived notes', html`<a href="#/known?type=archived">${number(archive.count)}</a>`],
      ['links', number(notes.links_count)],
      ['database', size(status.history?.bytes ?? notes.db_size_bytes)],
      ['change log', size(status.log_bytes)],
      ['events waiting', number(status.spool?.files)],
      ['calls answered', number(status.calls)],
    ],
    'numbers',
  );
}

const finding = (one) =>
  html`<tr>
    <td>${badge(one.level, LEVELS[one.level])}</td>
    <th scope="row">${clean(one.check)}</th>
    <td>
      <bdi>${clean(one.message)}</bdi>
      ${one.fix ? html`<div class="fix">fix: <code>${clean(one.fix)}</code></div>` : nothing}
      ${one.look ? html`<div class="fix">look: <code>${clean(one.look)}</code></div>` : nothing}
    </td>
  </tr>`;

const findings = (some) =>
  html`<table class="checks">
    <tbody>
      ${some.map(finding)}
    </tbody>
  </table>`;

function checks() {
  if (state.findings === null) return html`<p class="quiet">Checking…</p>`;
  const all = [...state.findings].sort((one, other) => ORDER.indexOf(one.level) - ORDER.indexOf(other.level));
  const bad = all.filter((one) => one.level !== 'ok');
  const good = all.filter((one) => one.level === 'ok');
  return html`${bad.length ? findings(bad) : html`<p class="good">No problems found.</p>`}
    <details>
      <summary>${count(good.length, 'check')} passed</summary>
      ${findings(good)}
    </details>`;
}

function setting(one) {
  const value = one.value === '' || one.value === null ? '–' : one.value;
  return html`<tr title=${clean(one.description)}>
    <th scope="row">${one.name}</th>
    <td><bdi>${clean(typeof value === 'object' ? JSON.stringify(value) : String(value))}</bdi></td>
    <td class=${one.from === 'default' ? 'quiet' : ''}>${one.from}</td>
    <td><code>${one.variable}</code></td>
  </tr>`;
}

function settings() {
  return html`<div class="wide" tabindex="0" role="region" aria-label="Settings">
    <table class="settings">
      <thead>
        <tr>
          <th scope="col">setting</th>
          <th scope="col">value</th>
          <th scope="col">from</th>
          <th scope="col">variable</th>
        </tr>
      </thead>
      <tbody>
        ${state.settings.map(setting)}
      </tbody>
    </table>
  </div>`;
}

export const health = {
  name: 'health',
  title: 'Health',

  enter(_parts, _query, isNew) {
    if (isNew) this.load();
  },

  async load() {
    await this.host.run(async () => {
      const [status, list, stats, notes, archive, files] = await Promise.all(
        ['status', 'settings', 'told/stats', 'stats', 'archive/stats', 'repo-files'].map((path) => get(path)),
      );
      Object.assign(state, {status, settings: list.settings, weeks: whole(stats.weeks), notes, archive, files});
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

  decided(file) {
    state.files.files = state.files.files.map((one) => (one.root === file.root ? file : one));
    this.host.update();
  },

  render() {
    if (!state.status) return reading();
    return html`<div class="health">
      <section>
        <div class="head"><h2 class="large">By week</h2></div>
        ${plots()}
      </section>
      <div class="columns">
        <section>
          <div class="head"><h2>Server</h2></div>
          ${server(state.status)}
        </section>
        <section>
          <div class="head"><h2>Stored</h2></div>
          ${stored()}
        </section>
      </div>
      <section class="checked">
        <div class="head">
          <h2>Checks</h2>
          <button @click=${() => this.check()}>Check again</button>
        </div>
        ${checks()}
      </section>
      <section>
        <div class="head"><h2>Hints in repositories</h2></div>
        ${repoFiles(state.files, this.host, (file) => this.decided(file))}
      </section>
      <section>
        <div class="head"><h2>Settings in force</h2></div>
        ${settings()}
      </section>
    </div>`;
  },
};
