// Labels: one or two characters that stand for a replica where its name has no room.

const labels = { of: new Map(), key: '', common: '' };

// learn gives every replica a label: the end of its name if that tells the replicas apart (app-1, app-2), or else a
// letter. Replicas that are gone, but still have runs on the page, have none.
labels.learn = names => {
  const key = names.join(' ');
  if (key === labels.key) return;
  labels.key = key;
  let common = names.length > 1 ? names[0] : '';
  for (const n of names) while (!n.startsWith(common)) common = common.slice(0, -1);
  const ends = names.map(n => n.slice(common.length));
  const short = names.length > 1 && ends.every(e => /^[0-9A-Za-z]{1,2}$/.test(e));
  labels.common = common.slice(0, common.lastIndexOf('-') + 1);
  labels.of = new Map(names.map((n, i) => [n, short ? ends[i] : i < 26 ? String.fromCharCode(65 + i) : String(i + 1)]));
};
labels.get = name => labels.of.get(name) ?? '·';

// short returns a long name without the part that all names have in common: for a pod, its last part.
labels.short = name => name.length > 16 && labels.common && name.startsWith(labels.common) ? name.slice(labels.common.length)
  : name.length > 24 ? name.slice(0, 10) + '…' + name.slice(-12) : name;
