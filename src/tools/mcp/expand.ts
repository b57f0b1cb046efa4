/** `${NAME}` and `${NAME:-default}` in a server's settings, from the worker's environment. */
import type { McpServer } from './server-config.js';

export type Variables = Readonly<Record<string, string | undefined>>;

/** A setting names a variable that is not set. The message names both, and no value. */
export class VariableMissing extends Error {
  override readonly name = 'VariableMissing';
}

const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

/** Throws `VariableMissing`. */
export function expandServer(server: McpServer, variables: Variables): McpServer {
  const inText = (field: string, text: string): string =>
    text.replace(VARIABLE, (_whole, name: string, otherwise: string | undefined) => {
      const value = variables[name] || otherwise;
      if (value !== undefined) return value;
      throw new VariableMissing(`mcpServers.${server.name}.${field} names \${${name}}, which is not set where the worker runs`);
    });
  const inAll = (field: string, texts: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, inText(`${field}.${name}`, text)]));

  if (server.type === 'http') {
    return { ...server, url: inText('url', server.url), headers: inAll('headers', server.headers) };
  }
  return {
    ...server,
    command: inText('command', server.command),
    args: server.args.map((text, at) => inText(`args[${at}]`, text)),
    env: inAll('env', server.env),
    ...(server.cwd !== undefined && { cwd: inText('cwd', server.cwd) }),
  };
}
