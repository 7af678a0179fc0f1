// Hints in repositories: what their files say beside what was trusted before, and the click that trusts one of them.

import {html, nothing} from './vendor/lit-html.js';
import {post} from './api.js';
import {badge, clean} from './ui.js';

const LEVELS = {trusted: 'good', waiting: 'warn', denied: 'bad'};
const TITLES = {trust: 'Trust', deny: 'Deny', revoke: 'Forget'};
const OFFERED = {trusted: ['revoke'], waiting: ['trust', 'deny'], denied: ['trust', 'revoke']};

function counts(file) {
  const some = Object.keys(LEVELS).filter((state) => file[state]);
  return some.map((state) => `${file[state]} ${state}`).join(', ') || 'no hints';
}

function hint(one, decide) {
  const name = clean(one.name);
  return html`<section>
    <div class="head">
      <h3>
        <bdi>${name}</bdi> ${badge(one.state, LEVELS[one.state])} ${one.changed ? badge('changed', 'warn') : nothing}
      </h3>
      ${OFFERED[one.state].map(
        (what) =>
          html`<button aria-label="${TITLES[what]} ${name}" @click=${() => decide(what, one.digest)}>
            ${TITLES[what]}
          </button>`,
      )}
    </div>
    <pre class="value"><bdi>${clean(one.diff.join('\n'))}</bdi></pre>
  </section>`;
}

function shown(file, host, decided) {
  const decide = (what, digest) =>
    host.run(async () => {
      decided((await post('repo-files/decisions', {root: file.root, [what]: [digest]})).file);
    });
  return html`<details ?open=${Boolean(file.waiting && file.hints)}>
    <summary><bdi>${clean(file.root)}</bdi>: ${counts(file)}</summary>
    <p class="quiet">of <bdi>${clean(file.repo)}</bdi>, branch <bdi>${clean(file.branch || 'unknown')}</bdi></p>
    ${file.problems.map((text) => html`<p class="problem">the file is refused: ${clean(text)}</p>`)}
    ${(file.hints || []).map((one) => hint(one, decide))}
    ${file.gone?.length ? html`<p class="quiet">no longer in the file: <bdi>${clean(file.gone.join(', '))}</bdi></p>` : nothing}
  </details>`;
}

/** The files in an answer of `repo-files`; `decided` gets a file again after a click. */
export function repoFiles(answer, host, decided) {
  if (!answer.files.length) return html`<p class="quiet">No clone in which an agent worked has a .nudge.toml.</p>`;
  const advice = html`<p class="quiet">
    To look at the hints and trust them here, run nudge open in a terminal of yours.
  </p>`;
  return html`${answer.may_decide ? nothing : advice} ${answer.files.map((file) => shown(file, host, decided))}`;
}
