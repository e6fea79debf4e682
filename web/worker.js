// Runs the simulator. A message is {id, head, files}; the answer is {id, answer}. A page stops a
// run by ending this worker.
'use strict';
let instance = null;

async function begin(module) {
  instance = await WebAssembly.instantiate(module, {});
  postMessage({ ready: true });
}

function ask(head, files) {
  const { input, answer, output, length, memory } = instance.exports;
  const bytes = new TextEncoder().encode(JSON.stringify(head));
  const total = files.reduce((sum, file) => sum + file.byteLength, 4 + bytes.length);
  const at = input(total) >>> 0;
  const room = new Uint8Array(memory.buffer, at, total);
  new DataView(memory.buffer).setUint32(at, bytes.length, true);
  room.set(bytes, 4);
  let end = 4 + bytes.length;
  for (const file of files) {
    room.set(new Uint8Array(file), end);
    end += file.byteLength;
  }
  let failed = null;
  try {
    answer();
  } catch (error) {
    failed = error;
  }
  const said = new Uint8Array(memory.buffer, output() >>> 0, length() >>> 0);
  const text = new TextDecoder().decode(said);
  if (failed) {
    let told = null;
    try { told = JSON.parse(text); } catch { told = null; }
    const message = told?.error?.message ?? String(failed);
    return { error: { kind: 'defect', message } };
  }
  return JSON.parse(text);
}

onmessage = async ({ data }) => {
  if (data.module) {
    try {
      await begin(data.module);
    } catch (error) {
      postMessage({ ready: false, message: String(error) });
    }
    return;
  }
  postMessage({ id: data.id, answer: ask(data.head, data.files) });
};
