// History: what agents did; one search with facets, and beside it what is opened.

import {html, nothing} from './vendor/lit-html.js';
import {get, post} from './api.js';
import {List, Newest} from './list.js';
import * as past from './past.js';
import {clean, empty, facet, failure, focusPanel, line, reading, shorten, total, typeBadge, when} from './ui.js';

const PAGE = 100;
const AGES = [
  ['1 day', 1],
  ['7 days', 7],
  ['30 days', 30],
];
const state = {
  ...{query: '', filters: {}, items: null, next: null, total: null, counts: {}, isPartial: false},
  ...{problem: null, shown: null, address: '', isLoading: false, isBusy: false},
};
const questions = {list: new Newest(), facets: new Newest(), shown: new Newest()};
const list = new List({height: 40, row, more, update: () => history.host.update(), label: 'Observations'});
const update = () => history.host.update();

function asked() {
  const {age, ...filters} = state.filters;
  const since = age ? Math.floor(Date.now() / 1000 - age * 86_400) : undefined;
  return {query: state.query, ...filters, since};
}

async function load() {
  const params = asked();
  state.isBusy = true;
  update();
  try {
    const found = await questions.list.ask((signal) => get('browse', {...params, limit: PAGE}, signal));
    if (!found) return;
    Object.assign(state, {isBusy: false, items: found.items, next: found.next, problem: null});
    clearTimeout(state.timer);
    state.timer = setTimeout(() => loadFacets(params), 250);
  } catch (error) {
    if (error.status === 401) history.host.fail(error);
    Object.assign(state, {isBusy: false, problem: error, items: state.items || []});
  }
  update();
}

function loadFacets(params) {
  return history.host.run(async () => {
    const question = {...params, facets: true, limit: 1};
    const found = await questions.facets.ask((signal) => get('browse', question, signal));
    if (found) Object.assign(state, {total: found.total, counts: found.counts, isPartial: found.partial});
    update();
  });
}

async function more() {
  if (!state.next || state.isLoading) return;
  state.isLoading = true;
  await history.host.run(async () => {
    const before = state.next;
    const found = await get('browse', {...asked(), limit: PAGE, before});
    if (before === state.next) Object.assign(state, {items: [...state.items, ...found.items], next: found.next});
  });
  state.isLoading = false;
  update();
}

function row(one, index) {
  const text = one.content_preview || one.file_path;
  const address = `#/history/observation/${one.id}`;
  return html`<a class="cell flat" href=${address} @click=${() => (list.selected = index)}>
    ${typeBadge(one.obs_type)}
    <span class="clip code"><bdi>${one.obs_type.startsWith('file_') ? shorten(text) : line(text)}</bdi></span>
    <span class="side"
      ><span class="clip"><bdi>${clean(one.project || '')}</bdi></span
      >${when(one.timestamp)}</span
    >
  </a>`;
}

async function show(kind, id) {
  if (!kind) {
    questions.shown.cancel();
    state.shown = null;
    return update();
  }
  return history.host.run(async () => {
    const found = await questions.shown.ask((signal) => past.read(kind, id, signal));
    if (!found) return;
    state.shown = found;
    update();
    focusPanel();
  });
}

async function pin(one, pinned = !one.is_pinned) {
  await history.host.run(async () => {
    await post('observations/pin', {ids: [one.id], pinned});
    const said = pinned ? `Pinned observation ${one.id}: it is never deleted by age` : `Unpinned observation ${one.id}`;
    history.host.say(said, () => pin(one, !pinned));
    await show('observation', one.id);
  });
}

const choose = (name) => (text) => {
  state.filters[name] = text || undefined;
  list.reset();
  load();
};

const PARTS = {
  observation: (shown) => past.observation(shown, pin),
  session: past.sessionPart,
  file: past.file,
};

function tools() {
  return html`<div class="tools">
    <input
      type="search"
      aria-label="Search the history"
      placeholder='Search what agents did: words, "a phrase", AND, OR, NOT'
      .value=${state.query}
      @input=${(event) => {
        state.query = event.target.value;
        list.reset();
        load();
      }}
    />
  </div>`;
}

function facets() {
  const {counts, filters} = state;
  return html`<div class="facets">
    ${facet('type', 'obs_type', filters.obs_type, counts.type, choose('obs_type'))}
    ${facet('repo', 'project', filters.project, counts.repo, choose('project'))}
    ${facet('client', 'client', filters.client, counts.client, choose('client'))}
    <label class="facet">
      <span>in the last</span>
      <select name="age" @change=${(event) => choose('age')(Number(event.target.value))}>
        <option value="">any</option>
        ${AGES.map(([label, days]) => html`<option value=${days} ?selected=${filters.age === days}>${label}</option>`)}
      </select>
    </label>
    ${total(state.total, state.isPartial)}
  </div>`;
}

function shown() {
  if (state.items === null) return reading();
  if (state.items.length) return list.render(state.items);
  return state.query || Object.values(state.filters).some(Boolean)
    ? empty('Nothing matches', 'No observation has all of these words. Try fewer, or word OR word.')
    : empty('Nothing here', html`Hooks record what agents do. Connect an agent: <code>nudge connect</code>`);
}

export const history = {
  name: 'history',
  title: 'History',

  enter(parts, query, isNew) {
    if (query.has('q')) state.query = query.get('q');
    if (isNew) load();
    const address = parts.join('/');
    if (isNew || address !== state.address) show(parts[0], parts.slice(1).join('/'));
    state.address = address;
  },

  notice(message, isOpen) {
    if (!isOpen || !message.observations?.length || state.query || list.top > 0) return;
    clearTimeout(state.noticeTimer);
    state.noticeTimer = setTimeout(load, 300);
  },

  key(key) {
    const one = state.items?.[list.selected];
    if (key === 'j' || key === 'k') list.move(key === 'j' ? 1 : -1, state.items || []);
    else if (key === 'Enter' && one) this.host.go(`/history/observation/${one.id}`);
    else if (key === 'Escape') {
      this.host.go('/history');
      list.focus();
    } else return false;
    return true;
  },

  render() {
    return html`<div class="known ${state.shown ? 'split' : ''}">
      <section class="main" aria-label="History" aria-busy=${state.isBusy}>
        ${tools()} ${facets()} ${failure(state.problem)} ${shown()}
      </section>
      ${
        state.shown
          ? html`<aside class="panel" aria-label="Opened">${PARTS[state.shown.kind](state.shown)}</aside>`
          : nothing
      }
    </div>`;
  },
};
