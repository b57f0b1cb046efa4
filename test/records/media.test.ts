import { type JsonValue, mediaBytes, pickMedia } from '../../src/records/message.js';
import { userEntry } from '../../src/records/message-media.js';
import { readMessage } from '../../src/conversation/protocol/message.js';
import { answered, applyAll, open, said, take } from '../conversation/drive.js';

const sound = { mediaType: 'audio/mpeg', base64: 'aGVsbG8=' };
const film = { mediaType: 'video/mp4', url: 'https://example.org/a.mp4' };
const picture = { mediaType: 'image/png', ref: 'sha256:ab' };

function read(fields: Record<string, JsonValue>): unknown {
  const checked = readMessage({ text: 'x', ...fields });
  return checked.ok ? (checked.value.kind === 'message' ? pickMedia(checked.value) : checked.value) : checked.reason;
}

describe('what comes with a text', () => {
  test('is images, audio and video; what there is none of is absent', () => {
    expect(read({ images: [picture], audio: [sound], video: [film] })).toEqual({ images: [picture], audio: [sound], video: [film] });
    expect(read({ images: [], audio: [sound] })).toEqual({ audio: [sound] });
    expect(read({})).toEqual({});
  });

  test('may be all there is', () => {
    expect(read({ text: ' ', audio: [sound] })).toEqual({ audio: [sound] });
    expect(read({ text: '/new', video: [film] })).toEqual({ video: [film] });
    expect(read({ text: '/new', video: [] })).toEqual({ kind: 'reset' });
    expect(read({ text: ' ', video: [] })).toMatch(/empty/);
  });

  test.each<[Record<string, JsonValue>, RegExp]>([
    [{ audio: 'a.mp3' }, /^message\.audio must be a list of at most 20$/],
    [{ audio: [{ ...sound, mediaType: 'video/mp4' }] }, /^message\.audio\[0\]\.mediaType must be a type like audio\/mpeg$/],
    [{ video: [film, { ...film, mediaType: 'video/' }] }, /^message\.video\[1\]\.mediaType must be a type like video\/mp4$/],
    [{ video: [{ ...film, mediaType: 'video/mp4\n' }] }, /mediaType/],
    [{ audio: [{ ...sound, url: 'https://example.org/a.mp3' }] }, /^message\.audio\[0\] must have one of url, base64, ref$/],
    [{ video: [{ ...film, url: 'file:///a.mp4' }] }, /^message\.video\[0\]\.url must be an http\(s\) address of at most 8192 characters$/],
    [{ audio: [{ mediaType: 'audio/wav', base64: '!' }] }, /^message\.audio\[0\]\.base64 must be base64$/],
    [{ images: Array(7).fill(picture), audio: Array(7).fill(sound), video: Array(7).fill(film) }, /has 21 .* 20 together$/],
    [{ audio: [{ mediaType: 'audio/wav', base64: 'a'.repeat(1024 * 1024) }] }, /message is 1048577 bytes, the limit is 1048576/],
  ])('is refused by field and limit: %#', (fields, reason) => {
    expect(read(fields)).toMatch(reason);
  });

  test('counts as it travels', () => {
    expect(mediaBytes({ images: [picture], audio: [sound], video: [film] })).toBe(8);
  });
});

test('a message takes its media to the step that writes it, and leaves them behind once it is written', () => {
  const { state, input, done } = take(applyAll(open(), said('m1', { audio: [sound], video: [film] })), 'model-step');
  expect(input.write.messages).toMatchObject([{ text: 'text of m1', audio: [sound], video: [film] }]);
  expect(JSON.stringify(state.outbox)).toContain('mediaType');
  expect(JSON.stringify(applyAll(state, done(answered(input))))).not.toContain('mediaType');
});

test('without audio and video all is stored as it was before there were any', () => {
  const item = applyAll(open(), said('m1', { images: [picture], audio: [], video: [] })).queue[0];
  expect(JSON.stringify(item)).toBe(
    '{"kind":"message","number":1,"messageId":"m1","turn":1,"slot":1,"session":1,"at":1000,"bytes":10,"tokens":1603,"delivery":"queue","text":"text of m1",' +
      '"images":[{"mediaType":"image/png","ref":"sha256:ab"}],"recorded":false}',
  );
  const message = { messageId: 'm1', slot: 1, turn: 'turn_0001', seq: 1, session: 1, ts: 1, text: 'hi' };
  expect(JSON.stringify(userEntry(message, 'hi', pickMedia({ images: [] })).message)).toBe('{"role":"user","text":"hi"}');
});
