// Puts the page together: views, header, keys.

import { openCheckpoints } from './checkpoints.js';
import { el, empty } from './dom.js';
import { openFleet } from './fleet.js';
import { startKeys } from './keys.js';
import { startRouting } from './router.js';
import { openRun } from './run.js';
import { openRuns } from './runs.js';
import { openSamples } from './samples.js';
import { startFollowing } from './store.js';

const kViews = {
  '': openRuns,
  run: openRun,
  checkpoints: openCheckpoints,
  samples: openSamples,
  fleet: openFleet,
  missing: (main) => main.append(el('h1', { tabindex: '-1' }, 'Not here'),
    empty('There is no such page.', 'Go on with ', el('a', { href: '#/' }, 'the runs'), '.')),
};
const kSections = { '': 'runs', run: 'runs', checkpoints: 'checkpoints', samples: 'samples', fleet: 'fleet' };
const kStateWords = { connecting: 'Connecting', live: 'Live', lost: 'No connection, trying again' };

let first = true;

function onOpened(view) {
  for (const link of document.querySelectorAll('nav a')) {
    if (link.dataset.section === kSections[view]) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  const heading = document.querySelector('main h1');
  document.title = heading ? `${heading.textContent} \u00b7 evald` : 'evald';
  if (!first) heading?.focus();  // a screen reader reads the new view's heading
  first = false;
}

function onState(state) {
  const node = document.getElementById('link-state');
  node.className = `link-state ${state}`;
  node.textContent = kStateWords[state];
}

document.getElementById('skip').addEventListener('click', (event) => {
  event.preventDefault();
  document.getElementById('main').focus();
});
startFollowing(onState);
startRouting(kViews, document.getElementById('main'), onOpened);
startKeys();
