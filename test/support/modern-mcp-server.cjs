/** A server of the protocol's own library that speaks 2026-07-28, for both transports; over stdio: `serve` or `reject` older clients, ms. */
const { inputRequired, McpServer } = require('@modelcontextprotocol/server');
const { serveStdio } = require('@modelcontextprotocol/server/stdio');
const { z } = require('zod');

const text = (said) => ({ content: [{ type: 'text', text: said }] });
const question = { mode: 'form', message: 'Who?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } };

function modernServer({ era }) {
  const server = new McpServer({ name: 'modern', version: '1.0.0' });
  const tool = (name, run, shape = {}) => server.registerTool(name, { description: name, inputSchema: z.object(shape) }, run);
  tool('echo', ({ said }) => text(`${era}: ${said}`), { said: z.string() });
  tool('region', (_given, { http }) => text(`header ${http?.req?.headers.get('mcp-param-place')}`), {
    place: z.string().meta({ 'x-mcp-header': 'Place' }),
  });
  tool('ask', () => inputRequired({ inputRequests: { who: { method: 'elicitation/create', params: question } } }));
  tool('later', (_given, { mcpReq }) =>
    mcpReq.requestState() === undefined ? inputRequired({ requestState: 'half' }) : text('the other half'),
  );
  tool('grow', () => {
    tool('grown', () => text('new'));
    return text('grown');
  });
  tool('leave', () => process.exit(0));
  return server;
}

module.exports = { modernServer };

if (require.main === module) {
  const [legacy, delayMs = '0'] = process.argv.slice(2);
  setTimeout(() => serveStdio(modernServer, { legacy }), Number(delayMs));
}
