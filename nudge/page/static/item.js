// One hint, note or fact in full: text, who set it and when, versions, links, where it was told and whether it helped.

import {html, nothing} from './vendor/lit-html.js';
import {get, part} from './api.js';
import {ban} from './bans.js';
import {readVariants} from './changes.js';
import {KINDS, ago, badge, clean, count, dated, exact, line, number, panel, table, value, when} from './ui.js';

// Addresses

/** The address of an item; `told` lines name what they came from in the same way. */
export function addressOf(item) {
  const query = new URLSearchParams();
  if (item.variant && item.variant !== '{}') query.set('variant', item.variant);
  if (item.type === 'fact') query.set('repo', item.repos[0]);
  return `#/known/${part(item.id)}${query.size ? `?${query}` : ''}`;
}

export const isNote = (item) => item.type === 'note' || item.type === 'archived';

/** Why a note is in the archive. */
export const WHY = {
  gc: 'expired',
  deleted: 'just deleted',
  team: 'deleted by the team',
};

export const keyOf = (item) =>
  `${item.type} ${item.id} ${item.variant || ''} ${item.type === 'fact' ? item.repos[0] : ''}`;

/** Find what an address names, of what is listed or else by asking. */
export async function find(id, query, listed, signal) {
  const [variant, repo] = [query.get('variant'), query.get('repo')];
  const isMeant = (item) =>
    item.id === id && (!variant || item.variant === variant) && (!repo || item.repos.includes(repo));
  const found = listed.find(isMeant);
  if (found) return found;
  if (/^m\d+$/.test(id)) return {type: 'note', kind: 'note', id, title: id, tags: [], repos: []};
  const isFact = id.startsWith('fact ');
  const words = isFact ? id.slice(5) : id;
  const {items} = await get('known', {type: isFact ? 'fact' : 'hint', query: words, limit: 200}, signal);
  return items.find(isMeant);
}

// Reading

/** Ask for all that is shown about it. */
export async function read(item, signal) {
  const lines = get('told', {line: item.id, limit: 20}, signal);
  if (item.type === 'fact') return {item, full: item, lines: await lines};
  if (item.type !== 'hint') {
    const [{memory, links}, told] = await Promise.all([readNote(item, signal), lines]);
    const shown = {
      ...item,
      type: memory.archived_at ? 'archived' : 'note',
      title: memory.title,
      kind: memory.kind,
      tags: memory.tags || [],
      pinned: (memory.tags || []).includes('pinned'),
    };
    return {item: shown, full: memory, links, lines: told};
  }
  const words = item.id
    .split(/[^\p{L}\p{N}]+/u)
    .filter(Boolean)
    .map((word) => `"${word}"`)
    .join(' AND ');
  const calls = {query: `(nudge_set_hint OR "nudge set") AND ${words}`, limit: 5};
  const [{full, variants}, told, recorded] = await Promise.all([
    readVariants(item, signal),
    lines,
    get('browse', calls, signal).catch(() => ({items: []})),
  ]);
  return {item, full: full || null, others: variants.filter((one) => one !== full), lines: told, calls: recorded.items};
}

/** A note, wherever it is: a line that was told may name one that is in the archive by now. */
async function readNote(item, signal) {
  const address = `memories/${item.id.slice(1)}`;
  const inArchive = () => get(address, {archived: true}, signal);
  if (item.type === 'archived') return inArchive();
  return get(address, {}, signal).catch((error) => {
    if (error.status === 404) return inArchive();
    throw error;
  });
}

// Showing

const LONG = 400; // characters of an earlier value
const SESSION = (id) => html`<a href="#/history/session/${part(id)}">${clean(id)}</a>`;

/** What was said at some time: a long text opens. */
function said(one) {
  if (one.redacted) return html`<span class="quiet">a secret</span>`;
  const text = html`<pre><bdi>${clean(value(one.value))}</bdi></pre>`;
  const isLong = value(one.value).length > LONG;
  return isLong
    ? html`<details>
        <summary class="code clip"><bdi>${line(value(one.value))}</bdi></summary>
        ${text}
      </details>`
    : text;
}

/** What the hint said before; `again` sets it once more. */
function earlier(hint, again) {
  const row = (one) =>
    html`<li class="told-line">
      <div>
        ${said(one)} ${one.reason ? html`<p class="reason"><bdi>${clean(one.reason)}</bdi></p>` : nothing}
        <small>
          version
          ${number(one.version)}${one.by ? html`, by <bdi>${clean(one.by)}</bdi>` : nothing}${
            one.session ? html`, in ${SESSION(one.session)}` : nothing
          },
          ${dated(one.set_at)}
        </small>
      </div>
      ${one.redacted || hint.redacted ? nothing : html`<button @click=${() => again(one)}>Set again</button>`}
    </li>`;
  if (!hint.earlier?.length) return nothing;
  return html`<h3>Earlier versions</h3>
    <ul class="lines earlier">
      ${hint.earlier.map(row)}
    </ul>`;
}

function hintBody({item, full: hint, others, calls}, again) {
  const meta = hint.meta || {};
  const shown = hint.redacted ? '(a secret; read it with: nudge get --value-only)' : value(hint.value);
  return html`<pre class="value"><bdi>${clean(shown)}</bdi></pre>
    ${meta.reason ? html`<p class="reason"><bdi>${clean(meta.reason)}</bdi></p>` : nothing}
    ${
      item.reasons
        ? html`<p class=${item.applies ? 'good' : 'warn'}>
            ${item.applies ? 'Applies there' : 'Does not apply there'}: <bdi>${clean(item.reasons.join('; '))}</bdi>
          </p>`
        : nothing
    }
    ${table([
      ['set by', clean(meta.added_by || meta.source || '–')],
      ['in session', hint.session ? SESSION(hint.session) : ''],
      ['first set', dated(hint.created_at)],
      ['last set', hint.version > 1 ? dated(hint.updated_at) : ''],
      ['version', number(hint.version)],
      ['worked', `${count(hint.use_count || 0, 'time')}, failed ${number(hint.failure_count)}`],
      ['last worked', dated(hint.last_used_at)],
      ['kept', clean(meta.ttl && meta.ttl !== 'session' ? `for ${meta.ttl}` : 'until it is not used for 30 days')],
      ['scope', html`<code>${clean(JSON.stringify(meta.scope || {}))}</code>`],
    ])}
    ${earlier(hint, again)}
    ${
      others.length
        ? html`<h3>Other variants</h3>
            <ul class="lines">
              ${others.map((one) => variant(item, one))}
            </ul>`
        : nothing
    }
    ${
      calls.length
        ? html`<h3>Recorded calls that set it</h3>
            <ul class="lines">
              ${calls.map(call)}
            </ul>`
        : nothing
    }`;
}

const variant = (item, one) =>
  html`<li>
    <a href="#/known/${part(item.id)}?${new URLSearchParams({variant: one.variant})}">
      <code><bdi>${line(value(one.value))}</bdi></code></a
    >
    <small><bdi>${clean(JSON.stringify(one.meta?.scope || {}))}</bdi></small>
  </li>`;

const call = (one) =>
  html`<li>
    <a href="#/history/observation/${one.id}"><bdi>${line(one.content_preview)}</bdi></a>
    <small>${clean(one.client || '')} · session ${SESSION(one.session_id)} · ${ago(one.timestamp)}</small>
  </li>`;

function noteBody({full: memory, links}) {
  const origin = memory.origin || {};
  const authors = [memory.source, origin.client].filter((one, place, all) => one && all.indexOf(one) === place);
  return html`<div class="text"><bdi>${clean(memory.content)}</bdi></div>
    ${table([
      ['number', `m${memory.id}`],
      ['stored by', clean(authors.join(', '))],
      ['in session', origin.session ? SESSION(origin.session) : ''],
      ['branch', clean(origin.branch || '')],
      ['stored', dated(memory.created_at)],
      ['changed', memory.updated_at === memory.created_at ? '' : dated(memory.updated_at)],
      [
        'in the archive',
        memory.archived_at
          ? html`${dated(memory.archived_at)}, ${WHY[memory.archive_reason] || clean(memory.archive_reason)}`
          : '',
      ],
      ['tier', `${memory.tier}${memory.expires_at ? `, until ${exact(memory.expires_at)}` : ''}`],
      ['priority', number(memory.priority)],
      ['recalled', count(memory.access_count || 0, 'time')],
      ['files', clean((memory.metadata?.files || []).join(', '))],
    ])}
    ${
      links?.length
        ? html`<h3>Links</h3>
            <ul class="lines">
              ${links.map((one) => link(memory.id, one))}
            </ul>`
        : nothing
    }`;
}

function link(id, one) {
  const isFrom = one.source_id === id;
  const other = isFrom ? one.target_id : one.source_id;
  const word = one.relation.replaceAll('_', ' ');
  return html`<li>
    ${isFrom ? word : `is what ${word}`} <a href="#/known/m${other}">m${other} <bdi>${line(one.title || '')}</bdi></a>
  </li>`;
}

const factBody = ({item}) =>
  html`<pre class="value bad"><bdi>${clean(item.error)}</bdi></pre>
    <pre class="value good"><bdi>${clean(item.text)}</bdi></pre>
    ${table([
      ['met in', count(item.sessions, 'session')],
      ['last', dated(item.updated_at)],
      ['last time', html`<a href="#/history/observation/${item.observation}">observation ${item.observation}</a>`],
    ])}`;

function tellings({total, lines}) {
  if (!total)
    return html`<h3>Told</h3>
      <p class="quiet">No agent was told it yet.</p>`;
  const used = lines.filter((one) => one.used_at).length;
  const of = used === lines.length && total === used ? `used ${used}` : `used ${used} of the last ${lines.length}`;
  return html`<h3>Told ${count(total, 'time')}, ${of}</h3>
    <ul class="lines">
      ${lines.slice(0, 8).map(
        (one) =>
          html`<li>
            <a href="#/told/session/${part(one.session_id)}">${clean(one.project || 'no repo')}, on ${one.moment}</a>
            ${one.used_at ? badge('used', 'good') : badge('not used')} ${when(one.timestamp)}
          </li>`,
      )}
    </ul>
    <div class="actions"><button class="danger" @click=${() => ban(lines[0])}>Never tell this again</button></div>`;
}

const BODIES = {hint: hintBody, note: noteBody, archived: noteBody, fact: factBody};

/** The panel of an item; `actions` are its buttons, `again` sets what a hint said before. */
export function detail(open, actions, close, again) {
  const {item, full} = open;
  const title = html`<h2 class=${isNote(item) ? '' : 'code'}><bdi>${clean(item.title)}</bdi></h2>`;
  const body = html`<div class="meta">
      ${badge(item.kind, KINDS[item.type])} ${item.type === 'archived' ? badge('archived', 'warn') : nothing}
      ${item.tags.map((tag) => badge(tag))}
      <span><bdi>${clean(item.repos.join(', '))}</bdi></span>
    </div>
    ${
      full === undefined
        ? html`<p class="quiet">Reading…</p>`
        : full === null
          ? html`<p class="quiet">It is gone: it was deleted, or has expired.</p>`
          : html`<div class="actions">${actions}</div>
              ${BODIES[item.type](open, again)} ${tellings(open.lines)}`
    }`;
  return panel('Detail', title, close, body);
}
