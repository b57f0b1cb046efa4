/** The MCP library's OAuth: loaded when a server wants a person to sign in, which most do not. */
import type * as Library from '@modelcontextprotocol/client' with { 'resolution-mode': 'import' };
import { loadOptional } from '../../../platform/optional-package.js';

export type AuthLibrary = typeof Library;

const PACKAGE = '@modelcontextprotocol/client';

export function loadAuth(): Promise<AuthLibrary> {
  return loadOptional([PACKAGE], () => import('@modelcontextprotocol/client'));
}
