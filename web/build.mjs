// build.mjs WASM OUT: makes the site of a version, and the page as one file.
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const [wasm, out] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const read = (name) => readFileSync(join(here, name), 'utf8');
const version = /^version = "(.*)"/m.exec(readFileSync(join(here, '../Cargo.toml'), 'utf8'))[1];
const bytes = readFileSync(wasm);

// A link names the version in its path, so that it shows the same for as long as that is kept.
const site = join(out, version);
mkdirSync(site, { recursive: true });
for (const name of ['index.html', 'page.css', 'bars.js', 'app.js', 'worker.js']) cpSync(join(here, name), join(site, name));
writeFileSync(join(site, 'runslice.wasm'), bytes);
const go = `<!doctype html><html lang="en"><meta charset="utf-8"><title>runslice</title><meta http-equiv="refresh" content="0; url=${version}/"><a href="${version}/">runslice ${version}</a></html>\n`;
writeFileSync(join(out, 'index.html'), go);

// A browser loads no module and no worker from a file beside a page that was opened from a disk,
// so everything is inside.
const script = (text, attributes = '') => `<script${attributes}>\n${text.replaceAll('</script', '<\\/script')}\n</script>`;
const put = (page, find, instead) => {
  if (!page.includes(find)) throw new Error(`index.html has no ${find}`);
  return page.replace(find, () => instead);
};
let page = read('index.html').replace(/<meta http-equiv="Content-Security-Policy"[^>]*>\n/, '');
page = put(page, '<link rel="stylesheet" href="page.css">', `<style>\n${read('page.css')}</style>`);
page = put(page, '<script src="bars.js"></script>', [
  script(gzipSync(bytes, { level: 9 }).toString('base64'), ' id="wasm" type="text/plain"'),
  script(read('worker.js'), ' id="worker" type="text/plain"'),
  script(read('bars.js')),
].join('\n'));
page = put(page, '<script src="app.js"></script>', script(read('app.js')));
writeFileSync(join(out, 'runslice.html'), page);
console.log(`${join(site, 'index.html')}: ${bytes.length} bytes, ${gzipSync(bytes, { level: 9 }).length} compressed`);
console.log(`${join(out, 'runslice.html')}: one file, ${page.length} bytes`);
