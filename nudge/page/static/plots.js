// Small plots of counts by week.

import {html, nothing, svg} from './vendor/lit-html.js';
import {number} from './ui.js';

const WIDTH = 320;
const HEIGHT = 92;
const FOOT = 16; // for the dates
const HEAD = 14; // for the numbers above the bars
const STEP = 40; // of a week, at most

const day = (week) => new Date(week * 1000).toLocaleDateString('en', {month: 'short', day: 'numeric', timeZone: 'UTC'});

const WEEK = 7 * 86_400;

/** All weeks from the first to the last: one in which nothing happened has a place of its own. */
export function whole(weeks) {
  const [first, last] = [weeks.at(0)?.week, weeks.at(-1)?.week];
  const found = new Map(weeks.map((week) => [week.week, week]));
  const number = weeks.length && Math.round((last - first) / WEEK) + 1;
  return Array.from({length: number}, (_, place) => found.get(first + place * WEEK) || {week: first + place * WEEK});
}

/** Bars of one count, from the first week at the left; `most` is the height of the plot, for plots to compare. */
export function weekly(title, weeks, name, most) {
  const values = weeks.map((week) => week[name] || 0);
  const step = Math.min(WIDTH / weeks.length, STEP);
  const ground = HEIGHT - FOOT;
  const bar = (week, place) => {
    const height = (values[place] / most) * (ground - HEAD);
    const [x, y] = [place * step, ground - height];
    const label = svg`<text class="value" x=${x + step / 2} y=${y - 4}>${number(values[place])}</text>`;
    return svg`<g><title>${day(week.week)}: ${values[place]}</title>
      <rect class="mark" x=${x + step * 0.12} y=${y} width=${step * 0.76} height=${height} rx="1.5"></rect>
      ${values[place] ? label : nothing}</g>`;
  };
  const last =
    weeks.length > 3
      ? svg`<text class="tick" x=${(weeks.length - 0.5) * step} y=${HEIGHT - 3}>${day(weeks.at(-1).week)}</text>`
      : nothing;
  return html`<figure class="plot">
    <figcaption>
      <span>${title}</span><span class="num">${number(values.reduce((sum, one) => sum + one, 0))}</span>
    </figcaption>
    <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${title}, by week: ${values.join(', ')}">
      <line class="axis" x1="0" x2=${WIDTH} y1=${ground} y2=${ground}></line>
      ${weeks.map(bar)} ${svg`<text class="tick first" x="2" y=${HEIGHT - 3}>${day(weeks[0].week)}</text>`} ${last}
    </svg>
  </figure>`;
}
