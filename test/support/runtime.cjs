/**
 * Jest's own way to load modules, which reads each module again for each test file. What V8 has made of its source is kept here for as
 * long as the process lives, so that only the first of its files pays for that: a fifth of what loading costs, for each of hundreds.
 */
const vm = require('node:vm');

const { compileFunction } = vm;
/** By file: the source it was made of, and what V8 made of it. */
const known = new Map();

vm.compileFunction = (source, parameters, options) => {
  if (options?.filename === undefined || options.parsingContext === undefined) return compileFunction(source, parameters, options);
  const key = `${options.filename}\n${parameters}`;
  const found = known.get(key);
  if (found?.source === source) return compileFunction(source, parameters, { ...options, cachedData: found.data });
  const compiled = compileFunction(source, parameters, { ...options, produceCachedData: true });
  known.set(key, { source, data: compiled.cachedData });
  return compiled;
};

module.exports = require('jest-runtime');
