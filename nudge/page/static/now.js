// Now: who is at work, what is recorded and told as it happens, and what failed and worked instead.

import {html, nothing} from './vendor/lit-html.js';
import {get, part} from './api.js';
import {ago, badge, clean, clock, count, empty, exact, line, number, typeBadge, when} from './ui.js';

const MOST = 150; // lines of the stream
const LIVE = 30 * 60; // seconds since its last event in which a session is at work

const state = {rows: [], sessions: [], facts: [], only: '', isPaused: false, waiting: 0, seen: new Set()};

function toRows(message) {
  const rows = (message.observations || []).map((row) => ({...row, key: `o${row.id}`}));
  rows.push(...(message.told || []).map((row) => ({...row, key: `t${row.id}`, isTold: true})));
  return rows.sort((one, other) => one.timestamp - other.timestamp);
}

function add(message) {
  for (const row of toRows(message)) {
    if (state.seen.has(row.key)) continue;
    state.seen.add(row.key);
    state.rows.unshift(row);
  }
  if (state.rows.length > MOST * 2) for (const row of state.rows.splice(MOST * 2)) state.seen.delete(row.key);
}

const CHOICES = [['', 'all'], ['failures', 'failures'], ['told', 'told'], ['edits', 'edits']];

function isShown(row) {
  if (state.only === 'failures') return row.obs_type === 'command_error' || row.moment === 'failure';
  if (state.only === 'told') return row.isTold;
  if (state.only === 'edits') return /^file_(edit|write)$|^git_/.test(row.obs_type || '');
  return true;
}

export const now = {
  name: 'now',
  title: 'Now',

  first(message) {
    add(message);
  },

  enter() {
    this.load();
  },

  async load() {
    await this.host?.run(async () => {
      const [sessions, learned] = await Promise.all([get('sessions', {limit: 50, nonempty: false}), get('learned')]);
      state.sessions = sessions;
      state.facts = learned.facts.sort((one, other) => other.last - one.last).slice(0, 12);
      this.host.update();
    });
  },

  notice(message, isOpen) {
    add(message);
    const isSession = (message.observations || []).some((row) => row.obs_type.startsWith('session_') || row.obs_type === 'command_error');
    if (isOpen && (isSession || message.changed || !state.due)) {
      clearTimeout(state.due);
      state.due = setTimeout(() => {
        state.due = 0;
        this.load();
      }, 800);
    }
  },

  key(key) {
    if (key !== 'j' && key !== 'k') return false;
    const links = [...document.querySelectorAll('.feed a.what')];
    const at = links.indexOf(document.activeElement);
    links[Math.max(0, Math.min(links.length - 1, at + (key === 'j' ? 1 : -1)))]?.focus();
    return true;
  },

  render() {
    const recent = Date.now() / 1000 - LIVE;
    const live = state.sessions.filter((one) => !one.ended_at && (one.last_event_at || one.started_at) > recent);
    const rows = state.rows.filter(isShown).slice(0, MOST);
    return html`<div class="now">
      <section class="feed" aria-label="What happens">
        <div class="head"><h2 class="large">What happens</h2>
          <div class="choices" role="group" aria-label="Show">${CHOICES.map(([only, label]) => html`<button
            aria-pressed=${state.only === only} @click=${() => this.choose(only)}>${label}</button>`)}</div></div>
        ${rows.length ? html`<ol class="events">${rows.map(event)}</ol>`
          : empty('Nothing yet', 'What hooks record and agents are told appears here at once. Connect an agent with: nudge connect')}
      </section>
      <aside>
        <section><div class="head"><h2>At work</h2><span class="num">${live.length || ''}</span></div>
          ${live.length ? html`<ul class="cards">${live.map(session)}</ul>` : html`<p class="quiet">No session did anything in the last half hour.</p>`}
          ${members(this.host?.status)}</section>
        <section><div class="head"><h2>Failed, and what worked</h2></div>
          ${state.facts.length ? html`<ul class="cards">${state.facts.map(fact)}</ul>` : html`<p class="quiet">No fact was learned yet.</p>`}</section>
      </aside></div>`;
  },

  choose(only) {
    state.only = only;
    this.host.update();
  },
};

function event(row) {
  const address = row.isTold ? `#/told/session/${part(row.session_id)}` : `#/history/observation/${row.id}`;
  return html`<li class=${row.isTold ? 'told' : row.obs_type === 'command_error' ? 'bad' : ''} data-key=${row.key}>
    <time title=${exact(row.timestamp)}>${clock(row.timestamp)}</time>
    ${row.isTold ? badge(`told · ${row.moment}`, 'accent') : typeBadge(row.obs_type)}
    <a class="what" href=${address}><bdi>${line(row.isTold ? row.text : row.content_preview || row.file_path)}</bdi></a>
    <span class="where"><bdi>${clean(row.project || '')}</bdi>${row.client ? html` · ${clean(row.client)}` : nothing}</span>
    ${row.details && row.obs_type === 'command_error' ? html`<span class="more"><bdi>${line(row.details.replace(/^Exit code \d+\n/, ''))}</bdi></span>` : nothing}</li>`;
}

function session(one) {
  const summary = one.summary?.intent || one.summary?.goal || '';
  return html`<li><a href="#/history/session/${part(one.session_id)}"><strong>${clean(one.client)}</strong>
    <span><bdi>${clean(one.project || one.cwd || 'no repo')}</bdi></span></a>
    <small>since ${when(one.started_at)} · last ${ago(one.last_event_at)} · ${count(one.observation_count, 'observation')}</small>
    ${summary ? html`<small class="clip"><bdi>${line(summary)}</bdi></small>` : nothing}</li>`;
}

function fact(one) {
  return html`<li class="fact"><code class="clip"><bdi>${line(one.subject)}</bdi></code>
    <small class="clip bad"><bdi>${line(one.error)}</bdi></small>
    <code class="clip good"><bdi>${one.answer ? `→ ${line(one.answer)}` : 'no answer is known'}</bdi></code>
    <small><bdi>${clean(one.project)}</bdi> · ${count(one.sessions, 'session')} · ${ago(one.last)}</small></li>`;
}

function members(status) {
  const list = status?.members || [];
  const names = [...(status?.client ? [status.client] : []), ...list.map((one) => one.client)];
  if (!names.length) return nothing;
  return html`<p class="quiet">Connected: ${names.map(clean).join(', ')} (${number(names.length)})</p>`;
}
