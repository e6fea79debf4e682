// check.mjs WASM PROGRAM: asks the page's simulator and the program for the same runs, and
// compares number and hash of the events.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const [wasm, program] = process.argv.slice(2);
const instance = await WebAssembly.instantiate(await WebAssembly.compile(readFileSync(wasm)), {});
const { input, answer, output, length, memory } = instance.exports;

function ask(head) {
  const bytes = new TextEncoder().encode(JSON.stringify(head));
  const at = input(4 + bytes.length) >>> 0;
  new DataView(memory.buffer).setUint32(at, bytes.length, true);
  new Uint8Array(memory.buffer, at + 4).set(bytes);
  answer();
  return JSON.parse(new TextDecoder().decode(new Uint8Array(memory.buffer, output() >>> 0, length() >>> 0)));
}

const list = ask({ list: true });
const names = list.policies.map((it) => it.name);
let differ = 0;
for (const [workload, seed] of [['desk', 1], ['web', 7], ['hackbench', 1]]) {
  const here = ask({ policies: names, workload, seed, duration: '1s', want: ['hash', 'text'] });
  if (here.error) throw new Error(here.error.message);
  const words = ['sim', ...names, '-w', workload, '--seed', String(seed), '--duration', '1s'];
  const there = execFileSync(program, [...words, '--audit'], { encoding: 'utf8' });
  for (const run of here.runs) {
    const wanted = `${run.policy}: ${run.events} events, hash ${run.hash} `;
    if (!there.includes(wanted)) {
      differ += 1;
      console.log(`${workload}: the page has \`${wanted}\`, the program does not`);
    }
  }
  // The words too.
  const text = execFileSync(program, words, { encoding: 'utf8', env: { ...process.env, COLUMNS: '80' } });
  if (text !== here.text) {
    differ += 1;
    console.log(`${workload}: the texts differ`);
  }
}
console.log(`${names.length} policies, 3 loads: ${differ} differences`);
process.exit(differ ? 1 : 0);
