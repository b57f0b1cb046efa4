import type * as Marked from 'marked' with { 'resolution-mode': 'import' };
import type { BlockLexer } from '../../../src/cli/terminal/markdown.js';

/** `marked` as the chat has it: the same release, in the form that a test can load. */
const { Lexer } = jest.requireActual<typeof Marked>(require.resolve('marked').replace('marked.esm.js', 'marked.umd.js'));

export const lexBlocks: BlockLexer = (source) => new Lexer().blockTokens(source);
