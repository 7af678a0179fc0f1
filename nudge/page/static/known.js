// Known: hints, notes and facts in one list; what an agent in some place would get, and why; one of them in full.

import {html, nothing} from './vendor/lit-html.js';
import {get, part, post, put, remove} from './api.js';
import {KINDS, List, Newest, ago, badge, bar, clean, count, empty, exact, facet, failure, line, number, value, when} from './ui.js';
import {told} from './told.js';

const PAGE = 100;
const AGES = [['1 day', 1], ['7 days', 7], ['30 days', 30], ['90 days', 90]];
const TIERS = ['short', 'mid', 'long'];
const NOTE_KINDS = ['note', 'decision', 'lesson', 'bugfix', 'discovery', 'feature', 'refactor', 'change'];

const state = {
  query: '', filters: {}, place: {}, items: [], total: 0, next: null, counts: {}, isPartial: false,
  answer: null, open: null, edit: null, checked: new Map(), problem: null, isLoading: false,
};
const questions = {list: new Newest(), facets: new Newest(), answer: new Newest(), open: new Newest()};
const list = new List({height: 60, row, more, update: () => known.host.update(), label: 'Hints, notes and facts'});

const keyOf = (item) => `${item.type} ${item.id} ${item.variant || ''} ${item.type === 'fact' ? item.repos[0] : ''}`;

// What is listed

function asked() {
  const {age, ...filters} = state.filters;
  const since = age ? new Date(Date.now() - age * 86_400_000).toISOString() : undefined;
  return {query: state.query, ...filters, since, context: placeGiven()};
}

function placeGiven() {
  const given = Object.fromEntries(Object.entries(state.place).filter(([, text]) => text));
  return Object.keys(given).length ? given : undefined;
}

async function load() {
  const params = asked();
  try {
    const found = await questions.list.ask((signal) => get('known', {...params, limit: PAGE}, signal));
    if (!found) return;
    Object.assign(state, {items: found.items, total: found.total, next: found.next, problem: null});
    known.host.update();
    loadFacets(params);
    loadAnswer();
  } catch (error) {
    if (error.status === 401) known.host.fail(error);
    state.problem = error;
    known.host.update();
  }
}

function loadFacets(params) {
  clearTimeout(state.facetTimer);
  state.facetTimer = setTimeout(() => known.host.run(async () => {
    const found = await questions.facets.ask((signal) => get('known', {...params, facets: true, limit: 1}, signal));
    if (found) Object.assign(state, {counts: found.counts, isPartial: found.partial});
    known.host.update();
  }), 250);
}

async function more() {
  if (!state.next || state.isLoading) return;
  state.isLoading = true;
  const params = asked();
  const after = state.next;
  await known.host.run(async () => {
    const found = await get('known', {...params, limit: PAGE, after});
    if (after === state.next) Object.assign(state, {items: [...state.items, ...found.items], next: found.next});
  });
  state.isLoading = false;
  known.host.update();
}

/** What an agent in the given place would get: hints and notes with their scores. */
async function loadAnswer() {
  const context = placeGiven();
  if (!context) {
    state.answer = null;
    return known.host.update();
  }
  return known.host.run(async () => {
    const query = state.query.trim();
    const found = await questions.answer.ask(async (signal) => {
      const [hints, notes] = await Promise.all([
        get('hints', {context, text: query, limit: 12}, signal),
        query ? post('explain', {query, context, limit: 8}) : post('inject', {context, explain: true}),
      ]);
      return {hints, notes, isStart: !query};
    });
    if (found) state.answer = found;
    known.host.update();
  });
}

// Rows

function row(item, index) {
  const key = keyOf(item);
  const chosen = state.checked.has(key);
  return html`<input type="checkbox" aria-label="Choose ${clean(item.id)}" .checked=${chosen} @change=${() => check(item)}>
    <a class="cell" href="#/known" @click=${(event) => openRow(event, item, index)}>
      <span class="first">${badge(item.kind, KINDS[item.type])}<strong class="clip ${item.type === 'note' ? '' : 'code'}"><bdi>${line(item.title)}</bdi></strong>
        ${item.pinned ? badge('pinned', 'accent') : nothing}
        ${item.applies === false ? badge('not there', 'warn') : item.applies ? badge('applies', 'good') : nothing}</span>
      <span class="second clip ${item.type === 'note' ? '' : 'code'}"><bdi>${line(item.type === 'fact' ? `→ ${item.text}` : item.text)}</bdi></span></a>
    <span class="side"><span class="clip"><bdi>${clean(item.repos.join(', '))}</bdi></span>
      <span class="num">${outcome(item)} ${when(item.updated_at)}</span></span>`;
}

function outcome(item) {
  if (item.type === 'hint') return html`${item.worked ? html`<span class="good" title="worked">+${item.worked}</span>` : nothing}
    ${item.failed ? html`<span class="bad" title="failed">−${item.failed}</span>` : nothing}`;
  return item.type === 'fact' ? html`<span title="sessions">${item.sessions}×</span>` : nothing;
}

function check(item) {
  const key = keyOf(item);
  if (!state.checked.delete(key)) state.checked.set(key, item);
  known.host.update();
}

function openRow(event, item, index) {
  event.preventDefault();
  list.selected = index;
  open(item);
}

// One of them

async function open(item) {
  state.open = {item, full: null, lines: null, calls: []};
  state.edit = null;
  known.host.update();
  await known.host.run(async () => {
    const found = await questions.open.ask((signal) => full(item, signal));
    if (found) state.open = {item, ...found};
  });
  known.host.update();
}

async function full(item, signal) {
  const name = item.type === 'note' ? item.id : item.id;
  const lines = get('told', {line: name, limit: 20}, signal);
  if (item.type === 'note') {
    const id = item.id.slice(1);
    const [found, shown] = await Promise.all([get(`memories/${id}`, {}, signal), lines]);
    return {full: found.memory, links: found.links, lines: shown};
  }
  if (item.type === 'fact') return {full: item, lines: await lines};
  const [component] = splitName(item);
  const words = item.id.split(/[^\p{L}\p{N}]+/u).filter(Boolean).map((word) => `"${word}"`).join(' AND ');
  const [exported, shown, calls] = await Promise.all([
    get('hints/export', {component, reveal: false}, signal), lines,
    get('browse', {query: `(nudge_set_hint OR "nudge set") AND ${words} `, limit: 5}, signal).catch(() => ({items: []})),
  ]);
  return {full: variantIn(exported.payload, item), lines: shown, calls: calls.items};
}

/** The component and the key of a hint, whose name is both with a slash between. */
function splitName(item) {
  return [item.component, item.key];
}

const sameScope = (one, other) => JSON.stringify(sorted(one || {})) === JSON.stringify(sorted(other || {}));

function sorted(content) {
  if (Array.isArray(content)) return content.map(sorted);
  if (content === null || typeof content !== 'object') return content;
  return Object.fromEntries(Object.keys(content).sort().map((name) => [name, sorted(content[name])]));
}

function variantIn(payload, item) {
  const [component, key] = splitName(item);
  const hints = payload.components[component]?.hints || {};
  const variants = [hints[key]].flat(2).filter(Boolean);
  return variants.find((one) => sameScope(one.meta?.scope, item.scope)) || variants[0] || null;
}

// Changes, each with its undo

const sets = (item) => `hints/${splitName(item).map(part).join('/')}`;
const restore = (item, hint) => {
  const [component, key] = splitName(item);
  return post('hints/import', {mode: 'merge', payload: {schema_version: '1.0', components: {[component]: {hints: {[key]: hint}}}}});
};

async function removeOne(item) {
  if (item.type === 'hint') {
    const {previous} = await remove(sets(item), {scope: item.scope});
    return () => restore(item, Array.isArray(previous) ? previous[0] : previous);
  }
  if (item.type === 'note') {
    const id = item.id.slice(1);
    const {memory, links} = await get(`memories/${id}`);
    await remove(`memories/${id}`);
    return () => storeAgain(memory, links);
  }
  await remove('learned', {project: item.repos[0], subject: item.title});
  return null;
}

/** A deleted note comes back with its text, fields and links, under a new number. */
async function storeAgain(memory, links) {
  const kept = ['title', 'content', 'kind', 'tier', 'tags', 'priority', 'confidence', 'namespace', 'source', 'metadata', 'expires_at'];
  const stored = await post('memories', Object.fromEntries(kept.filter((name) => memory[name] !== undefined).map((name) => [name, memory[name]])));
  for (const one of links) {
    const ends = {source_id: one.source_id, target_id: one.target_id, relation: one.relation};
    for (const end of ['source_id', 'target_id']) if (ends[end] === memory.id) ends[end] = stored.id;
    await post('links', ends);
  }
}

async function archive(items) {
  const ids = items.map((item) => Number(item.id.slice(1)));
  await post('forget', {ids});
  return () => Promise.all(ids.map((id) => post(`archive/${id}/restore`, {id})));
}

/** Do it to all that are given, then say so once; one undo takes everything back. */
async function change(verb, items, work) {
  await known.host.run(async () => {
    const undos = (await Promise.all(items.map(work))).filter(Boolean);
    const said = items.length === 1 ? `${verb} ${line(items[0].title)}` : `${verb} ${items.length}`;
    known.host.say(said, undos.length ? async () => {
      await Promise.all(undos.map((undo) => undo()));
      load();
    } : undefined);
    state.checked.clear();
    if (state.open && items.includes(state.open.item) && verb !== 'Pinned' && verb !== 'Unpinned') state.open = null;
  });
  await load();
}

async function pin(item) {
  const id = item.id.slice(1);
  const before = item.tags;
  const tags = item.pinned ? before.filter((tag) => tag !== 'pinned') : [...before, 'pinned'];
  await put(`memories/${id}`, {tags});
  return () => put(`memories/${id}`, {tags: before});
}

async function bump(item, delta) {
  await known.host.run(async () => {
    await post(`${sets(item)}/bump`, {delta, scope: item.scope});
    known.host.say(delta > 0 ? 'Counted a success' : 'Counted a failure', async () => {
      await restore(item, state.open?.full);
      load();
    });
  });
  await load();
  reopen();
}

function reopen() {
  const item = state.open && state.items.find((one) => keyOf(one) === keyOf(state.open.item));
  if (item) open(item);
}

// Editing

function editHint(item, hint) {
  const meta = hint?.meta || {};
  const content = hint?.value;
  const isJson = content && typeof content === 'object' && !(content.cmd || content.abs || content.body);
  state.edit = {
    type: 'hint', item, version: hint?.version, old: hint, isNew: !item,
    fields: {
      component: item?.component || '', key: item?.key || '', value: hint ? value(content) : '', reason: meta.reason || '',
      tags: (meta.tags || []).join(', '), scope: hint ? JSON.stringify(meta.scope || {}) : newScope(), isJson,
    },
  };
  known.host.update();
  setTimeout(() => document.querySelector('.edit input, .edit textarea')?.focus());
}

const newScope = () => JSON.stringify(state.place.repo ? {repo: [state.place.repo]} : {});

function editNote(item, memory) {
  state.edit = {
    type: 'note', item, old: memory, isNew: !item,
    fields: {
      title: memory?.title || '', content: memory?.content || '', kind: memory?.kind || 'note', tier: memory?.tier || 'long',
      tags: (memory?.tags || []).join(', '), priority: String(memory?.priority ?? 5), namespace: memory?.namespace || state.filters.repo || '',
    },
  };
  known.host.update();
  setTimeout(() => document.querySelector('.edit input, .edit textarea')?.focus());
}

function newValue(fields, old) {
  if (fields.isJson) return JSON.parse(fields.value);
  if (old && typeof old === 'object') {
    const name = ['cmd', 'abs', 'body'].find((one) => one in old);
    return {...old, [name]: fields.value};
  }
  return fields.value;
}

const words = (text) => text.split(',').map((one) => one.trim()).filter(Boolean);

async function save(event) {
  event.preventDefault();
  const {type, fields, old, isNew, item} = state.edit;
  try {
    if (type === 'hint') {
      const {version: _, ...meta} = old?.meta || {};
      const whole = {...meta, scope: JSON.parse(fields.scope || '{}'), tags: words(fields.tags)};
      if (fields.reason) whole.reason = fields.reason;
      else delete whole.reason;
      const body = {value: newValue(fields, old?.value), meta: whole, if_match_version: isNew ? 0 : state.edit.version};
      await put(`hints/${part(fields.component.trim())}/${part(fields.key.trim())}`, body);
      known.host.say(isNew ? 'Set a new hint' : 'Saved the hint', isNew ? undefined : async () => {
        await put(sets(item), {value: old.value, meta: {...old.meta, scope: old.meta.scope || {}}});
        load();
      });
    } else {
      const given = {title: fields.title, content: fields.content, kind: fields.kind, tier: fields.tier, tags: words(fields.tags), priority: Number(fields.priority)};
      if (isNew) await post('memories', {...given, namespace: fields.namespace || undefined});
      else await put(`memories/${old.id}`, given);
      known.host.say(isNew ? 'Stored a new note' : 'Saved the note', isNew ? undefined : async () => {
        const kept = ['title', 'content', 'kind', 'tier', 'tags', 'priority'];
        await put(`memories/${old.id}`, Object.fromEntries(kept.map((name) => [name, old[name]])));
        load();
      });
    }
    state.edit = null;
    await load();
    reopen();
  } catch (error) {
    state.edit.problem = error;
    known.host.update();
  }
}

function field(name, label, kind = 'text', more = {}) {
  const {fields} = state.edit;
  const onInput = (event) => {
    fields[name] = event.target.value;
  };
  const content = kind === 'area' ? html`<textarea name=${name} rows=${more.rows || 5} spellcheck="false" .value=${fields[name]} @input=${onInput}></textarea>`
    : kind === 'choice' ? html`<select name=${name} @change=${onInput}>${more.options.map((one) => html`<option ?selected=${one === fields[name]}>${one}</option>`)}</select>`
    : html`<input name=${name} type=${kind} spellcheck="false" autocomplete="off" ?disabled=${more.isFixed} .value=${fields[name]} @input=${onInput}>`;
  return html`<label><span>${label}</span>${content}</label>`;
}

function form() {
  const {type, isNew, problem} = state.edit;
  const title = `${isNew ? 'New' : 'Edit'} ${type}`;
  return html`<form class="edit" @submit=${save} aria-label=${title}><h2>${title}</h2>${failure(problem)}
    ${type === 'hint' ? html`<div class="pair">${field('component', 'component', 'text', {isFixed: !isNew})}${field('key', 'key', 'text', {isFixed: !isNew})}</div>
      ${field('value', 'value', 'area')}${field('reason', 'reason')}${field('tags', 'tags, with commas')}${field('scope', 'scope (JSON; {} is everywhere)')}`
    : html`${field('title', 'title')}${field('content', 'text', 'area', {rows: 9})}
      <div class="pair">${field('kind', 'kind', 'choice', {options: NOTE_KINDS})}${field('tier', 'tier', 'choice', {options: TIERS})}</div>
      <div class="pair">${field('tags', 'tags, with commas')}${field('priority', 'priority', 'number')}</div>
      ${isNew ? field('namespace', 'repo (empty: everywhere)') : nothing}`}
    <div class="actions"><button class="primary" type="submit">Save</button>
      <button type="button" @click=${() => { state.edit = null; known.host.update(); }}>Cancel</button></div></form>`;
}

// Detail

function detail() {
  const {item, full: whole, lines, links, calls} = state.open;
  return html`<section class="detail" aria-label="Detail">
    <div class="head"><h2 class="code"><bdi>${clean(item.title)}</bdi></h2><button class="quiet" aria-label="Close" @click=${close}>×</button></div>
    <div class="meta">${badge(item.kind, KINDS[item.type])} ${item.tags.map((tag) => badge(tag))} <span><bdi>${clean(item.repos.join(', '))}</bdi></span></div>
    ${whole === null ? html`<p class="quiet">Reading…</p>` : html`
      <div class="actions">${actions(item, whole)}</div>
      ${item.type === 'hint' ? hintBody(item, whole, calls) : item.type === 'note' ? noteBody(whole, links) : factBody(item)}
      ${tellings(lines)}`}</section>`;
}

function actions(item, whole) {
  const act = (label, work, kind = '') => html`<button class=${kind} @click=${work}>${label}</button>`;
  if (item.type === 'hint') return [
    act('Edit', () => editHint(item, whole)), act('Worked', () => bump(item, 1)), act('Failed', () => bump(item, -1)),
    act('Delete', () => change('Deleted', [item], removeOne), 'danger'),
  ];
  if (item.type === 'note') return [
    act('Edit', () => editNote(item, whole)), act(item.pinned ? 'Unpin' : 'Pin', () => change(item.pinned ? 'Unpinned' : 'Pinned', [item], pin).then(reopen)),
    act('Archive', () => change('Archived', [item], () => archive([item]))), act('Delete', () => change('Deleted', [item], removeOne), 'danger'),
  ];
  return [act('Forget', () => confirm(`Forget what was learned about ${clean(item.title)}? The next failure may teach it again.`) && change('Forgot', [item], removeOne), 'danger')];
}

function hintBody(item, hint, calls) {
  const meta = hint.meta || {};
  return html`<pre class="value"><bdi>${clean(hint.redacted ? '(a secret; read it with: nudge get --value-only)' : value(hint.value))}</bdi></pre>
    ${meta.reason ? html`<p class="reason"><bdi>${clean(meta.reason)}</bdi></p>` : nothing}
    ${table([
      ['set by', clean(meta.added_by || meta.source || '–')],
      ['first set', html`${when(hint.created_at)} <span class="quiet">${exact(hint.created_at)}</span>`],
      ['last set', html`${when(hint.updated_at)} <span class="quiet">${exact(hint.updated_at)}</span>`],
      ['version', number(hint.version)],
      ['worked, failed', `${number(hint.use_count)}, ${number(hint.failure_count)}`],
      ['last worked', hint.last_used_at ? when(hint.last_used_at) : ''],
      ['kept', clean(meta.ttl || 'until it is not used for 30 days')],
      ['scope', html`<code><bdi>${clean(JSON.stringify(meta.scope || {}))}</bdi></code>`],
    ])}
    ${item.reasons ? html`<p class=${item.applies ? 'good' : 'warn'}>${item.applies ? 'Applies there' : 'Does not apply there'}: <bdi>${clean(item.reasons.join('; '))}</bdi></p>` : nothing}
    ${calls?.length ? html`<h3>Recorded calls that set it</h3><ul class="lines">${calls.map((one) => html`<li><a href="#/history/observation/${one.id}"><bdi>${line(one.content_preview)}</bdi></a>
      <small>${clean(one.client || '')} · session <a href="#/history/session/${part(one.session_id)}">${clean(one.session_id.slice(0, 8))}</a> · ${ago(one.timestamp)}</small></li>`)}</ul>` : nothing}`;
}

function noteBody(memory, links) {
  return html`<div class="text"><bdi>${clean(memory.content)}</bdi></div>
    ${table([
      ['number', `m${memory.id}`],
      ['stored by', clean([memory.source, memory.origin?.client].filter((one, place, all) => one && all.indexOf(one) === place).join(', '))],
      ['in session', memory.origin?.session ? html`<a href="#/history/session/${part(memory.origin.session)}">${clean(memory.origin.session)}</a>` : ''],
      ['branch', clean(memory.origin?.branch || '')],
      ['stored', html`${when(memory.created_at)} <span class="quiet">${exact(memory.created_at)}</span>`],
      ['changed', html`${when(memory.updated_at)} <span class="quiet">${exact(memory.updated_at)}</span>`],
      ['tier', `${memory.tier}${memory.expires_at ? `, until ${exact(memory.expires_at)}` : ''}`],
      ['priority', number(memory.priority)],
      ['recalled', count(memory.access_count || 0, 'time')],
      ['files', clean((memory.metadata?.files || []).join(', '))],
    ])}
    ${links?.length ? html`<h3>Links</h3><ul class="lines">${links.map((one) => link(memory.id, one))}</ul>` : nothing}`;
}

function link(id, one) {
  const other = one.source_id === id ? one.target_id : one.source_id;
  const word = one.relation.replaceAll('_', ' ');
  const show = (event) => {
    event.preventDefault();
    open({type: 'note', kind: 'note', id: `m${other}`, title: one.title || `m${other}`, tags: [], repos: []});
  };
  return html`<li>${one.source_id === id ? word : `is what ${word}`} <a href="#/known" @click=${show}>m${other} <bdi>${line(one.title || '')}</bdi></a></li>`;
}

function factBody(item) {
  return html`<pre class="value bad"><bdi>${clean(item.error)}</bdi></pre><pre class="value good"><bdi>${clean(item.text)}</bdi></pre>
    ${table([['learned in', count(item.sessions, 'session')], ['last', when(item.updated_at)],
      ['last time', html`<a href="#/history/observation/${item.observation}">observation ${item.observation}</a>`]])}`;
}

function tellings(lines) {
  if (!lines?.total) return html`<h3>Told</h3><p class="quiet">No agent was told it yet.</p>`;
  const used = lines.lines.filter((one) => one.used_at).length;
  return html`<h3>Told ${count(lines.total, 'time')}, used ${used === lines.lines.length ? used : `${used} of the last ${lines.lines.length}`}</h3>
    <ul class="lines">${lines.lines.slice(0, 8).map((one) => html`<li><a href="#/told/session/${part(one.session_id)}">${clean(one.project || 'no repo')}, on ${one.moment}</a>
      ${one.used_at ? badge('used', 'good') : badge('not used')} <small>${ago(one.timestamp)}</small></li>`)}</ul>
    <div class="actions"><button class="danger" @click=${() => told.ban(lines.lines[0])}>Never tell this again</button></div>`;
}

export function table(pairs) {
  return html`<table class="plain"><tbody>${pairs.filter(([, text]) => text !== '' && text !== undefined).map(([label, text]) => html`
    <tr><th scope="row">${label}</th><td><bdi>${text}</bdi></td></tr>`)}</tbody></table>`;
}

function close() {
  state.open = null;
  known.host.update();
}

// What an agent would get

const WEIGHTS = ['frecency', 'priority', 'confidence', 'specificity', 'recency'];

function answer() {
  const {hints, notes, isStart} = state.answer;
  const excluded = state.items.filter((item) => item.applies === false);
  const items = notes.items || [];
  const most = Math.max(1e-9, ...items.map((one) => one.score?.total || 0));
  return html`<section class="answer" aria-label="What an agent there would get">
    <h2>What an agent there would get${isStart ? '' : html` for “<bdi>${clean(state.query)}</bdi>”`}</h2>
    <div class="columns"><div><h3>Hints, best first</h3>
      ${hints.hints.length ? html`<ol class="ranked">${hints.hints.map((hit) => html`<li><strong class="code clip"><bdi>${line(`${hit.component}/${hit.key}`)}</bdi></strong>
        <code class="clip"><bdi>${line(value(hit.hint.value))}</bdi></code>
        ${bar('score', hit.score, hit.score.toFixed(2))}
        <details><summary>why</summary>${WEIGHTS.filter((name) => name in (hit.match_explain.components || {})).map((name) =>
          bar(name, hit.match_explain.components[name], hit.match_explain.components[name].toFixed(2)))}
          <small><bdi>${clean(hit.match_explain.reasons.join('; '))}</bdi></small></details></li>`)}</ol>`
      : html`<p class="quiet">No hint applies.</p>`}</div>
    <div><h3>${isStart ? 'Told at its start' : 'Notes, best first'}</h3>
      ${items.length ? html`<ol class="ranked">${items.map((one) => html`<li><strong class="clip"><bdi>${line(one.title)}</bdi></strong>
        ${bar('score', (one.score?.total || 0) / most, (one.score?.total || 0).toFixed(2))}
        <small><bdi>${clean([...(one.matches?.reasons || []), ...(one.matches?.query_terms?.length ? [`words: ${one.matches.query_terms.join(', ')}`] : [])].join('; '))}</bdi></small></li>`)}</ol>`
      : html`<p class="quiet">${isStart ? 'It would be told nothing.' : 'No note has these words.'}</p>`}</div>
    <div><h3>Excluded, and why</h3>
      ${excluded.length ? html`<ul class="ranked">${excluded.slice(0, 20).map((item) => html`<li><strong class="code clip"><bdi>${line(item.id)}</bdi></strong>
        <small class="warn"><bdi>${clean(item.reasons.join('; '))}</bdi></small></li>`)}</ul>` : html`<p class="quiet">Nothing that is listed.</p>`}</div></div></section>`;
}

function place() {
  const input = (name, label, hint) => html`<label><span>${label}</span><input name="place-${name}" placeholder=${hint} spellcheck="false" autocomplete="off"
    .value=${state.place[name] || ''} @input=${(event) => { state.place[name] = event.target.value.trim(); load(); }}></label>`;
  return html`<details class="place" ?open=${Boolean(placeGiven())}><summary>What would an agent get, and why?</summary><div class="fields">
    ${input('repo', 'repo', 'git:github.com/acme/api')}${input('branch', 'branch', 'main')}${input('cwd', 'directory', '/home/me/api')}
    <label><span>OS</span><select name="place-os" @change=${(event) => { state.place.os = event.target.value; load(); }}>
      ${['', 'linux', 'darwin', 'windows'].map((one) => html`<option value=${one} ?selected=${one === (state.place.os || '')}>${one || 'any'}</option>`)}</select></label></div></details>`;
}

function choose(name) {
  return (text) => {
    state.filters[name] = text || undefined;
    list.selected = -1;
    load();
  };
}

function bulk() {
  const items = [...state.checked.values()];
  if (!items.length) return nothing;
  const notes = items.filter((item) => item.type === 'note');
  const others = items.filter((item) => item.type !== 'fact');
  return html`<div class="bulk" role="toolbar" aria-label="Chosen"><strong>${items.length} chosen</strong>
    ${notes.length ? html`<button @click=${() => change('Archived', notes, (item) => archive([item]))}>Archive ${count(notes.length, 'note')}</button>
      <button @click=${() => change('Pinned', notes.filter((item) => !item.pinned), pin)}>Pin</button>` : nothing}
    ${others.length ? html`<button class="danger" @click=${() => change('Deleted', others, removeOne)}>Delete ${others.length}</button>` : nothing}
    <button class="quiet" @click=${() => { state.checked.clear(); known.host.update(); }}>Clear</button></div>`;
}

export const known = {
  name: 'known',
  title: 'Known',

  enter(parts, query, isNew) {
    if (query.has('q')) state.query = query.get('q');
    if (isNew) load();
  },

  notice(message, isOpen) {
    if (!isOpen || !message.changed?.some((what) => what === 'hints' || what === 'notes' || what === 'told')) return;
    clearTimeout(state.changeTimer);
    state.changeTimer = setTimeout(async () => {
      await load();
      if (!state.edit) reopen();
    }, 150);
  },

  key(key) {
    if (key === 'j' || key === 'k') list.move(key === 'j' ? 1 : -1, state.items);
    else if (key === 'Enter' && state.items[list.selected]) open(state.items[list.selected]);
    else if (key === 'x' && state.items[list.selected]) check(state.items[list.selected]);
    else if (key === 'n') editHint(null, null);
    else if (key === 'Escape') {
      if (state.edit) state.edit = null;
      else state.open = null;
      this.host.update();
    } else return false;
    return true;
  },

  render() {
    const {counts, filters} = state;
    return html`<div class="known ${state.open || state.edit ? 'split' : ''}">
      <section class="main">
        <div class="tools"><input type="search" aria-label="Search hints, notes and facts" placeholder="Search hints, notes and facts" .value=${state.query}
          @input=${(event) => { state.query = event.target.value; list.selected = -1; load(); }}>
          <button @click=${() => editHint(null, null)}>New hint</button><button @click=${() => editNote(null, null)}>New note</button></div>
        <div class="facets">${facet('type', 'type', filters.type, counts.type, choose('type'))}${facet('repo', 'repo', filters.repo, counts.repo, choose('repo'))}
          ${facet('kind', 'kind', filters.kind, counts.kind, choose('kind'))}${facet('tag', 'tag', filters.tag, counts.tag, choose('tag'))}
          ${facet('by', 'by', filters.by, counts.by, choose('by'))}
          <label class="facet"><span>changed in</span><select name="age" @change=${(event) => choose('age')(Number(event.target.value))}>
            <option value="">any time</option>${AGES.map(([label, days]) => html`<option value=${days} ?selected=${filters.age === days}>${label}</option>`)}</select></label>
          <span class="total num">${number(state.total)}${state.isPartial ? html` <small title="There was no time to count every facet of everything">counts in part</small>` : nothing}</span></div>
        ${place()}${state.answer ? answer() : nothing}${bulk()}${failure(state.problem)}
        ${state.items.length ? list.render(state.items) : state.query || Object.values(filters).some(Boolean)
          ? empty('Nothing matches', 'Fewer words or filters find more.') : empty('Nothing is known yet', 'Set a hint here, or with: nudge set api test "make test"')}
      </section>
      ${state.edit ? html`<aside class="panel">${form()}</aside>` : state.open ? html`<aside class="panel">${detail()}</aside>` : nothing}</div>`;
  },
};
