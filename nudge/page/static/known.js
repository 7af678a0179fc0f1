// Known: hints, notes and facts in one list; one of them in full; several changed at once.

import {html, nothing} from './vendor/lit-html.js';
import {get} from './api.js';
import * as changes from './changes.js';
import {Edit, focusForm, form} from './edit.js';
import {WHY, addressOf, detail, find, isNote, keyOf, read} from './item.js';
import {List, Newest} from './list.js';
import * as place from './place.js';
import * as review from './proposals.js';
import {KINDS, badge, clean, count, empty, facet, failure, focusPanel, line, reading, total, when} from './ui.js';

const PAGE = 100;
const AGES = [
  ['1 day', 1],
  ['7 days', 7],
  ['30 days', 30],
  ['90 days', 90],
];
const ARCHIVED = 'archived';
const SHOWS = new Set(['hints', 'notes', 'told']); // changes that this view shows

const state = {
  ...{query: '', filters: {}, items: null, total: null, next: null, counts: {}, isPartial: false},
  ...{
    open: null,
    address: '',
    edit: null,
    asks: false,
    checked: new Map(),
    problem: null,
    isLoading: false,
    isBusy: false,
  },
};
const questions = {list: new Newest(), facets: new Newest(), open: new Newest()};
const list = new List({height: 58, row, more, update: () => known.host.update(), label: 'Hints, notes and facts'});
const update = () => known.host.update();

// What is listed

function asked() {
  const {age, ...filters} = state.filters;
  const since = age ? new Date(Date.now() - age * 86_400_000).toISOString() : undefined;
  return {query: state.query, ...filters, since, context: place.context()};
}

async function load() {
  const params = asked();
  state.isBusy = true;
  update();
  try {
    const found = await questions.list.ask((signal) => get('known', {...params, limit: PAGE}, signal));
    if (!found) return;
    Object.assign(state, {isBusy: false, items: found.items, total: found.total, next: found.next, problem: null});
  } catch (error) {
    if (error.status === 401) known.host.fail(error);
    Object.assign(state, {isBusy: false, problem: error, items: state.items || []});
    return update();
  }
  update();
  clearTimeout(state.facetTimer);
  state.facetTimer = setTimeout(() => loadFacets(params), 250);
  await place.ask(state.query);
  return update();
}

function loadFacets(params) {
  return known.host.run(async () => {
    const question = {...params, facets: true, limit: 1};
    const found = await questions.facets.ask((signal) => get('known', question, signal));
    if (found) Object.assign(state, {counts: found.counts, isPartial: found.partial});
    update();
  });
}

async function more() {
  if (!state.next || state.isLoading) return;
  state.isLoading = true;
  const after = state.next;
  await known.host.run(async () => {
    const found = await get('known', {...asked(), limit: PAGE, after});
    if (after === state.next) Object.assign(state, {items: [...state.items, ...found.items], next: found.next});
  });
  state.isLoading = false;
  update();
}

function changedSearch() {
  list.reset();
  load();
}

// Rows

function row(item, index) {
  const words = isNote(item) ? '' : 'code';
  const text = item.type === 'fact' ? `→ ${item.text}` : item.text;
  const isOpen = state.open && keyOf(state.open.item) === keyOf(item);
  return html`<input
      type="checkbox"
      aria-label="Choose ${clean(item.id)}"
      .checked=${state.checked.has(keyOf(item))}
      @change=${() => check(item)}
    />
    <a
      class="cell"
      href=${addressOf(item)}
      aria-current=${isOpen ? 'true' : 'false'}
      @click=${() => (list.selected = index)}
    >
      <span class="first">
        ${badge(item.kind, KINDS[item.type])}<strong class="clip ${words}"><bdi>${line(item.title)}</bdi></strong>
        ${item.pinned ? badge('pinned', 'accent') : nothing} ${applies(item)}
      </span>
      <span class="second clip ${words}"><bdi>${line(text)}</bdi></span>
    </a>
    <span class="side">
      <span class="clip"><bdi>${clean(item.repos.join(', '))}</bdi></span>
      <span class="num">${outcome(item)} ${when(item.updated_at)}</span>
    </span>`;
}

const applies = (item) =>
  item.applies === undefined ? nothing : item.applies ? badge('applies', 'good') : badge('not there', 'warn');

function outcome(item) {
  if (item.type === ARCHIVED) return clean(WHY[item.reason] || item.reason);
  if (item.type === 'fact') return html`<span title="sessions">${item.sessions}×</span>`;
  return html`${item.worked ? html`<span class="good" title="worked">+${item.worked}</span>` : nothing}
  ${item.failed ? html`<span class="bad" title="failed">−${item.failed}</span>` : nothing}`;
}

function check(item) {
  const key = keyOf(item);
  if (!state.checked.delete(key)) state.checked.set(key, item);
  update();
}

// The one that is open

async function show(id, query) {
  state.edit = null;
  state.asks = false;
  if (!id) {
    questions.open.cancel();
    state.open = null;
    return update();
  }
  return known.host.run(async () => {
    const found = await questions.open.ask(async (signal) => {
      const item = await find(id, query, state.items || [], signal);
      if (!item) return {item: {type: 'hint', kind: 'gone', id, title: id, tags: [], repos: []}, full: null};
      if (!state.open || state.open.item.id !== id) state.open = {item, full: undefined};
      update();
      return read(item, signal).catch((error) => {
        if (error.status === 404) return {item, full: null};
        throw error;
      });
    });
    if (!found) return;
    const isNew = !state.open?.full;
    state.open = found;
    update();
    if (isNew) focusPanel();
  });
}

const reopen = () => state.address && show(...state.address);

function close() {
  if (state.edit) {
    state.edit = null;
    update();
    focusPanel();
  } else if (state.open) {
    known.host.go('/known');
    list.focus();
  }
}

// Changes, each with its undo

/** Do it to all that are given, then say so once; one undo takes everything back. */
async function change(said, items, work) {
  await known.host.run(async () => {
    const undos = (await Promise.all(items.map(work))).filter(Boolean);
    state.checked.clear();
    known.host.say(
      items.length === 1 ? `${said} ${line(items[0].title)}` : `${said} ${items.length}`,
      undos.length &&
        (async () => {
          await Promise.all(undos.map((undo) => undo()));
          await load();
          reopen();
        }),
    );
  });
  await load();
}

/** The same, for what is gone afterwards. */
async function take(said, items, work) {
  const isOpen = state.open && items.some((item) => keyOf(item) === keyOf(state.open.item));
  await change(said, items, work);
  if (isOpen) known.host.go('/known');
}

async function keep(said, item, work) {
  await change(said, [item], work);
  reopen();
}

function edit(type, item, old) {
  state.edit = new Edit(type, item, old, place.repoGiven() || state.filters.repo);
  update();
  focusForm();
}

async function save(event) {
  event.preventDefault();
  const {edit: saved} = state;
  if (saved.isSaving) return;
  saved.isSaving = true;
  try {
    const undo = await saved.save();
    known.host.say(
      saved.old ? `Saved the ${saved.type}` : `Stored a new ${saved.type}`,
      undo &&
        (async () => {
          await undo();
          await load();
          reopen();
        }),
    );
    state.edit = null;
    await load();
    await reopen();
    focusPanel();
  } catch (error) {
    saved.problem = error;
    saved.isSaving = false;
    update();
  }
}

/** A change that nothing takes back. */
const forGood = (work) => async (item) => {
  await work(item);
};

function actions({item, full}) {
  const act = (label, work, kind = '') => html`<button class=${kind} @click=${work}>${label}</button>`;
  const remove = act('Delete', () => take('Deleted', [item], changes.removeItem), 'danger');
  if (item.type === 'hint') {
    return [
      act('Edit', () => edit('hint', item, full)),
      act('Worked', () =>
        keep(
          'Counted a success of',
          item,
          forGood((one) => changes.bump(one, 1)),
        ),
      ),
      act('Failed', () =>
        keep(
          'Counted a failure of',
          item,
          forGood((one) => changes.bump(one, -1)),
        ),
      ),
      remove,
    ];
  }
  if (item.type === 'note') {
    return [
      act('Edit', () => edit('note', item, full)),
      act(item.pinned ? 'Unpin' : 'Pin', () => keep(item.pinned ? 'Unpinned' : 'Pinned', item, changes.pin)),
      act('Archive', () => take('Archived', [item], changes.archive)),
      remove,
    ];
  }
  if (item.type === 'archived') return [act('Restore', () => keep('Restored', item, changes.restore))];
  if (!state.asks) return [act('Forget', () => ask(true), 'danger')];
  return [
    html`<span>This cannot be undone; the next failure may teach it again.</span>`,
    act('Forget it', () => take('Forgot', [item], forGood(changes.forget)), 'danger'),
    act('Keep it', () => ask(false)),
  ];
}

/** Set what the open hint said before. */
function again(version) {
  const {item, full} = state.open;
  return keep('Set again', item, () => changes.setAgain(item, full, version));
}

function ask(asks) {
  state.asks = asks;
  update();
}

// The frame of the view

function choose(name) {
  return (text) => {
    state.filters[name] = text || undefined;
    changedSearch();
  };
}

function bulk() {
  const items = [...state.checked.values()];
  if (!items.length) return nothing;
  const notes = items.filter((item) => item.type === 'note');
  const unpinned = notes.filter((item) => !item.pinned);
  const others = items.filter((item) => item.type === 'hint' || item.type === 'note');
  const archived = items.filter((item) => item.type === 'archived');
  const archive = () => take('Archived', notes, changes.archive);
  const remove = () => take('Deleted', others, changes.removeItem);
  const act = (label, work, kind = '') => html`<button class=${kind} @click=${work}>${label}</button>`;
  return html`<div class="bulk" role="toolbar" aria-label="Chosen">
    <strong>${items.length} chosen</strong>
    ${notes.length ? act(`Archive ${count(notes.length, 'note')}`, archive) : nothing}
    ${unpinned.length ? act(`Pin ${unpinned.length}`, () => change('Pinned', unpinned, changes.pin)) : nothing}
    ${archived.length ? act(`Restore ${archived.length}`, () => take('Restored', archived, changes.restore)) : nothing}
    ${others.length ? act(`Delete ${others.length}`, remove, 'danger') : nothing}
    ${act('Clear', () => (state.checked.clear(), update()), 'quiet')}
  </div>`;
}

function tools() {
  return html`<div class="tools">
    <input
      type="search"
      aria-label="Search hints, notes and facts"
      placeholder="Search hints, notes and facts"
      .value=${state.query}
      @input=${(event) => {
        state.query = event.target.value;
        changedSearch();
      }}
    />
    <button @click=${() => edit('hint', null, null)}>New hint</button>
    <button @click=${() => edit('note', null, null)}>New note</button>
  </div>`;
}

const counted = (type) => (state.counts.type || []).find(([one]) => one === type)?.[1] || 0;

function facets() {
  const {counts, filters} = state;
  const one = (name) => facet(name, name, filters[name], counts[name], choose(name));
  const types = [...(counts.type || []).filter(([type]) => type !== ARCHIVED), [ARCHIVED, counted(ARCHIVED)]];
  return html`<div class="facets">
    ${facet('type', 'type', filters.type, types, choose('type'))} ${['repo', 'kind', 'tag', 'by'].map(one)}
    <label class="facet">
      <span>changed in</span>
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
    ? empty('Nothing matches', 'Fewer words or filters find more.')
    : empty(
        'Nothing is known yet',
        html`Set a hint here, or in a terminal: <code>nudge set api test "make test"</code>`,
      );
}

export const known = {
  name: 'known',
  title: 'Known',

  enter(parts, query, isNew) {
    if (query.has('q')) state.query = query.get('q');
    if (query.has('type')) state.filters.type = query.get('type');
    const name = parts.join('/');
    const address = name ? [name, query] : null;
    const isOther = String(address) !== String(state.address);
    state.address = address;
    if (isNew) {
      load();
      review.load(this.host);
    }
    if (isNew || isOther) show(name, query);
  },

  notice(message, isOpen) {
    if (!isOpen || !message.changed?.some((what) => SHOWS.has(what))) return;
    clearTimeout(state.changeTimer);
    state.changeTimer = setTimeout(async () => {
      await load();
      review.load(this.host);
      if (!state.edit && !state.asks) reopen();
    }, 150);
  },

  key(key) {
    const item = state.items?.[list.selected];
    if (key === 'j' || key === 'k') list.move(key === 'j' ? 1 : -1, state.items || []);
    else if (key === 'Enter' && item) this.host.go(addressOf(item).slice(1));
    else if (key === 'x' && item) check(item);
    else if (key === 'e' && state.open?.full && ['hint', 'note'].includes(state.open.item.type))
      edit(state.open.item.type, state.open.item, state.open.full);
    else if (key === 'n') edit('hint', null, null);
    else if (key === 'Escape') close();
    else return false;
    return true;
  },

  render() {
    const side = state.edit
      ? form(state.edit, save, close)
      : state.open
        ? detail(state.open, state.open.full ? actions(state.open) : nothing, '#/known', again)
        : null;
    return html`<div class="known ${side ? 'split' : ''}">
      <section class="main" aria-label="Known" aria-busy=${state.isBusy}>
        ${tools()} ${facets()} ${review.proposals()} ${place.fields(load)} ${place.answer()} ${failure(state.problem)}
        ${shown()} ${bulk()}
      </section>
      ${side ? html`<aside class="panel" aria-label="Opened">${side}</aside>` : nothing}
    </div>`;
  },
};
