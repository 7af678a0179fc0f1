// History: what agents did. A search with facets; one observation with what came before and after; a session; a file.

import {html, nothing} from './vendor/lit-html.js';
import {List, Newest, clean, clock, empty, exact, facet, failure, line, number, typeBadge, when} from './ui.js';
import {get, part, post} from './api.js';

const PAGE = 100;
const AGES = [['1 day', 1], ['7 days', 7], ['30 days', 30]];
const state = {query: '', filters: {}, items: [], next: null, total: null, counts: {}, isPartial: false, problem: null, shown: null, address: null};
const questions = {list: new Newest(), facets: new Newest(), shown: new Newest()};
const list = new List({height: 46, row, more, update: () => past.host.update(), label: 'Observations'});

function asked() {
  const {age, ...filters} = state.filters;
  const since = age ? Math.floor(Date.now() / 1000 - age * 86_400) : undefined;
  return {query: state.query, ...filters, since};
}

async function load() {
  const params = asked();
  try {
    const found = await questions.list.ask((signal) => get('browse', {...params, limit: PAGE}, signal));
    if (!found) return;
    Object.assign(state, {items: found.items, next: found.next, problem: null});
    past.host.update();
    clearTimeout(state.timer);
    state.timer = setTimeout(() => past.host.run(async () => {
      const counted = await questions.facets.ask((signal) => get('browse', {...params, facets: true, limit: 1}, signal));
      if (counted) Object.assign(state, {total: counted.total, counts: counted.counts, isPartial: counted.partial});
      past.host.update();
    }), 250);
  } catch (error) {
    if (error.status === 401) past.host.fail(error);
    state.problem = error;
    past.host.update();
  }
}

async function more() {
  if (!state.next || state.isLoading) return;
  state.isLoading = true;
  await past.host.run(async () => {
    const before = state.next;
    const found = await get('browse', {...asked(), limit: PAGE, before});
    if (before === state.next) Object.assign(state, {items: [...state.items, ...found.items], next: found.next});
  });
  state.isLoading = false;
  past.host.update();
}

function row(one) {
  return html`<a class="cell flat" href="#/history/observation/${one.id}">${typeBadge(one.obs_type)}<span class="clip code"><bdi>${line(one.content_preview || one.file_path)}</bdi></span>
    <span class="side"><span class="clip"><bdi>${clean(one.project || '')}</bdi></span><span class="num">${when(one.timestamp)}</span></span></a>`;
}

// What is shown beside the list

async function show(kind, id) {
  if (!kind) {
    state.shown = null;
    return past.host.update();
  }
  return past.host.run(async () => {
    const found = await questions.shown.ask(async (signal) => {
      if (kind === 'session') return {kind, trace: await get(`sessions/${part(id)}`, {limit: 1000}, signal)};
      if (kind === 'file') return {kind, file: await get('files', {file_path: id}, signal)};
      const [[one], around] = await Promise.all([post('observations/get', {ids: [Number(id)]}), get(`observations/${id}/timeline`, {before: 6, after: 6}, signal)]);
      return {kind: 'observation', one, around};
    });
    if (found) state.shown = found;
    past.host.update();
  });
}

const shorten = (path) => clean(path).replace(/^.*\/(?=[^/]+\/[^/]+$)/, '…/');

function observation({one, around}) {
  if (!one) return empty('It is gone', 'It was deleted, or belongs to a private repo.');
  const metadata = one.metadata || {};
  const known = new Set(['error', 'output', 'exit_code', 'command', 'cwd']);
  const rest = Object.entries(metadata).filter(([name, content]) => !known.has(name) && content !== null && content !== '');
  return html`<section class="detail" aria-label="Observation"><div class="head"><h2>${typeBadge(one.obs_type)} observation ${one.id}</h2>${closer()}</div>
    <div class="actions"><button @click=${() => pin(one)}>${one.is_pinned ? 'Unpin' : 'Pin'}</button>
      <a class="button" href="#/history/session/${part(one.session_id)}">Session</a>
      ${one.file_path ? html`<a class="button" href="#/history/file/${part(one.file_path)}">File</a>` : nothing}</div>
    <pre class="value"><bdi>${clean(one.content)}</bdi></pre>
    ${metadata.error ? html`<pre class="value bad"><bdi>${clean(metadata.error)}</bdi></pre>` : nothing}
    ${metadata.output ? html`<pre class="value"><bdi>${clean(typeof metadata.output === 'string' ? metadata.output : JSON.stringify(metadata.output, null, 1))}</bdi></pre>` : nothing}
    <table class="plain"><tbody>${[
      ['when', html`${when(one.timestamp)} <span class="quiet">${exact(one.timestamp)}</span>`], ['repo', clean(one.project || '')], ['branch', clean(one.branch || '')],
      ['file', one.file_path ? clean(one.file_path) : ''], ['tool', clean(one.tool_name || '')], ['exit code', metadata.exit_code ?? ''],
      ...rest.map(([name, content]) => [clean(name.replaceAll('_', ' ')), clean(typeof content === 'string' ? content : JSON.stringify(content)).slice(0, 2000)]),
    ].filter(([, text]) => text !== '').map(([label, text]) => html`<tr><th scope="row">${label}</th><td><bdi>${text}</bdi></td></tr>`)}</tbody></table>
    <h3>Before and after</h3><ol class="timeline">${[...around.before, {...around.anchor, isHere: true}, ...around.after].map(step)}</ol></section>`;
}

function step(one) {
  const text = line(one.content_preview ?? one.content ?? one.file_path);
  return html`<li class=${one.isHere ? 'here' : one.obs_type === 'command_error' ? 'bad' : ''}><time title=${exact(one.timestamp)}>${clock(one.timestamp)}</time>${typeBadge(one.obs_type)}
    <a class="clip code" href="#/history/observation/${one.id}" aria-current=${one.isHere ? 'true' : 'false'}><bdi>${text}</bdi></a></li>`;
}

function session({trace}) {
  const summary = trace.summary || {};
  const failed = summary.failed || [];
  return html`<section class="detail" aria-label="Session"><div class="head"><h2>Session <bdi>${clean(trace.session_id)}</bdi></h2>${closer()}</div>
    <div class="actions"><a class="button" href="#/told/session/${part(trace.session_id)}">What it was told</a></div>
    <table class="plain"><tbody>${[
      ['repo', clean(trace.project || 'none')], ['began', html`${when(trace.started_at)} <span class="quiet">${exact(trace.started_at)}</span>`],
      ['ended', trace.ended_at ? html`${when(trace.ended_at)} <span class="quiet">${exact(trace.ended_at)}</span>` : 'not yet'],
      ['asked for', clean(summary.intent || '')], ['files', clean((summary.files || []).map((path) => shorten(path)).join(', '))],
      ['commits', clean((summary.commits || []).map((one) => `${one.hash || ''} ${one.command || ''}`).join('; '))],
    ].filter(([, text]) => text !== '').map(([label, text]) => html`<tr><th scope="row">${label}</th><td><bdi>${text}</bdi></td></tr>`)}</tbody></table>
    ${failed.length ? html`<h3>Failed, and what worked</h3><ul class="lines">${failed.map((one) => html`<li><code class="bad"><bdi>${line(one.command)}</bdi></code>
      <small><a href="#/history/observation/${one.id}">failure</a>${one.passed ? html` · <a href="#/history/observation/${one.passed}">passed later</a>` : ' · never passed'}</small></li>`)}</ul>` : nothing}
    ${trace.prompts.map((one) => html`<section class="prompt">${one.content ? html`<blockquote><small>${one.source} · ${clock(one.timestamp)}</small><bdi>${clean(one.content)}</bdi></blockquote>` : nothing}
      <ol class="timeline">${one.observations.map(step)}</ol></section>`)}
    ${trace.more ? html`<p class="quiet">There is more: nudge trace ${clean(trace.session_id)}</p>` : nothing}</section>`;
}

function file({file: found}) {
  return html`<section class="detail" aria-label="File"><div class="head"><h2 class="code"><bdi>${shorten(found.file_path)}</bdi></h2>${closer()}</div>
    <p class="quiet"><bdi>${clean(found.file_path)}</bdi></p>
    ${found.sessions.length ? found.sessions.map((one) => html`<section class="prompt"><h3><a href="#/history/session/${part(one.session_id)}"><bdi>${clean(one.session_id)}</bdi></a></h3>
      <ol class="timeline">${(one.touches || one.observations || []).map(step)}</ol></section>`) : html`<p class="quiet">No session touched it.</p>`}</section>`;
}

const closer = () => html`<a class="button quiet" href="#/history" aria-label="Close">×</a>`;

async function pin(one, pinned = !one.is_pinned) {
  await past.host.run(async () => {
    await post('observations/pin', {ids: [one.id], pinned});
    past.host.say(pinned ? `Pinned observation ${one.id}: it is never deleted by age` : `Unpinned observation ${one.id}`, () => pin(one, !pinned));
    await show('observation', one.id);
  });
}

const choose = (name) => (text) => {
  state.filters[name] = text || undefined;
  list.selected = -1;
  load();
};

const PARTS = {observation, session, file};

export const past = {
  name: 'history',
  title: 'History',

  enter(parts, query, isNew) {
    if (query.has('q')) state.query = query.get('q');
    if (isNew) load();
    const address = parts.join('/');
    if (address !== state.address) show(parts[0], parts.slice(1).join('/'));
    state.address = address;
  },

  notice(message, isOpen) {
    if (!isOpen || !message.observations?.length || state.query || list.top > 0) return;
    clearTimeout(state.noticeTimer);
    state.noticeTimer = setTimeout(load, 300);
  },

  key(key) {
    if (key === 'j' || key === 'k') list.move(key === 'j' ? 1 : -1, state.items);
    else if (key === 'Enter' && state.items[list.selected]) this.host.go(`/history/observation/${state.items[list.selected].id}`);
    else if (key === 'Escape') this.host.go('/history');
    else return false;
    return true;
  },

  render() {
    const {filters, counts} = state;
    return html`<div class="known ${state.shown ? 'split' : ''}"><section class="main">
      <div class="tools"><input type="search" aria-label="Search the history" placeholder='Search what agents did: words, "a phrase", AND, OR, NOT' .value=${state.query}
        @input=${(event) => { state.query = event.target.value; list.selected = -1; load(); }}></div>
      <div class="facets">${facet('type', 'obs_type', filters.obs_type, counts.type, choose('obs_type'))}${facet('repo', 'project', filters.project, counts.repo, choose('project'))}
        ${facet('client', 'client', filters.client, counts.client, choose('client'))}
        <label class="facet"><span>in the last</span><select name="age" @change=${(event) => choose('age')(Number(event.target.value))}><option value="">any time</option>
          ${AGES.map(([label, days]) => html`<option value=${days} ?selected=${filters.age === days}>${label}</option>`)}</select></label>
        <span class="total num">${state.total === null ? '' : number(state.total)}${state.isPartial ? html` <small>counts in part</small>` : nothing}</span></div>
      ${failure(state.problem)}
      ${state.items.length ? list.render(state.items) : empty('Nothing here', state.query ? 'No observation has these words.' : 'Hooks record what agents do. Connect one with: nudge connect')}</section>
      ${state.shown ? html`<aside class="panel">${PARTS[state.shown.kind](state.shown)}</aside>` : nothing}</div>`;
  },
};
