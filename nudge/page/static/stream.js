// What happens, as it happens: lines of JSON by fetch, since an EventSource sends no header. Ids are those of
// observations and of told lines, so that after a lost connection nothing is missed and nothing comes twice.

import {authorized, pause} from './api.js';

const SILENCE = 40_000; // milliseconds without a sign of life, after which the connection counts as lost

export class Stream {
  /** `onMessage` gets each message, `onState` whether the server answers, and the status of a refusal. */
  constructor(onMessage, onState) {
    this.onMessage = onMessage;
    this.onState = onState;
    this.at = {};
    this.isStopped = true;
    this.connects = 0;
    document.addEventListener('visibilitychange', () => (document.hidden ? this.stop() : this.start()));
  }

  start() {
    if (!this.isStopped) return;
    this.isStopped = false;
    this.run();
  }

  /** A tab that nobody looks at holds no connection: a browser has six for all of them. */
  stop() {
    this.isStopped = true;
    this.abort?.abort();
  }

  async run() {
    for (let wait = 100; !this.isStopped; wait = Math.min(wait * 2, 2000)) {
      this.abort = new AbortController();
      try {
        if (await this.read(this.abort)) wait = 100;
      } catch {
        // the connection is lost, or was ended; the next one goes on from `at`
      }
      if (this.isStopped) return;
      this.onState(false);
      await pause(wait);
    }
  }

  async read(abort) {
    const query = new URLSearchParams(this.at);
    const answer = await fetch(`/api/v1/stream?${query}`, {headers: authorized(), signal: abort.signal});
    if (!answer.ok) {
      this.onState(false, answer.status);
      return false;
    }
    this.connects += 1;
    this.onState(true);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    let timer = 0;
    try {
      for (;;) {
        clearTimeout(timer);
        timer = setTimeout(() => abort.abort(), SILENCE);
        const {value, done} = await reader.read();
        if (done) return true;
        const lines = (rest + value).split('\n');
        rest = lines.pop();
        for (const line of lines) if (line) this.take(JSON.parse(line));
      }
    } finally {
      clearTimeout(timer);
    }
  }

  take(message) {
    if (message.at) this.at = message.at;
    this.onMessage(message);
  }
}
