// Now: who is at work, what is recorded and told as it happens, and what failed and worked instead.

import {html, nothing} from './vendor/lit-html.js';
import {get, part} from './api.js';
import {ago, badge, clean, count, empty, exact, line, reading, shorten, stamp, typeBadge, when} from './ui.js';

const MOST = 150; // lines of the stream
const LIVE = 30 * 60; // seconds since its last event in which a session is at work
const FACTS = 12;
const CHOICES = [
  ['', 'all'],
  ['failures', 'failures'],
  ['told', 'told'],
  ['edits', 'edits'],
];

const state = {rows: [], sessions: null, facts: null, only: '', seen: new Set(), due: 0};

function toRows(message) {
  const rows = (message.observations || []).map((row) => ({...row, key: `o${row.id}`}));
  rows.push(...(message.told || []).map((row) => ({...row, key: `t${row.id}`, isTold: true})));
  return rows.sort((one, other) => one.timestamp - other.timestamp);
}

/** Each observation and each line once, whatever comes again after a lost connection. */
function add(message) {
  for (const row of toRows(message)) {
    if (state.seen.has(row.key)) continue;
    state.seen.add(row.key);
    state.rows.unshift(row);
  }
  for (const row of state.rows.splice(MOST * 2)) state.seen.delete(row.key);
}

function isShown(row) {
  if (state.only === 'failures') return row.obs_type === 'command_error' || row.moment === 'failure';
  if (state.only === 'told') return row.isTold;
  if (state.only === 'edits') return /^file_(edit|write)$|^git_/.test(row.obs_type || '');
  return true;
}

function event(row) {
  const isBad = row.obs_type === 'command_error';
  const address = row.isTold ? `#/told/session/${part(row.session_id)}` : `#/history/observation/${row.id}`;
  const isFile = row.obs_type?.startsWith('file_');
  const text = row.isTold ? row.text : row.content_preview || row.file_path;
  const error = isBad && line((row.details || '').replace(/^Exit code \d+\n/, ''));
  return html`<li class=${row.isTold ? 'told' : isBad ? 'bad' : ''} data-key=${row.key}>
    <time title=${exact(row.timestamp)}>${stamp(row.timestamp)}</time>
    ${row.isTold ? badge(`told · ${row.moment}`, 'accent') : typeBadge(row.obs_type)}
    <a class="what" href=${address} title=${line(text)}><bdi>${isFile ? shorten(text) : line(text)}</bdi></a>
    <span class="where"><bdi>${clean([row.project, row.client].filter(Boolean).join(' · '))}</bdi></span>
    ${error ? html`<span class="more"><bdi>${error}</bdi></span>` : nothing}
  </li>`;
}

function session(one) {
  const place = `${one.project || one.cwd || 'no repo'}${one.branch ? ` @ ${one.branch}` : ''}`;
  const intent = one.summary?.intent || one.summary?.goal || '';
  return html`<li>
    <a href="#/history/session/${part(one.session_id)}">
      <strong>${clean(one.client)}</strong><span><bdi>${line(place)}</bdi></span>
    </a>
    ${intent ? html`<span class="clip"><bdi>${line(intent)}</bdi></span>` : nothing}
    <small>
      since ${stamp(one.started_at)} · last ${when(one.last_event_at)} · ${count(one.observation_count, 'observation')}
    </small>
  </li>`;
}

function fact(one) {
  const address = `#/known/${part(`fact ${one.subject}`)}?${new URLSearchParams({repo: one.project})}`;
  return html`<li class="fact">
    <a href=${address}
      ><code class="clip"><bdi>${line(one.subject)}</bdi></code></a
    >
    <small class="clip bad"><bdi>${line(one.error)}</bdi></small>
    <code class="clip good"><bdi>${one.answer ? `→ ${line(one.answer)}` : 'no answer is known'}</bdi></code>
    <small><bdi>${clean(one.project)}</bdi> · ${count(one.sessions, 'session')} · ${ago(one.last)}</small>
  </li>`;
}

/** The processes that are connected: where each one's last call came from, and since when. */
function members(status) {
  const all = [...(status?.client ? [{client: status.client}] : []), ...(status?.members || [])];
  if (!all.length) return nothing;
  return html`<ul class="quiet connected">
    ${all.map((one) => {
      const place = [clean((one.repo || '').split('/').pop()), clean(one.branch || '')].filter(Boolean).join(', ');
      return html`<li>
        <bdi>${clean(one.client)}</bdi>${place ? html` in <bdi>${place}</bdi>` : nothing}${
          one.since ? ` · connected ${ago(one.since)}` : ' · this server is in it'
        }
      </li>`;
    })}
  </ul>`;
}

function atWork() {
  if (state.sessions === null) return reading();
  const recent = Date.now() / 1000 - LIVE;
  const live = state.sessions.filter((one) => !one.ended_at && (one.last_event_at || one.started_at) > recent);
  if (!live.length) return html`<p class="quiet">No session did anything in the last half hour.</p>`;
  return html`<ul class="cards">
    ${live.map(session)}
  </ul>`;
}

function learned() {
  if (state.facts === null) return reading();
  if (!state.facts.length)
    return html`<p class="quiet">No fact is known yet: a command has to fail, and work in another way.</p>`;
  return html`<ul class="cards">
    ${state.facts.map(fact)}
  </ul>`;
}

function feed() {
  const rows = state.rows.filter(isShown).slice(0, MOST);
  if (rows.length)
    return html`<ol class="events">
      ${rows.map(event)}
    </ol>`;
  const connect = html`What hooks record and agents are told appears here at once. Connect an agent:
    <code>nudge connect</code>`;
  return state.only ? empty('None of these', 'Of what happened lately.') : empty('Nothing yet', connect);
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

  load() {
    return this.host.run(async () => {
      const [sessions, learnt] = await Promise.all([get('sessions', {limit: 50, nonempty: false}), get('learned')]);
      state.sessions = sessions;
      state.facts = learnt.facts.sort((one, other) => other.last - one.last).slice(0, FACTS);
      this.host.loadStatus();
      this.host.update();
    });
  },

  notice(message, isOpen) {
    add(message);
    if (!isOpen || state.due) return;
    state.due = setTimeout(() => {
      state.due = 0;
      this.load();
    }, 800);
  },

  key(key) {
    if (key !== 'j' && key !== 'k') return false;
    const links = [...document.querySelectorAll('.feed a.what')];
    const at = links.indexOf(document.activeElement);
    links[Math.max(0, Math.min(links.length - 1, at + (key === 'j' ? 1 : -1)))]?.focus();
    return true;
  },

  choose(only) {
    state.only = only;
    this.host.update();
  },

  render() {
    return html`<div class="now">
      <section class="feed" aria-label="What happens">
        <div class="head">
          <h2 class="large">What happens</h2>
          <div class="choices" role="group" aria-label="Show">
            ${CHOICES.map(
              ([only, label]) =>
                html`<button aria-pressed=${state.only === only} @click=${() => this.choose(only)}>${label}</button>`,
            )}
          </div>
        </div>
        ${feed()}
      </section>
      <aside aria-label="At work">
        <section>
          <div class="head"><h2>At work</h2></div>
          ${atWork()} ${members(this.host.status)}
        </section>
        <section>
          <div class="head"><h2>Failed, and what worked</h2></div>
          ${learned()}
        </section>
      </aside>
    </div>`;
  },
};
