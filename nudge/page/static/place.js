// What would an agent in some place get, and why: the ranked answer, and the why-not of what is excluded.

import {html, nothing} from './vendor/lit-html.js';
import {get, post} from './api.js';
import {Newest} from './list.js';
import {bar, clean, failure, line, number, value} from './ui.js';

const WEIGHTS = ['frecency', 'priority', 'confidence', 'specificity', 'recency'];
const SYSTEMS = ['', 'linux', 'darwin', 'windows'];
const EXCLUDED = 30; // that are shown
const newest = new Newest();
const state = {given: {}, answer: null, problem: null};

/** The place as a context; undefined when none is given. */
export function context() {
  const given = Object.entries(state.given).filter(([, text]) => text);
  return given.length ? Object.fromEntries(given) : undefined;
}

export const repoGiven = () => state.given.repo;

/** Ask for the answer there; the caller renders. */
export async function ask(words) {
  const place = context();
  if (!place) {
    state.answer = null;
    return;
  }
  const query = words.trim();
  try {
    const found = await newest.ask(async (signal) => {
      const [hints, told, excluded] = await Promise.all([
        get('hints', {context: place, text: query, limit: 12}, signal),
        query ? post('explain', {query, context: place, limit: 8}) : post('inject', {context: place, explain: true}),
        get('known', {context: place, query, applies: false, limit: EXCLUDED}, signal),
      ]);
      return {hints: hints.hints, told: told.items || [], excluded, query};
    });
    if (found) Object.assign(state, {answer: found, problem: null});
  } catch (error) {
    Object.assign(state, {answer: null, problem: error});
  }
}

function hint(hit) {
  const parts = hit.match_explain.components || {};
  return html`<li>
    <strong class="code clip"><bdi>${line(`${hit.component}/${hit.key}`)}</bdi></strong>
    <code class="clip"><bdi>${line(value(hit.hint.value))}</bdi></code>
    ${bar('score', hit.score, hit.score.toFixed(2))}
    <details>
      <summary>why</summary>
      ${WEIGHTS.filter((name) => name in parts).map((name) => bar(name, parts[name], parts[name].toFixed(2)))}
      <small><bdi>${clean(hit.match_explain.reasons.join('; '))}</bdi></small>
    </details>
  </li>`;
}

function told(one, most) {
  const {reasons = [], query_terms: terms = []} = one.matches || {};
  const why = [...reasons, ...(terms?.length ? [`words: ${terms.join(', ')}`] : [])].join('; ');
  const score = one.score?.total || 0;
  return html`<li>
    <strong class="clip"><bdi>${line(one.title)}</bdi></strong>
    ${bar('score', score / most, score.toFixed(2))}
    <small><bdi>${clean(why)}</bdi></small>
  </li>`;
}

const excluded = (item) =>
  html`<li>
    <strong class="code clip"><bdi>${line(item.title)}</bdi></strong>
    <small class="warn"><bdi>${clean(item.reasons.join('; '))}</bdi></small>
  </li>`;

const ranked = (items, none) =>
  items.length
    ? html`<ol class="ranked">
        ${items}
      </ol>`
    : html`<p class="quiet">${none}</p>`;

export function answer() {
  if (!state.answer) return failure(state.problem);
  const {hints, told: items, excluded: left, query} = state.answer;
  const most = Math.max(1, ...items.map((one) => one.score?.total || 0));
  const more = left.total - left.items.length;
  return html`<section class="answer" aria-label="What an agent there would get">
    <h2>What an agent there would get${query ? html` for “<bdi>${clean(query)}</bdi>”` : nothing}</h2>
    <div class="columns">
      <div>
        <h3>Hints, best first</h3>
        ${ranked(hints.map(hint), 'No hint applies.')}
      </div>
      <div>
        <h3>${query ? 'Notes, best first' : 'Told at its start'}</h3>
        ${ranked(
          items.map((one) => told(one, most)),
          query ? 'No note has these words.' : 'It would be told nothing.',
        )}
      </div>
      <div>
        <h3>Excluded, and why <span class="num">${number(left.total)}</span></h3>
        ${ranked(left.items.map(excluded), 'Nothing is excluded.')}
        ${more > 0 ? html`<p class="quiet">and ${number(more)} more: search, or choose a repo</p>` : nothing}
      </div>
    </div>
  </section>`;
}

/** The bar above the list; `changed` is called with each key. */
export function fields(changed) {
  const set = (name) => (event) => {
    state.given[name] = event.target.value.trim();
    changed();
  };
  const input = (name, label, hint) =>
    html`<label>
      <span>${label}</span>
      <input
        name="place-${name}"
        placeholder=${hint}
        spellcheck="false"
        autocomplete="off"
        .value=${state.given[name] || ''}
        @input=${set(name)}
      />
    </label>`;
  return html`<details class="place" ?open=${Boolean(context())}>
    <summary>What would an agent get, and why?</summary>
    <div class="fields">
      ${input('repo', 'repo', 'git:github.com/acme/api')}${input('branch', 'branch', 'main')}
      ${input('cwd', 'directory', '/home/me/api')}
      <label>
        <span>OS</span>
        <select name="place-os" @change=${set('os')}>
          ${SYSTEMS.map(
            (one) => html`<option value=${one} ?selected=${one === (state.given.os || '')}>${one || 'any'}</option>`,
          )}
        </select>
      </label>
    </div>
  </details>`;
}
