import { renderRequest } from '../../src/models/gemini/client.js';
import { checkGemini } from '../support/provider-apis/check-gemini.js';
import { opaque, request, user } from './builders.js';
import { goldenRequest, oddMessages } from './golden.js';

test('a whole request, byte by byte', () => {
  const body = renderRequest(
    goldenRequest('gemini-3-test', {
      afterText: opaque({ type: 'thought_signature', on: 'text', signature: 'dGV4dA==' }, 'gemini'),
      beforeCall: opaque({ type: 'thought_signature', on: 'call', signature: 'Y2FsbA==' }, 'gemini'),
    }),
  );
  expect(JSON.stringify(body, null, 2)).toMatchInlineSnapshot(`
   "{
     "model": "gemini-3-test",
     "contents": [
       {
         "role": "user",
         "parts": [
           {
             "inlineData": {
               "mimeType": "image/png",
               "data": "aGk="
             }
           },
           {
             "text": "What is in these?"
           }
         ]
       },
       {
         "role": "model",
         "parts": [
           {
             "text": "Let me look."
           },
           {
             "text": "",
             "thoughtSignature": "dGV4dA=="
           },
           {
             "functionCall": {
               "name": "read_file",
               "args": {
                 "path": "a.txt"
               }
             },
             "thoughtSignature": "Y2FsbA=="
           },
           {
             "functionCall": {
               "name": "read_file",
               "args": {
                 "path": "b.txt"
               }
             }
           }
         ]
       },
       {
         "role": "user",
         "parts": [
           {
             "functionResponse": {
               "name": "read_file",
               "response": {
                 "output": "hello"
               }
             }
           },
           {
             "functionResponse": {
               "name": "read_file",
               "response": {
                 "error": "no such file"
               }
             }
           }
         ]
       },
       {
         "role": "user",
         "parts": [
           {
             "text": "And?"
           }
         ]
       },
       {
         "role": "model",
         "parts": [
           {
             "text": "One is not there."
           }
         ]
       },
       {
         "role": "user",
         "parts": [
           {
             "text": "Thanks."
           }
         ]
       }
     ],
     "config": {
       "systemInstruction": {
         "parts": [
           {
             "text": "You are terse."
           }
         ]
       },
       "maxOutputTokens": 1000,
       "tools": [
         {
           "functionDeclarations": [
             {
               "name": "read_file",
               "description": "Reads a file.",
               "parametersJsonSchema": {
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
           ]
         }
       ],
       "automaticFunctionCalling": {
         "disable": true
       },
       "automaticContinuation": false
     }
   }"
  `);
});

test('what has no words is left out: system, tools', () => {
  expect(renderRequest(request({ model: 'gemini-3-test', system: ' ' }))).toMatchInlineSnapshot(`
   {
     "config": {
       "automaticContinuation": false,
       "automaticFunctionCalling": {
         "disable": true,
       },
       "maxOutputTokens": 1000,
     },
     "contents": [
       {
         "parts": [
           {
             "text": "hello",
           },
         ],
         "role": "user",
       },
     ],
     "model": "gemini-3-test",
   }
  `);
});

test('pictures that it cannot take become words; ids, names and inputs are made to fit; outcomes read differently', () => {
  const { contents } = renderRequest(request({ model: 'gemini-3-test', system: '', messages: oddMessages }));
  expect(contents).toMatchInlineSnapshot(`
   [
     {
       "parts": [
         {
           "fileData": {
             "fileUri": "https://example.org/a.jpg",
             "mimeType": "image/jpeg",
           },
         },
         {
           "text": "[An image (image/bmp) that cannot be shown here.]",
         },
         {
           "text": "[An image (image/png) that cannot be shown here.]",
         },
         {
           "text": "[An image (image/png) that cannot be shown here. It is kept as body/7.]",
         },
         {
           "text": "look",
         },
       ],
       "role": "user",
     },
     {
       "parts": [
         {
           "functionCall": {
             "args": {
               "_value": [
                 1,
               ],
             },
             "name": "read_file_",
           },
           "thoughtSignature": "skip_thought_signature_validator",
         },
         {
           "functionCall": {
             "args": {
               "_stored": "{"a… (9 bytes in all: body/1)",
             },
             "name": "_9lives",
           },
         },
         {
           "functionCall": {
             "args": {},
             "name": "read_file",
           },
         },
       ],
       "role": "model",
     },
     {
       "parts": [
         {
           "functionResponse": {
             "name": "read_file_",
             "response": {
               "error": "Rejected: this call did not run.
   why",
             },
           },
         },
         {
           "functionResponse": {
             "name": "_9lives",
             "response": {
               "error": "Outcome unknown: this call was interrupted and may or may not have had its effect. Check before repeating it.",
             },
           },
         },
         {
           "functionResponse": {
             "name": "read_file",
             "response": {
               "error": "Cancelled: this call was stopped before it started and did not run.
   half �",
             },
           },
         },
       ],
       "role": "user",
     },
   ]
  `);
});

test('a model before the third takes calls without a signature', () => {
  const { contents } = renderRequest(request({ model: 'gemini-2.5-flash', messages: oddMessages }));
  expect(JSON.stringify(contents)).not.toContain('thoughtSignature');
  expect(JSON.stringify(renderRequest(request({ model: 'gemini-flash-latest', messages: oddMessages })))).toContain('thoughtSignature');
});

test('sound and video go as they are, before the text; what it does not take becomes words', () => {
  const audio = [
    { mediaType: 'audio/mpeg', base64: 'aGk=' },
    { mediaType: 'audio/x-odd', base64: 'aGk=' },
  ];
  const video = [
    { mediaType: 'video/mp4', base64: 'aGk=' },
    { mediaType: 'video/mp4', url: 'https://example.org/a.mp4' },
  ];
  const { contents } = renderRequest(request({ model: 'gemini-3-test', messages: [{ ...user('Listen'), audio, video }] }));
  expect(contents).toEqual([
    {
      role: 'user',
      parts: [
        { inlineData: { mimeType: 'audio/mp3', data: 'aGk=' } },
        { text: '[audio: audio/x-odd, 2 bytes; this model does not take audio/x-odd like this]' },
        { inlineData: { mimeType: 'video/mp4', data: 'aGk=' } },
        { fileData: { mimeType: 'video/mp4', fileUri: 'https://example.org/a.mp4' } },
        { text: 'Listen' },
      ],
    },
  ]);
  expect(checkGemini({ contents }, 'gemini-3-test')).toBeUndefined();
});
