/** Files that may hold secrets are shown to a model when a person has allowed it. */
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '../../src/records/message.js';
import { approvalFor, type Approval } from '../../src/tools/approval-rules.js';
import { reasonToAskBeforeReading } from '../../src/tools/approval-paths.js';
import { readFile } from '../../src/tools/builtin/files/read-file.js';
import { searchFiles } from '../../src/tools/builtin/files/search-files.js';
import type { Tool, ToolResult } from '../../src/tools/tool.js';
import { createPlace, toolContext, type Place } from './tool-context.js';

let place: Place;
beforeEach(() => (place = createPlace()));
afterEach(() => place.remove());

const run = (tool: Tool, input: JsonObject): Promise<ToolResult> => tool.run(input, toolContext({ workspace: place.workspace }));
const text = (result: ToolResult): string => (result.ok ? result.content : result.error);
const decided = async (tool: Tool, input: JsonObject): Promise<Approval> =>
  approvalFor([], tool, input, 'default', await tool.examine?.(input, { workspace: place.workspace }));

describe('what may hold secrets', () => {
  const SECRET = (
    '.env .env.local app/.env.production .ENV prod.env .ssh/id_ed25519 id_rsa deploy/server.pem tls.key .netrc .npmrc .aws/credentials ' +
    '.docker/config.json .kube/config .git-credentials .git/config .pypirc .pgpass secrets.yaml terraform.tfstate .gnupg/secring.gpg ' +
    '.bash_history id_rsa.bak .env~ .env.swp env.production credentials .git/modules/a/config .claude.json'
  ).split(' ');
  const PLAIN =
    '.env.example .env.sample id_rsa.pub config.json src/env.ts notes.bak history.md keyboard.ts docs/key.md monkey .docker/README'.split(
      ' ',
    );

  test.each(SECRET.map((path) => [path]))('%s is shown to a model when a person allows it', async (path) => {
    place.write(path, 'needle\n');
    expect((await decided(readFile, { path })).policy).toBe('ask');
    expect((await decided(searchFiles, { query: 'needle', path })).policy).toBe('ask');
    symlinkSync(join(place.workspace, path), join(place.workspace, 'harmless'));
    expect((await decided(readFile, { path: 'harmless' })).policy).toBe('ask');
    // One that was asked for by its name has been allowed.
    expect(text(await run(searchFiles, { query: 'needle', path }))).toContain('needle\n'.trim());
  });

  test.each(PLAIN.map((path) => [path]))('%s is no such file', (path) => {
    expect(reasonToAskBeforeReading(path)).toBeUndefined();
  });

  test('is passed over by a search, which says of how many files', async () => {
    for (const path of ['a.txt', '.env', '.ssh/config', 'b/x.pem']) place.write(path, 'needle\n');
    expect(text(await run(searchFiles, { query: 'needle' }))).toBe(
      'a.txt:1: needle\n[3 files that may hold secrets were not searched; name one, and a person has to approve it]',
    );
    expect((await decided(searchFiles, { query: 'needle' })).policy).toBe('allow');
  });
});
