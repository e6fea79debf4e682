// site.mjs TOOLS OUT: makes the site of README.md and all pages that it leads to, with the renderer
// that lies in TOOLS. A link that leads nowhere ends it.
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, normalize, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { deflateRawSync } from 'node:zlib';

const [tools, out] = process.argv.slice(2).map((path) => resolve(path));
process.chdir(join(dirname(fileURLToPath(import.meta.url)), '..'));
const { Marked } = createRequire(join(tools, 'package.json'))('marked');
const text = (path) => readFileSync(path, 'utf8');
const version = /^version = "(.*)"/m.exec(text('Cargo.toml'))[1];
const escaped = (it) => it.replace(/[&<>"]/g, (letter) => `&#${letter.codePointAt()};`);
const FIRST = ['README.md', 'docs/cases.md', 'docs/guide/src/SUMMARY.md', 'docs/guide/src/README.md'];
const NAV = [['README.md', 'runslice'], ['docs/guide/src/README.md', 'Guide'], ['play', 'Playground'],
  ['docs/cases.md', 'Cases'], ['docs/guide/src/SUMMARY.md', 'Documents']];
const STYLE = `${text('crates/show/src/page/page.css')}
nav{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;margin:0 0 1.5rem}h1{font-size:1.7rem;color:inherit}
pre{background:var(--box);padding:.7rem 1rem;overflow-x:auto;font-size:.85rem;line-height:1.4}
td,th{white-space:normal;text-align:left}iframe{width:100%;height:34rem;border:1px solid var(--rule)}`;

// Where a file of the project lies in the site.
const placeOf = (path) => path === 'README.md' ? 'index.html' : path === 'play' ? 'play/' : path.replace(/\.md$/, '.html');

// Heads are called as GitHub calls them, so that links into documents hold.
function slugs() {
  const seen = new Map();
  return (head) => {
    const plain = head.toLowerCase().replace(/<[^>]*>|[^\p{L}\p{N} _-]/gu, '').trim().replace(/ /g, '-');
    const before = seen.get(plain) ?? 0;
    seen.set(plain, before + 1);
    return before ? `${plain}-${before}` : plain;
  };
}

const BUILT_IN = new Set(['rr', ...['policies', 'policies/lessons', 'workloads'].flatMap((folder) =>
  readdirSync(folder).map((name) => name.replace(/\.(bpf\.c|toml)$/, '')))]);

// The playground with the run of a command, if it can be told all of it: built-in policies, and a
// load that is built in or stands on the page.
function live(command, files) {
  const words = command.split('|')[0].trim().split(/\s+/).slice(2);
  const state = { policies: [] };
  while (words.length) {
    const word = words.shift();
    const option = /^--(duration|runs|seed|cpus)$/.exec(word)?.[1];
    if (!word.startsWith('-')) state.policies.push(word);
    else if (word === '-w') state.workload = words.shift();
    else if (word === '--machine' && words[0] === 'textbook') state.kind = words.shift();
    else if (word === '-o' || word === '--events') words.shift();
    else if (option) state[option] = words.shift();
    else return '';
  }
  const { kind, workload, ...rest } = state;
  const own = files.get(workload);
  if (kind && (!own || own.includes('[machine]'))) return '';
  const load = own ? { text: kind ? `${own}\n[machine]\nkind = "textbook"\n` : own } : { workload };
  const names = own ? state.policies : [...state.policies, workload];
  if (!names.every((name) => BUILT_IN.has(name?.split(':')[0]))) return '';
  const packed = deflateRawSync(JSON.stringify({ ...rest, ...load })).toString('base64url');
  return `play/${version}/#v=${version}&z=${packed}`;
}

const pages = new Map();
const dead = [];
const links = [];

function render(path) {
  const slug = slugs();
  const ids = new Set();
  const files = new Map();
  const here = dirname(placeOf(path));
  const target = (href) => {
    const [file, anchor] = href.split('#');
    const to = file ? normalize(join(dirname(path), file)) : path;
    if (/^https?:/.test(href)) return href;
    if (!existsSync(to) || to.startsWith('..')) return void dead.push(`${path}: ${href}`);
    if (statSync(to).isDirectory()) return undefined;
    if (anchor) links.push([path, to, anchor]);
    wanted.push(to);
    return (relative(here, placeOf(to)) || '.') + (anchor ? `#${anchor}` : '');
  };
  const renderer = {
    heading({ tokens, depth }) {
      const inner = this.parser.parseInline(tokens);
      const id = slug(inner);
      ids.add(id);
      return `<h${depth} id="${id}">${inner}</h${depth}>\n`;
    },
    link({ href, tokens }) {
      const inner = this.parser.parseInline(tokens);
      const to = target(href);
      return to ? `<a href="${escaped(to)}">${inner}</a>` : inner;
    },
    table({ header, rows }) {
      const cells = (row, tag) => row.map((it) => `<${tag}>${this.parser.parseInline(it.tokens)}</${tag}>`).join('');
      const body = rows.map((row) => `<tr>${cells(row, 'td')}</tr>`).join('\n');
      const table = `<table><thead><tr>${cells(header, 'th')}</tr></thead><tbody>\n${body}\n</tbody></table>`;
      return `<div class="scroll" tabindex="0">${table}</div>`;
    },
    code({ text: code, lang }) {
      const file = /^toml,file=(.*)$/.exec(lang ?? '')?.[1];
      if (file) files.set(file, code);
      const runs = lang === 'console' ? code.match(/^\$ runslice sim .*$/gm) ?? [] : [];
      const to = runs.map((it) => live(it.slice(2), files)).find(Boolean);
      const link = to ? `<p class="note"><a href="${relative(here, to)}">Run it here, in your browser</a></p>\n` : '';
      return `<pre><code>${escaped(code)}</code></pre>\n${link}`;
    },
  };
  const source = text(path).replace(/<!--.*?-->\n?/gs, '');
  const body = new Marked({ renderer, gfm: true }).parse(source);
  const title = /^# (.*)$/m.exec(source)?.[1] ?? path;
  pages.set(path, { ids, title, body });
}

const wanted = [...FIRST];
while (wanted.length) {
  const path = wanted.shift();
  if (pages.has(path)) continue;
  if (path.endsWith('.md')) render(path);
  else pages.set(path, null);
}
for (const [from, to, anchor] of links) {
  if (pages.get(to) && !pages.get(to).ids.has(anchor)) dead.push(`${from}: ${to}#${anchor}`);
}
if (dead.length) {
  console.error(`links that lead nowhere:\n  ${dead.join('\n  ')}`);
  process.exit(1);
}
for (const [path, page] of pages) {
  const to = join(out, placeOf(path));
  mkdirSync(dirname(to), { recursive: true });
  if (!page) {
    copyFileSync(path, to);
    continue;
  }
  const nav = NAV.map(([of, name]) => `<a href="${relative(dirname(placeOf(path)), placeOf(of)) || '.'}">${name}</a>`);
  const picture = path === 'README.md' ? '<iframe src="desk.html" title="The page of this run"></iframe>\n' : '';
  const body = picture ? page.body.replace('</pre>', `</pre>\n${picture}`) : page.body;
  writeFileSync(to, `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; frame-src 'self'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(page.title)}</title><style>${STYLE}</style></head>
<body><nav>${nav.join('')}</nav><main>
${body}</main></body></html>
`);
}
const made = [...pages.values()].filter(Boolean).length;
console.log(`${join(out, 'index.html')}: ${made} pages, ${pages.size - made} files beside them`);
