/**
 * The programs of README and docs/: those in TypeScript compile against the types of the package, those in JavaScript are parsed. What a
 * page has introduced in words is declared here.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PRODUCT } from '../support/worker-process.js';
import { fencedBlocks, pagesOfDocs, read, ROOT } from './commands.js';

const KINDS = ['ts', 'js', 'tsx'];
const programs = pagesOfDocs().flatMap((page) =>
  fencedBlocks(read(page))
    .filter(({ language }) => KINDS.includes(language))
    .map(({ language, text }, at) => ({ name: `${page.replace(/\W+/g, '_')}_${at + 1}.${language}`, text })),
);

/** Words of the pages: a token, a client that is open, what a request has. */
const SURROUNDINGS = `
declare const TOKEN: string, token: string, id: string, threadId: string, rawBody: string;
declare const loaded: import('ai').UIMessage[], headers: Record<string, string>, seen: Set<string>;
declare const client: import('perdura').PerduraClient;
declare const createWorker: typeof import('perdura/worker').createWorker;
declare const DefaultChatTransport: typeof import('ai').DefaultChatTransport;
declare const useChat: typeof import('@ai-sdk/react').useChat;
declare const Webhook: typeof import('standardwebhooks').Webhook;
declare module 'react' {
  export function useState<T>(value: T): [T, (value: T) => void];
}
declare namespace JSX {
  interface Props {
    [name: string]: any;
    onSubmit?: (event: { preventDefault(): void }) => void;
    onChange?: (event: { target: { value: string } }) => void;
  }
  interface IntrinsicElements {
    [name: string]: Props;
  }
}
`;

test('there are some', () => expect(programs.length).toBeGreaterThan(10));

test('each of them compiles', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'perdura-types-'));
  try {
    symlinkSync(join(ROOT, 'node_modules'), join(dir, 'node_modules'));
    mkdirSync(join(dir, 'blocks'));
    writeFileSync(join(dir, 'surroundings.d.ts'), SURROUNDINGS);
    writeFileSync(join(dir, 'package.json'), '{"type":"module"}');
    for (const { name, text } of programs) writeFileSync(join(dir, 'blocks', name), asModule(text));
    const options = {
      ...{ noEmit: true, strict: true, skipLibCheck: true, allowJs: true, jsx: 'preserve' },
      ...{ module: 'esnext', moduleResolution: 'bundler', target: 'es2022', lib: ['es2022', 'dom', 'dom.iterable'] },
      ...{ typeRoots: ['./node_modules/@types'], types: ['node'] },
      paths: { perdura: [join(PRODUCT, 'dist', 'index.d.ts')], 'perdura/*': [join(PRODUCT, 'dist', '*')] },
    };
    writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, include: ['blocks', 'surroundings.d.ts'] }));
    const said = await new Promise<string>((resolve) =>
      execFile(
        process.execPath,
        [join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc'), '-p', dir],
        { cwd: dir },
        (_error, stdout, stderr) => resolve(`${stdout}${stderr}`),
      ),
    );
    expect(said.trim()).toBe('');
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

/** A page shows what stands inside a function, too; and each has names of its own. */
function asModule(text: string): string {
  const body =
    /^\s*(if .*)?\breturn\b/m.test(text) && !/\b(function|run:|async)\b/.test(text) ? `function shown() {\n${text}}\nshown();\n` : text;
  return `${body}\nexport {};\n`;
}
