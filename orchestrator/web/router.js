// The page's address: "#/run/step-100?task=x" is the view "run" with the parts ["step-100"] and
// {task: "x"}.

/** A view is `open(main, parts, parameters)`. It fills `main` and returns nothing, or a function that ends
 * the view. */
let close = null;

export function linkTo(view, parts = [], parameters = {}) {
  const path = ['#', view, ...parts.map(encodeURIComponent)].filter((part) => part !== '').join('/');
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== '') query.set(name, value);
  }
  const text = query.toString();
  return (path === '#' ? '#/' : path) + (text ? `?${text}` : '');
}

/** Changes the address without a new entry in the history, and without opening the view anew. */
export function rewrite(view, parts, parameters) {
  history.replaceState(null, '', linkTo(view, parts, parameters));
}

export function startRouting(views, main, onOpened) {
  const open = () => {
    if (location.hash !== '' && !location.hash.startsWith('#/')) return;  // a place within the page
    const [path, query] = location.hash.replace(/^#\/?/, '').split(/\?(.*)/s);
    let parts;
    try {
      parts = path.split('/').map(decodeURIComponent);
    } catch {
      parts = ['?'];  // an escape that is cut off
    }
    const name = Object.hasOwn(views, parts[0]) ? parts[0] : 'missing';
    close?.();
    main.replaceChildren();
    window.scrollTo(0, 0);
    close = views[name](main, parts.slice(1), Object.fromEntries(new URLSearchParams(query ?? ''))) ?? null;
    onOpened(name);
  };
  window.addEventListener('hashchange', open);
  open();
}
