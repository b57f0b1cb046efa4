import { COMPATIBLE, learnDialect, OPENAI, renderChat } from '../../src/models/openai/render-chat.js';
import { checkChat } from '../support/provider-apis/check-chat.js';
import { request, user } from './builders.js';
import { goldenRequest, oddMessages } from './golden.js';

test('a whole request, byte by byte', () => {
  const body = renderChat(goldenRequest('gpt-test', {}));
  expect(JSON.stringify(body, null, 2)).toMatchInlineSnapshot(`
   "{
     "model": "gpt-test",
     "max_completion_tokens": 1000,
     "tools": [
       {
         "type": "function",
         "function": {
           "name": "read_file",
           "description": "Reads a file.",
           "parameters": {
             "type": "object",
             "properties": {
               "path": {
                 "type": "string"
               }
             },
             "required": [
               "path"
             ]
           }
         }
       }
     ],
     "messages": [
       {
         "role": "system",
         "content": "You are terse."
       },
       {
         "role": "user",
         "content": [
           {
             "type": "image_url",
             "image_url": {
               "url": "data:image/png;base64,aGk="
             }
           },
           {
             "type": "text",
             "text": "What is in these?"
           }
         ]
       },
       {
         "role": "assistant",
         "content": "Let me look.",
         "tool_calls": [
           {
             "type": "function",
             "id": "turn_0001_c1",
             "function": {
               "name": "read_file",
               "arguments": "{\\"path\\":\\"a.txt\\"}"
             }
           },
           {
             "type": "function",
             "id": "turn_0001_c2",
             "function": {
               "name": "read_file",
               "arguments": "{\\"path\\":\\"b.txt\\"}"
             }
           }
         ]
       },
       {
         "role": "tool",
         "tool_call_id": "turn_0001_c1",
         "content": "hello"
       },
       {
         "role": "tool",
         "tool_call_id": "turn_0001_c2",
         "content": "Error: no such file"
       },
       {
         "role": "user",
         "content": "And?"
       },
       {
         "role": "assistant",
         "content": "One is not there."
       },
       {
         "role": "user",
         "content": "Thanks."
       }
     ],
     "stream": true,
     "stream_options": {
       "include_usage": true
     }
   }"
  `);
});

test('what has no words is left out: system, tools', () => {
  expect(renderChat(request({ model: 'gpt-test', system: ' ' }))).toMatchInlineSnapshot(`
   {
     "max_completion_tokens": 1000,
     "messages": [
       {
         "content": "hello",
         "role": "user",
       },
     ],
     "model": "gpt-test",
     "stream": true,
     "stream_options": {
       "include_usage": true,
     },
   }
  `);
});

test('pictures that it cannot take become words; ids, names and inputs are made to fit; outcomes read differently', () => {
  const { messages } = renderChat(request({ model: 'gpt-test', system: '', messages: oddMessages }));
  expect(messages).toMatchInlineSnapshot(`
   [
     {
       "content": [
         {
           "image_url": {
             "url": "https://example.org/a.jpg",
           },
           "type": "image_url",
         },
         {
           "text": "[An image (image/bmp) that cannot be shown here.]",
           "type": "text",
         },
         {
           "text": "[An image (image/png) that cannot be shown here.]",
           "type": "text",
         },
         {
           "text": "[An image (image/png) that cannot be shown here. It is kept as body/7.]",
           "type": "text",
         },
         {
           "text": "look",
           "type": "text",
         },
       ],
       "role": "user",
     },
     {
       "content": null,
       "role": "assistant",
       "tool_calls": [
         {
           "function": {
             "arguments": "{"_value":[1]}",
             "name": "read_file_",
           },
           "id": "t_c",
           "type": "function",
         },
         {
           "function": {
             "arguments": "{"_stored":"{\\"a… (9 bytes in all: body/1)"}",
             "name": "9lives",
           },
           "id": "t_c-2",
           "type": "function",
         },
         {
           "function": {
             "arguments": "{}",
             "name": "read_file",
           },
           "id": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
           "type": "function",
         },
       ],
     },
     {
       "content": "Rejected: this call did not run.
   why",
       "role": "tool",
       "tool_call_id": "t_c",
     },
     {
       "content": "Outcome unknown: this call was interrupted and may or may not have had its effect. Check before repeating it.",
       "role": "tool",
       "tool_call_id": "t_c-2",
     },
     {
       "content": "Cancelled: this call was stopped before it started and did not run.
   half �",
       "role": "tool",
       "tool_call_id": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
     },
   ]
  `);
});

test('its server takes both', () => {
  expect(checkChat(renderChat(goldenRequest('gpt-test', {})))).toBeUndefined();
  expect(checkChat(renderChat(request({ model: 'gpt-test', messages: oddMessages })))).toBeUndefined();
});

test('a model that is made for sound takes it as its bytes, in two formats; of video it gets a notice', () => {
  const audio = [
    { mediaType: 'audio/mpeg', base64: 'aGk=' },
    { mediaType: 'audio/x-wav', base64: 'aGk=' },
    { mediaType: 'audio/ogg', base64: 'aGk=' },
    { mediaType: 'audio/mpeg', url: 'https://example.org/a.mp3' },
  ];
  const video = [{ mediaType: 'video/mp4', ref: 'body/7' }];
  const body = renderChat(request({ model: 'gpt-audio', system: '', messages: [{ ...user('Listen'), audio, video }] }));
  expect(body.messages).toEqual([
    {
      role: 'user',
      content: [
        { type: 'input_audio', input_audio: { data: 'aGk=', format: 'mp3' } },
        { type: 'input_audio', input_audio: { data: 'aGk=', format: 'wav' } },
        { type: 'text', text: '[audio: audio/ogg, 2 bytes; this model does not take audio/ogg like this]' },
        { type: 'text', text: '[audio: audio/mpeg, at https://example.org/a.mp3; this model does not take audio/mpeg like this]' },
        { type: 'text', text: '[video: video/mp4, kept as body/7; this model does not take video]' },
        { type: 'text', text: 'Listen' },
      ],
    },
  ]);
  expect(checkChat(body)).toBeUndefined();
});

test('a request names its conversation for the prompt cache, but not to a server that only speaks as OpenAI does', () => {
  const named = request({ model: 'gpt-test', cacheKey: 'c0ffee' });
  expect(renderChat(named)).toMatchObject({ prompt_cache_key: 'c0ffee' });
  expect(checkChat(renderChat(named))).toBeUndefined();
  expect(renderChat(named, COMPATIBLE)).not.toHaveProperty('prompt_cache_key');
  const refused = { words: 'Unrecognized request argument supplied: prompt_cache_key', status: 400 };
  expect(learnDialect(OPENAI, refused as Parameters<typeof learnDialect>[1])).toEqual({ ...OPENAI, takesCacheKey: false });
});
