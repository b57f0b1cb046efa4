/**
 * Names of files as those file systems compare them that ignore case, invisible characters, dots and blanks at the end, and what
 * stands behind a colon, and that know a long name by a short one (`GIT~1`). For tables of names that are refused or need approval.
 */

/** Lower case. */
export function plainName(name: string): string {
  return name
    .normalize('NFKC')
    .replace(/\p{Default_Ignorable_Code_Point}/gu, '')
    .replace(/(?<=.):.*$/s, '')
    .replace(/[. ]+$/, '')
    .toLowerCase();
}

/** Of a relative path. */
export function plainNames(path: string): string[] {
  return path.split(/[/\\]/).map(plainName);
}

/** Whether a plain name is one of these, which are plain too, or may be the short one of such. */
export function isNamed(name: string, names: readonly string[]): boolean {
  if (names.includes(name)) return true;
  const short = /^([^~.]{1,6})~\d{1,4}(\.[^.]{0,3})?$/.exec(name)?.[1];
  return (
    short !== undefined &&
    names.some(
      (one) =>
        isLong(one) &&
        one
          .replace(/^\.+/, '')
          .replace(/[ .].*$/, '')
          .startsWith(short),
    )
  );
}

/** Only such names have a short one. */
function isLong(name: string): boolean {
  return name.startsWith('.') || !/^[^.]{1,8}(\.[^.]{0,3})?$/.test(name);
}
