/** Follows a value through one file, as far as syntax tells: which comes from a clock, and which is a number that stands there. */

const METHODS_OF_CLOCKS = {
  Date: ['now'],
  performance: ['now'],
  process: ['hrtime', 'cpuUsage', 'resourceUsage', 'uptime'],
};
/** What a measured time is called where it comes from elsewhere. */
const MEASURED_NAMES = /^(took|elapsed|lasted|duration|waited)(Ms)?$/;
const KEEPS_TIME = new Set(['Number', 'BigInt', 'Date', 'String']);
const ARITHMETIC = new Set(['+', '-', '*', '/', '%', '**', '&', '|', '>>', '>>>']);

function createTrace(sourceCode) {
  /** `path` says which part of a value is meant: `[0, 'at']` of `const [{ at }] = value`. */
  function isMeasured(given, path = [], seen = new Set()) {
    const node = inner(given);
    if (node === undefined || node === null || seen.has(node)) return false;
    const deeper = new Set(seen).add(node);
    const is = (next, at = path) => isMeasured(next, at, deeper);
    switch (node.type) {
      case 'Identifier':
        return isMeasuredName(node, path, deeper);
      case 'MemberExpression':
        return is(node.object, [keyOf(node), ...path]) || MEASURED_NAMES.test(nameOf(node));
      case 'NewExpression':
        return node.callee.name === 'Date' && (node.arguments.length === 0 || is(node.arguments[0], []));
      case 'CallExpression':
        return isClock(node.callee) || comesFromCall(node, path, is);
      case 'BinaryExpression':
        return ARITHMETIC.has(node.operator) && (is(node.left, []) || is(node.right, []));
      case 'UnaryExpression':
        return is(node.argument, []);
      case 'LogicalExpression':
        return is(node.left) || is(node.right);
      case 'ConditionalExpression':
        return is(node.consequent) || is(node.alternate);
      case 'AssignmentExpression':
        return is(node.right);
      case 'ArrayExpression': {
        const [first, ...rest] = path;
        const elements = typeof first === 'number' && first < node.elements.length ? [node.elements[first]] : node.elements;
        return elements.some((element) => element && is(element, typeof first === 'number' ? rest : path));
      }
      case 'SpreadElement':
        return is(node.argument);
      case 'ObjectExpression':
        return node.properties.some((property) => property.key && nameOf(property.key) === path[0] && is(property.value, path.slice(1)));
      default:
        return false;
    }
  }

  function comesFromCall({ callee, arguments: given }, path, is) {
    if (given.some(readsClockThere)) return true;
    if (callee.type === 'Identifier')
      return (KEEPS_TIME.has(callee.name) && given.some((each) => is(each, []))) || returnsOf(callee).some((value) => is(value));
    if (callee.type !== 'MemberExpression') return returnsOf(callee).some((value) => is(value));
    if (callee.object.name === 'Math') return given.some((each) => is(each, []));
    if (callee.object.name === 'Promise') return is(given[0]);
    // `reading.then((read) => ({ read, at: performance.now() }))`, and `times.map((at) => at - begun)`, of each element.
    const each = ['map', 'flatMap'].includes(nameOf(callee)) && typeof path[0] === 'number' ? path.slice(1) : path;
    return is(callee.object, []) || is(callee.object) || given.some((callback) => returnsOf(callback).some((value) => is(value, each)));
  }

  function isMeasuredName(node, path, seen) {
    const variable = variableOf(node);
    const is = (next, at) => isMeasured(next, at, seen);
    if (MEASURED_NAMES.test(node.name) && resolve(node)?.type !== 'Literal') return true;
    if (variable === undefined) return false;
    const fromBirth = variable.defs.some((def) => {
      if (def.type === 'Parameter') return comesFromCaller(def, path, is);
      const loop = def.parent?.parent;
      const from = def.node.init ?? (loop?.type === 'ForOfStatement' ? loop.right : undefined);
      return def.type === 'Variable' && is(from, [...pathIn(def.node.id, def.name), ...path]);
    });
    return (
      fromBirth ||
      variable.references.some(({ identifier, writeExpr, init }) => {
        if (writeExpr && !init) return is(writeExpr, path);
        const { parent } = identifier;
        if (parent.type !== 'MemberExpression' || parent.object !== identifier) return false;
        const user = parent.parent;
        if (user.type === 'AssignmentExpression' && user.left === parent && parent.computed) return is(user.right, []);
        return (
          user.type === 'CallExpression' &&
          ['push', 'unshift', 'add'].includes(nameOf(parent)) &&
          user.arguments.some((value) => is(value, []))
        );
      })
    );
  }

  /** What a function is called with, where the file calls it; a callback takes a part of what it is called on: `ends.map(({ at }) => ...)`. */
  function comesFromCaller({ node, name }, path, is) {
    const at = node.params.findIndex((each) => isWithin(each, name));
    const part = [...pathIn(node.params[at], name), ...path];
    const { callee } = node.parent;
    if (callee?.type === 'MemberExpression') return at < 2 && is(callee.object, part);
    const named = variableOf(node.id ?? node.parent.id ?? {});
    return (named?.references ?? []).some(({ identifier: { parent: call }, identifier }) => {
      return call.type === 'CallExpression' && call.callee === identifier && call.arguments[at] && is(call.arguments[at], part);
    });
  }

  /** What a function gives back, be it named, written in place or held by a constant. */
  function returnsOf(given) {
    const made = isFunction(given) ? given : resolve(given);
    if (!isFunction(made)) return [];
    return made.body.type === 'BlockStatement' ? returnedIn(made.body) : [made.body];
  }

  /** The value that a name stands for, if it is given one and no other. */
  function resolve(node) {
    if (node?.type !== 'Identifier') return node;
    const [def, ...more] = variableOf(node)?.defs ?? [];
    if (def === undefined || more.length > 0) return undefined;
    if (def.type === 'FunctionName') return def.node;
    return def.type === 'Variable' && def.node.id.type === 'Identifier' ? inner(def.node.init) : undefined;
  }

  function variableOf(node) {
    if (node.type !== 'Identifier') return undefined;
    for (let scope = sourceCode.getScope(node); scope !== null; scope = scope.upper) {
      const found = scope.set.get(node.name);
      if (found !== undefined) return found.defs.length > 0 ? found : undefined;
    }
    return undefined;
  }

  function numberOf(given) {
    const node = resolve(inner(given));
    if (node?.type === 'Literal') return typeof node.value === 'number' ? node.value : undefined;
    if (node?.type !== 'BinaryExpression') return undefined;
    const [a, b] = [numberOf(node.left), numberOf(node.right)];
    if (a === undefined || b === undefined) return undefined;
    return { '+': a + b, '-': a - b, '*': a * b, '/': a / b }[node.operator];
  }

  return { isMeasured, numberOf, resolve };
}

/** A program that a page or a child is given as text. */
function readsClockThere(node) {
  const text =
    node.type === 'TemplateLiteral' ? node.quasis.map(({ value }) => value.raw).join(' ') : node.type === 'Literal' ? node.value : '';
  return /\b(performance|Date)\.now\(/.test(String(text));
}

function isClock(callee) {
  const of = callee.type === 'MemberExpression' ? callee.object : undefined;
  const methods = METHODS_OF_CLOCKS[of?.type === 'MemberExpression' ? nameOf(of.object) : of?.name] ?? [];
  // `process.hrtime.bigint()` too.
  return methods.includes(of?.type === 'MemberExpression' ? nameOf(of) : nameOf(callee));
}

/** Without what says nothing about the value: types, `await`, `?.`. */
function inner(node) {
  const passes = ['AwaitExpression', 'ChainExpression', 'TSAsExpression', 'TSNonNullExpression', 'TSSatisfiesExpression'];
  let current = node;
  while (current && passes.includes(current.type)) current = current.argument ?? current.expression;
  return current;
}

/** The last name of `a`, `'a'` and `b.a`. */
function nameOf(node) {
  if (node?.type === 'MemberExpression') return node.computed ? '' : nameOf(node.property);
  return String(node?.name ?? node?.value ?? '');
}

const keyOf = ({ computed, property }) => (computed && typeof property.value === 'number' ? property.value : computed ? '' : property.name);
const isFunction = (node) => /Function(Expression|Declaration)$/.test(node?.type ?? '');
const isWithin = (outer, node) => outer.range[0] <= node.range[0] && node.range[1] <= outer.range[1];

/** Where in a pattern a name stands: `[0, 'at']` in `[{ at }]`. */
function pathIn(pattern, name) {
  if (pattern.type === 'AssignmentPattern') return pathIn(pattern.left, name);
  if (pattern.type === 'ArrayPattern') {
    const at = pattern.elements.findIndex((element) => element && isWithin(element, name));
    return at < 0 ? [] : [at, ...pathIn(pattern.elements[at], name)];
  }
  if (pattern.type !== 'ObjectPattern') return [];
  const property = pattern.properties.find((each) => isWithin(each, name));
  return property?.value ? [nameOf(property.key), ...pathIn(property.value, name)] : [];
}

/** What the `return`s of a block give back, without those of functions inside. */
function returnedIn(node) {
  if (node === null || typeof node !== 'object' || isFunction(node)) return [];
  if (Array.isArray(node)) return node.flatMap(returnedIn);
  if (node.type === 'ReturnStatement') return node.argument ? [node.argument] : [];
  if (!/(Statement|SwitchCase|CatchClause)$/.test(node.type ?? '')) return [];
  return Object.entries(node).flatMap(([key, child]) => (key === 'parent' ? [] : returnedIn(child)));
}

module.exports = { createTrace, inner, isFunction, nameOf };
