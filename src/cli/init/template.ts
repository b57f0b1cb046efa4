/** The files of a new project, as they are in the package's `templates/project`, with what differs from project to project filled in. */
import { readdir, readFile } from 'node:fs/promises';
import { join, sep } from 'node:path';

const TEMPLATE = join(__dirname, '..', '..', '..', 'templates', 'project');
/** npm leaves a `.gitignore` out of a package, and a `.env…` is not looked for in one. */
const HIDDEN: Readonly<Record<string, string>> = { gitignore: '.gitignore', 'env.example': '.env.example' };
/** The name in the template. */
const PLACEHOLDER = 'my-agent';

export interface TemplateFile {
  /** In the project, with slashes. */
  readonly path: string;
  readonly text: string;
}

/** Sorted by path. `perdura`: what stands in package.json for the version of Perdura. */
export async function projectFiles({
  name,
  perdura,
}: {
  readonly name: string;
  readonly perdura: string;
}): Promise<readonly TemplateFile[]> {
  const found = await readdir(TEMPLATE, { recursive: true, withFileTypes: true });
  const files = found.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const all = await Promise.all(
    files.map(async (file) => {
      const path = file
        .slice(TEMPLATE.length + 1)
        .split(sep)
        .join('/');
      return { path: HIDDEN[path] ?? path, text: fill(path, await readFile(file, 'utf8'), { name, perdura }) };
    }),
  );
  return all.sort((a, b) => (a.path < b.path ? -1 : 1));
}

function fill(path: string, text: string, { name, perdura }: { readonly name: string; readonly perdura: string }): string {
  if (path === 'README.md') return text.replace(`# ${PLACEHOLDER}\n`, `# ${name}\n`);
  if (path !== 'package.json') return text;
  const manifest = JSON.parse(text) as { readonly dependencies: Readonly<Record<string, string>> };
  const dependencies = { ...manifest.dependencies, perdura };
  return `${JSON.stringify({ ...manifest, name, dependencies }, null, 2)}\n`;
}
