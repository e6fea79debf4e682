// visit.mjs URL CHROMIUM [FOLDER]: uses the page as a visitor would, in a browser, and says what is
// wrong. Pictures go to the folder. It needs the package playwright-core.
import { mkdirSync } from 'node:fs';
import { chromium } from 'playwright-core';

const [url, executablePath, folder] = process.argv.slice(2);
if (folder) mkdirSync(folder, { recursive: true });
const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const browser = await chromium.launch({ executablePath, args });
const wrong = [];
const check = (is, words) => { if (!is) wrong.push(words); console.log(`${is ? 'ok ' : 'NOT'} ${words}`); };
const answered = (page) => page.waitForFunction(() => /simulated in|No answer|Stopped/.test(document.getElementById('status').textContent), null, { timeout: 60000 });

async function visit(options, at = url) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const outside = [];
  page.on('request', (it) => { if (!it.url().startsWith(new URL(at).origin) && !/^(blob|data|file):/.test(it.url())) outside.push(it.url()); });
  page.on('pageerror', (it) => wrong.push(`the page throws: ${it.message}`));
  const begun = Date.now();
  await page.goto(at);
  await answered(page);
  return { page, outside, took: Date.now() - begun };
}
const shot = (page, name) => folder && page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });

for (const [width, colorScheme] of [[1300, 'light'], [1300, 'dark'], [800, 'light'], [400, 'dark']]) {
  const { page, outside, took } = await visit({ viewport: { width, height: 800 }, colorScheme });
  const scrolls = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  check(!scrolls, `${width} px, ${colorScheme}: no sideways scrolling; first answer after ${took} ms`);
  check(outside.length === 0, `nothing is asked of others ${outside}`);
  const top = await page.evaluate(() => document.querySelector('#pictures').getBoundingClientRect().top);
  check(top < 400, `the picture is on the first screen (${Math.round(top)} px)`);
  const head = await page.evaluate(() => document.querySelector('header').offsetHeight);
  check(head < 110, `the head leaves room for it (${head} px)`);
  await shot(page, `page-${width}-${colorScheme}`);
  await page.context().close();
}

const { page } = await visit({ viewport: { width: 1300, height: 900 } });
const nameless = await page.evaluate(() => [...document.querySelectorAll('button, input, select, textarea')].filter((it) => !(it.textContent.trim() || it.labels?.length || it.getAttribute('aria-label') || it.title)).map((it) => it.id));
check(nameless.length === 0, `each control has a name ${nameless}`);
const hash = () => page.textContent('#hash');
const before = await hash();
await page.fill('#seed', '7');
await page.press('#seed', 'Tab');
await page.waitForFunction((old) => document.getElementById('hash').textContent !== old, before);
check(await hash() !== before, 'another seed gives other events');
await page.waitForTimeout(300);
const link = page.url();
check(link.includes('#v='), 'the address keeps what was changed');
const again = await visit({}, link);
check(await again.page.textContent('#hash') === await hash(), 'a link shows the same elsewhere');
await again.page.context().close();

await page.click('#predict');
const offered = await page.locator('#predictor button').count();
check(offered > 1, `a visitor is asked who runs next, of ${offered}`);
await page.locator('#predictor button').first().click();
check(/Right|No:/.test(await page.textContent('#predictor')), 'and told whether that is so');
await shot(page, 'predict');
await page.click('#predict');
await page.click('#step');
await page.waitForFunction(() => document.querySelector('#stepper button'));
await page.locator('#stepper button').last().click();
check(/\.bpf\.c:\d+/.test(await page.textContent('#stepper')), `a decision names its line: ${(await page.textContent('#stepper p')).slice(0, 100)}`);
await shot(page, 'step');
await page.click('#step');

await page.click('#editor summary');
await page.fill('#text', '[workload]\nname = "x"\n[task.a]\ndo = "rum(1ms)"\n');
await page.waitForFunction(() => !document.getElementById('error').hidden);
check(/load\.toml:4/.test(await page.textContent('#error')), `a wrong load is told with its line: ${(await page.textContent('#error')).split('\n')[0]}`);
await page.fill('#text', '[workload]\nname = "x"\nstop = "duration:600s"\n[machine]\ncpus = 4\n[task.a]\ncount = 20\ndo = "loop(inf)[ run(100us), sleep(50us) ]"\n');
await page.waitForFunction(() => !document.getElementById('stop-box').hidden, null, { timeout: 20000 });
const stopped = Date.now();
await page.click('#stop');
await page.fill('#text', '[workload]\nname = "x"\nstop = "duration:1s"\n[machine]\ncpus = 1\n[task.a]\ncount = 2\ndo = "run(inf)"\n');
await page.waitForFunction(() => /simulated in/.test(document.getElementById('status').textContent), null, { timeout: 20000 });
check(true, `after Stop the next answer comes in ${Date.now() - stopped} ms`);
await page.click('#why summary');
await page.waitForFunction(() => /explain/.test(document.getElementById('explanation').textContent));
check(true, 'it explains');

for (const [name, bad] of [['cut', '#v=0&z=AAAA'], ['long', `#z=${'A'.repeat(300000)}`], ['no base64', '#z=%%%'], ['markup', `#z=${'<script>alert(1)</script>'}`]]) {
  const it = await visit({}, url + bad);
  const said = await it.page.textContent('#status') + await it.page.textContent('#error');
  check(/simulated in|link/.test(said), `a hostile address (${name}) is survived`);
  await it.page.context().close();
}
const embedded = await visit({ viewport: { width: 700, height: 500 } }, `${url}?embed=1`);
check(await embedded.page.isHidden('#controls'), 'embedded, there are no controls');
await browser.close();
if (wrong.length) {
  console.log(`${wrong.length} wrong:\n${wrong.join('\n')}`);
  process.exit(1);
}
