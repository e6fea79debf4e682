// The page: controls in, answers of the worker out. All numbers and words come from runslice.
'use strict';
const $ = (id) => document.getElementById(id);
const state = {
  policies: ['fcfs', 'fifo', 'mlfq'], workload: 'desk', text: null, cpus: '', seed: '1', duration: '',
  runs: '1', kernel: '', from: 0, width: 100, predict: false, step: false,
};
let catalogue = null;
let files = [];
let last = null;
let version = '';

// --- The worker -----------------------------------------------------------------------------

const engine = { worker: null, module: null, next: 1, waiting: new Map(), ready: null };

async function compiled() {
  const inline = $('wasm');
  if (inline) {
    const bytes = Uint8Array.from(atob(inline.textContent.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    return WebAssembly.compile(await new Response(stream).arrayBuffer());
  }
  const answer = await fetch('runslice.wasm');
  if (!answer.ok) throw new Error(`runslice.wasm: ${answer.status} ${answer.statusText}`);
  return WebAssembly.compile(await answer.arrayBuffer());
}

function newWorker() {
  engine.worker?.terminate();
  for (const { refuse } of engine.waiting.values()) refuse(new Error('stopped'));
  engine.waiting.clear();
  const inline = $('worker');
  const place = inline ? URL.createObjectURL(new Blob([inline.textContent], { type: 'text/javascript' })) : 'worker.js';
  engine.worker = new Worker(place);
  engine.ready = new Promise((resolve, reject) => {
    engine.worker.onmessage = ({ data }) => {
      if (data.ready === true) return resolve();
      if (data.ready === false) return reject(new Error(data.message));
      engine.waiting.get(data.id)?.give(data.answer);
      engine.waiting.delete(data.id);
    };
    engine.worker.onerror = (event) => reject(new Error(event.message || 'the worker cannot start'));
  });
  engine.worker.postMessage({ module: engine.module });
}

async function ask(head, withFiles = []) {
  await engine.ready;
  return new Promise((give, refuse) => {
    const id = engine.next++;
    engine.waiting.set(id, { give, refuse });
    const bytes = withFiles.map((file) => file.bytes);
    const named = withFiles.map((file) => [file.name, file.bytes.byteLength]);
    engine.worker.postMessage({ id, head: { ...head, files: named }, files: bytes });
  });
}

// --- What is asked --------------------------------------------------------------------------

function request(want) {
  const head = { policies: state.policies, workload: state.workload, want, columns: columns() };
  const given = [...files];
  if (state.text !== null) {
    head.workload = 'load.toml';
    given.push({ name: 'load.toml', bytes: new TextEncoder().encode(state.text).buffer });
  }
  for (const name of ['cpus', 'seed', 'runs']) {
    if (state[name] !== '') head[name] = Number(state[name]);
  }
  for (const name of ['duration', 'kernel']) if (state[name]) head[name] = state[name];
  return [head, given];
}

const columns = () => Math.max(40, Math.floor(($('answer').clientWidth - 24) / (0.53 * size())));
const size = () => (document.body.classList.contains('projector') ? 20 : 13);

let timer = 0;
let running = 0;
function changed() {
  clearTimeout(timer);
  timer = setTimeout(run, 150);
}

async function run() {
  const mine = ++running;
  if (engine.waiting.size) newWorker();
  const box = setTimeout(() => { $('stop-box').hidden = false; }, 300);
  say('Running …');
  const begun = performance.now();
  try {
    const want = ['text', 'hash', state.step ? 'decisions' : 'bars'];
    const answer = await ask(...request(want));
    if (mine !== running) return;
    show(answer, performance.now() - begun);
  } catch (error) {
    if (mine === running && error.message !== 'stopped') fail({ message: error.message });
  } finally {
    clearTimeout(box);
    if (mine === running) $('stop-box').hidden = true;
  }
}

function say(words) { $('status').textContent = words; }

function fail({ message, advice }) {
  $('error').hidden = false;
  $('error').textContent = advice ? `${message}\n${advice}` : message;
  say('No answer:');
}

function show(answer, took) {
  if (answer.error) {
    fail(answer.error);
    if (answer.error.kind === 'defect') newWorker();
    return;
  }
  $('error').hidden = true;
  last = answer;
  last.spans = answer.runs.map((run) => spansOf(run.bars));
  last.choices = null;
  say(`${answer.runs.length === 1 ? 'One scheduler' : `${answer.runs.length} schedulers`}, simulated in ${Math.round(took)} ms.`);
  $('verdict').textContent = answer.notes.concat(answer.text).join('\n');
  $('command').textContent = state.text === null ? `The same in a terminal: ${answer.command}` : `The same in a terminal, with the text in load.toml: ${answer.command}`;
  $('hash').textContent = answer.runs.map((run) => `${run.policy}: ${run.events} events, hash ${run.hash}`).join('; ');
  $('tools').hidden = false;
  game.at = 0;
  game.right = game.asked = 0;
  steps.at = 0;
  paint();
  if ($('why').open) explain();
  if ($('table').open) table();
  remember();
}

// --- Pictures -------------------------------------------------------------------------------

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function view() {
  const end = Math.max(...last.runs.map((run) => run.bars.end));
  const width = Math.max(1e-5, Number(state.width) || 100) * 1e6;
  const from = Math.min(Math.max(0, Number(state.from) || 0) * 1e6, Math.max(0, end - width));
  return { from, to: from + width, end };
}

function drawing(at, width) {
  const bars = last.runs[at].bars;
  const spans = last.spans[at];
  return {
    bars, spans, rows: rowsOf(bars, spans), width, size: size(), ...view(),
    until: state.predict && at === 0 ? game.until() : Infinity,
    ink: css('--ink'), soft: css('--line'), wait: css('--wait'),
    patterns: document.body.classList.contains('projector') || last.spans[at].length > COLOURS.length,
  };
}

function paint() {
  const box = $('pictures');
  const shown = state.predict || state.step ? last.runs.slice(0, 1) : last.runs;
  while (box.children.length > shown.length) box.lastChild.remove();
  shown.forEach((run, at) => {
    let figure = box.children[at];
    if (!figure) {
      figure = document.createElement('figure');
      figure.append(document.createElement('figcaption'), document.createElement('canvas'));
      const canvas = figure.lastChild;
      canvas.onpointermove = (event) => point(event, at);
      canvas.onwheel = (event) => zoom(event, canvas);
      box.append(figure);
    }
    const canvas = figure.lastChild;
    const asked = drawing(at, canvas.clientWidth || box.clientWidth);
    const height = measures(asked.rows, asked.size).total;
    figure.firstChild.textContent = `${run.policy}${run.bars.cut ? ' (only the first 200,000 switches are drawn)' : ''}`;
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', `Who has which CPU under ${run.policy}, from ${shownTime(asked.from)} to ${shownTime(asked.to)}; the table below says the same`);
    draw(new CanvasPen(canvas, asked.width, height), asked);
  });
  $('predictor').hidden = !state.predict;
  $('stepper').hidden = !state.step;
  if (state.predict) game.show();
  if (state.step) steps.show();
}

// What is under the pointer, as words.
function point(event, at) {
  if (!last) return;
  const canvas = event.currentTarget;
  const box = canvas.getBoundingClientRect();
  const asked = drawing(at, box.width);
  const { left, top, height } = measures(asked.rows, asked.size);
  const time = asked.from + (event.clientX - box.left - left) / (box.width - left - 4) * (asked.to - asked.from);
  const row = asked.rows[Math.floor((event.clientY - box.top - top) / height)];
  if (!row || time < asked.from || time > asked.until) { canvas.title = ''; return; }
  const tasks = row.task ? [row.task] : asked.spans;
  for (const task of tasks) {
    const span = task.runs[firstAfter(task.runs, time)];
    if (span && span[0] <= time && (row.task || span[2] === row.cpu)) {
      canvas.title = `${task.name} runs on CPU ${span[2]} from ${shownTime(span[0])} to ${shownTime(span[1])}`;
      return;
    }
    const wait = row.task && task.waits[firstAfter(task.waits, time)];
    if (wait && wait[0] <= time) {
      canvas.title = `${task.name} waits from ${shownTime(wait[0])} to ${shownTime(wait[1])}`;
      return;
    }
  }
  canvas.title = row.task ? `${row.label} sleeps` : `${row.label} is idle`;
}

function zoom(event, canvas) {
  if (!event.ctrlKey && !event.shiftKey) return;
  event.preventDefault();
  move(event.deltaY > 0 ? 1.25 : 0.8, 0);
}

function move(factor, pages) {
  const { from, to, end } = view();
  const width = Math.min((to - from) * factor, end);
  const middle = (from + to) / 2 + pages * (to - from);
  state.width = +(width / 1e6).toPrecision(6);
  state.from = +(Math.max(0, Math.min(middle - width / 2, end - width)) / 1e6).toFixed(6);
  $('from').value = state.from;
  $('width').value = state.width;
  paint();
  remember();
}

function save(kind) {
  const width = 1200;
  const all = last.runs.map((run, at) => drawing(at, width));
  const heights = all.map((it) => measures(it.rows, it.size).total + 30);
  const total = heights.reduce((sum, it) => sum + it, 0);
  const give = (blob) => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(blob);
    link.download = `runslice.${kind}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const svg = new SvgPen(width, total, css('--paper'));
  let y = 0;
  all.forEach((asked, at) => {
    svg.parts.push(`<g transform="translate(0 ${y})">`);
    svg.text(4, 18, last.runs[at].policy, 16, asked.ink, 'left');
    svg.parts.push('<g transform="translate(0 26)">');
    draw(svg, asked);
    svg.parts.push('</g></g>');
    y += heights[at];
  });
  const blob = new Blob([svg.done()], { type: 'image/svg+xml' });
  if (kind === 'svg') return give(blob);
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement('canvas');
    Object.assign(canvas, { width: 2 * width, height: 2 * total });
    canvas.getContext('2d').drawImage(image, 0, 0, 2 * width, 2 * total);
    canvas.toBlob(give);
    URL.revokeObjectURL(image.src);
  };
  image.src = URL.createObjectURL(blob);
  return undefined;
}

// --- Who runs next? -------------------------------------------------------------------------

const game = {
  at: 0, right: 0, asked: 0, said: '',
  all() {
    const { from, to } = view();
    last.choices ??= choices(last.runs[0].bars);
    return last.choices.filter(([time]) => time >= from && time < to);
  },
  until() {
    const all = this.all();
    return this.at < all.length ? all[this.at][0] : Infinity;
  },
  show() {
    const all = this.all();
    const box = $('predictor');
    box.replaceChildren();
    const bars = last.runs[0].bars;
    const line = document.createElement('p');
    if (this.said) {
      const said = document.createElement('p');
      said.className = this.said.right ? 'right' : 'wrong';
      said.textContent = this.said.words;
      box.append(said);
    }
    if (this.at >= all.length) {
      line.textContent = all.length === 0 ? 'No CPU has to choose in this stretch: move on, or take a load with more tasks.' : `${this.right} of ${this.asked} right. Move on for more.`;
      box.append(line);
      return;
    }
    const [time, cpu, chosen, ready] = all[this.at];
    line.textContent = `At ${shownTime(time)} CPU ${cpu} chooses under ${last.runs[0].policy}. Who runs next? (${this.right} of ${this.asked} right, ${all.length - this.at} to go)`;
    box.append(line);
    for (const task of ready.slice(0, 30)) {
      const button = document.createElement('button');
      button.textContent = bars.tasks[task];
      button.onclick = () => {
        const right = task === chosen;
        this.asked += 1;
        this.right += right ? 1 : 0;
        this.said = { right, words: right ? `Right: ${bars.tasks[chosen]}.` : `No: ${bars.tasks[chosen]} runs, not ${bars.tasks[task]}.` };
        this.at += 1;
        paint();
        $('predictor').querySelector('button')?.focus();
      };
      box.append(button, ' ');
    }
  },
};

// --- Decision by decision -------------------------------------------------------------------

const WORDS = { kept: 'keeps', insert: 'inserts', look: 'looks at', remove: 'takes out', kick: 'kicks a CPU for', slice: 'gives a slice to', ignored: 'in vain inserts' };
const steps = {
  at: 0,
  show() {
    const run = last.runs[0];
    const { from, to } = view();
    const all = run.bars.decisions.filter(([time, , , , , place]) => time >= from && time < to && place >= 0);
    const box = $('stepper');
    box.replaceChildren();
    const line = document.createElement('p');
    box.append(line);
    if (all.length === 0) {
      line.textContent = 'The policy decides nothing in this stretch.';
      return;
    }
    this.at = Math.min(Math.max(this.at, 0), all.length - 1);
    const [time, cpu, what, task, queue, place] = all[this.at];
    const [name, file, number] = run.bars.places[place];
    const about = task >= 0 ? run.bars.tasks[task] : 'nobody';
    line.textContent = `${this.at + 1} of ${all.length}: at ${shownTime(time)}, on CPU ${cpu}, ${name} ${WORDS[what]} ${about}${queue >= 0 ? ` (queue ${queue})` : ''}. ${file ?? ''}${number ? `:${number}` : ''}`;
    for (const [words, by] of [['◀ Earlier', -1], ['Later ▶', 1]]) {
      const button = document.createElement('button');
      button.textContent = words;
      button.onclick = () => { this.at += by; this.show(); $('stepper').querySelectorAll('button')[by < 0 ? 0 : 1].focus(); };
      box.append(button, ' ');
    }
    const policy = catalogue.policies.find((it) => it.name === run.policy.split(':')[0]);
    if (!policy || !file?.endsWith(`${policy.name}.bpf.c`)) return;
    const source = document.createElement('pre');
    source.className = 'source';
    policy.text.split('\n').forEach((text, at) => {
      const row = document.createElement('span');
      row.textContent = `${String(at + 1).padStart(4)} ${text}\n`;
      if (at + 1 === number) { row.className = 'here'; setTimeout(() => row.scrollIntoView({ block: 'nearest' }), 0); }
      source.append(row);
    });
    box.append(source);
  },
};

// --- More about the answer ------------------------------------------------------------------

async function explain() {
  $('explanation').textContent = 'Looking …';
  const answer = await ask(...request(['explain']));
  $('explanation').textContent = answer.error ? answer.error.message : answer.runs.map((run) => `${run.policy}\n${run.explain}`).join('\n');
}

function table() {
  const { from, to } = view();
  const box = $('rows');
  box.replaceChildren();
  last.runs.forEach((run, at) => {
    const rows = last.spans[at].flatMap((task) => task.runs.filter(([begin, end]) => end > from && begin < to).map((span) => [task.name, ...span]));
    rows.sort((a, b) => a[1] - b[1]);
    const it = document.createElement('table');
    it.createCaption().textContent = `${run.policy}: ${rows.length} spans${rows.length > 500 ? ', the first 500' : ''}`;
    const head = it.createTHead().insertRow();
    for (const word of ['task', 'CPU', 'from', 'to']) {
      const cell = document.createElement('th');
      cell.scope = 'col';
      cell.textContent = word;
      head.append(cell);
    }
    const body = it.createTBody();
    for (const [name, begin, end, cpu] of rows.slice(0, 500)) {
      const row = body.insertRow();
      for (const word of [name, cpu, shownTime(begin), shownTime(end)]) row.insertCell().textContent = word;
    }
    box.append(it);
  });
}

// --- Controls -------------------------------------------------------------------------------

function controls() {
  const chips = $('chosen');
  chips.replaceChildren();
  state.policies.forEach((policy, at) => {
    const chip = document.createElement('span');
    chip.className = 'chip';
    const drop = document.createElement('button');
    drop.type = 'button';
    drop.textContent = '×';
    drop.setAttribute('aria-label', `Leave out ${policy}`);
    drop.onclick = () => {
      state.policies.splice(at, 1);
      if (state.policies.length === 0) state.policies = ['fifo'];
      controls();
      changed();
    };
    chip.append(policy, drop);
    chips.append(chip);
  });
  knobs();
  const own = state.text !== null;
  const load = catalogue.loads.find((it) => it.name === state.workload);
  $('summary').textContent = own ? 'A text of your own.' : load?.summary ?? state.workload;
  if (document.activeElement !== $('text')) $('text').value = own ? state.text : load?.text ?? '';
  $('load').value = state.workload;
  for (const name of ['cpus', 'seed', 'duration', 'runs', 'kernel', 'from', 'width']) $(name).value = state[name];
}

// The knobs of the policies that were chosen, with their limits.
function knobs() {
  const box = $('knobs');
  box.replaceChildren();
  state.policies.forEach((word, at) => {
    const [name, set = ''] = word.split(/:(.*)/s);
    const policy = catalogue.policies.find((it) => it.name === name);
    if (!policy || policy.knobs.length === 0) return;
    const values = new Map(set.split(',').filter(Boolean).map((it) => it.split('=')));
    const details = document.createElement('details');
    details.open = open.has(name);
    details.ontoggle = () => (details.open ? open.add(name) : open.delete(name));
    const summary = document.createElement('summary');
    summary.textContent = `${name}: ${policy.summary}`;
    details.append(summary);
    for (const knob of policy.knobs) {
      const label = document.createElement('label');
      label.className = 'knob';
      label.title = `${knob.doc} (${knob.min} to ${knob.max})`;
      const input = document.createElement('input');
      Object.assign(input, { type: 'number', min: knob.min, max: knob.max, placeholder: knob.default, value: values.get(knob.name) ?? '' });
      input.onchange = () => {
        if (input.value === '') values.delete(knob.name); else values.set(knob.name, input.value);
        const all = [...values].map(([key, value]) => `${key}=${value}`).join(',');
        state.policies[at] = all ? `${name}:${all}` : name;
        controls();
        changed();
      };
      label.append(`${knob.name} (${knob.unit})`, input);
      details.append(label);
    }
    box.append(details);
  });
}
const open = new Set();

function options(select, names) {
  select.replaceChildren(...names.map(([value, words]) => new Option(words, value)));
}

function wire() {
  options($('add'), [['', 'choose …'], ...catalogue.policies.map((it) => [it.name, `${it.name}${it.lesson ? ' (lesson)' : ''}`])]);
  options($('load'), catalogue.loads.map((it) => [it.name, it.name]));
  options($('kernel'), [['', `${catalogue.kernel} (usual)`], ...catalogue.kernels.map((it) => [it, it])]);
  $('controls').onsubmit = (event) => event.preventDefault();
  $('add').onchange = () => {
    if ($('add').value) state.policies.push($('add').value);
    $('add').value = '';
    controls();
    changed();
  };
  $('load').onchange = () => { Object.assign(state, { workload: $('load').value, text: null }); controls(); changed(); };
  $('text').oninput = () => { state.text = $('text').value; changed(); };
  for (const name of ['cpus', 'seed', 'duration', 'runs', 'kernel']) {
    $(name).onchange = () => { state[name] = $(name).value; changed(); };
  }
  for (const name of ['from', 'width']) {
    $(name).onchange = () => { state[name] = Number($(name).value) || 0; if (last) paint(); remember(); };
  }
  $('earlier').onclick = () => move(1, -1);
  $('later').onclick = () => move(1, 1);
  $('closer').onclick = () => move(0.5, 0);
  $('wider').onclick = () => move(2, 0);
  $('svg').onclick = () => save('svg');
  $('png').onclick = () => save('png');
  $('stop').onclick = () => { running++; newWorker(); $('stop-box').hidden = true; say('Stopped. Change something, and it runs again.'); };
  const toggle = (id, other, then) => {
    $(id).onclick = () => {
      state[id] = !state[id];
      if (state[id]) state[other] = false;
      for (const it of [id, other]) $(it).setAttribute('aria-pressed', state[it]);
      then();
    };
  };
  toggle('predict', 'step', () => { Object.assign(game, { at: 0, right: 0, asked: 0, said: '' }); paint(); remember(); });
  toggle('step', 'predict', () => { if (state.step) changed(); else { paint(); remember(); } });
  $('projector').onclick = () => {
    const on = document.body.classList.toggle('projector');
    $('projector').setAttribute('aria-pressed', on);
    if (last) paint();
  };
  $('link').onclick = async () => {
    await remember();
    try { await navigator.clipboard.writeText(location.href); say('The link is copied.'); } catch { say('The link is in the address bar.'); }
  };
  $('why').ontoggle = () => { if ($('why').open && last) explain(); };
  $('table').ontoggle = () => { if ($('table').open && last) table(); };
  addEventListener('resize', () => { if (last) paint(); });
  addEventListener('hashchange', async () => { if (await recall()) { controls(); changed(); } });
  addEventListener('dragover', (event) => event.preventDefault());
  addEventListener('drop', dropped);
}

async function dropped(event) {
  event.preventDefault();
  for (const file of event.dataTransfer.files) {
    const bytes = await file.arrayBuffer();
    files = files.filter((it) => it.name !== file.name).concat({ name: file.name, bytes });
    if (/\.(o|bundle)$/.test(file.name)) state.policies.push(file.name);
    else Object.assign(state, { workload: file.name, text: null });
  }
  $('files').textContent = `Files here: ${files.map((it) => it.name).join(', ')}`;
  controls();
  changed();
}

// --- The link -------------------------------------------------------------------------------

const PLAIN = { ...state, policies: [...state.policies] };
let written = '';

async function squeezed(bytes, Stream) {
  const stream = new Blob([bytes]).stream().pipeThrough(new Stream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Keeps what differs from the page as it opens in the address; files stay out.
async function remember() {
  const kept = Object.fromEntries(Object.entries(state).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(PLAIN[key])));
  let hash = '';
  if (Object.keys(kept).length) {
    const bytes = await squeezed(new TextEncoder().encode(JSON.stringify(kept)), CompressionStream);
    const text = btoa(String.fromCharCode(...bytes)).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
    hash = `v=${version}&z=${text}`;
  }
  written = hash;
  history.replaceState(null, '', hash ? `#${hash}` : location.pathname + location.search);
}

// Takes what the address says. False if it says nothing new.
async function recall() {
  const hash = location.hash.slice(1);
  if (!hash || hash === written) return false;
  const asked = new URLSearchParams(hash);
  try {
    if (hash.length > 200000) throw new Error('it is too long');
    const packed = atob((asked.get('z') ?? '').replace(/-/g, '+').replace(/_/g, '/'));
    const bytes = await squeezed(Uint8Array.from(packed, (c) => c.charCodeAt(0)), DecompressionStream);
    const kept = JSON.parse(new TextDecoder().decode(bytes));
    for (const [key, value] of Object.entries(kept)) {
      const plain = PLAIN[key];
      const fits = key === 'text' ? typeof value === 'string' : Array.isArray(plain) ? Array.isArray(value) && value.every((it) => typeof it === 'string') : typeof value === typeof plain;
      if (!(key in PLAIN) || !fits) throw new Error(`nothing here is called ${key}, or has such a value`);
    }
    Object.assign(state, structuredClone(PLAIN), kept);
  } catch (error) {
    fail({ message: `the link cannot be read: ${error.message}` });
    return false;
  }
  const other = asked.get('v');
  if (other && other !== version) say(`This link is of version ${other}; this page is ${version}.`);
  return true;
}

// --- Begin ----------------------------------------------------------------------------------

async function begin() {
  if (new URLSearchParams(location.search).has('embed')) document.body.classList.add('embed');
  if (typeof WebAssembly !== 'object') return fail({ message: 'this browser has no WebAssembly' });
  engine.module = await compiled();
  newWorker();
  catalogue = await ask({ list: true });
  version = catalogue.version;
  $('version').textContent = version;
  wire();
  await recall();
  controls();
  for (const it of ['predict', 'step']) $(it).setAttribute('aria-pressed', state[it]);
  return run();
}
begin().catch((error) => fail({ message: `the simulator cannot start: ${error.message}` }));
