/** What npm takes for the name of a new package. */

const MAX_NAME = 214;
const PATTERN = /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/;
/** npm installs no package into one of the same name, and takes the other two for folders of its own. */
const TAKEN = ['perdura', 'node_modules', 'favicon.ico'];

/** Why not; undefined for a name that can be taken. */
export function nameRefusal(name: string): string | undefined {
  if (TAKEN.includes(name)) return `a project cannot be called ${JSON.stringify(name)}`;
  if (name.length <= MAX_NAME && PATTERN.test(name)) return undefined;
  return `${JSON.stringify(name.slice(0, 80))} cannot be the name of a package: lower-case letters, digits, "-", "_" and "." are, up to ${MAX_NAME} of them`;
}

/** The nearest name that can be taken. */
export function nameLike(name: string): string {
  const plain = name
    .toLowerCase()
    .normalize('NFKD')
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[-._]+|[-._]+$/g, '')
    .slice(0, 50);
  return nameRefusal(plain) === undefined ? plain : 'my-agent';
}
