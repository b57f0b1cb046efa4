/**
 * The lint rule `perdura/no-wall-clock`: no measured time decides in a test. A busy machine takes as long as it likes, and a test that
 * compares is red there without a defect. The rule refuses
 *
 * 1. a comparison (`<`, `toBeLessThan`, ...) with a value that comes from a clock, through variables, functions and arithmetic of the file;
 * 2. a bound under 30 s for what is waited for: of a helper (`waitFor`, `until`), of a test, or of a timer in a race.
 *
 * Where a clock must decide, a comment on the line before says why: `// clock: it only keeps the event loop busy`.
 */
const { createTrace, inner, nameOf } = require('./trace.cjs');

const WIDE_MS = 30_000;
/** Who waits for fewer waits for so many things: `untilAsked(id, 2)`. */
const LEAST_MS = 100;
const MIN_LETTERS = 10;
const ORDER = new Set(['toBeLessThan', 'toBeLessThanOrEqual', 'toBeGreaterThan', 'toBeGreaterThanOrEqual', 'toBeCloseTo']);
const WAITS = /^(waitFor\w*|waitUntil\w*|until\w*)$/;
const BOUND = /^(timeout|limit|within|deadline)(Ms)?$/;
const TIMERS = /^(setTimeout|sleep|delay|pause|outage)$/;
/** Where a test and a hook have their bound. */
const BOUND_AT = { it: 2, test: 2, fit: 2, beforeAll: 1, beforeEach: 1, afterAll: 1, afterEach: 1 };

module.exports = {
  meta: {
    type: 'problem',
    schema: [],
    messages: {
      compared: 'A measured time decides here: count calls, looks or bytes, move a clock, or measure in bench/.',
      narrow: 'A busy machine meets a bound of {{ms}} ms: wait for the event, with 30 s at least.',
      reason: 'Say in words why a clock may decide here.',
      idle: 'This comment excuses nothing: no clock decides in the next line.',
    },
  },
  create(context) {
    const { sourceCode } = context;
    const { isMeasured, numberOf, resolve } = createTrace(sourceCode);
    const excuses = readExcuses(sourceCode);

    function report(node, messageId, data = {}) {
      const excuse = excuses.before(node);
      if (excuse === undefined) context.report({ node, messageId, data });
      else if (lettersIn(excuse) < MIN_LETTERS) context.report({ node: excuse, messageId: 'reason' });
    }

    function wantWide(node) {
      const ms = node && numberOf(node);
      if (ms >= LEAST_MS && ms < WIDE_MS) report(node, 'narrow', { ms });
    }

    return {
      BinaryExpression(node) {
        const compares = ['<', '<=', '>', '>='].includes(node.operator);
        if (compares && (isMeasured(node.left) || isMeasured(node.right))) report(node, 'compared');
      },
      CallExpression(node) {
        const name = nameOf(node.callee);
        const of = node.callee.type === 'MemberExpression' ? node.callee.object : undefined;
        if (of && ORDER.has(name) && [...expected(of), ...node.arguments].some((value) => isMeasured(value))) report(node, 'compared');
        if (WAITS.test(name)) boundsIn(node).forEach(wantWide);
        if (name === 'setTimeout' && of?.name === 'jest') wantWide(node.arguments[0]);
        if (name === 'race' && of?.name === 'Promise') timersIn(node.arguments[0], resolve).forEach(wantWide);
        wantWide(node.arguments[BOUND_AT[rootOf(node.callee)]]);
      },
      // The bound that a helper of the tests has when it is given none.
      AssignmentPattern({ left, right, parent }) {
        if (BOUND.test(left.name) && WAITS.test(parent.id?.name ?? nameOf(parent.parent.id ?? parent.parent.key))) wantWide(right);
      },
      'Program:exit'() {
        for (const comment of excuses.idle()) context.report({ node: comment, messageId: 'idle' });
      },
    };
  },
};

function readExcuses(sourceCode) {
  const lines = new Map(sourceCode.getAllComments().map((comment) => [comment.loc.end.line, comment]));
  const idle = new Set([...lines.values()].filter(isExcuse));
  /** The comment may have several lines: the one that begins with `clock:` counts, and its text alone. */
  function above(line) {
    for (let comment = lines.get(line - 1); comment !== undefined; comment = lines.get(comment.loc.start.line - 1))
      if (isExcuse(comment)) return comment;
    return undefined;
  }
  return {
    before(node) {
      let statement = node;
      while (!/(Statement|Declaration)$/.test(statement.type)) statement = statement.parent;
      const excuse = above(node.loc.start.line) ?? above(statement.loc.start.line);
      idle.delete(excuse);
      return excuse;
    },
    idle: () => idle,
  };
}

const isExcuse = ({ value }) => /^\s*clock:/.test(value);
const lettersIn = ({ value }) => (value.replace(/^\s*clock:/, '').match(/\p{L}/gu) ?? []).length;

/** What `expect(...)` was given, before `.not` or `.resolves`. */
function expected(node) {
  let root = node;
  while (root.type === 'MemberExpression') root = root.object;
  return root.type === 'CallExpression' && root.callee.name === 'expect' ? root.arguments : [];
}

/** `it` of `it.each(table)('...', run, ms)`. */
function rootOf(callee) {
  let root = callee;
  while (root.type !== 'Identifier') {
    root = root.object ?? root.callee ?? root.tag;
    if (root === undefined) return undefined;
  }
  return root.name;
}

function boundsIn({ arguments: given }) {
  const named = given
    .filter(({ type }) => type === 'ObjectExpression')
    .flatMap(({ properties }) => properties.filter(({ key }) => key && BOUND.test(nameOf(key))).map(({ value }) => value));
  return given.length > 1 ? [...named, given.at(-1)] : named;
}

/** The bounds of the timers in a race: `sleep(ms)`, or a promise that a timer settles, by name too. */
function timersIn(race, resolve) {
  if (race?.type !== 'ArrayExpression') return [];
  return race.elements.flatMap((element) => callsIn(resolve(inner(element)))).flatMap(({ arguments: given }) => given);
}

function callsIn(node) {
  if (node === null || typeof node !== 'object') return [];
  if (Array.isArray(node)) return node.flatMap(callsIn);
  if (node.type === 'CallExpression' && TIMERS.test(nameOf(node.callee))) return [node];
  if (!/^(NewExpression|ArrowFunctionExpression|BlockStatement|ExpressionStatement|AssignmentExpression)$/.test(node.type ?? '')) return [];
  return [node.arguments, node.body, node.expression, node.right].flatMap(callsIn);
}
