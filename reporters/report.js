'use strict';
(() => {
  const form = document.getElementById('filter');
  const back = document.getElementById('back');
  const shown = document.getElementById('shown');
  const said = document.getElementById('said');
  const title = document.title;
  const fields = ['verdict', 'level', 'page', 'change', 'text'].filter((field) => form[field]);
  const sections = Array.from(document.querySelectorAll('section[data-page]'), (element) => ({
    element,
    folds: Array.from(element.querySelectorAll('.fold'), (fold) => ({ element: fold, label: fold.firstElementChild, all: fold.firstElementChild.textContent })),
    rows: Array.from(element.querySelectorAll('.requirement'), (row) => ({ element: row, fold: row.closest('.fold') })),
  }));
  const total = sections.reduce((n, section) => n + section.rows.length, 0);

  // What the address says: a filter, as in #verdict=fail&text=cursor, or the id of a requirement.
  const named = () => {
    try {
      return document.getElementById(decodeURIComponent(location.hash.slice(1)));
    } catch {
      return null;
    }
  };
  const state = () => {
    const params = new URLSearchParams();
    for (const field of fields) {
      const value = form[field].value.trim();
      if (value) params.set(field, value);
    }
    return params.toString();
  };

  const apply = () => {
    const words = form.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const filtered = state() !== '';
    let count = 0;
    for (const section of sections) {
      const there = !form.page.value || section.element.dataset.page === form.page.value;
      const counts = new Map();
      let left = 0;
      for (const row of section.rows) {
        let matches = there && ['verdict', 'level', 'change'].every((field) => !form[field]?.value || row.element.dataset[field] === form[field].value);
        if (matches && words.length > 0) {
          row.text ??= row.element.textContent.toLowerCase();
          matches = words.every((word) => row.text.includes(word));
        }
        if (row.element.hidden === matches) row.element.hidden = !matches;
        if (matches) {
          left++;
          if (row.fold) counts.set(row.fold, (counts.get(row.fold) ?? 0) + 1);
        }
      }
      for (const fold of section.folds) {
        const n = counts.get(fold.element) ?? 0;
        fold.element.hidden = n === 0;
        fold.label.textContent = n < parseInt(fold.all, 10) ? n + ' of ' + fold.all : fold.all;
        if (filtered !== Boolean(fold.filtered)) {
          fold.element.open = filtered;
          fold.filtered = filtered;
        }
      }
      section.element.hidden = left === 0;
      count += left;
    }
    shown.value = count + ' of ' + total + ' shown';
  };

  const route = () => {
    const element = named();
    const row = element && element.closest('.requirement');
    if (row) {
      // The page shows the requirement alone; no filter may hide it.
      for (const field of fields) form[field].value = '';
      apply();
      for (let at = row; at; at = at.parentElement.closest('details')) at.open = true;
      for (const evidence of row.querySelectorAll('.evidence')) evidence.open = true;
      document.title = row.querySelector('code').textContent + ' – ' + title;
      return;
    }
    document.title = title;
    if (element) {
      // A part of the page: the filter stays as it is.
      apply();
      return;
    }
    const params = new URLSearchParams(location.hash.slice(1));
    for (const field of fields) {
      form[field].value = params.get(field) ?? '';
      if (form[field].selectedIndex === -1) form[field].value = '';
    }
    apply();
    back.href = '#' + (state() || 'report');
    if (state()) document.getElementById('requirements').scrollIntoView();
  };

  const changed = () => {
    apply();
    history.replaceState(null, '', '#' + state());
    back.href = '#' + (state() || 'report');
  };
  let waiting;
  form.addEventListener('input', () => {
    clearTimeout(waiting);
    waiting = setTimeout(changed, 120);
  });
  form.addEventListener('reset', () => setTimeout(changed));
  form.addEventListener('submit', (event) => event.preventDefault());
  addEventListener('hashchange', route);

  const copy = (button, text) => {
    const was = button.textContent;
    const say = (word) => {
      button.textContent = said.textContent = word;
      setTimeout(() => { button.textContent = was; }, 2000);
    };
    const fallback = () => {
      const area = document.createElement('textarea');
      area.value = text;
      document.body.append(area);
      area.select();
      const copied = document.execCommand('copy');
      area.remove();
      button.focus();
      say(copied ? 'Copied' : 'Cannot copy here');
    };
    if (!navigator.clipboard) return fallback();
    navigator.clipboard.writeText(text).then(() => say('Copied'), fallback);
  };

  // A requirement gets its buttons when it is unfolded for the first time.
  const equip = (row) => {
    const actions = row.querySelector(':scope > .body > .actions');
    if (!actions || actions.querySelector('button')) return;
    const id = row.querySelector('code').textContent;
    const again = row.querySelector('.again');
    const link = new URL('#' + row.querySelector(':scope > .body').id, location.href).href;
    for (const [label, text] of [['Copy id', id], ['Copy link', link], ['Copy command', again && again.textContent]]) {
      if (!text) continue;
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = label;
      button.addEventListener('click', () => copy(button, text));
      actions.append(button);
    }
  };
  document.addEventListener('toggle', (event) => {
    if (event.target.matches('.requirement[open]')) equip(event.target);
  }, true);
  document.querySelectorAll('.requirement[open]').forEach(equip);

  for (const tile of document.querySelectorAll('.tiles a[data-verdict]')) tile.href = '#verdict=' + tile.dataset.verdict;
  form.hidden = false;
  route();
})();
