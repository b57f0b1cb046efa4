/**
 * One scenario of MCP's conformance suite for clients, by the product's own client: lists what the server has and uses each of it once, with
 * what the scenario wants of the arguments. The suite gives the address last, and the rest in the environment.
 */
const { join } = require('node:path');

const { openSessionServers } = require(join(__dirname, '..', '..', 'dist', 'tools', 'mcp', 'session-servers.js'));

const PATIENCE_MS = 20_000;
const url = process.argv.at(-1);
const { toolCalls = [] } = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');

/** A value that fits, for each argument that must be there. */
function argumentsFor({ properties = {}, required = [] }) {
  const values = { string: 'one', number: 5, integer: 5, boolean: true, array: [], object: {} };
  return Object.fromEntries(required.map((name) => [name, values[properties[name]?.type] ?? 'one']));
}

async function main() {
  const log = (line) => process.stderr.write(`${line}\n`);
  const servers = openSessionServers([{ name: 'it', type: 'http', url, headers: [] }], process.cwd(), {
    variables: {},
    version: '0.0.0',
    log,
  });
  try {
    for (const { name, inputSchema } of await servers.offer()) {
      const wanted = toolCalls.filter((call) => `it__${call.name}` === name).map((call) => call.arguments);
      for (const given of wanted.length > 0 ? wanted : [argumentsFor(inputSchema)]) {
        const { output, isError } = await servers.call(name, given, AbortSignal.timeout(PATIENCE_MS));
        log(`${name}(${JSON.stringify(given)}): ${isError ? 'failed: ' : ''}${output}`);
      }
    }
  } finally {
    await servers.close();
  }
}

void main();
