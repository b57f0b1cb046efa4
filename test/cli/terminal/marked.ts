import type * as Library from 'marked' with { 'resolution-mode': 'import' };
import type { BlockLexer } from '../../../src/cli/terminal/markdown.js';

/** `marked` as the chat has it: the same release, in the form that a test can load. */
const { Lexer, Marked } = jest.requireActual<typeof Library>(require.resolve('marked').replace('marked.esm.js', 'marked.umd.js'));

export { Marked };

export const lexBlocks: BlockLexer = (source) => new Lexer().blockTokens(source);
