// What can be changed about a hint, a note or a fact. A change returns what takes it back, where that can be.

import {get, part, post, put, remove} from './api.js';

const KEPT = [
  ...['title', 'content', 'kind', 'tier', 'tags', 'priority', 'confidence', 'namespace', 'source', 'metadata'],
  'expires_at',
];
const pick = (from, names) =>
  Object.fromEntries(names.filter((name) => name in from).map((name) => [name, from[name]]));
const numberOf = (item) => item.id.slice(1);

export const address = (item) => `hints/${part(item.component)}/${part(item.key)}`;

/** Put a hint back that was deleted, with its version, times and credit. */
function restoreHint(item, hint) {
  const components = {[item.component]: {hints: {[item.key]: hint}}};
  return post('hints/import', {mode: 'merge', payload: {schema_version: '1.0', components}});
}

/** A deleted note comes back with its text, fields and links, under a new number. */
async function storeAgain(memory, links) {
  const stored = await post('memories', pick(memory, KEPT));
  for (const one of links) {
    const ends = pick(one, ['source_id', 'target_id', 'relation']);
    for (const end of ['source_id', 'target_id']) if (ends[end] === memory.id) ends[end] = stored.id;
    await post('links', ends);
  }
}

export async function removeItem(item) {
  if (item.type === 'hint') {
    const {previous} = await remove(address(item), {scope: item.scope});
    return () => restoreHint(item, Array.isArray(previous) ? previous[0] : previous);
  }
  const {memory, links} = await get(`memories/${numberOf(item)}`);
  await remove(`memories/${memory.id}`);
  return () => storeAgain(memory, links);
}

/** A fact cannot be put back: only a failure teaches it. */
export const forget = (item) => remove('learned', {project: item.repos[0], subject: item.title});

export async function archive(item) {
  const id = Number(numberOf(item));
  await post('forget', {ids: [id]});
  return () => post(`archive/${id}/restore`, {id});
}

export async function pin(item) {
  const tags = item.pinned ? item.tags.filter((tag) => tag !== 'pinned') : [...item.tags, 'pinned'];
  const note = `memories/${numberOf(item)}`;
  await put(note, {tags});
  return () => put(note, {tags: item.tags});
}

/** Count a success (1) or a failure (-1). What was counted stays counted. */
export const bump = (item, delta) => post(`${address(item)}/bump`, {delta, scope: item.scope});

/** Save what was edited. `old` is the hint as it was, none for a new one. */
export async function saveHint(component, key, {value, meta}, old) {
  const place = `hints/${part(component)}/${part(key)}`;
  await put(place, {value, meta, if_match_version: old ? old.version : 0});
  return old && (() => put(place, {value: old.value, meta: {...old.meta, scope: old.meta?.scope || {}}}));
}

export async function saveNote(fields, old) {
  if (!old) {
    await post('memories', fields);
    return undefined;
  }
  await put(`memories/${old.id}`, fields);
  return () => put(`memories/${old.id}`, pick(old, ['title', 'content', 'kind', 'tier', 'tags', 'priority']));
}
