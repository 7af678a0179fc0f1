// What History shows beside its list: an observation with what came before and after, a session, a file.

import {html, nothing} from './vendor/lit-html.js';
import {get, part, post} from './api.js';
import {clean, clock, dated, empty, exact, line, panel, shorten, table, typeBadge} from './ui.js';

const AROUND = 8; // observations before and after
const SHOWN_APART = new Set(['error', 'output', 'exit_code', 'command', 'cwd']);
const LIST = '#/history';

export async function read(kind, id, signal) {
  if (kind === 'session') return {kind, trace: await get(`sessions/${part(id)}`, {limit: 1000}, signal)};
  if (kind === 'file') return {kind, file: await get('files', {file_path: id}, signal)};
  const [[one], around] = await Promise.all([
    post('observations/get', {ids: [Number(id)]}),
    get(`observations/${id}/timeline`, {before: AROUND, after: AROUND}, signal).catch(() => null),
  ]);
  return {kind: 'observation', one, around};
}

const session = (id) => html`<a class="button" href="#/history/session/${part(id)}">Session</a>`;
const text = (content) => (typeof content === 'string' ? content : JSON.stringify(content, null, 1));

function step(one) {
  const kind = one.isHere ? 'here' : one.obs_type === 'command_error' ? 'bad' : '';
  const content = one.content_preview ?? one.content ?? one.file_path;
  return html`<li class=${kind}>
    <time title=${exact(one.timestamp)}>${clock(one.timestamp)}</time>${typeBadge(one.obs_type)}
    <a class="clip code" href="#/history/observation/${one.id}" aria-current=${one.isHere ? 'true' : 'false'}>
      <bdi>${one.obs_type.startsWith('file_') ? shorten(content) : line(content)}</bdi></a
    >
  </li>`;
}

export function observation({one, around}, onPin) {
  const title = html`<h2>Observation ${one?.id ?? ''}</h2>`;
  if (!one)
    return panel('Observation', title, LIST, empty('It is gone', 'It was deleted, or belongs to a private repo.'));
  const metadata = one.metadata || {};
  const others = Object.entries(metadata).filter(([name, content]) => !SHOWN_APART.has(name) && content !== null);
  const steps = around ? [...around.before, {...around.anchor, isHere: true}, ...around.after] : [];
  const body = html`<div class="meta">${typeBadge(one.obs_type)}</div>
    <div class="actions">
      <button @click=${() => onPin(one)}>${one.is_pinned ? 'Unpin' : 'Pin'}</button>
      ${session(one.session_id)}
      ${one.file_path ? html`<a class="button" href="#/history/file/${part(one.file_path)}">File</a>` : nothing}
    </div>
    <pre class="value"><bdi>${clean(one.content)}</bdi></pre>
    ${metadata.error ? html`<pre class="value bad"><bdi>${clean(metadata.error)}</bdi></pre>` : nothing}
    ${metadata.output ? html`<pre class="value"><bdi>${clean(text(metadata.output))}</bdi></pre>` : nothing}
    ${table([
      ['when', dated(one.timestamp)],
      ['repo', clean(one.project || '')],
      ['branch', clean(one.branch || '')],
      ['file', clean(one.file_path || '')],
      ['tool', clean(one.tool_name || '')],
      ['exit code', metadata.exit_code],
      ...others.map(([name, content]) => [clean(name.replaceAll('_', ' ')), clean(text(content)).slice(0, 2000)]),
    ])}
    <h3>Before and after</h3>
    <ol class="timeline">
      ${steps.map(step)}
    </ol>`;
  return panel('Observation', title, LIST, body);
}

/** A failure and what worked: another command, or the same one after others. */
function failed(one, trace) {
  const all = trace.prompts.flatMap((prompt) => prompt.observations);
  const [from, to] = [one.id, one.passed].map((id) => all.findIndex((other) => other.id === id));
  const text = (other) => line(other.content_preview ?? other.content);
  const between = all.slice(from + 1, to).filter((other) => other.obs_type === 'command');
  const isSame = to >= 0 && text(all[to]) === line(one.command);
  const what =
    to < 0 ? 'worked later' : isSame && between.length ? `after ${between.map(text).join(', ')}` : text(all[to]);
  const worked = html`<a href="#/history/observation/${one.passed}"
    ><code class="good"><bdi>→ ${what}</bdi></code></a
  >`;
  return html`<li class="failed">
    <a href="#/history/observation/${one.id}"
      ><code class="bad"><bdi>${line(one.command)}</bdi></code></a
    >
    ${one.passed ? worked : html`<span class="quiet">did not work in this session</span>`}
  </li>`;
}

const prompt = (one) =>
  html`<section class="prompt">
    ${
      one.content
        ? html`<blockquote>
            <small>${one.source} · ${clock(one.timestamp)}</small><bdi>${clean(one.content)}</bdi>
          </blockquote>`
        : nothing
    }
    <ol class="timeline">
      ${one.observations.map(step)}
    </ol>
  </section>`;

const more = (trace) => html`<p class="quiet">There is more: <code>nudge trace ${clean(trace.session_id)}</code></p>`;

export function sessionPart({trace}) {
  const summary = trace.summary || {};
  const commits = (summary.commits || []).map((one) => `${one.hash || ''} ${one.command || ''}`.trim());
  const title = html`<h2>Session <bdi>${clean(trace.session_id)}</bdi></h2>`;
  const told = html`<a class="button" href="#/told/session/${part(trace.session_id)}">What it was told</a>`;
  const body = html`<div class="actions">${told}</div>
    ${table([
      ['repo', clean(trace.project || 'none')],
      ['began', dated(trace.started_at)],
      ['ended', trace.ended_at ? dated(trace.ended_at) : 'not yet'],
      ['asked for', clean(summary.intent || '')],
      [
        'files',
        (summary.files || []).map(
          (path) => html`<div><a href="#/history/file/${part(path)}">${shorten(path)}</a></div>`,
        ),
      ],
      ['commits', clean(commits.join('; '))],
    ])}
    ${
      summary.failed?.length
        ? html`<h3>Failed, and what worked</h3>
            <ul class="lines">
              ${summary.failed.map((one) => failed(one, trace))}
            </ul>`
        : nothing
    }
    <h3>What happened</h3>
    ${trace.prompts.map(prompt)} ${trace.more ? more(trace) : nothing}`;
  return panel('Session', title, LIST, body);
}

export function file({file: found}) {
  const title = html`<h2 class="code"><bdi>${shorten(found.file_path)}</bdi></h2>`;
  const touched = (one) =>
    html`<section class="prompt">
      <h3>
        <a href="#/history/session/${part(one.session_id)}"><bdi>${clean(one.session_id)}</bdi></a>
      </h3>
      <ol class="timeline">
        ${(one.touches || one.observations || []).map(step)}
      </ol>
    </section>`;
  const sessions = found.sessions.length
    ? found.sessions.map(touched)
    : html`<p class="quiet">No session touched it.</p>`;
  return panel(
    'File',
    title,
    LIST,
    html`<p class="quiet path"><bdi>${clean(found.file_path)}</bdi></p>
      ${sessions}`,
  );
}
