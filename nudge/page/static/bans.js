// "Never tell this again", and allowing it again.

import {post} from './api.js';

let host;
let changed;

/** Given by the frame: what the page can do, and what to call after a change. */
export function setUp(page, onChange) {
  host = page;
  changed = onChange;
}

const set = (line, project, never) => post('told/never', {line, project: project || null, never});

/** Ban a line that was told. */
export const ban = (one) =>
  host.run(async () => {
    await post('told/never', {line: String(one.id), never: true});
    host.say(`${one.name} is never told again in ${one.project || 'any repo'}`, () => allow(one, false));
    changed();
  });

export const allow = (one, says = true) =>
  host.run(async () => {
    await set(one.name, one.project, false);
    if (says)
      host.say(`${one.name} may be told again`, () => host.run(() => set(one.name, one.project, true)).then(changed));
    changed();
  });
