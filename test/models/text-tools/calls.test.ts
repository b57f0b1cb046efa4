import fc from 'fast-check';
import type { ToolDescription } from '../../../src/models/model.js';
import { TEXT_TOOL_LIMITS, parseTextToolCalls, textToolInstructions } from '../../../src/models/text-tools/model.js';
import { ends } from '../../support/ends.js';

const READ: ToolDescription = {
  name: 'read_file',
  description: 'Reads\na file.',
  inputSchema: {
    type: 'object',
    properties: { path: { type: 'string' }, limit: { type: 'integer' }, tags: { type: 'array' }, deep: { type: ['boolean', 'null'] } },
  },
};
const tools = [READ, 'send'];
const xml = (text: string) => parseTextToolCalls(text, { format: 'xml', tools });
const json = (text: string) => parseTextToolCalls(text, { format: 'json', tools });

const XML_CALL = '<tool name="read_file">\n  <arg name="path">notes/plan.md</arg>\n  <arg name="limit">10</arg>\n</tool>';
const JSON_CALL = '{"tool": "read_file", "input": {"path": "notes/plan.md", "limit": 10}}';
const CALL = { name: 'read_file', input: { path: 'notes/plan.md', limit: 10 } };

describe.each([
  ['xml', xml, XML_CALL],
  ['json', json, JSON_CALL],
] as const)('%s', (_, parse, call) => {
  test('a call is taken out of the text', () => {
    expect(parse(`I look.\n${call}\nOne moment.`)).toEqual({ text: 'I look.\n\nOne moment.', calls: [CALL], problems: [] });
    expect(parse(call)).toEqual({ text: '', calls: [CALL], problems: [] });
  });

  test('a code fence around a call goes with it', () => {
    expect(parse(`I look.\n\`\`\`json\n${call}\n\`\`\`\n`)).toEqual({ text: 'I look.', calls: [CALL], problems: [] });
  });

  test('text without a call stays as it is', () => {
    const text = '  A <toolbox> and {"tools": 1} and ```\n\n``` and a { "tool" }.  ';
    expect(parse(text)).toEqual({ text, calls: [], problems: [] });
  });

  test('the same call twice is made once, and said', () => {
    const { calls, problems, text } = parse(`${call}\n${call}`);
    expect(calls).toEqual([CALL]);
    expect(problems).toEqual(['read_file: the same call stands twice; it is made once']);
    expect(text).toBe('');
  });

  test('an unknown tool is named, stays in the text, and does not hide the next call', () => {
    const unknown = call.replace('read_file', 'rm_rf');
    const parsed = parse(`${unknown}\n${call}`);
    expect(parsed).toEqual({ text: unknown, calls: [CALL], problems: ['there is no tool "rm_rf"; tools here: read_file, send'] });
  });

  test('a call that is not closed is not made, nor anything after it', () => {
    const open = call.slice(0, -3);
    const text = `${open}\n${call.replace('notes/plan.md', 'other')}`;
    const { calls, problems, text: rest } = parse(text);
    expect(calls).toEqual([]);
    expect(problems).toEqual([expect.stringMatching(/nothing after it was read$/)]);
    expect(rest).toBe(text);
  });

  test('what is too long is not read at all', () => {
    const text = call + ' '.repeat(TEXT_TOOL_LIMITS.text);
    expect(parse(text)).toEqual({ text, calls: [], problems: [expect.stringContaining('no tool was run')] });
  });

  test('calls beyond the most that an answer may have are not made, and the rest stays in the text', () => {
    const many = Array.from({ length: 40 }, (_, i) => call.replace('notes/plan.md', `file-${i}`)).join('\n');
    const { calls, problems, text } = parse(many);
    expect(calls).toHaveLength(TEXT_TOOL_LIMITS.calls);
    expect(problems).toHaveLength(8);
    expect(text).toContain('file-39');
    expect(text).not.toContain('file-31');
  });

  test('problems are few and short, however much is wrong', () => {
    const wrong = Array.from({ length: 3000 }, (_, i) => call.replace('read_file', `no-${i}`.padEnd(100, 'x'))).join('\n');
    const { problems } = parse(wrong.slice(0, TEXT_TOOL_LIMITS.text));
    expect(problems).toHaveLength(TEXT_TOOL_LIMITS.problems);
    expect(Math.max(...problems.map(({ length }) => length))).toBeLessThan(300);
  });

  test('names of a prototype are arguments like others', () => {
    const { calls } = parse(call.replace('path', '__proto__'));
    expect(Object.keys(calls[0]?.input ?? {})).toEqual(['__proto__', 'limit']);
    expect({}).not.toHaveProperty('limit');
    expect(Object.getPrototypeOf(calls[0]?.input)).toBe(Object.prototype);
  });

  test('tools of an object’s prototype are unknown', () => {
    expect(parse(call.replace('read_file', 'constructor')).calls).toEqual([]);
  });

  test.each([
    ['blanks', ' '.repeat(250_000)],
    ['openings', '<tool name="read_file"><arg name="path">'.repeat(6000)],
    ['bare openings', '<tool '.repeat(40_000)],
    ['closings', '</tool></arg>'.repeat(15_000)],
    ['braces', '{"tool": '.repeat(25_000)],
    ['lines of braces', '{"tool": "send"\n'.repeat(15_000)],
    ['fences', '```\n'.repeat(60_000)],
    ['a fence and blanks', '```\n' + ' \n'.repeat(100_000)],
    ['braces after blanks', `${' '.repeat(120_000)}{"tool": ${' '.repeat(120_000)}`],
    ['tag and blanks', `<tool ${' '.repeat(250_000)}`],
    ['quotes', '<tool name="'.repeat(20_000)],
    ['entities', `<tool name="send"><arg name="text">${'&amp;'.repeat(50_000)}</arg></tool>`],
  ])('comes to an end with %s', (_title, text) => {
    ends(() => parse(text));
    ends(() => parse(`${text}${call}`.slice(-TEXT_TOOL_LIMITS.text)));
  });

  test('never throws', () => {
    const piece = fc.constantFrom(
      ...[
        '<tool',
        ' name="send"',
        '>',
        '</tool>',
        '<arg name="a">',
        '</arg>',
        '<![CDATA[',
        ']]>',
        '&lt;',
        '{',
        '}',
        '"tool"',
        ':',
        '"send"',
        ',',
        '"input"',
        '[',
        ']',
        '\\',
        '\n',
        '`',
        '```',
        ' ',
        'x',
      ],
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(piece, fc.string({ maxLength: 3 })), { maxLength: 40 }), (pieces) => {
        const { calls, text } = parse(pieces.join(''));
        for (const made of calls) expect(made.name).toBe('send');
        expect(typeof text).toBe('string');
      }),
      { numRuns: 3000 },
    );
  });
});

describe('xml values', () => {
  const inputOf = (value: string, name = 'path') => {
    const { calls, problems } = xml(`<tool name='read_file'><arg name='${name}'>${value}</arg></tool>`);
    return calls[0]?.input[name] ?? problems[0];
  };

  test.each([
    ['text as it is, blanks too', ' a "b" \n', ' a "b" \n'],
    ['a number as text where the schema wants text', '10', '10'],
    ['the five entities, once', '&lt;a&gt; &amp;lt; &quot;&apos;', '<a> &lt; "\''],
    ['other entities stay', '&lol9; &#x41; &nbsp;', '&lol9; &#x41; &nbsp;'],
    ['CDATA', '<![CDATA[<tool name="send"></tool> &lt;]]>', '<tool name="send"></tool> &lt;'],
    ['markup of others', '<b>bold</b> a < b', '<b>bold</b> a < b'],
  ])('%s', (_, value, expected) => {
    expect(inputOf(value)).toBe(expected);
  });

  test('other types are JSON, or a problem', () => {
    expect(inputOf(' 10 ', 'limit')).toBe(10);
    expect(inputOf('["a", {"b": null}]', 'tags')).toEqual(['a', { b: null }]);
    expect(inputOf('true', 'deep')).toBe(true);
    expect(inputOf('ten', 'limit')).toBe('read_file: not run, the argument "limit" is no valid JSON');
    expect(inputOf('['.repeat(100_000), 'tags')).toMatch(/no valid JSON/);
    expect(inputOf('[1] and more', 'tags')).toMatch(/no valid JSON/);
  });

  test('a call inside of an argument is not made: neither is the one around it', () => {
    const text = '<tool name="send"><arg name="text">do <tool name="read_file"><arg name="path">x</arg></tool></arg></tool>';
    expect(xml(text)).toEqual({ text, calls: [], problems: [expect.stringContaining('has markup in it that belongs into CDATA')] });
  });

  test('a call inside of the argument of an unknown tool is not made', () => {
    const text = '<tool name="nope"><arg name="text"><![CDATA[<tool name="send"></tool>]]></arg></tool>';
    expect(xml(text).calls).toEqual([]);
  });

  test('an argument that is not closed does not swallow the next call', () => {
    expect(xml('<tool name="send"><arg name="a">x</tool><tool name="send"><arg name="b">y</arg></tool>').calls).toEqual([]);
  });

  test('two arguments of one name, and text between arguments, are problems', () => {
    expect(xml('<tool name="send"><arg name="a">1</arg><arg name="a">2</arg></tool>').problems).toEqual([
      'send: not run, it has two arguments "a"',
    ]);
    expect(xml('<tool name="send">now</tool>').problems).toEqual([expect.stringContaining('only <arg name="…"> stands inside of it')]);
  });

  test('an entity definition is text like any other', () => {
    const bomb = '<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;">]>';
    expect(xml(`${bomb}<tool name="send"><arg name="a">&lol2;</arg></tool>`)).toEqual({
      text: bomb,
      calls: [{ name: 'send', input: { a: '&lol2;' } }],
      problems: [],
    });
  });
});

describe('json calls', () => {
  test.each([
    ['a third key', '{"tool": "send", "input": {}, "x": 1}', /has a key "x" beside/],
    ['an input that is none', '{"tool": "send", "input": [1]}', /"input" must be an object/],
    ['no input', '{"tool": "send"}', /"input" must be an object/],
    ['a tool that is no text', '{"tool": {"name": "send"}, "input": {}}', /its "tool" is no text/],
    ['no JSON', '{"tool": "send", "input": {a: 1}}', /no valid JSON; nothing after it was read/],
    ['too deep', `{"tool": "send", "input": ${'{"a":'.repeat(40)}1${'}'.repeat(41)}`, /nested deeper than 32 levels/],
  ])('%s is a problem', (_, text, problem) => {
    expect(json(text)).toEqual({ text, calls: [], problems: [expect.stringMatching(problem)] });
  });

  test('a call in the middle of a line, or inside of another’s input, is text', () => {
    const middle = `For example ${JSON_CALL}`;
    expect(json(middle)).toEqual({ text: middle, calls: [], problems: [] });
    const inner = '{"tool": "send", "input": {"text": "a",\n"more":\n{"tool": "read_file", "input": {}}\n}}';
    expect(json(inner).calls.map(({ name }) => name)).toEqual(['send']);
  });
});

describe('the instructions', () => {
  test.each(['xml', 'json'] as const)('for %s name each tool with its schema, and what they show can be parsed', (format) => {
    const text = textToolInstructions(format, [READ]);
    expect(text).toContain(`- read_file: Reads a file.\n  Arguments, as JSON Schema: ${JSON.stringify(READ.inputSchema)}`);
    const shown = text
      .replace(/NAME/g, 'send')
      .replace(/VALUE/g, '"v"')
      .replace(/ARGUMENT/g, 'a');
    expect(parseTextToolCalls(shown, { format, tools }).calls).toEqual([{ name: 'send', input: { a: format === 'xml' ? '"v"' : 'v' } }]);
    expect(textToolInstructions(format, [])).toBe('');
  });
});
