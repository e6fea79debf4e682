// Draws who has which CPU: on a canvas, and as SVG with the same strokes.
'use strict';
// Okabe and Ito's colours, which people with any kind of colour vision tell apart.
const COLOURS = ['#0072B2', '#E69F00', '#009E73', '#CC79A7', '#56B4E9', '#D55E00', '#8C6D00', '#7F7F7F'];
const MOST_ROWS = 24;

// The spans of each task: [from, to, cpu], and its waits: [from, to].
function spansOf(bars) {
  const tasks = bars.tasks.map((name, number) => ({ name, number, runs: [], waits: [] }));
  const running = new Array(bars.cpus).fill(null);
  const waiting = new Map();
  const events = bars.switches.map(([time, cpu, task, state]) => ({ time, cpu, task, state }));
  const woken = bars.wakeups.map(([time, task]) => ({ time, woken: task }));
  const all = merge(events, woken);
  for (const event of all) {
    if (event.woken !== undefined) {
      if (!running.some((it) => it && it.task === event.woken)) waiting.set(event.woken, event.time);
      continue;
    }
    const before = running[event.cpu];
    if (before) {
      tasks[before.task].runs.push([before.since, event.time, event.cpu]);
      if (event.state === 1) waiting.set(before.task, event.time);
    }
    running[event.cpu] = null;
    if (event.task < 0) continue;
    if (waiting.has(event.task)) {
      const since = waiting.get(event.task);
      if (since < event.time) tasks[event.task].waits.push([since, event.time]);
      waiting.delete(event.task);
    }
    running[event.cpu] = { task: event.task, since: event.time };
  }
  running.forEach((it, cpu) => { if (it) tasks[it.task].runs.push([it.since, bars.end, cpu]); });
  for (const [task, since] of waiting) tasks[task].waits.push([since, bars.end]);
  return tasks;
}

// Two lists in the order of time; wakeups first where times are equal.
function merge(switches, wakeups) {
  const all = [];
  let at = 0;
  for (const event of switches) {
    while (at < wakeups.length && wakeups[at].time <= event.time) all.push(wakeups[at++]);
    all.push(event);
  }
  return all.concat(wakeups.slice(at));
}

// The first of a list of spans that ends behind `time`.
function firstAfter(spans, time) {
  let [low, high] = [0, spans.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans[middle][1] <= time) low = middle + 1; else high = middle;
  }
  return low;
}

// A time as people read it; `step` is what it must tell apart.
function shownTime(ns) {
  if (ns >= 1e9 && ns % 1e6 === 0) return `${ns / 1e9} s`;
  if (ns >= 1e6 || ns === 0) return `${+(ns / 1e6).toFixed(3)} ms`;
  return `${+(ns / 1e3).toFixed(3)} us`;
}

// Rows: CPUs first, then tasks if they are few enough to be read.
function rowsOf(bars, spans) {
  const cpus = [];
  for (let cpu = 0; cpu < bars.cpus && cpu < MOST_ROWS; cpu++) cpus.push({ label: `CPU ${cpu}`, cpu });
  const ran = spans.filter((task) => task.runs.length || task.waits.length);
  const tasks = ran.length + cpus.length <= MOST_ROWS ? ran.map((task) => ({ label: task.name, task })) : [];
  return cpus.concat(tasks);
}

class CanvasPen {
  constructor(canvas, width, height) {
    const scale = window.devicePixelRatio || 1;
    canvas.width = width * scale;
    canvas.height = height * scale;
    canvas.style.height = `${height}px`;
    this.ink = canvas.getContext('2d');
    this.ink.scale(scale, scale);
    this.ink.clearRect(0, 0, width, height);
  }
  rect(x, y, w, h, colour) {
    this.ink.fillStyle = colour;
    this.ink.fillRect(x, y, Math.max(w, 0.5), h);
  }
  line(x1, y1, x2, y2, colour) {
    Object.assign(this.ink, { strokeStyle: colour, lineWidth: 1 });
    this.ink.beginPath();
    this.ink.moveTo(x1, y1);
    this.ink.lineTo(x2, y2);
    this.ink.stroke();
  }
  text(x, y, words, size, colour, align) {
    Object.assign(this.ink, { fillStyle: colour, font: `${size}px system-ui, sans-serif`, textAlign: align });
    this.ink.fillText(words, x, y);
  }
}

class SvgPen {
  constructor(width, height, paper) {
    this.parts = [`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif"><rect width="100%" height="100%" fill="${paper}"/>`];
  }
  rect(x, y, w, h, colour) {
    this.parts.push(`<rect x="${x.toFixed(2)}" y="${y}" width="${Math.max(w, 0.5).toFixed(2)}" height="${h}" fill="${colour}"/>`);
  }
  line(x1, y1, x2, y2, colour) {
    this.parts.push(`<path d="M${x1.toFixed(2)} ${y1.toFixed(2)}L${x2.toFixed(2)} ${y2.toFixed(2)}" stroke="${colour}"/>`);
  }
  text(x, y, words, size, colour, align) {
    const anchor = { left: 'start', right: 'end', center: 'middle' }[align];
    const safe = words.replace(/[&<>]/g, (it) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[it]);
    this.parts.push(`<text x="${x.toFixed(2)}" y="${y}" font-size="${size}" fill="${colour}" text-anchor="${anchor}">${safe}</text>`);
  }
  done() { return `${this.parts.join('\n')}</svg>`; }
}

// The measures of a picture.
function measures(rows, size) {
  const height = Math.round(size * 1.7);
  const left = Math.round(size * Math.min(14, Math.max(...rows.map((row) => row.label.length), 5)) * 0.62);
  return { height, left, top: Math.round(size * 1.7), total: Math.round(size * 1.7) + rows.length * height };
}

// Draws the stretch of `bars` from `from` to `to`, nanoseconds. What begins behind `until` is
// hidden.
function draw(pen, { bars, spans, rows, width, size, from, to, until, ink, soft, wait, patterns }) {
  const { height, left, top } = measures(rows, size);
  const x = (time) => left + (Math.min(Math.max(time, from), to) - from) / (to - from) * (width - left - 4);
  rows.forEach((row, at) => {
    const y = top + at * height;
    pen.text(left - 6, y + size, row.label.slice(0, 16), size * 0.9, ink, 'right');
    pen.rect(left, y + height - 2, width - left - 4, 1, soft);
  });
  axis(pen, { x, from, to, size, top, ink, width });
  const bar = (task, [begin, end], y) => {
    const stop = Math.min(end, until);
    if (stop <= from || begin >= to || begin >= stop) return;
    const colour = COLOURS[task.number % COLOURS.length];
    const [x1, x2] = [x(begin), x(stop)];
    pen.rect(x1, y + 2, x2 - x1, height - 6, colour);
    // A second mark for tasks of one colour, and for those who see none.
    const step = 6 + 3 * (Math.floor(task.number / COLOURS.length) % 4);
    if (patterns && x2 - x1 > 4) {
      for (let at = x1 + 2 + task.number % 3; at < x2 - 1; at += step + task.number % 5) {
        pen.line(at, y + 2, Math.min(at + (task.number % 2 ? 0 : 4), x2), y + height - 4, 'rgba(255,255,255,.7)');
      }
    }
    if (x2 - x1 > size * 0.6 * task.name.length + 6) {
      pen.text((x1 + x2) / 2, y + size, task.name, size * 0.8, '#fff', 'center');
    }
  };
  rows.forEach((row, at) => {
    const y = top + at * height;
    const tasks = row.task ? [row.task] : spans;
    for (const task of tasks) {
      if (row.task) {
        for (let i = firstAfter(task.waits, from); i < task.waits.length && task.waits[i][0] < to; i++) {
          const [begin, end] = task.waits[i];
          const stop = Math.min(end, until);
          if (begin < stop) pen.rect(x(begin), y + height * 0.4, x(stop) - x(begin), height * 0.2, wait);
        }
      }
      for (let i = firstAfter(task.runs, from); i < task.runs.length && task.runs[i][0] < to; i++) {
        if (row.task || task.runs[i][2] === row.cpu) bar(task, task.runs[i], y);
      }
    }
  });
}

function axis(pen, { x, from, to, size, top, ink, width }) {
  const aim = (to - from) / Math.max(2, Math.floor(width / (size * 9)));
  const power = 10 ** Math.floor(Math.log10(aim));
  const step = [1, 2, 5, 10].map((it) => it * power).find((it) => it >= aim);
  for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
    const room = width - x(time) < size * 3;
    pen.text(room ? width : x(time), size, shownTime(Math.round(time)), size * 0.8, ink, room ? 'right' : 'center');
    pen.line(x(time), top - 4, x(time), top, ink);
  }
}

// Moments at which a CPU had to choose: [time, cpu, chosen task, tasks that could run].
function choices(bars) {
  const [running, ready, found] = [new Array(bars.cpus).fill(-1), new Set(), []];
  const events = bars.switches.map(([time, cpu, task, state]) => ({ time, cpu, task, state }));
  const woken = bars.wakeups.map(([time, task]) => ({ time, woken: task }));
  for (const event of merge(events, woken)) {
    if (event.woken !== undefined) {
      if (!running.includes(event.woken)) ready.add(event.woken);
      continue;
    }
    const before = running[event.cpu];
    if (before >= 0 && event.state === 1) ready.add(before);
    if (event.task >= 0 && ready.size > 1) found.push([event.time, event.cpu, event.task, [...ready].sort((a, b) => a - b)]);
    ready.delete(event.task);
    running[event.cpu] = event.task;
  }
  return found;
}
if (typeof module !== 'undefined') module.exports = { spansOf, choices, firstAfter, shownTime, merge };
