/**
 * The sources as programs, without their types: what the compiler would write, file by file, unchecked, in a third of its time. For
 * who wants to start; types are for who builds on it. Argument: the folder to write into.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const ts = createRequire(import.meta.url)('typescript');
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const out = resolve(process.argv[2] ?? join(root, 'dist'));
const { config } = ts.readConfigFile(join(root, 'tsconfig.build.json'), ts.sys.readFile);
const { fileNames, options } = ts.parseJsonConfigFileContent(config, ts.sys, root);

const faults = [];
for (const fileName of fileNames.filter((name) => !name.endsWith('.d.ts'))) {
  const { outputText, sourceMapText, diagnostics } = ts.transpileModule(readFileSync(fileName, 'utf8'), {
    fileName,
    compilerOptions: options,
    reportDiagnostics: true,
  });
  faults.push(...diagnostics);
  const file = join(out, relative(options.rootDir, fileName)).replace(/\.ts$/, '.js');
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, outputText);
  writeFileSync(`${file}.map`, sourceMapText);
}
if (faults.length > 0) {
  const host = { getCanonicalFileName: (name) => name, getCurrentDirectory: () => root, getNewLine: () => '\n' };
  process.stderr.write(ts.formatDiagnostics(faults, host));
  process.exitCode = 1;
}
