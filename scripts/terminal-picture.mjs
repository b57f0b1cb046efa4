/**
 * `node scripts/terminal-picture.mjs [FILE]`: records a real session in tmux (a chat, its worker killed in mid-answer, another one that goes
 * on) and draws it as an animated SVG, docs/images/kill-it.svg by default. Needs tmux, which `npm test` does not,
 * and port 7233 free, so that the session begins with a server of its own.
 *
 * Each distinct line is drawn once and used by every frame that shows it; frames stand below each other, and one animation moves the strip.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { report, run } from './report.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const COLUMNS = 112;
const ROWS = { chat: 19, shell: 3 };
const FRAME_MS = 300;
/** Longer pauses of the recording are cut to this. */
const MAX_PAUSE_MS = 1_600;
const LAST_FRAME_MS = 4_000;
const CELL = { width: 8.4, height: 18 };
const COLORS = ['#6e7681', '#ff7b72', '#7ee787', '#e3b341', '#79c0ff', '#d2a8ff', '#76e3ea', '#e6edf3'];
const PLAIN = '#e6edf3';
const RULE = `\u001b[90m${'─'.repeat(COLUMNS)}\u001b[0m`;

await run(async () => {
  const file = resolve(process.argv[2] ?? join(root, 'docs', 'images', 'kill-it.svg'));
  const frames = await record();
  const picture = draw(frames);
  writeFileSync(file, picture);
  report('Picture', `${file}: ${frames.length} frames, ${Math.round(picture.length / 1_024)} KiB`);
});

/** What both panes showed, and for how long: `{ lines, ms }`. */
async function record() {
  const folder = mkdtempSync(join(tmpdir(), 'perdura-'));
  const socket = join(folder, 'tmux');
  const tmux = (...args) => execFileSync('tmux', ['-S', socket, ...args], { encoding: 'utf8', env: environment(folder) });
  const frames = [];
  let isOver = false;
  try {
    const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root, encoding: 'utf8' });
    for (const path of ['dist', ...files.split('\0').filter((one) => !/^(test\/|docs\/|$)/.test(one))]) {
      cpSync(join(root, path), join(folder, path), { recursive: true });
    }
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    const start = `cd ${folder} && PS1='$ ' sh`;
    tmux('-f', '/dev/null', 'new-session', '-d', '-x', String(COLUMNS), '-y', String(ROWS.chat), '-s', 'chat', start);
    tmux('new-session', '-d', '-x', String(COLUMNS), '-y', String(ROWS.shell), '-s', 'shell', start);
    tmux('set', '-g', 'status', 'off');
    const screen = (pane) => tmux('capture-pane', '-p', '-e', '-t', pane).replace(/\n$/, '').split('\n');
    const text = (pane) => tmux('capture-pane', '-p', '-t', pane);
    const watching = (async () => {
      while (!isOver) {
        const lines = [...padded(screen('chat'), ROWS.chat), RULE, ...padded(screen('shell'), ROWS.shell)].map(withoutPlaces);
        const last = frames.at(-1);
        if (last && last.lines.join('\n') === lines.join('\n')) last.ms += FRAME_MS;
        else frames.push({ lines, ms: FRAME_MS });
        await sleep(FRAME_MS);
      }
    })();
    const type = async (pane, words) => {
      for (const letter of words) {
        tmux('send-keys', '-t', pane, '-l', letter);
        await sleep(35);
      }
      await sleep(500);
      tmux('send-keys', '-t', pane, 'Enter');
    };
    const shows = async (pane, pattern) => {
      for (let tries = 0; tries < 600; tries++) {
        if (pattern.test(text(pane))) return;
        await sleep(100);
      }
      throw new Error(`${pane} never showed ${pattern}:\n${text(pane)}`);
    };
    await type('chat', 'npm start --silent');
    await shows('chat', /^›/m);
    await type('chat', 'tell me a long story');
    await shows('chat', /Chapter 8\./);
    await type('shell', 'kill -9 $(cat .perdura/worker.pid)');
    await shows('chat', /worker ended by SIGKILL/);
    await shows('chat', /The end\.[^]*^›/m);
    await sleep(600);
    isOver = true;
    await watching;
    await type('chat', '/exit');
    await shows('chat', /^\$ *$/m);
    return frames.map(({ lines, ms }) => ({ lines, ms: Math.min(ms, MAX_PAUSE_MS) }));
  } finally {
    isOver = true;
    tmux('kill-server');
    unlinkSync(join(folder, 'node_modules'));
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A person's terminal: nothing of the recorder's settings, and no key. */
function environment(folder) {
  return { PATH: `${dirname(process.execPath)}:${process.env.PATH}`, HOME: folder, TERM: 'xterm-256color', LANG: 'C.UTF-8' };
}

function padded(lines, count) {
  return [...lines, ...Array(count).fill('')].slice(0, count);
}

/** Paths of this machine do not belong into a picture. */
function withoutPlaces(line) {
  return line.replace(/\/\S*\/perdura-\w{6}/g, '/home/jo/perdura').replace(/\/\S*\/temporal\b/g, '/usr/local/bin/temporal');
}

/** One `<text>` for each distinct line, one `<use>` for each place where it stands. */
function draw(frames) {
  const names = new Map();
  const nameOf = (line) => {
    if (!names.has(line)) names.set(line, `l${names.size}`);
    return names.get(line);
  };
  const rows = frames[0].lines.length;
  const [width, height] = [Math.ceil(COLUMNS * CELL.width) + 24, rows * CELL.height + 48];
  const strip = frames.map(({ lines }, at) => {
    const uses = lines.flatMap((line, row) =>
      line.trim() === '' ? [] : [`<use href="#${nameOf(line)}" y="${at * rows * CELL.height + row * CELL.height}"/>`],
    );
    return uses.join('');
  });
  const lasting = frames.map(({ ms }, at) => (at === frames.length - 1 ? LAST_FRAME_MS : ms));
  const total = lasting.reduce((sum, ms) => sum + ms, 0);
  let begun = 0;
  const moves = lasting.map((ms, at) => {
    const percent = ((begun / total) * 100).toFixed(2);
    begun += ms;
    return `${percent}%{transform:translateY(${-at * rows * CELL.height}px)}`;
  });
  const end = -(frames.length - 1) * rows * CELL.height;
  const texts = [...names].map(([line, name]) => `<text id="${name}" xml:space="preserve">${spans(line)}</text>`);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="A chat in a terminal: its worker is killed by kill -9 in the middle of a story; another worker starts, and the story is told to its end, once.">
<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:${PLAIN}}.b{font-weight:bold}${COLORS.map((color, at) => `.c${at}{fill:${color}}`).join('')}.strip{animation:play ${(total / 1_000).toFixed(1)}s step-end infinite}@keyframes play{${moves.join('')}}@media(prefers-reduced-motion:reduce){.strip{animation:none;transform:translateY(${end}px)}}</style>
<rect width="100%" height="100%" rx="8" fill="#0d1117"/><circle cx="18" cy="16" r="5" fill="#ff5f57"/><circle cx="34" cy="16" r="5" fill="#febc2e"/><circle cx="50" cy="16" r="5" fill="#28c840"/>
<defs>${texts.join('\n')}</defs>
<svg x="12" y="32" width="${width - 24}" height="${rows * CELL.height}"><g transform="translate(0 13)"><g class="strip">${strip.join('\n')}</g></g></svg>
</svg>
`;
}

/** SGR codes of a line → spans with a class; each begins in its own column, so that no font can shift what follows. */
function spans(line) {
  let [column, color, isBold, out] = [0, undefined, false, ''];
  for (const [, codes, words] of line.matchAll(/\u001b\[([\d;]*)m|([^\u001b]+)/g)) {
    if (words === undefined) {
      for (const code of (codes || '0').split(';').map(Number)) {
        if (code === 0) [color, isBold] = [undefined, false];
        else if (code === 1) isBold = true;
        else if (code === 2) color = 0;
        else if (code === 22) isBold = false;
        else if (code === 39) color = undefined;
        else if (code >= 30 && code <= 37) color = code - 30;
        else if (code >= 90 && code <= 97) color = code === 90 ? 0 : code - 90;
      }
      continue;
    }
    const names = [color === undefined ? '' : `c${color}`, isBold ? 'b' : ''].filter(Boolean).join(' ');
    const skipped = words.length - words.trimStart().length;
    if (words.trim() !== '') {
      const shown = words.trim().replace(/&/g, '&amp;').replace(/</g, '&lt;');
      out += `<tspan x="${((column + skipped) * CELL.width).toFixed(1).replace('.0', '')}"${names && ` class="${names}"`}>${shown}</tspan>`;
    }
    column += [...words].length;
  }
  return out;
}
