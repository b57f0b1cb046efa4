/** What the last message says that the model shall do (bodies.ts `said`). */
export type Wish =
  | { readonly kind: 'tool'; readonly name: 'quick' | 'ordinary'; readonly input: { readonly question: string } }
  | { readonly kind: 'stream' }
  | { readonly kind: 'text' };

/** `calls`: how many tool calls the turn has seen. */
export function wishIn(text: string, calls: number): Wish {
  const [what = 'text', times = '0', number = ''] = text.split(' ');
  const more = calls < Number(times);
  if ((what === 'quick' || what === 'ordinary') && more) return { kind: 'tool', name: what, input: { question: `${number}.${calls}` } };
  return what === 'stream' ? { kind: 'stream' } : { kind: 'text' };
}
