// Tables with a caption, row headers, columns that can be sorted, and cells that change in place.

import { announce, el, show } from './dom.js';

/** Compares for sorting: numbers by size, all else as text. Absent values come last. */
function compare(a, b, descending) {
  const absent = (value) => value === null || value === undefined || Number.isNaN(value);
  if (absent(a) || absent(b)) return Number(absent(a)) - Number(absent(b));
  const order = typeof a === 'number' && typeof b === 'number' ? a - b
    : String(a).localeCompare(String(b), undefined, { numeric: true });
  return descending ? -order : order;
}

/** A column is {label, cell(row), value(row)?, key(row)?, class?, header?}. A row may have a `chain`: the rows above
 * it in a tree, and itself. `cell` gives the content. Rows
 * are sorted by `value`; a column without it cannot be sorted. The content depends on `key` alone (on `value`
 * if there is no `key`). The `header` column names the row. */
export class Table {
  #columns;
  #rows = [];
  #lines = new Map();  // row's id -> {tr, cells}
  #idOf;
  #sorted = null;      // {column, descending}
  #body = el('tbody');
  #heads;
  node;

  /** `quiet`: only screen readers get the caption, since a heading says the same. */
  constructor({ caption, columns, idOf, quiet }) {
    this.#columns = columns;
    this.#idOf = idOf;
    this.#heads = columns.map((column, index) => el('th', { scope: 'col', class: column.class },
      column.value ? el('button', { type: 'button', class: 'sort', onclick: () => this.#sortBy(index) }, column.label)
        : column.label));
    this.node = el('div', { class: 'scroller', role: 'region', tabindex: '0', 'aria-label': caption },
      el('table', {}, el('caption', { class: quiet ? 'unseen' : null }, quiet ? caption : el('span', {}, caption)), el('thead', {}, el('tr', {}, this.#heads)), this.#body));
  }

  get rows() {
    return this.#rows;
  }

  /** Shows `rows`, in their given order until a person sorts. */
  setRows(rows) {
    this.#rows = rows;
    this.#place();
  }

  /** Updates the cells whose keys changed. */
  refresh() {
    for (const row of this.#rows) this.#fillLine(row);
  }

  #sortBy(column) {
    const same = this.#sorted?.column === column;
    if (same && this.#sorted.second) this.#sorted = null;  // third press: the given order
    else {
      const first = typeof this.#columns[column].value(this.#rows[0] ?? {}) === 'number';  // numbers: largest first
      this.#sorted = { column, descending: same ? !this.#sorted.descending : first, second: same };
    }
    this.#heads.forEach((head, index) => {
      if (this.#sorted?.column !== index) head.removeAttribute('aria-sort');
      else head.setAttribute('aria-sort', this.#sorted.descending ? 'descending' : 'ascending');
    });
    this.#place();
    const label = this.#columns[column].label;
    announce(this.#sorted ? `Sorted by ${label}, ${this.#sorted.descending ? 'descending' : 'ascending'}` : 'In the order they came');
  }

  #place() {
    let rows = this.#rows;
    if (this.#sorted) {
      const value = this.#columns[this.#sorted.column].value;
      rows = [...rows].sort((a, b) => this.#order(a, b, value));
    }
    const old = this.#lines;
    this.#lines = new Map();
    const lines = rows.map((row) => {
      const id = this.#idOf(row);
      this.#lines.set(id, old.get(id) ?? this.#line());
      this.#fillLine(row);
      return this.#lines.get(id).tr;
    });
    const place = [...this.#body.children];
    if (place.length !== lines.length || lines.some((line, index) => line !== place[index])) {
      const focused = document.activeElement;
      this.#body.replaceChildren(...lines);
      if (focused !== document.activeElement && this.#body.contains(focused)) focused.focus();
    }
  }

  // Rows of a tree are sorted within the row above them: {chain}, the rows from the top down to the row itself.
  #order(a, b, value) {
    const [left, right] = [a.chain ?? [a], b.chain ?? [b]];
    const same = left.findIndex((row, index) => row !== right[index]);
    if (same < 0 || same >= right.length) return left.length - right.length;
    return compare(value(left[same]), value(right[same]), this.#sorted.descending);
  }

  #line() {
    const cells = this.#columns.map((column) => column.header
      ? el('th', { scope: 'row', class: column.class })
      : el('td', { class: column.class }));
    return { cells, tr: el('tr', {}, cells) };
  }

  #fillLine(row) {
    const { cells } = this.#lines.get(this.#idOf(row));
    this.#columns.forEach((column, index) => {
      const key = column.key ?? column.value;
      show(cells[index], key ? [this.#idOf(row), key(row)] : [this.#idOf(row)], () => column.cell(row));
    });
  }
}
