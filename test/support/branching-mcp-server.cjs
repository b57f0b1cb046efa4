/** A server made with the official SDK whose tools have schemas as servers really list them: branches at the top, odd names, old words. */
const { McpServer } = require('@modelcontextprotocol/sdk/server/mcp.js');
const { StdioServerTransport } = require('@modelcontextprotocol/sdk/server/stdio.js');
const { CallToolRequestSchema, ListToolsRequestSchema } = require('@modelcontextprotocol/sdk/types.js');

const text = { type: 'string' };
const tools = [
  {
    name: 'analyse',
    inputSchema: {
      type: 'object',
      oneOf: [
        { properties: { video_input_id: text }, required: ['video_input_id'] },
        { properties: { youtube_url: text }, required: ['youtube_url'] },
      ],
    },
  },
  {
    name: 'list_apps',
    inputSchema: { type: 'object', properties: { 'filter[name]': text, limit: { type: 'integer' } }, required: ['filter[name]'] },
  },
  { name: 'nothing', inputSchema: { type: 'object' } },
  {
    name: 'span',
    inputSchema: {
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'object',
      properties: { span: { type: 'array', items: [{ type: 'integer' }, { type: 'integer' }], additionalItems: false } },
    },
  },
];

const server = new McpServer({ name: 'branching', version: '1.0.0' }, { capabilities: { tools: {} } });
server.server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
server.server.setRequestHandler(CallToolRequestSchema, ({ params }) => ({
  content: [{ type: 'text', text: JSON.stringify([params.name, params.arguments]) }],
}));
void server.connect(new StdioServerTransport());
