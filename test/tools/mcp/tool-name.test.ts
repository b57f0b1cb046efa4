import fc from 'fast-check';
import { serverPrefix, toolName, toolTable } from '../../../src/tools/mcp/server-tool.js';
import { TOOL_NAME_PATTERN } from '../../../src/tools/define-tool.js';

const plainText = fc.string({ minLength: 1, maxLength: 12, unit: fc.constantFrom('a', 'B', '_', '-', '9') });
const anyName = fc.oneof(
  plainText,
  fc.string({ minLength: 1, maxLength: 80, unit: 'grapheme' }),
  fc.constantFrom('__proto__', 'constructor'),
);

test('every server and tool has a name that providers take', () => {
  fc.assert(fc.property(anyName, anyName, (server, tool) => TOOL_NAME_PATTERN.test(toolName(server, tool))));
});

test('two tools never share a name, wherever the underscores stand', () => {
  fc.assert(
    fc.property(anyName, anyName, anyName, anyName, (s1, t1, s2, t2) => {
      if (s1 === s2 && t1 === t2) return;
      expect(toolName(s1, t1)).not.toBe(toolName(s2, t2));
    }),
    { numRuns: 2_000 },
  );
  expect(toolName('acme_', 'status')).not.toBe(toolName('acme', '_status'));
});

test('what is plain stays as it is', () => {
  expect(toolName('acme', '_status')).toBe('mcp__acme___status');
  expect(toolName('github', 'create_issue')).toBe('mcp__github__create_issue');
  expect(serverPrefix('github')).toBe('mcp__github__');
});

test('no server’s prefix begins another’s tool', () => {
  fc.assert(
    fc.property(anyName, anyName, anyName, (one, other, tool) => one === other || !toolName(other, tool).startsWith(serverPrefix(one))),
  );
});

test('a name that two tools come to leads to neither, and one of ours stays ours', () => {
  const a = { server: 'x', tool: 'same' };
  const table = toolTable([a, { ...a }, { server: 'x', tool: 'mine' }, { server: 'x', tool: '__proto__' }], new Set(['mcp__x__mine']));
  expect([...table.byName]).toEqual([['mcp__x____proto__', { server: 'x', tool: '__proto__' }]]);
  expect(table.refused).toEqual([
    { ...a, reason: '2 tools would be named mcp__x__same, and a call could mean any of them' },
    { ...a, reason: '2 tools would be named mcp__x__same, and a call could mean any of them' },
    { server: 'x', tool: 'mine', reason: 'a built-in tool is named mcp__x__mine' },
  ]);
});
