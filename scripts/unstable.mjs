/** The second tier's judgement of a test that was red and then, run once more and alone, green: it is unstable, once. */

/** More red files than this are no matter of chance, and none is run again. */
export const MAX_RERUN_FILES = 8;

/** Tests that failed in a run, as `{ file, test }` with the file's path below `root`. A file that could not be loaded counts as one. */
export function failedTests(results, root) {
  return (results?.testResults ?? [])
    .filter(({ status }) => status === 'failed')
    .flatMap(({ name, assertionResults }) => {
      const file = name.startsWith(`${root}/`) ? name.slice(root.length + 1) : name;
      const failed = assertionResults.filter(({ status }) => status === 'failed');
      return failed.length === 0 ? [{ file, test: '(the file itself)' }] : failed.map(({ fullName }) => ({ file, test: fullName }));
    });
}

/**
 * What failed in the whole run, judged by what failed of those files when they ran again (`again`), and by the tests that were unstable in
 * an earlier run (`known`): red twice is red, red once is unstable, and unstable for a second time is red too.
 */
export function judge({ failed, again, known }) {
  const redFiles = new Set(again.map(({ file }) => file));
  const isKnown = ({ file, test }) => known.some((one) => one.file === file && one.test === test);
  const once = failed.filter(({ file }) => !redFiles.has(file));
  return {
    red: [...failed.filter(({ file }) => redFiles.has(file)), ...once.filter(isKnown)],
    unstable: once.filter((one) => !isKnown(one)),
  };
}
