/**
 * This package's version, and packages beside it that few use: optional peers in package.json, so that an install brings none of them. Each
 * is loaded when it is needed first, and named where it is missing.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, dirname } from 'node:path';

/** Markdown of a page takes all three. */
export const PAGE_PACKAGES = ['@mozilla/readability', 'linkedom', 'turndown'] as const;
/** The client of agents' servers. */
export const MCP_PACKAGE = '@modelcontextprotocol/client';
/** Perdura as a server. */
export const MCP_SERVER_PACKAGE = '@modelcontextprotocol/server';
export const ACP_PACKAGE = '@agentclientprotocol/sdk';
export const A2A_PACKAGE = '@a2a-js/sdk';
/** Tokens of an identity provider, and signing in there. */
export const OIDC_PACKAGES = ['jose', 'openid-client'] as const;
export const OTEL_PACKAGE = '@opentelemetry/sdk-node';
export const TOKENIZER_PACKAGE = 'gpt-tokenizer';
/** Signs requests to a bucket that takes archives. */
export const S3_PACKAGE = 'aws4fetch';

/** Its message follows what was attempted, and a colon. */
export class MissingPackage extends Error {
  override readonly name = 'MissingPackage';
  constructor(names: readonly string[], options?: ErrorOptions) {
    super(describeNeeds(names), options);
  }
}

/** Throws `MissingPackage` where one of `names` is not installed. What is wrong inside a package that is there is thrown as it is. */
export async function loadOptional<T>(names: readonly string[], load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    throw missingPackage(error, names) ?? error;
  }
}

/** Whether an error of Node's loaders says that one of `names` itself is not there. */
export function missingPackage(error: unknown, names: readonly string[]): MissingPackage | undefined {
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') return undefined;
  const [, wanted = ''] = /^Cannot find (?:package|module) '([^']+)'/.exec(String(message)) ?? [];
  return names.some((name) => wanted === name || wanted.startsWith(`${name}/`))
    ? new MissingPackage(findMissing(names, wanted), { cause: error })
    : undefined;
}

/** What is missing is installed with one command, so all of it is named; at least the one that was not found. */
function findMissing(names: readonly string[], wanted: string): readonly string[] {
  const missing = names.filter((name) => !isInstalled(name));
  return missing.length > 0 ? missing : names.filter((name) => wanted === name || wanted.startsWith(`${name}/`));
}

/** From the folder of this package, as Node looks for it. */
export function isInstalled(name: string): boolean {
  const folders = createRequire(__filename).resolve.paths(name) ?? [];
  return folders.some((folder) => existsSync(join(folder, name, 'package.json')));
}

export function describeNeeds(names: readonly string[]): string {
  const [one] = names;
  const what =
    names.length === 1 ? `the package ${one}, which is not installed` : `the packages ${names.join(', ')}, which are not installed`;
  return `it needs ${what} (\`${installCommand(names)}\`)`;
}

/** With the version that this one goes with: the newest may be another. */
export function installCommand(names: readonly string[]): string {
  return `npm install ${names.map((name) => `${name}${versionSuffix(peerRange(name))}`).join(' ')}`;
}

/** `^6.49.0` -> `@6`, `^0.223.0` -> `@0.223`: what a shell takes without quotes. */
function versionSuffix(range: string | undefined): string {
  const [, major, minor] = /^\^(\d+)\.(\d+)/.exec(range ?? '') ?? [];
  if (major === undefined) return '';
  return major === '0' ? `@0.${minor}` : `@${major}`;
}

interface PackageInfo {
  readonly version: string;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/** Of this package, as in the nearest package.json: the bench is compiled into a folder deeper than the build. */
export function packageVersion(): string {
  return readPackage().version;
}

/** The range of a package that is installed beside this one where it is wanted; undefined for any other. */
function peerRange(name: string): string | undefined {
  return readPackage().peerDependencies?.[name];
}

function readPackage(): PackageInfo {
  let dir = __dirname;
  while (!existsSync(join(dir, 'package.json'))) dir = dirname(dir);
  return JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8')) as PackageInfo;
}
