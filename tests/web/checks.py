"""What is checked of any view: contrast, names and roles as a screen reader gets them, no overflow."""

# Every visible text whose contrast with what lies behind it is below 4.5 (WCAG 2.2, 1.4.3).
CONTRAST = r"""
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const rgba = (colour) => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
};
const over = (top, ground) => top.slice(0, 3).map((value, i) => value * top[3] + ground[i] * (1 - top[3]));
const light = (colour) => {
  const [r, g, b] = colour.map((value) => value / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (node) => {
  const layers = [];
  for (let at = node; at; at = at.parentElement) {
    const colour = rgba(getComputedStyle(at).backgroundColor);
    layers.push(colour);
    if (colour[3] === 1) break;
  }
  return layers.reduceRight((ground, layer) => over(layer, ground), [255, 255, 255]);
};
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
let texts = 0;
while (walker.nextNode()) {
  const node = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || node.closest('script, noscript, title, desc, option, .unseen, .skip')) continue;
  if (!node.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
  ++texts;
  const style = getComputedStyle(node);
  const ground = behind(node instanceof SVGElement ? node.ownerSVGElement.parentElement : node);
  const ink = over(rgba(node instanceof SVGElement ? style.fill : style.color), ground);
  const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5) found.push(`${ratio.toFixed(2)} ${node.tagName} "${walker.currentNode.data.trim().slice(0, 40)}"`);
}
return {texts, found};
"""

# What a screen reader or a keyboard would stumble over, as far as the document says it.
STRUCTURE = r"""
const found = [];
const visible = (node) => node.checkVisibility({visibilityProperty: true});
const all = (selector) => [...document.querySelectorAll(selector)];
if (all('main').length !== 1) found.push('main: there must be one');
if (all('h1').filter(visible).length !== 1) found.push('h1: there must be one');
if (!document.documentElement.lang) found.push('html: no lang');
if (!document.title || document.title === 'evald' && location.hash.length > 2) found.push('no title of its own');
const ids = all('[id]').map((node) => node.id);
for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) found.push(`id ${id}: twice`);
for (const name of ['aria-labelledby', 'aria-describedby']) {
  for (const node of all(`[${name}]`)) {
    for (const id of node.getAttribute(name).split(' ')) if (!document.getElementById(id)) found.push(`${name}=${id}: is not there`);
  }
}
let level = 1;
for (const heading of all('h1, h2, h3, h4').filter(visible)) {
  const next = Number(heading.tagName[1]);
  if (next > level + 1) found.push(`${heading.tagName} "${heading.innerText}" after H${level}`);
  level = next;
}
for (const table of all('main table')) {
  if (!table.caption) found.push('table without a caption');
  for (const row of table.tBodies[0]?.rows ?? []) if (!row.querySelector('th[scope=row]')) found.push(`row without a header: ${row.innerText}`);
}
for (const list of all('ul, ol')) {
  for (const child of list.children) if (child.tagName !== 'LI') found.push(`${list.tagName} with ${child.tagName}`);
}
for (const node of all('[tabindex]')) if (Number(node.getAttribute('tabindex')) > 0) found.push('tabindex above 0');
for (const node of all('svg')) {
  if (visible(node) && node.getAttribute('aria-hidden') !== 'true' && !node.getAttribute('role')) found.push('svg without a role');
}
for (const node of all('button, a[href], select, input')) {
  const box = node.getBoundingClientRect();
  const inline = getComputedStyle(node).display === 'inline' || node instanceof SVGElement;
  if (visible(node) && !inline && box.width > 0 && (box.width < 24 && node.type !== 'checkbox' || box.height < 22)) {
    found.push(`too small to touch: ${node.innerText || node.tagName} ${box.width}x${box.height}`);
  }
}
return found;
"""

NEED_NAMES = {"link", "button", "combobox", "textbox", "searchbox", "spinbutton", "checkbox", "progressbar",
              "image", "img", "figure", "region", "dialog", "navigation", "table", "heading"}


def unnamed(browser):
    """Nodes of the browser's own accessibility tree that need a name and have none."""
    nodes = browser.devtools("Accessibility.getFullAXTree")["nodes"]
    found = []
    for node in nodes:
        role = node.get("role", {}).get("value", "")
        if not node.get("ignored") and role in NEED_NAMES and not node.get("name", {}).get("value", "").strip():
            if role != "figure":
                found.append(role)
    return found


def overflow(browser):
    """Pixels by which the page is wider than the window, and what sticks out."""
    return browser.run("""
        const width = document.documentElement.clientWidth;
        const by = document.documentElement.scrollWidth - width;
        if (by <= 0) return null;
        const out = [...document.querySelectorAll('body *')].filter((node) => node.getBoundingClientRect().right > width + 1
            && !node.closest('.scroller'));
        return [by, out.slice(0, 5).map((node) => `${node.tagName}.${node.className}`)];""")
