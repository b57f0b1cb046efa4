/** Who may open the gateway, where PERDURA_AUTH says it; nothing where it does not. */
import type { Config } from '../../config.js';
import { isExpired, readAuthFile } from '../../gateway/access/auth-file.js';
import { installCommand, isInstalled, needsInWords, OIDC_PACKAGES } from '../../platform/optional-package.js';
import { broken, ok, warning, type Finding } from './finding.js';
import { errorMessage } from '../../platform/errors.js';

export async function checkAuth(
  { authFile }: Pick<Config, 'authFile'>,
  isThere: (name: string) => boolean = isInstalled,
): Promise<Finding[]> {
  if (authFile === undefined) return [];
  try {
    const { tokens, jwt } = await readAuthFile(authFile);
    const expired = tokens.filter((token) => isExpired(token)).map(({ name }) => name);
    const missing = jwt === undefined ? [] : OIDC_PACKAGES.filter((name) => !isThere(name));
    const users = jwt === undefined ? '' : `, users of ${new URL(jwt.issuer).host}`;
    return [
      ok('Gateway', `${tokens.length} tokens${users}`),
      ...(expired.length === 0
        ? []
        : [
            warning(
              'Gateway',
              `${expired.slice(0, 5).join(', ')} opens nothing any more: its time is over`,
              `perdura token revoke ${expired[0]}`,
            ),
          ]),
      ...(missing.length === 0
        ? []
        : [broken('Gateway', `tokens of its identity provider cannot be checked: ${needsInWords(missing)}`, installCommand(missing))]),
    ];
  } catch (error) {
    return [broken('Gateway', errorMessage(error), 'correct that file, or unset PERDURA_AUTH')];
  }
}
