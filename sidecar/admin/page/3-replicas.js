// The replicas, and problems of all of them together.

const replicaRows = new Map();

function replicaState(r) {
  if (r.silent) return ['bad', 'silent for ' + formatRoughly(clock.now() - when(r.seen))];
  if (r.ready) return ['good', 'ready'];
  return r.notReady === 'draining' ? ['warn', 'draining'] : ['bad', 'not ready'];
}

function showReplicas(s) {
  labels.learn(s.replicas.map(r => r.replica));
  const usual = commonest(s.replicas.filter(r => !r.silent).map(r => r.table));
  const unwell = [], well = [];
  for (const r of s.replicas) {
    let e = replicaRows.get(r.replica);
    if (!e) {
      e = make('li', '', make('span', 'mark'), make('span', 'name', r.replica), make('span', 'tag'), make('div', 'facts'), make('p', 'why'));
      replicaRows.set(r.replica, e);
    }
    const [mark, , tag, facts, why] = e.children;
    const [cls, state] = replicaState(r);
    const differs = s.drift && !r.silent && r.table !== usual;
    dress(e, 'replica ' + (differs || cls === 'bad' ? 'bad' : cls === 'warn' || r.notReloaded || r.sameName ? 'warn' : ''));
    say(mark, labels.get(r.replica));
    attr(mark, 'aria-label', 'marked ' + labels.get(r.replica));
    dress(tag, 'tag ' + cls);
    say(tag, state);
    fill(facts, [r.offsetMs, r.table, r.version, differs].join(' '), () => {
      const table = make('span', 'hash' + (differs ? ' differs' : ''), r.table + (differs ? ' differs' : ''));
      return [make('span', '', 'clock ' + offset(r.offsetMs)), ' · ', make('span', '', 'table ', table), ' · ', make('span', '', r.version)];
    });
    say(why, [r.sameName && 'another process has the same name', r.silent || r.notReady === 'draining' ? '' : r.notReady, r.notReloaded && 'refuses the new table: ' + r.notReloaded].filter(Boolean).join('; '));
    why.hidden = !why.textContent;
    (e.classList.length > 1 ? unwell : well).push(e);
  }
  arrange($('unwell'), unwell);
  arrange($('replicas'), well);
  $('well').hidden = well.length === 0;
  say($('well').firstChild, `${well.length === 1 ? '1 replica is' : well.length + ' replicas are'} ready: ` +
    well.map(e => `${e.children[0].textContent} ${labels.short(e.children[1].textContent)}`).join(' · '));
  [...$('legend').querySelectorAll('.cell:not(.hole)')].forEach((c, i) => say(c, labels.get(s.replicas[i % s.replicas.length]?.replica)));
  for (const name of replicaRows.keys()) if (!s.replicas.some(r => r.replica === name)) replicaRows.delete(name);
  banner('drift', s.drift && 'warn', 'Tables differ.', () => drift(s));
  const twins = s.replicas.filter(r => r.sameName).map(r => r.replica);
  banner('twins', twins.length > 0 && 'warn', 'Two processes have one name.', () =>
    [twins.join(', ') + ': the page cannot tell them apart. Give each process a name of its own, with --replica or POD_NAME.']);
  banner('unready', s.replicas.length > 0 && s.summary.readyReplicas === 0 && 'bad', 'No replica is ready: nothing is fired.', () =>
    [s.replicas.map(r => `${labels.short(r.replica)}: ${r.silent ? replicaState(r)[1] : r.notReady}`).join('; ')]);
  banner('alone', s.replicas.length === 0 && 'bad', 'No replica takes ticks.', () => ['All replicas of the last day have drained or ended. A replica that starts appears here within seconds.']);
}

function commonest(list) {
  const count = new Map();
  for (const v of list) count.set(v, (count.get(v) ?? 0) + 1);
  return [...count.entries()].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))[0]?.[0];
}

function drift(s) {
  const by = new Map();
  for (const r of s.replicas) if (!r.silent) by.set(r.table, [...by.get(r.table) ?? [], r.replica]);
  const parts = [...by.entries()].sort((a, b) => b[1].length - a[1].length).flatMap(([hash, names]) =>
    [names.map(labels.short).join(', ') + (names.length === 1 ? ' has ' : ' have '), make('code', '', hash), '; ']);
  return [...parts.slice(0, -1), '. The jobs below are those of this replica\'s table.'];
}

// arrange puts elements into a parent in order, and moves only those that are out of order.
function arrange(parent, elements) {
  const focused = document.activeElement;
  elements.forEach((e, i) => { if (parent.children[i] !== e) parent.insertBefore(e, parent.children[i] ?? null); });
  while (parent.children.length > elements.length) parent.lastElementChild.remove();
  if (focused !== document.activeElement && focused?.isConnected) focused.focus({ preventScroll: true });
}

// banner shows, changes or removes one of the banners.
const banners = new Map();
function banner(name, cls, title, parts) {
  let b = banners.get(name);
  if (!cls) {
    b?.remove();
    banners.delete(name);
    return;
  }
  if (!b) {
    b = make('p', '', make('b', ''), ' ', make('span', 'text'));
    banners.set(name, b);
    $('banners')[cls === 'bad' ? 'prepend' : 'append'](b);
  }
  dress(b, 'banner ' + cls);
  say(b.firstChild, title);
  const list = parts();
  const key = list.filter(p => p !== age).map(p => p.textContent ?? p).join('');
  fill(b.lastChild, key, () => list.map(p => p instanceof Node ? p : clean(p)));
}
