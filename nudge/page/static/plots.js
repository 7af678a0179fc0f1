// Small plots of counts by week.

import {html, svg} from './vendor/lit-html.js';
import {number} from './ui.js';

const WIDTH = 320;
const HEIGHT = 92;
const FOOT = 16;

const month = (week) => new Date(week * 1000).toLocaleDateString('en', {month: 'short', day: 'numeric', timeZone: 'UTC'});

/** Bars of one count, the last weeks at the right; all plots of a row have the same scale when `most` is given. */
export function weekly(title, weeks, name, most) {
  const values = weeks.map((week) => week[name] || 0);
  const top = Math.max(most || 0, ...values, 1);
  const step = Math.min(WIDTH / Math.max(weeks.length, 1), 40);
  const left = WIDTH - step * weeks.length;
  const total = values.reduce((sum, one) => sum + one, 0);
  return html`<figure class="plot">
    <figcaption><span>${title}</span><span class="num">${number(total)}</span></figcaption>
    <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${title}, by week: ${values.join(', ') || 'none'}">
      <line class="axis" x1="0" x2=${WIDTH} y1=${HEIGHT - FOOT} y2=${HEIGHT - FOOT}></line>
      ${weeks.map((week, place) => {
        const height = (values[place] / top) * (HEIGHT - FOOT - 14);
        const x = left + place * step;
        return svg`<g><title>${month(week.week)}: ${values[place]}</title>
          <rect class="mark" x=${x + step * 0.14} y=${HEIGHT - FOOT - height} width=${step * 0.72} height=${height} rx="1.5"></rect>
          ${values[place] ? svg`<text class="value" x=${x + step / 2} y=${HEIGHT - FOOT - height - 4}>${number(values[place])}</text>` : ''}</g>`;
      })}
      ${weeks.length ? svg`<text class="tick" x=${left + 2} y=${HEIGHT - 3}>${month(weeks[0].week)}</text>` : ''}
      ${weeks.length > 4 ? svg`<text class="tick end" x=${WIDTH - 2} y=${HEIGHT - 3}>${month(weeks.at(-1).week)}</text>` : ''}
    </svg></figure>`;
}
