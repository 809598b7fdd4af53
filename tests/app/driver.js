// Loaded into Playwright's driver before anything else (NODE_OPTIONS, tests/app/conftest.py).
//
// Each time that an `expect` looks and does not find yet what it waits for, Playwright describes the
// whole page for its message: a fifth of what its tests took there. Nothing else of an `expect`
// changes. Where the name is another one, everything is as without this file.
const Module = require('module');

const NAME = 'ariaSnapshotForExpectFailure(element, options) {';
const compile = Module.prototype._compile;
Module.prototype._compile = function (source, file, ...given) {
  const lean = /coreBundle\.js$/.test(file) ? source.replace(NAME, `${NAME} return;`) : source;
  return compile.call(this, lean, file, ...given);
};
