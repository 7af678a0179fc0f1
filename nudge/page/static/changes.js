// What can be changed about a hint, a note or a fact. A change returns what takes it back, where that can be.

import {get, part, post, put, remove} from './api.js';

const pick = (from, names) =>
  Object.fromEntries(names.filter((name) => name in from).map((name) => [name, from[name]]));
const numberOf = (item) => item.id.slice(1);

export const address = (item) => `hints/${part(item.component)}/${part(item.key)}`;

/** The variant of a hint with what it said before; undefined when there is none. */
export async function readVariants(item, signal) {
  const {variants} = await get(`${address(item)}/versions`, {}, signal);
  return {full: variants.find((one) => one.variant === item.variant), variants};
}

/** Put a hint back that was deleted, with its version, times, credit and what it said before. */
function restoreHint(item, hint) {
  const components = {[item.component]: {hints: {[item.key]: hint}}};
  return post('hints/import', {mode: 'merge', payload: {schema_version: '1.2', components}});
}

/** A note that is deleted stays in the archive for a minute, from where it comes back under its number. */
export async function removeItem(item) {
  if (item.type === 'hint') {
    const {full} = await readVariants(item);
    const {previous} = await remove(address(item), {scope: item.scope});
    const hint = Array.isArray(previous) ? previous[0] : previous;
    return () => restoreHint(item, {...hint, ...pick(full || {}, ['session', 'earlier'])});
  }
  await remove(`memories/${numberOf(item)}`, {undoable: true});
  return () => restoreNote(item);
}

const restoreNote = (item) => post(`archive/${numberOf(item)}/restore`, {id: Number(numberOf(item))});
const archiveNote = (item) => post('forget', {ids: [Number(numberOf(item))]});

/** A fact cannot be put back: only a failure teaches it. */
export const forget = (item) => remove('learned', {project: item.repos[0], subject: item.title});

export async function archive(item) {
  await archiveNote(item);
  return () => restoreNote(item);
}

export async function restore(item) {
  await restoreNote(item);
  return () => archiveNote(item);
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

/** Set what a hint said before, with the reason of then. */
export function setAgain(item, full, {value, reason}) {
  const {added_by: _, ...meta} = full.meta;
  return saveHint(item.component, item.key, {value, meta: {scope: {}, ...meta, reason, source: 'user'}}, full);
}

export async function saveNote(fields, old) {
  if (!old) {
    await post('memories', fields);
    return undefined;
  }
  await put(`memories/${old.id}`, fields);
  return () => put(`memories/${old.id}`, pick(old, ['title', 'content', 'kind', 'tier', 'tags', 'priority']));
}
