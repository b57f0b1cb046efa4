/** What a setting may be: each answers with the value as it is used, and passes on that there is none. All throw `ConfigError`. */
import { accessSync, constants, statSync } from 'node:fs';
import { isIP } from 'node:net';
import { resolve } from 'node:path';

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** A setting has a value that cannot be used; the message names it and says what to write instead. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** A setting as it was found; a `secret` is not repeated in an error. */
export interface Given<Value extends string | undefined = string | undefined> {
  readonly name: string;
  readonly value: Value;
  readonly secret: boolean;
}

export function checked<Value extends string | undefined>(given: Given<Value>, pattern: RegExp, wanted: string): Value {
  return given.value === undefined || pattern.test(given.value) ? given.value : refuse(given, wanted);
}

/** A header cannot carry blanks and control characters: better said here than by a stack trace at the first call. */
export function checkedKey(given: Given): string | undefined {
  return checked(given, /^[\x21-\x7e]+$/, 'the key alone, without blanks or quotes');
}

/** A path, not a command line: nothing of it is given to a shell. */
export function checkedProgram(given: Given, cwd: string): string | undefined {
  if (given.value === undefined) return undefined;
  const path = resolve(cwd, given.value);
  try {
    accessSync(path, constants.X_OK);
    if (statSync(path).isFile()) return path;
  } catch {
    // Said below.
  }
  return refuse(given, 'the path of a program that can be run, without arguments');
}

export function checkedUrl(given: Given, protocols: readonly string[]): string | undefined {
  const { value } = given;
  if (value === undefined) return undefined;
  const wanted = `a URL that begins with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}`;
  if (!URL.canParse(value)) return refuse(given, wanted);
  const url = new URL(value);
  return protocols.includes(url.protocol) && (url.hostname !== '' || url.protocol.startsWith('redis')) ? value : refuse(given, wanted);
}

/** Ollama's own variable, which may lack the protocol and even the host. */
export function checkedHost(given: Given<string>): string {
  const url = toUrl(given.value);
  const isUrl = URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
  return isUrl ? url : refuse(given, 'a URL or host:port, such as http://127.0.0.1:11434');
}

/** `:11434` is a port of this machine, and a host without a port has Ollama's. */
function toUrl(host: string): string {
  if (/^[a-z]+:\/\//i.test(host)) return host;
  const [, name = '', port = ''] = /^(.*?)(:\d+)?$/.exec(host) ?? [];
  return `http://${name || '127.0.0.1'}${port || ':11434'}`;
}

export function checkedLogLevel(given: Given<string>): LogLevel {
  const level = given.value.toLowerCase();
  return LOG_LEVELS.find((known) => known === level) ?? refuse(given, `one of ${LOG_LEVELS.join(', ')}`);
}

/** Temporal's core, which listens there, looks no name up. */
export function checkedSocket(given: Given): string | undefined {
  if (given.value === undefined) return undefined;
  const [, host = '', port] = /^(.+):(\d{1,5})$/.exec(given.value) ?? [];
  const bracketed = /^\[(.+)\]$/.exec(host)?.[1];
  const isAddress = bracketed === undefined ? isIP(host) === 4 : isIP(bracketed) === 6;
  return isAddress && Number(port) < 65_536 ? given.value : refuse(given, 'an IP address and a port, such as 127.0.0.1:9464');
}

/** Each as a URL would name it, so that they can be compared. */
export function checkedHosts(given: Given): string[] {
  return (given.value ?? '')
    .split(',')
    .map((host) => host.trim())
    .filter(Boolean)
    .map((host) => {
      const [, name = '', port = ''] = /^([^/@?#\s]+):(\d{1,5})$/.exec(host) ?? [];
      const url = name !== '' && Number(port) > 0 && Number(port) < 65_536 && URL.canParse(`http://${host}`) && new URL(`http://${host}`);
      return url ? `${url.hostname}:${Number(port)}` : refuse(given, 'host:port, several separated by commas, such as localhost:3000');
    });
}

function refuse({ name, value, secret }: Given, wanted: string): never {
  throw new ConfigError(`${name}${secret ? '' : ` is ${JSON.stringify(value)}, which`} cannot be used: write ${wanted}, or remove it`);
}
