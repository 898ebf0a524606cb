'use strict';
(() => {
  const form = document.getElementById('filter');
  const rows = Array.from(document.querySelectorAll('details[data-verdict]'));
  const sections = Array.from(document.querySelectorAll('section[data-page]'));
  const shown = document.getElementById('shown');
  const apply = () => {
    const words = form.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let n = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !((!form.verdict.value || row.dataset.verdict === form.verdict.value) &&
        (!form.level.value || row.dataset.level === form.level.value) &&
        (!form.page.value || row.dataset.page === form.page.value) &&
        words.every((word) => text.includes(word)));
      if (!row.hidden) n++;
    }
    for (const section of sections) {
      section.hidden = !section.querySelector('details[data-verdict]:not([hidden])');
    }
    shown.value = n + ' of ' + rows.length + ' shown';
  };
  const reveal = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target || target.tagName !== 'DETAILS') return;
    if (target.hidden) { form.reset(); apply(); }
    target.open = true;
    target.scrollIntoView();
  };
  form.addEventListener('input', apply);
  form.addEventListener('reset', () => setTimeout(apply));
  form.addEventListener('submit', (event) => event.preventDefault());
  addEventListener('hashchange', reveal);
  form.hidden = false;
  apply();
  reveal();
})();
