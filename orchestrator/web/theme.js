// The theme: light, dark, or the system's. A plain script in the head, so that the first paint is
// right.
(() => {
  const kKey = 'evald.theme';
  const kNext = { auto: 'light', light: 'dark', dark: 'auto' };
  const kWords = { auto: 'auto', light: 'light', dark: 'dark' };

  const read = () => {
    try {
      return kNext[localStorage.getItem(kKey)] ? localStorage.getItem(kKey) : 'auto';
    } catch {
      return 'auto';  // storage may be forbidden
    }
  };
  let theme = read();

  const apply = () => {
    if (theme === 'auto') document.documentElement.removeAttribute('data-theme');
    else document.documentElement.setAttribute('data-theme', theme);
    const button = document.getElementById('theme');
    if (!button) return;
    button.textContent = `Colours: ${kWords[theme]}`;
    button.setAttribute('aria-label', `Colours: ${kWords[theme]}. Change to ${kWords[kNext[theme]]}`);
    button.title = theme === 'auto' ? 'Colours: as the system says' : `Colours: ${theme}`;
  };

  apply();
  document.addEventListener('DOMContentLoaded', () => {
    apply();
    document.getElementById('theme').addEventListener('click', () => {
      theme = kNext[theme];
      try {
        localStorage.setItem(kKey, theme);
      } catch {
        // The choice holds until the page is closed.
      }
      apply();
    });
  });
})();
