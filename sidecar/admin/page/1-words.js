// Words and elements. All text from outside goes through clean(), and into the page only as text.

const $ = id => document.getElementById(id);

// clean removes the characters that would move, hide or reorder the text around them.
const clean = s => String(s).replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]+/gu, ' ');

// make makes an element of a class, with a text or with children.
function make(tag, cls, ...children) {
  const e = document.createElement(tag);
  if (cls) e.className = cls;
  e.append(...children.filter(c => c != null && c !== '' && c !== false).map(c => c instanceof Node ? c : clean(c)));
  return e;
}

// These functions touch an element only if it changes, so as not to disturb a selection or a screen reader.
function say(e, s) { if (e.textContent !== (s = clean(s))) e.textContent = s; }
function dress(e, cls) { if (e.className !== cls) e.className = cls; }
function attr(e, name, value) { if (e.getAttribute(name) !== (value = clean(value))) e.setAttribute(name, value); }
function fill(e, key, children) {
  if (e.dataset.key === key) return;
  e.dataset.key = key;
  e.replaceChildren(...children());
}

// formatDuration writes a duration in its one or two largest units.
function formatDuration(ms) {
  const s = Math.max(0, Math.floor(ms / 1000)), m = Math.floor(s / 60), h = Math.floor(m / 60);
  if (s < 60) return s + ' s';
  if (m < 60) return m + ' m ' + String(s % 60).padStart(2, '0') + ' s';
  if (h < 48) return h + ' h ' + String(m % 60).padStart(2, '0') + ' m';
  return Math.floor(h / 24) + ' days';
}
// formatRoughly writes a duration in its largest unit, for times in the past.
function formatRoughly(ms) {
  const s = Math.max(0, ms / 1000);
  if (s < 60) return Math.floor(s) + ' s';
  if (s < 3600) return Math.floor(s / 60) + ' m';
  return s < 48 * 3600 ? Math.floor(s / 3600) + ' h' : Math.floor(s / 86400) + ' days';
}
const ago = t => formatRoughly(clock.now() - t) + ' ago';
function took(ms) {
  return !ms ? '–' : ms < 1000 ? ms + ' ms' : ms < 60000 ? (ms / 1000).toFixed(1) + ' s' : formatDuration(ms);
}
function offset(ms) {
  const sign = ms < 0 ? '−' : '+', abs = Math.abs(ms);
  return sign + (abs < 1000 ? abs.toFixed(1) + ' ms' : (abs / 1000).toFixed(1) + ' s');
}
// formatTime writes a time in UTC, as the logs and the command line do. It leaves out the day if it is today.
function formatTime(t) {
  const iso = new Date(t).toISOString(), today = new Date(clock.now()).toISOString();
  return (iso.slice(0, 10) === today.slice(0, 10) ? '' : iso.slice(0, 10) + ' ') + iso.slice(11, 19);
}
const zones = new Map();
// local writes a time in a job's zone; '' for UTC, and for a zone that the browser does not know.
function local(t, zone) {
  if (!t || !zone || zone === 'UTC') return '';
  if (!zones.has(zone)) {
    let f = null;
    try {
      f = new Intl.DateTimeFormat('en-GB', { timeZone: zone, weekday: 'short', hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23', timeZoneName: 'short' });
    } catch (e) { /* it stays unknown */ }
    zones.set(zone, f);
  }
  return zones.get(zone)?.format(t) ?? '';
}
const plural = (n, what) => n + ' ' + what + (n === 1 ? '' : 's');
const when = s => s ? Date.parse(s) : 0;
const kind = (k, attempt) => k + (attempt > 1 ? ', try ' + attempt : '');

// look returns the style of an outcome: good, bad, or neither.
const look = e => e.failed ? 'bad' : e.outcome === 'succeeded' ? 'good' : 'odd';
const outcome = o => o.replaceAll('_', ' ');

// clock is Redis' time: its last answer, plus the time since then.
const clock = { ahead: 0, now() { return performance.now() + this.ahead; } };
