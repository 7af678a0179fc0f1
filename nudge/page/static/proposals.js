// What the language model proposes about notes, to accept or to reject.

import {html, nothing} from './vendor/lit-html.js';
import {get, post} from './api.js';
import {badge, clean, count, line} from './ui.js';

const MOST = 20;
const WHAT = {tags: 'tags', contradiction: 'contradict each other', group: 'could be one note'};
const state = {open: [], more: false};
let host;

/** Ask what is open; nothing is shown when there is no language model. */
export async function load(page) {
  host = page;
  const found = await get('proposals', {limit: MOST}).catch(() => ({proposals: []}));
  Object.assign(state, {open: found.proposals, more: Boolean(found.more)});
  host.update();
}

const decide = (one, verb, said) =>
  host.run(async () => {
    await post(`proposals/${one.id}/${verb}`);
    host.say(said, async () => {
      await post(`proposals/${one.id}/undo`);
      await load(host);
    });
    await load(host);
  });

function row(one) {
  const note = ({id, title}) => html`<a href="#/known/m${id}">m${id} <bdi>${line(title)}</bdi></a>`;
  return html`<li class="told-line">
    <div>
      <span>${one.notes.map((each, place) => html`${place ? ', ' : ''}${note(each)}`)}</span>
      <small>${WHAT[one.kind]} ${(one.tags || []).map((tag) => badge(tag))} · says ${clean(one.model)}</small>
    </div>
    <button @click=${() => decide(one, 'accept', `Accepted proposal ${one.id}`)}>Accept</button>
    <button @click=${() => decide(one, 'reject', `Rejected proposal ${one.id}`)}>Reject</button>
  </li>`;
}

export function proposals() {
  if (!state.open.length) return nothing;
  return html`<details class="place">
    <summary>${count(state.open.length, 'proposal')}${state.more ? ' and more' : ''} of the language model</summary>
    <ul class="lines">
      ${state.open.map(row)}
    </ul>
  </details>`;
}
