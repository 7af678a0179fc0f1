import {html, render} from '/page/vendor/lit-html.js';
render(html`<p>Nudge</p>`, document.getElementById('app'));
