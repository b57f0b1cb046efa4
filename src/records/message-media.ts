/** Messages and what comes with them, apart from the words themselves: no workflow needs it. */
import { pickMedia, type Body, type Entry, type JsonObject, type Media, type Place } from './message.js';

/** What carries pictures, sound, video or documents, without them. */
export function withoutMedia<Carrier extends Media>(carrier: Carrier): Carrier {
  const { images: _i, audio: _a, video: _v, documents: _d, ...rest } = carrier;
  // Each of them is optional.
  return rest as Carrier;
}

/** `tools`: where those lie that came with it. */
export function userEntry(
  {
    messageId,
    slot,
    turn,
    seq,
    session,
    ts,
    echo,
  }: Place & { readonly seq: number; readonly messageId: string; readonly echo?: JsonObject | undefined },
  text: Body,
  media: Media = {},
  tools?: string,
): Entry {
  const message = {
    role: 'user',
    text,
    ...pickMedia(media),
    ...(tools !== undefined && { tools: { ref: tools } }),
    ...(echo && { echo }),
  } as const;
  return { v: 1, slot, session, turn, seq, ts, message, messageId };
}
