// The form of a hint or a note, new or not.

import {html, nothing} from './vendor/lit-html.js';
import {saveHint, saveNote} from './changes.js';
import {failure, value} from './ui.js';

const TIERS = ['short', 'mid', 'long'];
const NOTE_KINDS = [
  ...['note', 'decision', 'lesson', 'bugfix', 'discovery', 'feature', 'refactor', 'change', 'session_summary'],
];

/** What a form is about: `old` is what is edited, none for a new one; `place` is the repo of a new one. */
export class Edit {
  constructor(type, item, old, place) {
    Object.assign(this, {type, item, old, problem: null, isSaving: false});
    this.fields = type === 'hint' ? this.#hint(place) : this.#note(place);
  }

  #hint(place) {
    const {item, old} = this;
    const meta = old?.meta || {};
    const content = old?.value;
    this.isJson = Boolean(content) && typeof content === 'object' && !(content.cmd || content.abs || content.body);
    return {
      component: item?.component || '',
      key: item?.key || '',
      value: old ? value(content) : '',
      reason: meta.reason || '',
      tags: (meta.tags || []).join(', '),
      scope: JSON.stringify(old ? meta.scope || {} : place ? {repo: [place]} : {}),
    };
  }

  #note(place) {
    const {old} = this;
    return {
      title: old?.title || '',
      content: old?.content || '',
      kind: old?.kind || 'note',
      tier: old?.tier || 'long',
      tags: (old?.tags || []).join(', '),
      priority: String(old?.priority ?? 5),
      namespace: old?.namespace || place || '',
    };
  }

  /** Save it; returns what takes it back, nothing for a new one. */
  async save() {
    const {fields, old} = this;
    const tags = fields.tags
      .split(',')
      .map((one) => one.trim())
      .filter(Boolean);
    if (this.type === 'note') {
      const {title, content, kind, tier, namespace} = fields;
      const given = {title, content, kind, tier, tags, priority: Number(fields.priority)};
      return saveNote(old ? given : {...given, namespace: namespace || undefined}, old);
    }
    const {added_by: _, reason: __, ...meta} = old?.meta || {};
    const scope = parsed(fields.scope || '{}', 'scope');
    const whole = {...meta, scope, tags, source: 'user', ...(fields.reason && {reason: fields.reason})};
    return saveHint(fields.component.trim(), fields.key.trim(), {value: this.#value(), meta: whole}, old);
  }

  #value() {
    const {fields, old} = this;
    if (this.isJson) return parsed(fields.value, 'value');
    const before = old?.value;
    if (!before || typeof before !== 'object') return fields.value;
    return {...before, [['cmd', 'abs', 'body'].find((name) => name in before)]: fields.value};
  }
}

function parsed(text, name) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${name}: must be JSON, such as {"branch": ["main"]}`);
  }
}

function input(edit, name, label, {kind = 'text', rows = 5, options = [], isFixed = false} = {}) {
  const set = (event) => {
    edit.fields[name] = event.target.value;
  };
  const text = edit.fields[name];
  const content =
    kind === 'area'
      ? html`<textarea name=${name} rows=${rows} spellcheck="false" .value=${text} @input=${set}></textarea>`
      : kind === 'choice'
        ? html`<select name=${name} @change=${set}>
            ${options.map((one) => html`<option ?selected=${one === text}>${one}</option>`)}
          </select>`
        : html`<input
            name=${name}
            type=${kind}
            spellcheck="false"
            autocomplete="off"
            ?disabled=${isFixed}
            .value=${text}
            @input=${set}
          />`;
  return html`<label><span>${label}</span>${content}</label>`;
}

function hintFields(edit) {
  const isFixed = Boolean(edit.old);
  return html`<div class="pair">
      ${input(edit, 'component', 'component', {isFixed})}${input(edit, 'key', 'key', {isFixed})}
    </div>
    ${input(edit, 'value', edit.isJson ? 'value (JSON)' : 'value', {kind: 'area'})}
    ${input(edit, 'reason', 'reason: why an agent should believe it')} ${input(edit, 'tags', 'tags, with commas')}
    ${input(edit, 'scope', 'scope (JSON; {} is everywhere)')}`;
}

function noteFields(edit) {
  return html`${input(edit, 'title', 'title')}${input(edit, 'content', 'text', {kind: 'area', rows: 10})}
    <div class="pair">
      ${input(edit, 'kind', 'kind', {kind: 'choice', options: NOTE_KINDS})}
      ${input(edit, 'tier', 'tier', {kind: 'choice', options: TIERS})}
    </div>
    <div class="pair">
      ${input(edit, 'tags', 'tags, with commas')}${input(edit, 'priority', 'priority, 1 to 10', {kind: 'number'})}
    </div>
    ${edit.old ? nothing : input(edit, 'namespace', 'repo (empty: everywhere)')}`;
}

export function form(edit, onSave, onCancel) {
  const title = `${edit.old ? 'Edit' : 'New'} ${edit.type}`;
  return html`<form class="edit" @submit=${onSave} aria-label=${title}>
    <h2>${title}</h2>
    ${failure(edit.problem)} ${edit.type === 'hint' ? hintFields(edit) : noteFields(edit)}
    <div class="actions">
      <button class="primary" type="submit">Save</button>
      <button type="button" @click=${onCancel}>Cancel</button>
    </div>
  </form>`;
}

export const focusForm = () =>
  requestAnimationFrame(() =>
    document.querySelector('.edit :is(input, textarea):not(:disabled)')?.focus({preventScroll: true}),
  );
